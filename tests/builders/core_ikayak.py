"""A shell for iKayak: maps and reducers of a job are one class each, and tasks can be suspended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies import framework, ikayak, model
from tests.builders import core

if TYPE_CHECKING:
    from collections.abc import Iterable

ONE = core.amount(1000, 1)


class IKayakShell(core.ReportingShell):
    """Nodes of 8 cores and 16 GiB unless given; suspensions happen at once unless `refuses` is set."""

    def __init__(self, nodes: int | list[model.Node] = 1, **config) -> None:
        self.config = ikayak.Config(**config)
        nodes = core.nodes(nodes, core.amount(8000, 16)) if isinstance(nodes, int) else nodes
        super().__init__(nodes, profile=ikayak.build(config=self.config))
        self.running, self.book = self.profile.observers
        self.decided: list[model.Decision] = []
        self.until_s: dict[model.TaskId, float] = {}
        self.refuses = False

    def submit_stages(
        self,
        name: str,
        *,
        submitted_s: float | None = None,
        locations: Iterable[Iterable[str]] | None = None,
        gang_min: int = 0,
        **stages: tuple[int, model.Resources],
    ) -> dict[str, model.TaskClass]:
        """Submit a job with so many tasks of each stage, `map=(count, size)`; `locations` are those of its maps."""
        job = core.job(name, submitted_s=self.now_s if submitted_s is None else submitted_s)
        classes = {
            stage: core.task_class(job, size, stage, stage=model.Stage(stage), gang_min=gang_min)
            for stage, (_, size) in stages.items()
        }
        pending = {stage: core.tasks(classes[stage], count) for stage, (count, _) in stages.items()}
        if locations is not None:
            pending["map"] = [core.task(classes["map"], i, where) for i, where in enumerate(locations)]
        self.submit_job(job, list(classes.values()), [task for tasks in pending.values() for task in tasks])
        return classes

    def cycle(self, now_s: float | None = None, **options) -> framework.Plan:
        """Run a cycle, once suspensions that are over by then have ended; carry its decisions out."""
        for task, until_s in list(self.until_s.items()):
            if now_s is not None and until_s <= now_s:
                self.resume(task, now_s)
        plan = super().cycle(now_s, **options)
        self.decided += plan.decisions
        for decision in plan.decisions:
            if isinstance(decision, model.Suspend):
                self.suspend(decision)
            elif isinstance(decision, model.Resume):
                self.resume(decision.task.id, self.now_s)
        return plan

    def run(
        self,
        name: str,
        on: str,
        *,
        maps: int = 0,
        reduces: int = 0,
        size: model.Resources = ONE,
        more_maps: int = 0,
    ) -> dict[str, model.TaskClass]:
        """A job of which so many tasks run already, on a node; `more_maps` are still to come and are not pending."""
        classes = self.submit_stages(name, map=(0, size), reduce=(0, size))
        job = core.job(name, submitted_s=self.now_s)
        counts = {classes["map"].id: maps + more_maps, classes["reduce"].id: reduces}
        self.report(core.submitted(job, *classes.values(), now_s=self.now_s, tasks=counts))
        for stage, count in (("map", maps), ("reduce", reduces)):
            for task in core.tasks(classes[stage], count):
                self.run_task(task, classes[stage], on)
        return classes

    def run_task(self, task: model.Task, of: model.TaskClass, on: str) -> None:
        """A task runs on a node from now on."""
        charged = {"job": of.job, "queue": model.QueueName("default"), "task_class": of.id}
        self.ledger.observe(core.account(task.id.removeprefix("ns/"), on, of.resources, **charged))
        self.report_task(model.Placed, task, on, resources=of.resources)
        self.report_task(model.Started, task, on)

    def suspend(self, decision: model.Suspend) -> None:
        """Carry a decision out, or refuse it."""
        if self.refuses:
            self.report(model.Refused(now_s=self.now_s, decision=decision, reason="NotSupported"))
            return
        self.until_s[decision.task.id] = decision.until_s
        fields = {"resources": decision.resources, "until_s": decision.until_s}
        self.report_task(model.Suspended, decision.task, decision.node, **fields)

    def resume(self, task: model.TaskId, now_s: float) -> None:
        """A suspended task goes on, if it has not ended."""
        del self.until_s[task]
        if (running := self.running.tasks.get(task)) is not None:
            fields = {"resources": running.resources, "now_s": now_s}
            self.report_task(model.Resumed, _task(running), running.node, **fields)

    def report_reducer(
        self, of: model.TaskClass, index: int, now_s: float, fraction: float, *, phase: str = "shuffle"
    ) -> None:
        """A reducer of 1 GiB of input reports."""
        counters = {"cpu_milli": float(of.resources.cpu_milli), "input_bytes": float(core.GIB)}
        fields = {"now_s": now_s, "fraction": fraction, "phase": phase, "counters": counters}
        task = core.task(of, index)
        self.report_task(model.Progress, task, self.running.tasks[task.id].node, **fields)

    def finish_task(self, of: model.TaskClass, index: int, now_s: float) -> None:
        """A task ends at a time."""
        task, self.now_s = core.task(of, index), now_s
        node = self.running.tasks[task.id].node
        self.end(task.id)
        self.report_task(model.Finished, task, node)

    @property
    def reserved(self) -> set[str]:
        """The nodes that are reserved."""
        return set(self.queue.reserved)


def _task(running: framework.RunningTask) -> model.Task:
    return model.Task(id=running.task, task_class=running.task_class)
