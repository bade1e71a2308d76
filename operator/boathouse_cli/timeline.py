"""Compute the timeline of a job, of a Spark application and of an MRCluster: what each attempt did when. Pure.

Kubernetes' times have a resolution of one second, the runtime's of a millisecond. Where they conflict, the runtime's
times are used. Pods of Spark have only the times of Kubernetes. Spark deletes executors when a driver ends; events
about them remain for an hour (`sparkapps.gone_executors`). Of a driver whose pod is gone, the status keeps the times,
and of an MRCluster the last changes of its size.
"""

import dataclasses
import enum
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from boathouse_cli import model, mrclusters, sparkapps
from boathouse_task.contract import TaskType

RESOLUTION_S: Final = 1.0
"""Kubernetes truncates times to whole seconds: an event may be this much later than its time."""


class Activity(enum.Enum):
    """What a job or a task does in a span of time, in the order of a task's life. The value is what users read."""

    WAITING = "pending"
    STARTING = "starting pods"
    SETUP = "setup"
    MAP = "read and map"
    SORT = "sort and combine"
    UPLOAD = "upload"
    WAIT_FOR_MAPS = "waiting for maps"
    SHUFFLE = "shuffle"
    REDUCE = "merge and reduce"
    COMMIT = "commit"
    WAIT_FOR_EXECUTORS = "waiting for executors"
    EXECUTORS = "executors running"
    DRIVER = "driver running"
    RUNNING = "running"


_BY_PHASE: Final = {
    "list": Activity.SETUP,
    "race": Activity.SETUP,
    "post": Activity.SETUP,
    "read": Activity.MAP,
    "sort": Activity.SORT,
    "upload": Activity.UPLOAD,
    "wait": Activity.WAIT_FOR_MAPS,
    "shuffle": Activity.SHUFFLE,
    "reduce": Activity.REDUCE,
    "commit": Activity.COMMIT,
    "verify": Activity.COMMIT,
    "promote": Activity.COMMIT,
    "clean": Activity.COMMIT,
}
"""The runtime's phases (`boathouse_task.contract.TaskResult.timings`)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One activity from `start_s` to `end_s` (seconds since the epoch)."""

    activity: Activity
    start_s: float
    end_s: float

    @property
    def duration_s(self) -> float:
        """Duration, never negative."""
        return self.end_s - self.start_s


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One attempt's life in segments that follow one another."""

    pod: model.TaskPod
    segments: tuple[Segment, ...]

    @property
    def start_s(self) -> float:
        """When its pod was bound; for a pod without a node, when it was created."""
        return self.segments[0].start_s

    @property
    def end_s(self) -> float:
        """When it ended, or now."""
        return self.segments[-1].end_s


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The nodes that a cluster had from `start_s` to `end_s`."""

    start_s: float
    end_s: float
    core: int
    transient: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A job's attempts, and its critical path: segments without gap or overlap from its creation to its end."""

    job: model.Job
    end_s: float
    bars: tuple[Bar, ...]
    critical_path: tuple[Segment, ...]
    path_name: str = "critical path"  # in the picture
    levels: tuple[Level, ...] = ()  # of the size of a cluster

    @property
    def duration_s(self) -> float:
        """From the job's creation to its end, or to now."""
        return self.end_s - self.job.created_s


def build(job: model.Job, pods: Iterable[model.TaskPod], *, now_s: float) -> Timeline:
    """Return the timeline of a job that ended or still runs; pods that are gone leave gaps, shown as waiting."""
    end_of_running_s = job.completed_s or now_s
    bars = _in_order(bar(pod, now_s=end_of_running_s) for pod in pods)
    end_s = max([end_of_running_s, *(attempt.end_s for attempt in bars)])
    return Timeline(job=job, end_s=end_s, bars=bars, critical_path=_critical_path(job.created_s, end_s, bars))


def bar(pod: model.TaskPod, *, now_s: float) -> Bar:
    """Return an attempt's segments: starting, then the runtime's phases or, without these, running."""
    timings = pod.result.timings if pod.result else []
    if not timings:
        return plain_bar(pod, Activity.RUNNING, now_s=now_s)
    phases, default = ({}, Activity.SETUP) if pod.task_type == TaskType.SETUP else (_BY_PHASE, Activity.RUNNING)
    spans = [(phases.get(timing.phase, default), timing.end_ms / 1000) for timing in timings]
    return Bar(pod=pod, segments=_joined(pod.placed_s, [(Activity.STARTING, timings[0].start_ms / 1000), *spans]))


def plain_bar(pod: model.TaskPod, running: Activity, *, now_s: float) -> Bar:
    """What a pod did by Kubernetes' times alone: starting, then `running` until it ended or now."""
    ended_s = pod.finished_s or now_s
    first = (Activity.STARTING if pod.node else Activity.WAITING, pod.started_s or ended_s)
    return Bar(pod=pod, segments=_joined(pod.placed_s, [first, (running, ended_s)]))


def seconds_by_activity(segments: Iterable[Segment]) -> dict[Activity, float]:
    """Return sums of durations by activity."""
    sums = dict.fromkeys(Activity, 0.0)
    for segment in segments:
        sums[segment.activity] += segment.duration_s
    return sums


def _joined(start_s: float, ends_s: Sequence[tuple[Activity, float]]) -> tuple[Segment, ...]:
    """Return segments without gaps or overlaps: each begins at the end of the previous one."""
    times_s = itertools.accumulate((end_s for _, end_s in ends_s), max, initial=start_s)
    return tuple(
        Segment(activity=activity, start_s=start_s, end_s=end_s)
        for (activity, _), (start_s, end_s) in zip(ends_s, itertools.pairwise(times_s), strict=True)
    )


def _critical_path(start_s: float, end_s: float, bars: Sequence[Bar]) -> tuple[Segment, ...]:
    """Walk back from the job's end through the last attempt, then through each attempt that the later one awaited."""
    path: list[Segment] = []
    at_s, gap = end_s, Activity.WAITING
    left = list(bars)
    while (last := _last_to_end(left, at_s)) is not None:
        left.remove(last)
        _step_back(path, gap, last.end_s, at_s)
        at_s = min(at_s, last.end_s)
        gap = Activity.WAITING
        for segment in reversed(last.segments):
            if segment.activity is Activity.WAIT_FOR_MAPS:
                gap = Activity.WAIT_FOR_MAPS
                left = [bar for bar in left if bar.pod.task_type == TaskType.MAP or bar.end_s <= last.start_s]
                break
            _step_back(path, segment.activity, segment.start_s, at_s)
            at_s = min(at_s, segment.start_s)
        if gap is Activity.WAITING:
            at_s = _correct_truncation(path, at_s, left)
    _step_back(path, Activity.WAITING, start_s, at_s)
    return tuple(reversed(path))


def _step_back(path: list[Segment], activity: Activity, start_s: float, end_s: float) -> None:
    if start_s < end_s:
        path.append(Segment(activity=activity, start_s=start_s, end_s=end_s))


def _correct_truncation(path: list[Segment], at_s: float, left: Sequence[Bar]) -> float:
    """Move the start of an attempt to the end of another in the same second: Kubernetes truncates times to seconds."""
    enabler = _last_to_end(left, at_s + RESOLUTION_S)
    if enabler is None or enabler.end_s <= at_s or not path or path[-1].activity is not Activity.STARTING:
        return at_s
    starting = path.pop()
    moved_s = min(enabler.end_s, starting.end_s)
    _step_back(path, Activity.STARTING, moved_s, starting.end_s)
    return moved_s


def _last_to_end(bars: Iterable[Bar], at_s: float) -> Bar | None:
    ended = (bar for bar in bars if bar.end_s <= at_s)
    return max(ended, key=lambda bar: (bar.end_s, bar.pod.name), default=None)


def _in_order(bars: Iterable[Bar]) -> tuple[Bar, ...]:
    return tuple(sorted(bars, key=lambda bar: (bar.start_s, bar.pod.name)))


_RUNNING: Final = {model.DRIVER: Activity.DRIVER, model.EXECUTOR: Activity.EXECUTORS}


def of_spark(app: model.Job, pods: Iterable[model.TaskPod], *, now_s: float) -> Timeline:
    """Return the timeline of an application that ended or still runs."""
    found = list(pods)
    found += _gone_drivers(app, {pod.attempt for pod in found if pod.task_type == model.DRIVER})
    until_s = app.completed_s or now_s
    bars = _in_order(plain_bar(pod, _RUNNING.get(pod.task_type, Activity.RUNNING), now_s=until_s) for pod in found)
    end_s = max([until_s, *(bar.end_s for bar in bars if bar.pod.task_type == model.DRIVER)])
    path = tuple(segment for segment in _path(app.created_s, end_s, bars) if segment.duration_s > 0)
    return Timeline(job=app, end_s=end_s, bars=bars, critical_path=path)


def _gone_drivers(app: model.Job, drawn_attempts: set[int]) -> Iterator[model.TaskPod]:
    for attempt in app.attempts if isinstance(app, sparkapps.SparkApp) else ():
        if attempt.number not in drawn_attempts and attempt.started_s is not None and attempt.ended_s is not None:
            yield model.TaskPod(
                name=f"{app.name}, attempt {attempt.number}",
                task=model.DRIVER,
                task_type=model.DRIVER,
                attempt=attempt.number,
                queue=app.queue,
                node=attempt.node or None,
                phase="Failed" if attempt.cause else "Succeeded",
                created_s=attempt.started_s,
                placed_s=attempt.started_s,
                started_s=attempt.started_s,
                finished_s=attempt.ended_s,
            )


def _path(start_s: float, end_s: float, bars: Sequence[Bar]) -> Iterator[Segment]:
    """Drivers follow one another: the time between them is waiting."""
    at_s = start_s
    for bar in bars:
        if bar.pod.task_type != model.DRIVER:
            continue
        executors = [
            other
            for other in bars
            if (other.pod.task_type, other.pod.attempt) == (model.EXECUTOR, bar.pod.attempt)
            and other.pod.started_s is not None
        ]
        pieces = [piece for segment in bar.segments for piece in _split(segment, executors)]
        for piece in (Segment(activity=Activity.WAITING, start_s=at_s, end_s=bar.start_s), *pieces):
            begin_s = max(at_s, piece.start_s)
            yield Segment(activity=piece.activity, start_s=begin_s, end_s=max(begin_s, piece.end_s))
            at_s = max(at_s, piece.end_s)
    yield Segment(activity=Activity.WAITING, start_s=at_s, end_s=max(at_s, end_s))


def _split(segment: Segment, executors: Sequence[Bar]) -> Iterator[Segment]:
    """Split the run time of a driver into parts with and without executors."""
    if segment.activity is not Activity.DRIVER or not executors:
        yield segment
        return
    first_s = min(executor.pod.started_s or executor.end_s for executor in executors)
    first_s = min(max(segment.start_s, first_s), segment.end_s)
    last_s = min(max(first_s, *(executor.end_s for executor in executors)), segment.end_s)
    yield Segment(activity=Activity.WAIT_FOR_EXECUTORS, start_s=segment.start_s, end_s=first_s)
    yield Segment(activity=Activity.EXECUTORS, start_s=first_s, end_s=last_s)
    yield Segment(activity=Activity.DRIVER, start_s=last_s, end_s=segment.end_s)


def of_cluster(cluster: model.Job, pods: Iterable[model.TaskPod], *, now_s: float) -> Timeline:
    """Return the timeline of a cluster until now, or until it expired."""
    end_s = cluster.completed_s or now_s
    status = cluster.status if isinstance(cluster, mrclusters.MRCluster) else mrclusters.Status()
    # It is pending until its first pod, starts until it is ready, and runs.
    ends_s = ((Activity.WAITING, cluster.started_s), (Activity.STARTING, status.ready_s), (Activity.RUNNING, end_s))
    path = _joined(cluster.created_s, [(activity, min(end_s, until_s or end_s)) for activity, until_s in ends_s])
    return Timeline(
        job=cluster,
        end_s=end_s,
        bars=_in_order(plain_bar(pod, Activity.RUNNING, now_s=end_s) for pod in pods),
        critical_path=tuple(segment for segment in path if segment.duration_s > 0),
        path_name="cluster",
        levels=tuple(
            Level(
                start_s=max(change.at_s, cluster.created_s),
                end_s=max(change.at_s, later.at_s if later else end_s),
                core=change.core,
                transient=change.transient,
            )
            for change, later in itertools.zip_longest(status.levels, status.levels[1:])
        ),
    )
