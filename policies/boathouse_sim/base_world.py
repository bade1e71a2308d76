"""What every simulation stands on: virtual time, the operator's ledger and queue, nodes, and jobs that come."""

import abc
import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from boathouse_policies import framework, model
from boathouse_sim import results
from boathouse_sim.clock import Beat, Clock, Priority
from boathouse_sim.work import Submission
from boathouse_sim.workload import Cluster, Workload

QUEUE = model.QueueName("default")
NO_LIMIT = 1 << 40  # YARN does not count containers
MB = 1 << 20
ZONE_LABEL = "topology.kubernetes.io/zone"


class StuckError(RuntimeError):
    """The simulation cannot end: tasks are pending and no event will change that. Names them and their reasons."""


@dataclasses.dataclass(slots=True, eq=False, kw_only=True)
class Run:
    """A job on its way: what it is, and as policies know it."""

    spec: Submission
    job: model.Job
    submitted_ms: int
    ended_ms: int = -1


@dataclasses.dataclass(slots=True, eq=False)
class Attempt:
    """A task that was placed."""

    run: Run
    task: model.Task
    task_class: model.TaskClass
    node: model.NodeName


S = TypeVar("S", bound=Submission)
R = TypeVar("R", bound=Run)


class BaseWorld(abc.ABC, Generic[S, R]):
    """The part of a simulation that does not depend on how tasks run, from the first submission to the last end."""

    def __init__(self, workload: Workload, profile: framework.Profile, specs: Sequence[S]) -> None:
        workload.check()
        self.workload, self.profile = workload, profile
        self.clock = Clock()
        self.axis = model.Axis()
        self.ledger = framework.Ledger(self.axis)
        self.room = framework.SchedulingQueue(self.axis, workload.queues or [model.Queue.of(QUEUE)])
        self.tally = results.Tally()
        self.cycles, self.ended_jobs = 0, 0
        self.freed: set[model.NodeName] = set()  # where room came free since the last cycles
        self.renewed = False  # whether a class is new since then, so that every node is worth a look
        self.reserved_milli = 0  # for expected tasks, which are not there yet
        self._kept_idle: tuple[int, int] = 0, 0  # millicores that are kept for gangs, and since when
        self.runs: dict[model.JobId, R] = {}
        self.nodes = nodes_of(workload.cluster)
        for node in self.nodes:
            self.ledger.set_node(node)
        self._followers: dict[str, list[S]] = {}
        self._digits = max(len(spec.id) for spec in specs)
        self._turns = {spec.id: turn for turn, spec in enumerate(specs)}
        for spec in specs:
            if spec.after is not None:
                self._followers.setdefault(spec.after, []).append(spec)
            else:
                self.clock.after(spec.submit_ms or 0, self._arrive, spec)

    @abc.abstractmethod
    def _arrive(self, spec: S) -> None:
        """Submit a job."""

    def new_job(self, spec: S, job_id: str = "", probe_of: model.JobId | None = None) -> model.Job:
        """Return a job for policies. Names are of equal length, so ties are broken in the order of the workload."""
        return model.Job(
            id=model.JobId(job_id or spec.id.zfill(self._digits)),
            queue=model.QueueName(spec.queue),
            submitted_s=self.clock.now_s,
            name=spec.id,
            namespace=model.NamespaceName(spec.namespace),
            kind=spec.program,
            probe_of=probe_of,
        )

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
        """Run a cycle on the nodes on offer (None: all) and settle it in the scheduling queue; return its decisions."""
        self.cycles += 1
        view = self.ledger.snapshot(self.clock.now_s, offered=offered, max_per_node=max_per_node)
        plan = framework.run_cycle(self.room, self.profile, view)
        self.room.apply(plan, view.now_s, park=park)
        return plan.decisions

    def kept_refusal(self, node: model.NodeName, more: Sequence[int]) -> str:
        """Return why a running task may not take so much more of a node, for it is kept; empty if it may."""
        free = self.ledger.free(node)
        return "" if free is None else self.room.kept_room.refusal(node, free, more)

    def note_freed(self, freed: framework.Freed | None) -> None:
        """Reconsider the tasks that some freed room helps."""
        if freed is not None:
            self.room.capacity_freed(freed, self.ledger.free(freed.node))
            self.freed.add(freed.node)

    def note_kept(self) -> None:
        """Count what was kept for gangs and idle since the last call; called after the cycles of each moment."""
        milli, since_ms = self._kept_idle
        self.tally.kept_idle_core_ms += milli * (self.clock.now_ms - since_ms) // 1000
        kept = self.room.kept_room
        free = [(node, room) for node in kept.nodes() if (room := self.ledger.free(node)) is not None]
        idle_milli = sum(kept.idle(node, room)[model.CPU] for node, room in free)
        self._kept_idle = idle_milli + self.reserved_milli, self.clock.now_ms

    def finished(self) -> results.Outcome:
        """Return the outcome when no events are left; raise StuckError if jobs have not ended all the same."""
        if not self.over:
            raise StuckError(self._stuck())
        submitted = (run for run in self.runs.values() if run.job.probe_of is None)
        runs = sorted(submitted, key=lambda run: self._turns[run.spec.id])
        return results.summarise(
            [run.ended_ms - run.submitted_ms for run in runs],
            makespan_ms=max(run.ended_ms for run in runs) - min(run.submitted_ms for run in runs),
            tally=self.tally,
            cluster=self.workload.cluster,
            events=self.clock.events + self.cycles,
        )

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
        left = len(self._turns) - self.ended_jobs
        return f"no event is left and {left} jobs have not ended: {_first(jobs)}{rest}"

    @property
    def over(self) -> bool:
        """Whether every job has ended."""
        return self.ended_jobs == len(self._turns)

    def end_job(self, run: R) -> None:
        """Submit the jobs that waited for the end of all of the job."""
        run.ended_ms = self.clock.now_ms
        self.ended_jobs += run.job.probe_of is None
        self.room.withdraw(run.job.id)
        if self.profile.observers:
            self.notify(model.Ended(now_s=self.clock.now_s, job=run.job.id, succeeded=True))
        for spec in self._followers.get(run.spec.id, ()):
            self.clock.after(0, self._arrive, spec)

    def notify(self, event: model.Event) -> None:
        """Notify the observers."""
        for observer in self.profile.observers:
            observer.observe(event)

    def notify_submitted(
        self,
        job: model.Job,
        classes: Sequence[tuple[model.TaskClass, int]],
        left: Mapping[model.ClassId, int] | None = None,
    ) -> None:
        """Notify the observers, if there are any, of a job's classes with their tasks, or with those that are left."""
        if self.profile.observers:
            tasks = {task_class.id: count for task_class, count in classes} if left is None else left
            task_classes = tuple(task_class for task_class, _ in classes)
            self.notify(model.Submitted(now_s=self.clock.now_s, job=job, classes=task_classes, tasks=tasks))

    def about(self, task: Attempt) -> model.About:
        """Return the fields that every event of a task has."""
        now_s, of, job = self.clock.now_s, task.task_class.id, task.run.job.id
        return {"now_s": now_s, "task": task.task.id, "task_class": of, "job": job, "node": task.node}

    def notify_placed(self, task: Attempt, decision: model.Placement, second_of: model.TaskId | None = None) -> None:
        """Notify the observers of an executed placement; `second_of` is the task that a second attempt repeats."""
        if self.profile.observers:
            size, distance = decision.resources, decision.distance
            self.notify(model.Placed(**self.about(task), resources=size, distance=distance, second_of=second_of))

    def notify_refused(self, decision: model.Decision, reason: str) -> None:
        """Notify the observers that a decision will not be executed."""
        self.notify(model.Refused(now_s=self.clock.now_s, decision=decision, reason=reason))


AnyWorld: TypeAlias = BaseWorld[Any, Any]

Call = functools.partial  # a method and its arguments, for the heap


class Shell:
    """Drives a world."""

    world: AnyWorld
    to_ms: Callable[[float], int] = staticmethod(math.ceil)  # the whole millisecond at which a wait expires

    def advance(self) -> bool:
        """Process one event; after the last of a millisecond, what follows from them. Return False at the end."""
        clock = self.world.clock
        if not clock.step():
            return False
        if clock.next_ms() != clock.now_ms:
            self._settle()
        return True

    def _settle(self) -> None:
        """Do what follows from the events of a millisecond: nothing, where all happens at heartbeats."""

    def look_at(self, decision: model.Reservation | model.Wait) -> None:
        """Schedule a cycle for when a wait expires: time itself is the event."""
        if decision.until_s is not None and decision.until_s > self.world.clock.now_s:
            self._look_at_ms(self.to_ms(decision.until_s * 1000))

    def _look_at_ms(self, at_ms: int) -> None:
        self.world.clock.at(at_ms, Priority.ARRIVAL, self._look_again, background=True)

    def _look_again(self) -> None:
        self.world.renewed = True

    def beats(self, heartbeat: Callable[[model.NodeName], None]) -> dict[model.NodeName, Beat]:
        """Return the heartbeats of the nodes, spread over a period, of YARN's protocol (`Timing`)."""
        clock, nodes, timing = self.world.clock, self.world.nodes, self.world.workload.timing
        period_ms, priority = timing.node_heartbeat_ms, Priority.NODE_HEARTBEAT
        clock.patience_ms += _MOST_PERIODS * (period_ms + timing.am_heartbeat_ms)
        return {
            node.name: Beat(
                clock, period_ms, round(i * period_ms / len(nodes)) % period_ms, priority, Call(heartbeat, node.name)
            )
            for i, node in enumerate(nodes)
        }


_MOST_PERIODS = 10
"""Heartbeats between two that change something, at most: a master's last three, and those that launch a container."""


def _first(texts: Sequence[str]) -> str:
    return ", ".join([*texts[:_MOST_NAMED], *(["..."] if len(texts) > _MOST_NAMED else [])])


_MOST_NAMED = 5


def size(cores: float, mem_mb: int) -> model.Resources:
    """Return the size of a task, or of a node."""
    return model.Resources(cpu_milli=round(cores * 1000), memory_bytes=mem_mb * MB)


def tasks_of(task_class: model.TaskClass, indexes: Iterable[int]) -> list[model.Task]:
    """Return the tasks of a class with these indexes."""
    return [model.Task(id=model.TaskId(f"{task_class.id}-{i}"), task_class=task_class.id, index=i) for i in indexes]


def nodes_of(cluster: Cluster) -> Sequence[model.Node]:
    """Return the nodes of a cluster, as policies see them."""
    return [
        model.Node(
            name=model.NodeName(machine.name),
            allocatable=size(machine.cores, machine.mem_mb),
            max_pods=NO_LIMIT,
            labels=dict(machine.labels) | ({ZONE_LABEL: machine.site} if machine.site else {}),
            server=machine.server or None,
            rack=machine.rack or None,
        )
        for machine in cluster.each()
    ]
