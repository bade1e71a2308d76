"""What runs: pods of tasks, and the records that are kept of them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boathouse_policies import model
    from boathouse_sim.ground import Spec
    from boathouse_sim.live.course import Course
    from boathouse_sim.live.rates import Activity
    from boathouse_sim.topology import Machine
    from boathouse_sim.work import Container


@dataclasses.dataclass(slots=True, eq=False)
class LiveRun:
    """A job on its way.

    Attributes:
        spec: What it is.
        job: As policies know it.
        course: What becomes of its tasks.
    """

    spec: Spec
    job: model.Job
    submitted_ms: int
    ended_ms: int = -1
    course: Course = dataclasses.field(init=False)


@dataclasses.dataclass(slots=True, eq=False)
class Pod:
    """A task that was placed.

    Attributes:
        run: Its job.
        task: The task.
        task_class: Its class.
        container: What it asked for and does.
        node: Where.
        resources: What it takes now.
        asked: What it takes when it is not suspended.
        distance: Of its input; None for a task that has none in blocks.
        penalty: What its memory makes its work longer by, at least 1.
        luck: What chance makes it longer or shorter by.
        activities: What it does now.
        segment: How many of its segments are done.
        rival: The other attempt of the same task, if one runs.
        is_second: Whether this one was started because the other was slow.
        computed_core_ms: What its ended work computed.
    """

    run: LiveRun
    task: model.Task
    task_class: model.TaskClass
    container: Container
    node: model.NodeName
    machine: Machine
    resources: model.Resources
    asked: model.Resources
    distance: model.Distance | None
    placed_ms: int
    penalty: float = 1.0
    luck: float = 1.0
    started_ms: int = -1
    activities: list[Activity] = dataclasses.field(default_factory=list)
    segment: int = 0
    suspended: bool = False
    suspended_at_ms: int = 0
    suspended_ms: int = 0
    growing: model.Resources | None = None
    rival: Pod | None = None
    is_second: bool = False
    computed_core_ms: float = 0.0

    @property
    def id(self) -> model.TaskId:
        """Of its task."""
        return self.task.id


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """One attempt of one task, as it was: the truth, for claims about tasks.

    Attributes:
        job: Its job.
        kind: map, reduce, driver, executor, or task for one inside an executor.
        index: Within its kind.
        node: Where.
        distance: Of its input; None where it has none in blocks.
        placed_ms: When it was given its node.
        started_ms: When it ran.
        ended_ms: When it ended.
        alone_ms: How long it would have run alone, with its ideal size and its input at hand.
        calm_ms: The same with the size, the distance and the luck that it had: `ended - started` over this is what its
            neighbours cost.
        suspended_ms: How long it was suspended.
        memory_mb: What it was given.
        cpu_milli: The same of CPU.
        lost: Whether it was lost with its node, or gave way.
    """

    job: str
    kind: str
    index: int
    node: str
    distance: int | None
    placed_ms: int
    started_ms: int
    ended_ms: int
    alone_ms: float
    calm_ms: float
    suspended_ms: int
    memory_mb: int
    cpu_milli: int
    lost: bool
