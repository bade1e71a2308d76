"""Why pods and jobs are pending: what a cycle said of each class, and one line with numbers for people."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from boathouse.cluster import boundary, wire
from boathouse.scheduling import cycle, jobs, pod_conditions
from boathouse.scheduling.pods import holders, requests
from boathouse.scheduling.tenants import variety
from boathouse_policies import model

_WORST_FIRST = (
    model.Code.NEVER_FITS,
    model.Code.UNKNOWN_QUEUE,
    model.Code.QUEUE_NOT_ALLOWED,
    model.Code.UNSCHEDULABLE,
    model.Code.GANG,
    model.Code.QUEUE_LIMIT,
    model.Code.SIZING,
    model.Code.JOB_ORDER,
    model.Code.PATIENCE,
    model.Code.NOT_OFFERED,
)
_BYTES = {"memory", "ephemeral-storage"}
_UNITS = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))
_MILLI = 1000
REFRESH_S = 1.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobDiagnosis:
    """Why a job waits.

    Attributes:
        job: The job.
        reason: A CamelCase token for conditions: a `model.Code`, or what the API server refused (QuotaExceeded...).
        message: One line for people.
        waiting: How many tasks wait.
        scarce: The resource that is scarce, by Kubernetes' name, where it is a matter of resources.
        holders: Who holds it in the job's namespace, and how much in base units, the largest first.
    """

    job: model.JobId
    reason: str
    message: str
    waiting: int
    scarce: str | None = None
    holders: tuple[tuple[str, int], ...] = ()


def diagnose(job: model.Job, found: Sequence[model.Diagnosis], who: holders.Holders) -> JobDiagnosis:
    """Sum up what the cycle said of a job's classes: the reason is that of the class which is worst off.

    Args:
        job: The job.
        found: One for each of its classes that waits; at least one.
        who: Who holds what: named are those of the job's own namespace.
    """
    worst = min(found, key=lambda one: (_WORST_FIRST.index(one.code), -one.count, one.task_class))
    held = who.top(worst.scarce, job.namespace) if worst.scarce else holders.Held()
    waiting = sum(one.count for one in found)
    message = f"{waiting} task{'s' * (waiting != 1)} pending: {worst.message}{_scarce(worst, held)}"
    return JobDiagnosis(
        job=job.id, reason=str(worst.code), message=message, waiting=waiting, scarce=worst.scarce, holders=held.named
    )


def for_pod(found: model.Diagnosis, namespace: str, who: holders.Holders) -> pod_conditions.PendingReason:
    """Return the message for a pending pod of a class; of other jobs, it names those of the same namespace."""
    held = who.top(found.scarce, namespace) if found.scarce else holders.Held()
    return pod_conditions.PendingReason(reason=str(found.code), message=found.message + _scarce(found, held))


def unsupported(field: str) -> pod_conditions.PendingReason:
    """Return what a pod is told that asks for something Boathouse cannot honour."""
    return pod_conditions.PendingReason(
        reason=pod_conditions.UNSUPPORTED,
        message=f"Boathouse does not support {field}: remove it, or name another scheduler in spec.schedulerName",
    )


def set_aside(error: Exception) -> pod_conditions.PendingReason:
    """Return what a pod is told that cannot be represented."""
    is_too_complex = isinstance(error, requests.UnreadablePodError) and error.is_too_complex
    return pod_conditions.PendingReason(
        reason=variety.TOO_COMPLEX if is_too_complex else pod_conditions.SET_ASIDE,
        message=f"Boathouse cannot schedule this pod: {boundary.describe(error)}. Recreate it with a valid value, or "
        "name another scheduler in spec.schedulerName",
    )


def too_complex(why: str) -> pod_conditions.PendingReason:
    """Return what a pod is told that is not considered because its constraints, or its namespace's, are too many."""
    return pod_conditions.PendingReason(reason=variety.TOO_COMPLEX, message=why)


def of_too_many_constraints(constraints: int) -> pod_conditions.PendingReason:
    """Return what a pod is told whose own constraints are too many."""
    return too_complex(
        f"the pod has {constraints} constraints (entries of nodeSelector, expressions of node affinity and every ten "
        f"of their values, tolerations, volumes, ports), and at most {wire.MOST_CONSTRAINTS} are evaluated: simplify "
        "them, for example by a label on the nodes that are meant"
    )


def amount(resource: str, value: int) -> str:
    """Return an amount for people: cores, a size with a binary suffix, or a count."""
    if resource == "cpu":
        return f"{value / _MILLI:.3f}".rstrip("0").rstrip(".")
    if resource in _BYTES or resource.startswith("hugepages-"):
        for suffix, size in _UNITS:
            if value >= size:
                return f"{value / size:.1f}".removesuffix(".0") + suffix
    return str(value)


def _scarce(found: model.Diagnosis, held: holders.Held) -> str:
    if found.scarce is None:
        return ""
    asked = f" Each requests {amount(found.scarce, found.asked)} {found.scarce}"
    if found.code is model.Code.NEVER_FITS:
        return f"{asked}, and the largest node has {amount(found.scarce, found.largest)}."
    parts = [f"{owner} holds {amount(found.scarce, held_by)}" for owner, held_by in held.named]
    if held.elsewhere > 0:
        parts.append(f"other namespaces hold {amount(found.scarce, held.elsewhere)}")
    return f"{asked}; {', '.join(parts)}." if parts else f"{asked}; no pod holds any."


class Diagnoses:
    """Diagnoses by class and by job.

    A diagnosis is computed again when the verdict changes, and otherwise at most once a second for a class.

    Args:
        book: The jobs.
        who: Who holds what.
        clock: The scheduler's seconds.
    """

    def __init__(self, book: jobs.Jobs, who: holders.Holders, clock: Callable[[], float]) -> None:
        self._jobs = book
        self._holders = who
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
            self._classes[class_id] = (found, for_pod(found, namespace, self._holders), now_s)
        for class_id in result.placed - result.left.keys():
            self._classes.pop(class_id, None)  # nothing of it is left waiting
        return fresh

    def of_class(self, class_id: model.ClassId) -> pod_conditions.PendingReason | None:
        """Return what pods of a class that wait are told."""
        known = self._classes.get(class_id)
        return None if known is None else known[1]

    def of_job(self, job_id: model.JobId) -> JobDiagnosis | None:
        """Return why a job waits; None if nothing of it does, as far as is known."""
        entry = self._jobs.entry(job_id)
        if entry is None:
            return None
        trouble = entry.trouble or entry.api_refusal
        hold = self._jobs.hold_of_job(job_id)
        if trouble is None and hold is not None and any(row.is_undecided for row in self._jobs.rows(entry)):
            trouble = pod_conditions.PendingReason(reason=hold.reason, message=hold.message)
        if trouble is None and entry.excess:
            trouble = pod_conditions.PendingReason(reason=variety.TOO_COMPLEX, message=entry.excess)
        if trouble is not None:
            return JobDiagnosis(
                job=job_id, reason=trouble.reason, message=trouble.message, waiting=len(list(self._jobs.rows(entry)))
            )
        found = [self._classes[one.id][0] for one in entry.classes if one.id in self._classes]
        return diagnose(entry.job, found, self._holders) if found else None

    def forget(self, classes: Iterable[model.TaskClass]) -> None:
        """Forget the classes of a job."""
        for one in classes:
            self._classes.pop(one.id, None)
