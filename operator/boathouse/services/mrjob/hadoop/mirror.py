"""Mirror what the ResourceManager says of an attempt's applications into the job's state. Pure."""

import dataclasses
from collections.abc import Sequence

from boathouse.resources.mrjob import status as mrjob_status
from boathouse.services.frame.conditions import printable
from boathouse.services.mrjob.attempts import results
from boathouse.services.mrjob.hadoop import tags
from boathouse.services.mrjob.state.hadoop_state import HadoopState, Tasks
from boathouse.services.mrjob.state.job_state import JobState
from boathouse_task import contract
from boathouse_task.cluster_contract import ApplicationFigures

_MOST_TASKS = 2**53
_ALL = 100


def of(state: JobState, applications: Sequence[ApplicationFigures]) -> JobState:
    """Return the state with what is reported of the attempt's applications. Without a report it does not change."""
    if state.hadoop is None or not applications:
        return state
    ordered = sorted(applications, key=tags.number)
    hadoop = dataclasses.replace(
        state.hadoop,
        applications=tuple(map(_application, ordered)),
        maps=_tasks([each.maps for each in ordered]) or state.hadoop.maps,
        reduces=_tasks([each.reduces for each in ordered]) or state.hadoop.reduces,
    )
    counters: contract.Counters = {}
    for each in ordered:
        results.add_counters(counters, _printable(each))
    percent = max(_percent(hadoop, ordered), state.percent or 0)
    return dataclasses.replace(state, hadoop=hadoop, percent=percent, counters=counters or state.counters)


def phase(hadoop: HadoopState) -> mrjob_status.Phase | None:
    """Return the phase that the applications are in; None if none runs yet."""
    if not any(each.state == "RUNNING" or each.final_status == "SUCCEEDED" for each in hadoop.applications):
        return "Setup" if hadoop.applications else None
    maps, reduces = hadoop.maps or Tasks(), hadoop.reduces or Tasks()
    return "Reduce" if maps.total and maps.done >= maps.total and reduces.total else "Map"


def _application(figures: ApplicationFigures) -> mrjob_status.HadoopApplication:
    return mrjob_status.HadoopApplication(
        id=figures.id,
        name=printable(figures.name, 80),
        state=figures.state,
        final_status=figures.final,
        progress_percent=figures.progress,
        diagnostics=printable(figures.diagnostics, 500),
    )


def _tasks(counts: Sequence[tuple[int, int]]) -> Tasks | None:
    total = min(_MOST_TASKS, sum(total for _, total in counts))
    return Tasks(done=min(total, sum(done for done, _ in counts)), total=total) if total else None


def _percent(hadoop: HadoopState, applications: Sequence[ApplicationFigures]) -> int:
    """Return the percentage of tasks that are done, or what YARN says; 100 only for complete output."""
    maps, reduces = hadoop.maps or Tasks(), hadoop.reduces or Tasks()
    total = maps.total + reduces.total
    percent = _ALL * (maps.done + reduces.done) // total if total else tags.newest(applications).progress
    return min(_ALL - 1, percent)


def _printable(figures: ApplicationFigures) -> contract.Counters:
    return {
        printable(group, results.MAX_NAME): {printable(name, results.MAX_NAME): value for name, value in values.items()}
        for group, values in figures.counters.items()
    }
