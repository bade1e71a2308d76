"""Diagnoses of pending pods and jobs: the verdict of each class, and a message with numbers for users.

A pod that fits no node gets a reason that names the DeviceClass which offers its extended resource by dynamic resource
allocation. kube-scheduler gives such a pod devices if its node has none of the resource in `status.allocatable`.
Boathouse does not, and only places pods on nodes that have it there.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from boathouse.cluster import boundary, wire
from boathouse.scheduling import cycle, jobs, limits, pod_conditions, refusals
from boathouse.scheduling.pods import indexes, requests, rows
from boathouse.scheduling.pods.states import PendingReason
from boathouse_policies import model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from boathouse.cluster import views

_IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""What precedes the name of each DeviceClass in the resource that it always offers."""


class Devices:
    """The DeviceClasses of the cluster.

    Args:
        axis: Gets a row for each resource, so that diagnoses name it.
    """

    def __init__(self, axis: model.Axis) -> None:
        self._axis = axis
        self._offered: dict[str, frozenset[str]] = {}

    def set(self, device_class: views.DeviceClassView) -> None:
        """Add or replace a DeviceClass."""
        name, resource = device_class.metadata.name, device_class.spec.extended_resource_name
        self._offered[name] = frozenset(filter(None, (_IMPLICIT + name, resource)))
        for resource_name in sorted(self._offered[name]):
            self._axis.row(resource_name)

    def remove(self, name: str) -> None:
        """Remove a DeviceClass."""
        self._offered.pop(name, None)

    def hint(self, resource: str | None) -> str:
        """Return which DeviceClass offers a resource, and what to do; empty if none does."""
        for name, offered in sorted(self._offered.items()):
            if resource in offered:
                return (
                    f" DeviceClass {name} offers {resource} by dynamic resource allocation, which Boathouse does not "
                    "support: request a resource that nodes have in status.allocatable, or name another scheduler in "
                    "spec.schedulerName."
                )
        return ""


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
CURED_BY_NODES = frozenset(
    {model.Code.UNSCHEDULABLE, model.Code.NEVER_FITS, model.Code.GANG, model.Code.JOB_ORDER, model.Code.SIZING}
)
"""Reasons that a new node could cure, if nodes can come; pods with these are `Unschedulable`."""
REFRESH_S = 1.0
_ROUNDED_S, _ROUNDED_S_OF_POD = 10, 60
"""Steps of times in messages of jobs and pods, so that these are not written often: a job may have many pods."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobDiagnosis:
    """Why a job is pending.

    Attributes:
        reason: CamelCase reason for conditions: a `model.Code`, or that of a refusal such as QuotaExceeded.
        scarce: Kubernetes' name of the scarce resource, if resources are the cause.
        holders: Owners in the job's namespace with their amount of it in base units, the largest first.
    """

    job: model.JobId
    reason: str
    message: str
    waiting: int
    scarce: str | None = None
    holders: tuple[tuple[str, int], ...] = ()


def diagnose(
    job: model.Job,
    diagnoses: Sequence[model.Diagnosis],
    resource_holders: indexes.Holders,
    device_classes: Devices | None = None,
) -> JobDiagnosis:
    """Return the diagnosis of a job by its worst class. Holders of resources in the job's namespace are named."""
    worst = min(
        diagnoses, key=lambda diagnosis: (_WORST_FIRST.index(diagnosis.code), -diagnosis.count, diagnosis.task_class)
    )
    held = resource_holders.top(worst.scarce, job.namespace) if worst.scarce else indexes.Held()
    waiting = sum(diagnosis.count for diagnosis in diagnoses)
    message = f"{worst.message}{_scarce(worst, held)}{_of_devices(worst, device_classes)}"
    message = f"{waiting} task{'s' * (waiting != 1)} pending: {_with_figures(message, worst, _ROUNDED_S)}"
    return JobDiagnosis(
        job=job.id, reason=str(worst.code), message=message, waiting=waiting, scarce=worst.scarce, holders=held.named
    )


def for_pod(
    diagnosis: model.Diagnosis,
    namespace: str,
    resource_holders: indexes.Holders,
    device_classes: Devices | None = None,
    *,
    nodes_can_come: bool = False,
) -> PendingReason:
    """Return the message for a pending pod of a class, which names jobs only of the same namespace.

    With `nodes_can_come`, the reason is `Unschedulable` for whatever a new node could cure.
    """
    held = resource_holders.top(diagnosis.scarce, namespace) if diagnosis.scarce else indexes.Held()
    of_devices = _of_devices(diagnosis, device_classes)
    message = _with_figures(diagnosis.message + _scarce(diagnosis, held) + of_devices, diagnosis, _ROUNDED_S_OF_POD)
    code = model.Code.UNSCHEDULABLE if nodes_can_come and diagnosis.code in CURED_BY_NODES else diagnosis.code
    return PendingReason(pod_conditions.UNSUPPORTED if of_devices else str(code), message)


def unsupported(field: str) -> PendingReason:
    """Return the reason for a pod with a field that Boathouse does not support."""
    message = f"Boathouse does not support {field}: remove it, or name another scheduler in spec.schedulerName"
    return PendingReason(pod_conditions.UNSUPPORTED, message)


def set_aside(error: Exception) -> PendingReason:
    """Return the reason for a pod that was set aside."""
    is_too_complex = isinstance(error, requests.UnreadablePodError) and error.is_too_complex
    return PendingReason(
        reason=limits.TOO_COMPLEX if is_too_complex else pod_conditions.SET_ASIDE,
        message=f"Boathouse cannot schedule this pod: {boundary.describe(error)}. Recreate it with a valid value, or "
        "name another scheduler in spec.schedulerName",
    )


def name_taken(metadata: wire.ObjectMeta) -> PendingReason:
    """Return the reason for a task whose name a pod of another owner has."""
    owner = metadata.controller
    whose = f"of {owner.kind} {owner.name}" if owner is not None else "without a controller"
    return PendingReason(refusals.NAME_TAKEN, f"a pod {metadata.key} {whose} has the task's name: delete it")


def of_too_many_constraints(constraints: int) -> PendingReason:
    """Return the reason for a pod with too many constraints of its own."""
    return PendingReason(
        limits.TOO_COMPLEX,
        f"the pod has {constraints} constraints (entries of nodeSelector, expressions of node affinity and every ten "
        f"of their values, tolerations, volumes, ports), and at most {wire.MOST_CONSTRAINTS} are evaluated: simplify "
        "them, for example with a label on the intended nodes",
    )


def _scarce(diagnosis: model.Diagnosis, held: indexes.Held) -> str:
    if diagnosis.scarce is None:
        return ""
    requests_text = f" Each requests {model.readable(diagnosis.scarce, diagnosis.asked)} {diagnosis.scarce}"
    if 0 < diagnosis.least < diagnosis.asked:
        requests_text += f" (at least {model.readable(diagnosis.scarce, diagnosis.least)})"
    if diagnosis.code is model.Code.NEVER_FITS:
        return f"{requests_text}, and the largest node has {model.readable(diagnosis.scarce, diagnosis.largest)}."
    parts = [f"{owner} holds {model.readable(diagnosis.scarce, held_by)}" for owner, held_by in held.named]
    if held.elsewhere > 0:
        parts.append(f"other namespaces hold {model.readable(diagnosis.scarce, held.elsewhere)}")
    return f"{requests_text}; {', '.join(parts)}." if parts else f"{requests_text}; no pod holds any."


def _of_devices(diagnosis: model.Diagnosis, device_classes: Devices | None) -> str:
    """Return that a DeviceClass offers a resource which no node has; else an empty text."""
    is_absent = diagnosis.code is model.Code.NEVER_FITS and not diagnosis.largest
    return device_classes.hint(diagnosis.scarce) if device_classes is not None and is_absent else ""


def _with_figures(message: str, diagnosis: model.Diagnosis, step_s: int) -> str:
    """Return a message with what the policies computed of a pending class, and times in steps."""
    figures = list(_figures(dict(diagnosis.figures), step_s))
    return "; ".join([message.removesuffix("."), *figures]) if figures else message


def _figures(figures: Mapping[str, float], step_s: int) -> Iterator[str]:
    if jobs_ahead := figures.get("jobsAhead"):
        yield f"{jobs_ahead:.0f} job{'s' * (jobs_ahead != 1)} of its queue and namespace go before it"
    if "slowdown" in figures and "threshold" in figures:
        yield f"predicted slowdown of the tasks on a node {figures['slowdown']:.1f}, allowed {figures['threshold']:.1f}"
    if "gainSeconds" in figures and "costSeconds" in figures:
        gain_s, cost_s = (round(figures[name] / step_s) * step_s for name in ("gainSeconds", "costSeconds"))
        yield f"waiting for another node gains {gain_s} s and costs {cost_s} s of job time"
    if "reservedForSeconds" in figures:
        yield f"nodes have been reserved for it for {round(figures['reservedForSeconds'] / step_s) * step_s} s"
    if "predictedWaitSeconds" in figures:
        yield f"predicted wait {math.ceil(figures['predictedWaitSeconds'] / step_s) * step_s} s"


class Diagnoses:
    """Diagnoses by class and by job.

    A diagnosis is computed again when the verdict changes, and otherwise at most once a second for a class.
    """

    def __init__(
        self,
        book: jobs.Jobs,
        resource_holders: indexes.Holders,
        device_classes: Devices,
        clock: Callable[[], float],
        *,
        nodes_can_come: bool = False,
    ) -> None:
        self._jobs = book
        self._holders = resource_holders
        self._devices = device_classes
        self._clock = clock
        self._nodes_can_come = nodes_can_come
        self._classes: dict[model.ClassId, tuple[model.Diagnosis, PendingReason, float]] = {}

    def wants(self, class_id: model.ClassId, code: model.Code) -> bool:
        """Return whether to compute the diagnosis of a class: its verdict changed, or the last one is old."""
        last = self._classes.get(class_id)
        return last is None or last[0].code is not code or self._clock() - last[2] >= REFRESH_S

    def expire(self) -> None:
        """Have all diagnoses computed again in the next cycles."""
        for class_id, (diagnosis, why, _) in self._classes.items():
            self._classes[class_id] = diagnosis, why, -math.inf

    def update(self, result: cycle.CycleResult) -> int:
        """Update the diagnoses with the result of a cycle.

        Returns:
            Number of tasks that are newly pending, or pending with another reason.
        """
        now_s, fresh = self._clock(), 0
        for class_id, (diagnosis, namespace) in result.diagnoses.items():
            if (last := self._classes.get(class_id)) is None or last[0].code is not diagnosis.code:
                fresh += diagnosis.count
            why = for_pod(diagnosis, namespace, self._holders, self._devices, nodes_can_come=self._nodes_can_come)
            self._classes[class_id] = (diagnosis, why, now_s)
        for class_id in result.placed - result.left.keys():
            self._classes.pop(class_id, None)  # the class has no pending tasks
        return fresh

    def of_class(self, class_id: model.ClassId) -> PendingReason | None:
        """Return the reason for pending pods of a class."""
        last = self._classes.get(class_id)
        return None if last is None else last[1]

    def code_of(self, class_id: model.ClassId) -> model.Code | None:
        """Return the reason of the pending tasks of a class; None if it is not known."""
        last = self._classes.get(class_id)
        return None if last is None else last[0].code

    def of_pod(self, row: rows.PodRow) -> PendingReason | None:
        """Return the reason for a pending pod of a task; None if it is not known."""
        if row.task is None:
            return None
        backoff, entry = self._jobs.backoff_of(row), self._jobs.entry_of(row)
        if backoff is not None:
            return PendingReason(backoff.reason, backoff.message)
        if (class_reason := self.of_class(row.task.task_class)) is not None or entry is None:
            return class_reason
        why = entry.pending_reason if row.is_submitted else None
        if why is not None and entry.lacks_nodes and self._nodes_can_come:
            return PendingReason(str(model.Code.UNSCHEDULABLE), why.message)
        return why

    def of_job(self, job_id: model.JobId) -> JobDiagnosis | None:
        """Return the diagnosis of a job; None if it has no known pending tasks."""
        if (entry := self._jobs.entry(job_id)) is None:
            return None
        displaced_by = self._jobs.displaced_by(job_id)
        taken = None if displaced_by is None else name_taken(displaced_by)
        pending_reason = taken or entry.pending_reason or entry.api_refusal
        backoff = self._jobs.backoff_of_job(job_id)
        if pending_reason is None and backoff is not None and any(row.is_undecided for row in self._jobs.rows(entry)):
            pending_reason = PendingReason(backoff.reason, backoff.message)
        if pending_reason is None and entry.excess:
            pending_reason = PendingReason(limits.TOO_COMPLEX, entry.excess)
        diagnoses = [self._classes[task_class.id][0] for task_class in entry.classes if task_class.id in self._classes]
        if pending_reason is not None:
            diagnosis = JobDiagnosis(
                job=job_id,
                reason=pending_reason.reason,
                message=pending_reason.message,
                waiting=len(list(self._jobs.rows(entry))),
            )
        elif diagnoses:
            diagnosis = diagnose(entry.job, diagnoses, self._holders, self._devices)
        else:
            return None
        if not entry.hidden:
            return diagnosis
        return dataclasses.replace(diagnosis, message=f"{diagnosis.message.removesuffix('.')}; {entry.hidden}")

    def forget(self, class_id: model.ClassId) -> None:
        """Drop the diagnosis of a class that left the queue."""
        self._classes.pop(class_id, None)
