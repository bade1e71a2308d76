"""Run one scheduling cycle. The framework's plan stays within this module; the result has plain values."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence

from boathouse.scheduling import jobs
from boathouse_policies import framework, model


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CycleResult:
    """Result of a scheduling cycle.

    Attributes:
        left: Classes with pending tasks, and the reason.
        diagnoses: For some of these, the diagnosis and the namespace of the job.
    """

    decisions: Sequence[model.Decision]
    placed: frozenset[model.ClassId]
    left: Mapping[model.ClassId, model.Code]
    diagnoses: Mapping[model.ClassId, tuple[model.Diagnosis, str]]


def run(
    queue: framework.SchedulingQueue,
    profile: framework.Profile,
    view: framework.ClusterView,
    wants: Callable[[model.ClassId, model.Code], bool],
    planned: Callable[[framework.Plan], None] = lambda _: None,
) -> CycleResult:
    """Run a cycle, hand its plan to `planned`, and update the queue. `wants` says which diagnoses to compute."""
    plan = framework.run_cycle(queue, profile, view)
    diagnoses: dict[model.ClassId, tuple[model.Diagnosis, str]] = {}
    for class_id, pending in plan.left.items():
        if wants(class_id, pending.verdict.code) and (diagnosis := plan.diagnosis(class_id)) is not None:
            diagnoses[class_id] = diagnosis, pending.job.namespace
    result = CycleResult(
        decisions=plan.decisions,
        placed=frozenset(
            decision.task_class.id for decision in plan.decisions if isinstance(decision, model.Create | model.Bind)
        ),
        left={class_id: pending.verdict.code for class_id, pending in plan.left.items()},
        diagnoses=diagnoses,
    )
    planned(plan)
    queue.apply(plan, view.now_s)
    return result


def culprits(
    tasks: Iterable[tuple[jobs.Entry, Sequence[model.Task]]],
    queues: Sequence[model.Queue],
    profile: framework.Profile,
    axis: model.Axis,
    view: framework.ClusterView,
) -> list[tuple[jobs.Entry, Exception]]:
    """Return the jobs for which a cycle with only this job raises, with the error.

    This runs a small cycle for each job, and only after a cycle failed.
    """
    raising = []
    for entry, todo in tasks:
        try:
            queue = framework.SchedulingQueue(axis, queues)
            queue.submit(entry.job, entry.classes, todo)
            run(queue, profile, view, lambda *_: True)
        except Exception as error:  # noqa: BLE001 - the question is which job makes it raise
            raising.append((entry, error))
    return raising
