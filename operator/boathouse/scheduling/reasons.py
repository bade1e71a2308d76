"""Diagnoses of pending pods and jobs: the verdict of each class, and a message with numbers for users.

A pod that fits no node gets a reason that names the DeviceClass which offers its extended resource by dynamic resource
allocation: unlike kube-scheduler, Boathouse only places it on nodes that have the resource in `status.allocatable`.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from boathouse.cluster import boundary, views, wire
from boathouse.scheduling import jobs, limits, pod_conditions, refusals
from boathouse.scheduling.pods import indexes, requests, rows, table
from boathouse.scheduling.pods.states import PendingReason
from boathouse_policies import framework, model

_IMPLICIT = "deviceclass.resource.kubernetes.io/"  # precedes a DeviceClass' name in a resource of its own


class Devices:
    """The DeviceClasses of the cluster. The axis gets a row for each resource, so that diagnoses name it."""

    def __init__(self, axis: model.Axis) -> None:
        self._axis, self._offered = axis, dict[str, frozenset[str]]()

    def set(self, device_class: views.DeviceClassView, *, is_gone: bool = False) -> None:
        """Add, replace or remove a DeviceClass."""
        name, resource = device_class.metadata.name, device_class.spec.extended_resource_name
        self._offered.pop(name, None)
        if not is_gone:
            self._offered[name] = frozenset(filter(None, (_IMPLICIT + name, resource)))
            for resource_name in sorted(self._offered[name]):
                self._axis.row(resource_name)

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
REFRESH_S, _REFRESH_EACH_S = 1.0, 0.01
_ROUNDED_S, _ROUNDED_S_OF_POD = 10, 60
"""Steps of times in messages of jobs and pods, so that these are not written often: a job may have many pods."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobDiagnosis:
    """Why a job is pending."""

    reason: str  # CamelCase reason for conditions: a `model.Code`, or that of a refusal such as QuotaExceeded
    message: str
    scarce: str | None = None  # Kubernetes' name of the scarce resource, if resources are the cause


def diagnose(
    job: model.Job, diagnoses: Sequence[model.Diagnosis], holders: indexes.Holders, devices: Devices | None = None
) -> JobDiagnosis:
    """Return the diagnosis of a job by its worst class. Holders of resources in the job's namespace are named."""
    worst = min(
        diagnoses, key=lambda diagnosis: (_WORST_FIRST.index(diagnosis.code), -diagnosis.count, diagnosis.task_class)
    )
    waiting = sum(diagnosis.count for diagnosis in diagnoses)
    message = _message(worst, job.namespace, holders, devices, _ROUNDED_S)
    message = f"{waiting} task{'s' * (waiting != 1)} pending: {message}"
    return JobDiagnosis(reason=str(worst.code), message=message, scarce=worst.scarce)


def for_pod(
    diagnosis: model.Diagnosis,
    namespace: str,
    holders: indexes.Holders,
    devices: Devices | None = None,
    *,
    nodes_can_come: bool = False,
) -> PendingReason:
    """Return the reason of a pending pod. It names jobs of its namespace, and is `Unschedulable` if nodes cure it."""
    code = model.Code.UNSCHEDULABLE if nodes_can_come and diagnosis.code in CURED_BY_NODES else diagnosis.code
    reason = pod_conditions.UNSUPPORTED if _of_devices(diagnosis, devices) else str(code)
    return PendingReason(reason, _message(diagnosis, namespace, holders, devices, _ROUNDED_S_OF_POD))


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


def _message(
    diagnosis: model.Diagnosis, namespace: str, holders: indexes.Holders, devices: Devices | None, step_s: int
) -> str:
    message = f"{diagnosis.message}{_scarce(diagnosis, namespace, holders)}{_of_devices(diagnosis, devices)}"
    figures = list(_figures(dict(diagnosis.figures), step_s))
    return "; ".join([message.removesuffix("."), *figures]) if figures else message


def _scarce(diagnosis: model.Diagnosis, namespace: str, holders: indexes.Holders) -> str:
    if diagnosis.scarce is None:
        return ""
    requests_text = f" Each requests {model.readable(diagnosis.scarce, diagnosis.asked)} {diagnosis.scarce}"
    if 0 < diagnosis.least < diagnosis.asked:
        requests_text += f" (at least {model.readable(diagnosis.scarce, diagnosis.least)})"
    if diagnosis.code is model.Code.NEVER_FITS:
        return f"{requests_text}, and the largest node has {model.readable(diagnosis.scarce, diagnosis.largest)}."
    held = holders.top(diagnosis.scarce, namespace)
    parts = [f"{owner} holds {model.readable(diagnosis.scarce, held_by)}" for owner, held_by in held.named]
    if held.elsewhere > 0:
        parts.append(f"other namespaces hold {model.readable(diagnosis.scarce, held.elsewhere)}")
    return f"{requests_text}; {', '.join(parts)}." if parts else f"{requests_text}; no pod holds any."


def _of_devices(diagnosis: model.Diagnosis, devices: Devices | None) -> str:
    """Return that a DeviceClass offers a resource which no node has; else an empty text."""
    is_absent = diagnosis.code is model.Code.NEVER_FITS and not diagnosis.largest
    return devices.hint(diagnosis.scarce) if devices is not None and is_absent else ""


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

    A diagnosis is computed again when the verdict changes. Otherwise it is computed again at most once a second, and
    at most 100 are in a second, because a tenant may have many classes.
    """

    def __init__(
        self,
        book: jobs.Jobs,
        pods: table.PodTable,
        devices: Devices,
        clock: Callable[[], float],
        *,
        nodes_can_come: bool,
    ) -> None:
        self._jobs, self._pods, self._devices = book, pods, devices
        self._clock, self._nodes_can_come = clock, nodes_can_come
        self._classes: dict[model.ClassId, tuple[model.Diagnosis, PendingReason, float]] = {}

    def expire(self) -> None:
        """Have all diagnoses computed again in the next cycles."""
        for class_id, (diagnosis, why, _) in self._classes.items():
            self._classes[class_id] = diagnosis, why, -math.inf

    def update(self, plan: framework.Plan, placed: set[model.ClassId]) -> int:
        """Take in a plan, before that is applied; return how many tasks are pending for another reason than before."""
        now_s, fresh, holders = self._clock(), 0, self._pods.holders
        wanted = [class_id for class_id, pending in plan.left.items() if self._wants(class_id, pending.verdict.code)]
        for diagnosis in [found for class_id in wanted if (found := plan.diagnosis(class_id)) is not None]:
            class_id, namespace = diagnosis.task_class, plan.left[diagnosis.task_class].job.namespace
            if self.code_of(class_id) is not diagnosis.code:
                fresh += diagnosis.count
            why = for_pod(diagnosis, namespace, holders, self._devices, nodes_can_come=self._nodes_can_come)
            self._classes[class_id] = (diagnosis, why, now_s)
        for class_id in placed - plan.left.keys():
            self._classes.pop(class_id, None)  # the class has no pending tasks
        return fresh

    def _wants(self, class_id: model.ClassId, code: model.Code) -> bool:
        """Return whether to compute the diagnosis of a class: its verdict changed, or the last one is old."""
        last = self._classes.get(class_id)
        return (
            last is None
            or last[0].code is not code
            or self._clock() - last[2] >= max(REFRESH_S, _REFRESH_EACH_S * len(self._classes))
        )

    def code_of(self, class_id: model.ClassId) -> model.Code | None:
        """Return the reason of the pending tasks of a class; None if it is not known."""
        return None if (last := self._classes.get(class_id)) is None else last[0].code

    def of_pod(self, row: rows.PodRow) -> PendingReason | None:
        """Return the reason for a pending pod of a task; None if it is not known."""
        if row.task is None:
            return None
        if (backoff := self._jobs.backoff_of(row)) is not None:
            return PendingReason(backoff.reason, backoff.message)
        if (last := self._classes.get(row.task.task_class)) is not None:
            return last[1]
        entry = self._jobs.entry_of(row)
        why = None if entry is None or not row.is_submitted else entry.pending_reason
        if entry is not None and why is not None and entry.lacks_nodes and self._nodes_can_come:
            return PendingReason(str(model.Code.UNSCHEDULABLE), why.message)
        return why

    def of_job(self, job_id: model.JobId) -> JobDiagnosis | None:
        """Return the diagnosis of a job; None if it has no known pending tasks."""
        if (entry := self._jobs.entry(job_id)) is None:
            return None
        diagnoses = [self._classes[task_class.id][0] for task_class in entry.classes if task_class.id in self._classes]
        if (why := self._reason_of(entry)) is not None:
            diagnosis = JobDiagnosis(reason=why.reason, message=why.message)
        elif diagnoses:
            diagnosis = diagnose(entry.job, diagnoses, self._pods.holders, self._devices)
        else:
            return None
        message = f"{diagnosis.message.removesuffix('.')}; {entry.hidden}" if entry.hidden else diagnosis.message
        return dataclasses.replace(diagnosis, message=message)

    def _reason_of(self, entry: jobs.Entry) -> PendingReason | None:
        """Return why a job is pending, if no cycle decided that."""
        displaced = self._pods.displaced(entry.job.id)
        if displaced is not None and displaced.facts is not None:
            return name_taken(displaced.facts.metadata)
        if (why := entry.pending_reason or entry.api_refusal) is not None:
            return why
        backoff = self._jobs.backoff_of_job(entry.job.id)
        if backoff is not None and any(row.is_undecided for row in self._jobs.rows(entry)):
            return PendingReason(backoff.reason, backoff.message)
        return PendingReason(limits.TOO_COMPLEX, entry.excess) if entry.excess else None

    def forget(self, class_id: model.ClassId) -> None:
        """Drop the diagnosis of a class that left the queue."""
        self._classes.pop(class_id, None)
