"""What is written down of an attempt that is over: the truth, which no policy sees."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_sim.base_world import MB
from boathouse_sim.live import doing

if TYPE_CHECKING:
    from boathouse_sim.live.course import Pod
    from boathouse_sim.live.rates import Activity
    from boathouse_sim.work import Reading


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
        lost: Whether it was lost with its node, or preempted.
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


def of_pod(pod: Pod, reading: Reading, *, now_ms: int, lost: bool) -> TaskRecord:
    """Record a task that had a pod of its own."""
    segments = pod.container.segments
    calm = [doing.work_ms(s) * sum(doing.stretches(s, pod, pod.distance, reading, pod.luck)) for s in segments]
    return TaskRecord(
        job=pod.run.spec.id,
        kind=pod.task_class.id.rsplit("/", 1)[1],
        index=pod.task.index,
        node=pod.node,
        distance=None if pod.distance is None else int(pod.distance),
        placed_ms=pod.placed_ms,
        started_ms=pod.started_ms,
        ended_ms=now_ms,
        alone_ms=float(pod.container.work_ms),
        calm_ms=sum(calm),
        suspended_ms=pod.suspended_ms,
        memory_mb=pod.resources.memory_bytes // MB,
        cpu_milli=pod.asked.cpu_milli,
        lost=lost,
    )


def of_inner(pod: Pod, activity: Activity, index: int, *, began_ms: int, now_ms: int) -> TaskRecord:
    """Record a task inside an executor."""
    return TaskRecord(
        job=pod.run.spec.id,
        kind="task",
        index=index,
        node=pod.node,
        distance=None if activity.distance is None else int(activity.distance),
        placed_ms=began_ms,
        started_ms=began_ms,
        ended_ms=now_ms,
        alone_ms=activity.work_ms,
        calm_ms=activity.work_ms * sum(activity.stretch),
        suspended_ms=0,
        memory_mb=pod.resources.memory_bytes // MB,
        cpu_milli=pod.asked.cpu_milli,
        lost=False,
    )
