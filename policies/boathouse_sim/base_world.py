"""What every simulation stands on: virtual time, the operator's ledger and queue, nodes, and jobs that come."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from boathouse_policies import framework, model
from boathouse_sim import results
from boathouse_sim.clock import Clock, Priority
from boathouse_sim.workload import Spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from boathouse_sim.topology import Machine
    from boathouse_sim.workload import Cluster, Workload

QUEUE = model.QueueName("default")
NO_LIMIT = 1 << 40  # YARN does not count containers
MB = 1 << 20
ZONE_LABEL = "topology.kubernetes.io/zone"


class StuckError(RuntimeError):
    """The simulation cannot end: tasks are pending and no event will change that. Names them and their reasons."""


class Run(Protocol):
    """A job on its way."""

    @property
    def spec(self) -> Spec:
        """What it is."""
        ...

    job: model.Job
    submitted_ms: int
    ended_ms: int


S = TypeVar("S", bound=Spec)
R = TypeVar("R", bound=Run)


class BaseWorld(Generic[S, R]):
    """The part of a simulation that does not depend on how tasks run, from the first submission to the last end.

    Attributes:
        freed: Nodes where room came free since the last cycles.
        renewed: Whether a class is new since then, so that every node is worth a look.
    """

    def __init__(
        self, workload: Workload, profile: framework.Profile, specs: Sequence[S], arrive: Callable[[S], None]
    ) -> None:
        workload.check()
        self.workload = workload
        self.profile = profile
        self.clock = Clock()
        self.axis = model.Axis()
        self.ledger = framework.Ledger(self.axis)
        self.room = framework.SchedulingQueue(self.axis, workload.queues or [model.Queue.of(QUEUE)])
        self.tally = results.Tally()
        self.cycles = 0
        self.ended_jobs = 0
        self.freed: set[model.NodeName] = set()
        self.renewed = False
        self.reserved_milli = 0  # for expected tasks, which are not there yet
        self._kept_idle: tuple[int, int] = 0, 0  # millicores that are kept for gangs, and since when
        self.runs: dict[model.JobId, R] = {}
        self.nodes = nodes_of(workload.cluster)
        for node in self.nodes:
            self.ledger.set_node(node)
        self._expected = len(specs)
        self._arrive = arrive
        self._followers: dict[str, list[S]] = {}
        self._digits = max(len(spec.id) for spec in specs)
        self._turns = {spec.id: turn for turn, spec in enumerate(specs)}
        for spec in specs:
            if spec.after is not None:
                self._followers.setdefault(spec.after, []).append(spec)
            else:
                self.clock.at(spec.submit_ms or 0, Priority.ARRIVAL, Call(self._arrive, spec))

    def job_id(self, spec: S) -> model.JobId:
        """Return its name for policies: of equal length, so ties are broken in the order of the workload."""
        return model.JobId(spec.id.zfill(self._digits))

    @property
    def waits(self) -> bool:
        """Whether any task waits."""
        return len(self.room) > 0

    def run_cycles(self, cycle: Callable[[Iterable[model.NodeName] | None], None], *, once: bool = False) -> None:
        """Run cycles until nothing more can be placed, for shells in which tasks start when they fit."""
        looks = self.room.tick(self.clock.now_s)
        if self.profile.node_driven:
            while once or ((self.freed or self.renewed) and self.waits):
                # What must start together may fit on nodes of which none is enough alone: it is offered all of them.
                is_whole = self.renewed or once or self.room.sorted_classes().gangs
                offered = None if is_whole else self.freed
                once = self.renewed = False
                cycle(offered)
                if not self.renewed:
                    break
        else:
            while looks or once:
                once = False
                cycle(None)
                looks = self.room.tick(self.clock.now_s)
        self.freed.clear()
        self.renewed = False

    def decide(
        self, offered: Iterable[model.NodeName] | None = None, *, max_per_node: int | None = None, park: bool
    ) -> Sequence[model.Decision]:
        """Run a cycle and settle it in the scheduling queue.

        Args:
            offered: The nodes that it may use; None for all.
            max_per_node: Most tasks that it may place on one.
            park: As for `SchedulingQueue.settle`.

        Returns:
            What it decides. Its plan is gone, so that the ledger need not keep what it was made of.
        """
        self.cycles += 1
        now_s = self.clock.now_s
        view = self.ledger.snapshot(now_s, offered=offered, max_per_node=max_per_node)
        plan = framework.run_cycle(self.room, self.profile, view)
        self.room.apply(plan, now_s, park=park)
        return plan.decisions

    def kept_refusal(self, node: model.NodeName, more: Sequence[int]) -> str:
        """Return why a running task may not take so much more of a node, for it is kept; empty if it may."""
        free = self.ledger.free(node)
        return "" if free is None else self.room.kept_room.refusal(node, free, more)

    def note_kept(self) -> None:
        """Count what was kept for gangs and idle since the last call; called after the cycles of each moment."""
        milli, since_ms = self._kept_idle
        self.tally.kept_idle_core_ms += milli * (self.clock.now_ms - since_ms) // 1000
        kept = self.room.kept_room
        free = [(node, room) for node in kept.nodes() if (room := self.ledger.free(node)) is not None]
        idle_milli = sum(kept.idle(node, room)[model.CPU] for node, room in free)
        self._kept_idle = idle_milli + self.reserved_milli, self.clock.now_ms

    def finished(self) -> results.Outcome:
        """Return the outcome when no events are left.

        Raises:
            StuckError: Jobs have not ended all the same.
        """
        if self.ended_jobs < self._expected:
            raise StuckError(self._stuck())
        return self._outcome()

    def _stuck(self) -> str:
        """Say which jobs have not ended, and why their tasks are pending: by a cycle that is not carried out."""
        jobs = [run.spec.id for run in self.runs.values() if run.ended_ms < 0]
        self.room.nodes_changed()  # what was found unschedulable before is looked at too
        plan = framework.run_cycle(self.room, self.profile, self.ledger.snapshot(self.clock.now_s))
        tasks = [
            f"{diagnosis.count} of {diagnosis.task_class} ({diagnosis.code.value}: {diagnosis.message})"
            for diagnosis in plan.diagnoses()
        ]
        kept = [f"{node} for {owner}" for node, owner in self.room.reserved.items()]
        said = {"pending tasks": tasks, "reserved nodes": kept}
        rest = "".join(f"; {what}: {_first(texts)}" for what, texts in said.items() if texts)
        return f"no event is left and {self._expected - self.ended_jobs} jobs have not ended: {_first(jobs)}{rest}"

    @property
    def over(self) -> bool:
        """Whether every job has ended."""
        return self.ended_jobs == self._expected

    def _outcome(self) -> results.Outcome:
        submitted = (run for run in self.runs.values() if run.job.probe_of is None)
        runs = sorted(submitted, key=lambda run: self._turns[run.spec.id])
        first = min(run.submitted_ms for run in runs)
        return results.summarise(
            [run.ended_ms - run.submitted_ms for run in runs],
            makespan_ms=max(run.ended_ms for run in runs) - first,
            tally=self.tally,
            cluster=self.workload.cluster,
            events=self.clock.events + self.cycles,
        )

    def end_job(self, run: R) -> None:
        """Submit the jobs that waited for the end of all of the job."""
        run.ended_ms = self.clock.now_ms
        self.ended_jobs += run.job.probe_of is None
        self.room.withdraw(run.job.id)
        if self.profile.observers:
            self.notify(model.Ended(now_s=self.clock.now_s, job=run.job.id, succeeded=True))
        for spec in self._followers.get(run.spec.id, ()):
            self.clock.at(self.clock.now_ms, Priority.ARRIVAL, Call(self._arrive, spec))

    def notify(self, event: model.Event) -> None:
        """Notify the observers."""
        for observer in self.profile.observers:
            observer.observe(event)

    def notify_placed(self, decision: model.Placement, second_of: model.TaskId | None = None) -> None:
        """Notify the observers of an executed placement; `second_of` is the task that a second attempt repeats."""
        self.notify(
            model.Placed(
                now_s=self.clock.now_s,
                task=decision.task.id,
                task_class=decision.task_class.id,
                job=decision.job.id,
                node=decision.node,
                resources=decision.resources,
                distance=decision.distance,
                second_of=second_of,
            )
        )

    def notify_refused(self, decision: model.Decision, reason: str) -> None:
        """Notify the observers that a decision will not be executed."""
        self.notify(model.Refused(now_s=self.clock.now_s, decision=decision, reason=reason))


AnyWorld: TypeAlias = BaseWorld[Any, Any]


Call = functools.partial
"""A method and its argument, for the heap."""


def _first(texts: Sequence[str]) -> str:
    """Format the first few, and say that there are more."""
    return ", ".join([*texts[:_MOST_NAMED], *(["..."] if len(texts) > _MOST_NAMED else [])])


_MOST_NAMED = 5


def nodes_of(cluster: Cluster) -> Sequence[model.Node]:
    """Return the nodes of a cluster, as policies see them."""
    if cluster.machines:
        return [_node(machine) for machine in cluster.machines]
    digits = len(str(cluster.nodes - 1))
    room = model.Resources(cpu_milli=round(cluster.node_cores * 1000), memory_bytes=cluster.node_mem_mb * MB)
    return [
        model.Node(
            name=model.NodeName(f"n{i:0{digits}}"), allocatable=room, max_pods=NO_LIMIT, rack=f"r{i % cluster.racks}"
        )
        for i in range(cluster.nodes)
    ]


def _node(machine: Machine) -> model.Node:
    labels = dict(machine.labels)
    if machine.site:
        labels[ZONE_LABEL] = machine.site
    return model.Node(
        name=model.NodeName(machine.name),
        allocatable=model.Resources(cpu_milli=round(machine.cores * 1000), memory_bytes=machine.mem_mb * MB),
        max_pods=NO_LIMIT,
        labels=labels,
        server=machine.server or None,
        rack=machine.rack or None,
    )
