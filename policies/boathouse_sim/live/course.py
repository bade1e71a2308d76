"""A job on its way: its pods, and what becomes of them. Each kind of application has its own course."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from boathouse_policies import model
from boathouse_sim.base_world import Attempt, Run
from boathouse_sim.live.rates import Activity
from boathouse_sim.topology import Machine
from boathouse_sim.work import Container


class Report(NamedTuple):
    """What a running task's runtime says of its progress."""

    fraction: float
    phase: str
    counters: Mapping[str, float]


class Course:
    """What becomes of a job's tasks. The world calls these; what a kind of job does not need is left as it is here."""

    speculative = False  # whether a task may have a second attempt: it is told of both, and of the end of one

    def classes(self) -> Sequence[tuple[model.TaskClass, int]]:
        """Return all its classes, in order, with their numbers of tasks."""
        return ()

    def left(self) -> Mapping[model.ClassId, int]:
        """Return how many tasks of each class are not placed."""
        return {}

    def renew(self, renewed: Callable[[model.TaskClass], model.TaskClass]) -> None:
        """Take over the new estimates of its classes, and submit its pending tasks again (`LiveWorld.wait`)."""

    def container(self, task_class: model.TaskClass) -> Container:
        """Return what a task of a class requests and does."""
        raise KeyError(task_class.id)

    def begin(self) -> None:
        """Submit the job's first pending tasks (`LiveWorld.wait`)."""

    def placed(self, pod: "Pod") -> None:
        """Record that one of the job's tasks was placed."""

    def started(self, pod: "Pod") -> None:
        """Record that one of the job's tasks started."""

    def lost(self, pod: "Pod") -> None:
        """Requeue a lost task of the job."""

    def superseded(self, pod: "Pod") -> None:
        """Record that an attempt was ended because the other attempt of its task has ended."""

    def node_lost(self, node: model.NodeName) -> None:
        """Handle the loss of a node and of what it stored for the job; its tasks there were reported lost before."""

    def scale(self, decision: model.Scale) -> None:
        """Set the number of workers that a policy requests; raise ValueError if it has none to change."""
        raise ValueError(f"{type(self).__name__} has a fixed number of tasks; {decision.workers} workers cannot be had")

    def reserve(self, decision: model.Reservation) -> None:
        """Keep room for an expected task where a cycle placed it."""

    def report(self, pod: "Pod") -> Report | None:
        """Return the report of a running task's runtime; None for those that report nothing."""


@dataclasses.dataclass(slots=True, eq=False, kw_only=True)
class LiveRun(Run):
    """A job on its way, and what becomes of its tasks."""

    course: Course = dataclasses.field(init=False)


@dataclasses.dataclass(slots=True, eq=False)
class Pod(Attempt):
    """A task that was placed, and how it goes."""

    run: LiveRun
    container: Container  # what it asked for and does
    machine: Machine
    resources: model.Resources  # what it takes now
    asked: model.Resources  # what it takes when it is not suspended
    distance: model.Distance | None  # of its input; None for a task that has none in blocks
    placed_ms: int
    source: str = ""  # host on whose disks its input is; empty for its own, and where their load does not count
    penalty: float = 1.0  # what its memory makes its work longer by, at least 1
    luck: float = 1.0  # what chance makes it longer or shorter by
    started_ms: int = -1
    activities: list[Activity] = dataclasses.field(default_factory=list)
    segment: int = 0  # how many of them are done
    suspended: bool = False
    suspended_at_ms: int = 0
    suspended_ms: int = 0
    resuming: bool = False  # whether it has its CPU again, and is about to go on
    growing: model.Resources | None = None
    rival: "Pod | None" = None  # the other attempt of the same task, if one runs
    is_second: bool = False  # whether this one was started because the other was slow
    computed_core_ms: float = 0.0  # of its work that has ended
    waited_ms: int = 0  # how long a reducer had nothing to copy, or was suspended after that
    opened_ms: int = -1  # when its job's last map had ended; -1 before, or where it started later

    @property
    def id(self) -> model.TaskId:
        """Of its task."""
        return self.task.id

    def stop_counting_suspension(self, now_ms: int) -> None:
        """Count the time of a suspension that is over now; nothing for what is not suspended."""
        if not self.suspended:
            return
        self.suspended_ms += now_ms - self.suspended_at_ms
        if self.opened_ms >= 0:
            self.waited_ms += now_ms - max(self.suspended_at_ms, self.opened_ms)
