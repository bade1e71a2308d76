"""Finds the jobs because of which a scheduling cycle fails: each is tried alone."""

from collections.abc import Iterable, Sequence

from boathouse.scheduling import jobs
from boathouse_policies import framework, model


def culprits(
    entries: Iterable[jobs.Entry],
    queues: Sequence[model.Queue],
    profile: framework.Profile,
    axis: model.Axis,
    view: framework.ClusterView,
) -> dict[model.JobId, Exception]:
    """Return the jobs with which alone a cycle raises, and what it raises.

    It takes one small cycle for each job, and is done only after a cycle failed.
    """
    found: dict[model.JobId, Exception] = {}
    for entry in entries:
        if entry.is_aside:
            continue
        try:
            room = framework.SchedulingQueue(axis, queues)
            room.submit(entry.job, entry.classes, entry.tasks.values())
            plan = framework.run_cycle(room, profile, view)
            for class_id in plan.left:
                plan.diagnosis(class_id)
        except Exception as error:  # noqa: BLE001 - the question is which job makes it raise
            found[entry.job.id] = error
    return found
