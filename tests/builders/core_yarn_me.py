"""A moment to look ahead from, for YARN-ME's outlook and timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies import framework, model
from boathouse_policies.yarn_me.outlook import Outlook
from boathouse_policies.yarn_me.timeline import Timeline
from tests.builders import core, core_elastic

if TYPE_CHECKING:
    from collections.abc import Iterable


class Future:
    """Nodes of 8 cores and 10 GiB, and an outlook that learns of jobs and tasks from events alone."""

    def __init__(self, nodes: int = 1) -> None:
        self.nodes = core.nodes(nodes, core.amount(8000, 10), max_pods=1000)
        self.ledger = core.Shell(self.nodes).ledger
        self.running = framework.RunningTasks()
        self.outlook = Outlook(self.running)
        self.reserved: dict[model.NodeName, model.ClassId] = {}
        self.classes: dict[str, list[model.TaskClass]] = {}

    def report(self, event: model.Event) -> None:
        self.running.observe(event)
        self.outlook.observe(event)

    def submit(self, name: str, *classes: tuple[int, int, float], submitted_s: float = 0.0) -> None:
        """Submit a job; classes are (tasks, gib, seconds)."""
        job = core.job(name, submitted_s=submitted_s)
        made = [
            core.task_class(job, size := core.amount(1000, gib), f"c{i}", estimates=estimates(size, seconds))
            for i, (_, gib, seconds) in enumerate(classes)
        ]
        counts = {of.id: count for of, (count, _, _) in zip(made, classes, strict=True)}
        self.classes[name] = made
        self.report(core.submitted(job, *made, now_s=submitted_s, tasks=counts))

    def start(self, name: str, node: int, now_s: float = 0.0) -> None:
        """Place one more task of the job's first class."""
        of = self.classes[name][0]
        placement = core.create(of, self.nodes[node].name, len(self.ledger), job=self.outlook.jobs[of.job].job)
        self.ledger.assume(placement)
        self.report(core.task_event(model.Placed, placement.task, placement.node, now_s, resources=placement.resources))

    def finish(self, name: str, node: int, index: int, now_s: float) -> None:
        """Finish a task of the job's first class."""
        task = core.task(self.classes[name][0], index)
        self.ledger.gone(task.id)
        self.report(core.task_event(model.Finished, task, self.nodes[node].name, now_s, duration_s=now_s))

    def reserve(self, node: int, name: str) -> None:
        """Reserve a node for the job's first class."""
        self.reserved[self.nodes[node].name] = self.classes[name][0].id

    def timeline(self, now_s: float = 0.0, **order) -> Timeline:
        return Timeline(self.outlook, self.ledger.snapshot(now_s), self.reserved, **order)

    def reaches(self, name: str, times_s: Iterable[float], now_s: float = 0.0, **order) -> list[bool]:
        """Whether a job has not ended by these times, as one timeline answers in this order."""
        timeline = self.timeline(now_s, **order)
        return [timeline.reaches(model.JobId(name), time_s) for time_s in times_s]


def estimates(size: model.Resources, seconds: float):
    """Estimates of a map that takes twice as long with less memory."""
    return core_elastic.elastic_estimates(size, seconds, 2.0, step_bytes=core.GIB)
