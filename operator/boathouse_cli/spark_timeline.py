"""Timeline of a Spark application: its drivers in sequence, and the executors in parallel. Pure.

Pods have only the times of Kubernetes, which are whole seconds. Spark deletes executors when a driver ends; events
about them remain for an hour (`gone_executors`). Of a driver whose pod is gone, the status keeps the times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from boathouse_cli import model, sparkapps
from boathouse_cli.timeline import Activity, Bar, Segment, Timeline, plain_bar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_RUNNING: Final = {model.DRIVER: Activity.DRIVER, model.EXECUTOR: Activity.EXECUTORS}


def build(app: model.Job, pods: Iterable[model.TaskPod], *, now_s: float) -> Timeline:
    """Return the timeline of an application that ended or still runs.

    Args:
        app: The application.
        pods: Drivers and executors, in any order.
        now_s: End of the segments of running attempts.
    """
    found = list(pods)
    found += _gone_drivers(app, {pod.attempt for pod in found if pod.task_type == model.DRIVER})
    until_s = app.completed_s or now_s
    bars = [plain_bar(pod, _RUNNING.get(pod.task_type, Activity.RUNNING), now_s=until_s) for pod in found]
    bars.sort(key=lambda bar: (bar.start_s, bar.pod.name))
    end_s = max([until_s, *(bar.end_s for bar in bars if bar.pod.task_type == model.DRIVER)])
    path = tuple(segment for segment in _path(app.created_s, end_s, bars) if segment.duration_s > 0)
    return Timeline(job=app, start_s=app.created_s, end_s=end_s, bars=tuple(bars), critical_path=path)


def _gone_drivers(app: model.Job, drawn_attempts: set[int]) -> Iterator[model.TaskPod]:
    for attempt in app.attempts if isinstance(app, sparkapps.SparkApp) else ():
        if attempt.number not in drawn_attempts and attempt.started_s is not None and attempt.ended_s is not None:
            yield model.TaskPod(
                name=f"{app.name}, attempt {attempt.number}",
                task=model.DRIVER,
                task_type=model.DRIVER,
                container="",
                attempt=attempt.number,
                queue=app.queue,
                node=attempt.node or None,
                phase="Failed" if attempt.cause else "Succeeded",
                created_s=attempt.started_s,
                placed_s=attempt.started_s,
                started_s=attempt.started_s,
                finished_s=attempt.ended_s,
                waiting="",
                result=None,
            )


def _path(start_s: float, end_s: float, bars: Sequence[Bar]) -> Iterator[Segment]:
    """Drivers follow one another: the time between them is waiting."""
    at_s = start_s
    for bar in bars:
        if bar.pod.task_type != model.DRIVER:
            continue
        executors = [each for each in bars if each.pod.task_type == model.EXECUTOR and _is_of(each, bar)]
        pieces = [piece for segment in bar.segments for piece in _split(segment, executors)]
        for piece in (Segment(activity=Activity.WAITING, start_s=at_s, end_s=bar.start_s), *pieces):
            begin_s = max(at_s, piece.start_s)
            yield Segment(activity=piece.activity, start_s=begin_s, end_s=max(begin_s, piece.end_s))
            at_s = max(at_s, piece.end_s)
    yield Segment(activity=Activity.WAITING, start_s=at_s, end_s=max(at_s, end_s))


def _is_of(executor: Bar, driver: Bar) -> bool:
    return executor.pod.attempt == driver.pod.attempt and executor.pod.started_s is not None


def _split(segment: Segment, executors: Sequence[Bar]) -> Iterator[Segment]:
    """Split the run time of a driver into parts with and without executors."""
    if segment.activity is not Activity.DRIVER or not executors:
        yield segment
        return
    first_s = min(each.pod.started_s or each.end_s for each in executors)
    first_s = min(max(segment.start_s, first_s), segment.end_s)
    last_s = min(max(first_s, *(each.end_s for each in executors)), segment.end_s)
    yield Segment(activity=Activity.WAIT_FOR_EXECUTORS, start_s=segment.start_s, end_s=first_s)
    yield Segment(activity=Activity.EXECUTORS, start_s=first_s, end_s=last_s)
    yield Segment(activity=Activity.DRIVER, start_s=last_s, end_s=segment.end_s)
