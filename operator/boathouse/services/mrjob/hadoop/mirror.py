"""What the ResourceManager says of the applications of a job's attempts, and when that is sure. Pure.

A client that has ended may have submitted an application a moment before. Only the ResourceManager knows, so it is
asked for all tags before another client may submit.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from boathouse.resources.mrjob.status import HadoopApplication, Phase, TaskCounts
from boathouse.services.frame.status_codec import printable
from boathouse.services.hadoop import TagView
from boathouse.services.mrjob import results
from boathouse.services.mrjob.job_state import HadoopState, JobState, counts_of_applications, hadoop_tag
from boathouse_task.cluster_contract import ApplicationFigures

MOST_TAGS: Final = 8  # attempts whose tags are asked for; those before had ended when the last of these began
SETTLED_S: Final = 10.0  # how long a request of a client that has ended may be under way
RECOVERY_S: Final = 30.0  # how long a ResourceManager that has started may take to recover its applications

Views = Mapping[str, TagView | None]
_MOST_TASKS = 2**53
_ALL = 100


def tags(uid: str, attempt: int) -> Sequence[str]:
    """Return the tags of the last attempts, the current one's first."""
    return [hadoop_tag(uid, number) for number in range(attempt, max(0, attempt - MOST_TAGS), -1)]


def are_sure(views: Views, clientless_s: float | None) -> bool:
    """Return whether all was said of these tags: no client can submit since `clientless_s`; None: one can."""
    return clientless_s is not None and all(
        view is not None and view.began_s >= max(clientless_s + SETTLED_S, view.rm_started_s + RECOVERY_S)
        for view in views.values()
    )


def running(views: Views, *, but: str = "") -> Sequence[ApplicationFigures]:
    """Return the applications that have not ended, except those of one tag."""
    return [application for tag, view in views.items() if view and tag != but for application in view.running]


def newest(applications: Sequence[ApplicationFigures]) -> ApplicationFigures:
    """Return the application that was submitted last: a ResourceManager numbers them."""
    return max(applications, key=number)


def number(application: ApplicationFigures) -> tuple[int, int]:
    """Return the start of the ResourceManager and the number of the application, from its ID."""
    _, started, count = application.id.split("_")
    return int(started), int(count)


def of(state: JobState, applications: Sequence[ApplicationFigures]) -> JobState:
    """Return the state with what is reported of the attempt's applications. Without a report it does not change."""
    if state.hadoop is None or not applications:
        return state
    ordered = sorted(applications, key=number)
    hadoop = dataclasses.replace(
        state.hadoop,
        applications=tuple(map(_application, ordered)),
        maps=_counts(application.maps for application in ordered) or state.hadoop.maps,
        reduces=_counts(application.reduces for application in ordered) or state.hadoop.reduces,
    )
    counters: dict[str, dict[str, int]] = {}
    for application in ordered:
        results.add_counters(counters, results.printable_counters(application.counters))
    stages = [tasks for tasks in (hadoop.maps, hadoop.reduces) if tasks]
    total, done = sum(tasks.total for tasks in stages), sum(tasks.succeeded for tasks in stages)
    percent = _ALL * done // total if total else newest(applications).progress
    percent = max(min(_ALL - 1, percent), state.percent or 0)  # 100 only for complete output
    return dataclasses.replace(state, hadoop=hadoop, percent=percent, counters=counters or state.counters)


def phase(hadoop: HadoopState) -> Phase | None:
    """Return the phase that the applications are in; None if none runs yet."""
    if not any(
        application.state == "RUNNING" or application.final_status == "SUCCEEDED" for application in hadoop.applications
    ):
        return "Setup" if hadoop.applications else None
    maps, reduces = hadoop.maps or TaskCounts(), hadoop.reduces or TaskCounts()
    return "Reduce" if maps.total and maps.succeeded >= maps.total and reduces.total else "Map"


def _application(figures: ApplicationFigures) -> HadoopApplication:
    return HadoopApplication(
        id=figures.id,
        name=printable(figures.name, 80),
        state=figures.state,
        final_status=figures.final,
        progress_percent=figures.progress,
        diagnostics=printable(figures.diagnostics, 500),
    )


def _counts(tasks: Iterable[tuple[int, int]]) -> TaskCounts | None:
    done, total = map(sum, zip(*tasks, strict=True))
    total = min(_MOST_TASKS, total)
    return counts_of_applications(min(total, done), total) if total else None
