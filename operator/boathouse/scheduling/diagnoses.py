"""Keeps what was last said of each job and class that waits, and tells the pods that wait."""

from collections.abc import Callable, Iterable

from boathouse.scheduling import cycle, jobs, pod_conditions, reasons
from boathouse.scheduling.pods import holders
from boathouse.scheduling.tenants import variety
from boathouse_policies import model

REFRESH_S = 1.0


class Diagnoses:
    """Diagnoses by class and by job.

    A diagnosis is worked out anew when the verdict changes, and otherwise at most once a second for a class.

    Args:
        book: The jobs.
        holders: Who holds what.
        clock: The scheduler's seconds.
    """

    def __init__(self, book: jobs.Jobs, holders: holders.Holders, clock: Callable[[], float]) -> None:
        self._jobs = book
        self._holders = holders
        self._clock = clock
        self._classes: dict[model.ClassId, tuple[model.Diagnosis, pod_conditions.PendingReason, float]] = {}

    def wants(self, class_id: model.ClassId, code: model.Code) -> bool:
        """Say whether a diagnosis of a class is to be worked out: its verdict changed, or the last one is old."""
        known = self._classes.get(class_id)
        return known is None or known[0].code is not code or self._clock() - known[2] >= REFRESH_S

    def update(self, result: cycle.CycleResult) -> int:
        """Take in what a cycle left pending.

        Returns:
            How many tasks are pending that were not before, or for another reason.
        """
        now_s, fresh = self._clock(), 0
        for class_id, (found, namespace) in result.diagnoses.items():
            known = self._classes.get(class_id)
            if known is None or known[0].code is not found.code:
                fresh += found.count
            self._classes[class_id] = (found, reasons.for_pod(found, namespace, self._holders), now_s)
        for class_id in result.placed - result.left.keys():
            self._classes.pop(class_id, None)  # nothing of it is left waiting
        return fresh

    def of_class(self, class_id: model.ClassId) -> pod_conditions.PendingReason | None:
        """Return what pods of a class that wait are told."""
        known = self._classes.get(class_id)
        return None if known is None else known[1]

    def of_job(self, job_id: model.JobId) -> reasons.JobDiagnosis | None:
        """Return why a job waits; None if nothing of it does, as far as is known."""
        entry = self._jobs.entry(job_id)
        if entry is None:
            return None
        trouble = entry.api_refusal
        hold = self._jobs.hold_of_job(job_id)
        if trouble is None and hold is not None and any(row.is_undecided for row in self._jobs.rows(entry)):
            trouble = pod_conditions.PendingReason(reason=hold.reason, message=hold.message)
        if trouble is None and entry.excess:
            trouble = pod_conditions.PendingReason(reason=variety.TOO_COMPLEX, message=entry.excess)
        if trouble is not None:
            return reasons.JobDiagnosis(
                job=job_id, reason=trouble.reason, message=trouble.message, waiting=len(list(self._jobs.rows(entry)))
            )
        found = [self._classes[one.id][0] for one in entry.classes if one.id in self._classes]
        return reasons.diagnose(entry.job, found, self._holders) if found else None

    def forget(self, classes: Iterable[model.TaskClass]) -> None:
        """Forget the classes of a job."""
        for one in classes:
            self._classes.pop(one.id, None)
