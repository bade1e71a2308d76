"""Explain the state of a job or pod, and what the policies decided about it: a headline, then details. Pure."""

from __future__ import annotations

import collections
import dataclasses
import json
from typing import TYPE_CHECKING, Final

from boathouse.resources import names, quantity
from boathouse.resources.names import ConditionType, Reason
from boathouse.resources.sparkapp.names import ConditionType as SparkCondition
from boathouse.resources.sparkapp.names import Reason as SparkReason
from boathouse.suspension import record as records
from boathouse_cli import model, text
from boathouse_task import contract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from boathouse_cli.usage import Queue


Row = tuple[str, str]

_LONGEST: Final = 512
"""Characters of the figures on a pod."""
_MOST: Final = 2**63
_SHOWN_EVENTS: Final = 5
_GIB: Final = 1024**3
_PROBE: Final = "Probe"
_SOURCES: Final = {
    "Stated": "from run times of earlier jobs of the program",
    _PROBE: "from a probe",
    "Program": "from earlier jobs of the program",
    "History": "from the mean of earlier jobs",
}
_CONDITIONS: Final = ((names.ConditionType.REDUCERS_SUSPENDED, "suspended"), ("SignalsAvailable", "signals"))
"""Types of conditions that have a message when there is something to explain, and the subject of their row."""
GROUPS: Final = (
    "pending for long",
    "probe, within the share of probes",
    "unknown size, holds less than its fair share",
    "known size, used up",
    "known size",
    "unknown size",
    "probe, beyond the share of probes",
)
"""Groups of the order by size, the first to go first."""


def _group(value: float) -> str:
    return GROUPS[int(value)] if 0 <= value < len(GROUPS) else f"group {value:g}"


_FIGURES: Final[Mapping[str, tuple[str, Callable[[float], str]]]] = {
    "slowdown": ("placed", "predicted slowdown {:.2f}".format),
    "threshold": ("placed", "threshold {:.2f}".format),
    "reservedForSeconds": ("placed", lambda value: f"reserved for {text.duration(value)}"),
    "predictedWaitSeconds": ("placed", lambda value: f"predicted wait {text.duration(value)}"),
    "idealBytes": ("size", lambda value: f"ideal memory {text.size(value)}"),
    "seconds": ("size", lambda value: f"predicted run time {text.duration(value)}"),
    "idealSeconds": ("size", lambda value: f"{text.duration(value)} with the ideal memory"),
    "diskShare": ("size", "{:.0%} of the node's disk budget".format),
    "cpuShare": ("size", "{:.0%} of the requested CPU".format),
    "gainSeconds": ("size", "gain {:.1f} s of job time".format),
    "costSeconds": ("size", "cost {:.1f} s".format),
    "lentMilli": ("size", lambda value: f"{quantity.format_milli(round(value))} CPU from suspended reducers"),
    "group": ("order", _group),
    "virtualMemorySeconds": ("order", lambda value: f"virtual size {value / _GIB:.1f} GiB·s"),
}
"""Figures of the policies: the subject of their row, and their text."""
_OTHER: Final = "figures"


def of_pod(raw: model.Raw, *, now_s: float) -> list[Row]:
    """Return why a pod is on its node, why it has its size, and its last suspension."""
    annotations = model.annotations_of(raw)
    rows = _of_figures(annotations.get(names.ANNOTATION_FIGURES, ""))
    if decision := annotations.get(names.ANNOTATION_DECISION):
        rows["size"] = [decision, *rows.get("size", ())]
    found = [(subject, "; ".join(texts)) for subject, texts in rows.items()]
    record = records.parse(annotations.get(names.ANNOTATION_SUSPENSION, ""))
    return found + ([("suspension", _suspension(raw, record, now_s))] if record else [])


def of_mrjob(raw: model.Raw) -> Iterator[Row]:
    """Yield the predicted size of a job, and what its conditions say of suspended reducers and missing signals."""
    prediction = (raw.get("status") or {}).get("prediction") or {}
    if size := "; ".join(_size(prediction)):
        yield "size", size
    if (probe := prediction.get("probe")) and probe != "None":
        yield "probe", ": ".join(filter(None, (probe, prediction.get("reason"))))
    conditions = model.conditions(raw)
    for kind, subject in _CONDITIONS:
        found = conditions.get(kind)
        if found and found.message:
            yield subject, found.message


def of_driver(pods: Sequence[model.TaskPod]) -> list[Row]:
    """Return what was reserved and chosen for the executors of an application's last driver."""
    drivers = [pod for pod in pods if pod.task_type == model.DRIVER]
    if not drivers:
        return []
    annotations = max(drivers, key=lambda pod: pod.attempt).annotations
    rows = []
    nodes = _numbers(annotations.get(names.ANNOTATION_RESERVED, ""))
    if nodes:
        places = ", ".join(f"{count:.0f} on {node}" for node, count in sorted(nodes.items()))
        rows.append(("reservation", f"executors that had room reserved when the driver was placed: {places}"))
    if names.ANNOTATION_EXECUTOR_MEMORY in annotations:
        rows.append(("executor memory", annotations.get(names.ANNOTATION_DECISION, "")))
    return rows


def _size(prediction: model.Raw) -> Iterator[str]:
    numbers, source = _numbers_in(prediction), prediction.get("source") or ""
    if "memorySeconds" in numbers:
        sample = f" of {numbers['sampledFraction']:.1%} of the input" if "sampledFraction" in numbers else ""
        origin = [f"{_SOURCES[source]}{sample if source == _PROBE else ''}"] if source in _SOURCES else []
        yield ", ".join([f"predicted {numbers['memorySeconds']:.1f} GiB·s of memory", *origin])
    for key, task in (("mapSeconds", "map"), ("reduceSeconds", "reduce")):
        if numbers.get(key):
            yield f"{numbers[key]:.1f} s a {task}"
    if "usedMemorySeconds" in numbers:
        error = f" (error {numbers['error']:+.0%})" if "error" in numbers else ""
        yield f"used {numbers['usedMemorySeconds']:.1f} GiB·s{error}"


def _suspension(raw: model.Raw, record: records.SuspensionRecord, now_s: float) -> str:
    cpu = quantity.format_milli(record.cpu_request_milli)
    why = f"{record.reason}, decided by {record.by}; it requested {cpu} CPU"
    since = text.ago(now_s - record.since_s)
    if not _is_suspended(raw):
        return f"was suspended {since} ago: {why}"
    return f"suspended {since} ago, for {text.duration(record.until_s - now_s)} more at most: {why}"


def _is_suspended(raw: model.Raw) -> bool:
    """Return whether the task's container has the CPU of one that is suspended."""
    for container in raw.get("spec", {}).get("containers") or ():
        requests = (container.get("resources") or {}).get("requests") or {}
        if container.get("name") == names.CONTAINER and "cpu" in requests:
            return quantity.milli(requests["cpu"]) == contract.SUSPENDED_REQUEST_MILLI
    return False


def _of_figures(written: str) -> dict[str, list[str]]:
    """Return the texts of a pod's figures by subject, in the order of `_FIGURES`; those of later versions last."""
    figures = _numbers(written)
    rows: dict[str, list[str]] = {}
    for name in (*_FIGURES, *sorted(figures.keys() - _FIGURES.keys())):
        if name not in figures:
            continue
        subject, told = _FIGURES.get(name, (_OTHER, f"{name} {{:g}}".format))
        rows.setdefault(subject, []).append(told(figures[name]))
    return rows


def _numbers(written: str) -> dict[str, float]:
    """Return the finite numbers of a JSON object by key; nothing if the text is no such object."""
    try:
        found = json.loads(written, parse_constant=lambda _: None) if 0 < len(written) <= _LONGEST else {}
    except (ValueError, RecursionError):
        return {}
    return _numbers_in(found) if isinstance(found, dict) else {}


def _numbers_in(values: model.Raw) -> dict[str, float]:
    return {key: float(value) for key, value in values.items() if isinstance(value, int | float) and abs(value) < _MOST}


UNRECONCILED_AFTER_S: Final = 10.0
"""A job without a status after this time has no operator: a running operator writes one within a second."""

NO_PROBLEM: Final = frozenset(
    {
        *(Reason.WAITING_FOR_TASKS, Reason.JOB_FINISHED, Reason.TASKS_RUNNING, Reason.SUSPENDED, ""),
        *(SparkReason.DRIVER_STARTING, SparkReason.RESTARTING),
    }
)
"""Reasons for which a job does not run yet, while nothing is wrong with its pods."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A headline, and rows of (subject, details)."""

    headline: str
    details: tuple[tuple[str, str], ...]


def explain_job(job: model.Job, pods: Sequence[model.TaskPod], queue: Queue | None, *, now_s: float) -> Explanation:
    """Return the explanation of a job's state.

    Args:
        job: The job.
        pods: Its pods.
        queue: Usage of its queue, if the user may read it.
        now_s: Current time, for ages.
    """
    rows = [("phase", f"{job.phase or 'none yet'}, created {text.ago(now_s - job.created_s)} ago")]
    rows += job.details
    rows += of_driver(pods)
    rows += [("pods", describe_pods(pods))] if pods else []
    rows += [("queue", describe_queue(queue))] if queue else []
    return Explanation(headline=f"{job.title} {_standing(job, now_s)}", details=tuple(rows))


def explain_pod(raw: model.Raw, events: Iterable[model.Raw], *, now_s: float) -> Explanation:
    """Return the explanation of a pod's state.

    Args:
        raw: The pod.
        events: Its events, in any order.
        now_s: Current time, for ages.
    """
    pod = model.task_pod(raw)
    scheduler = raw["spec"].get("schedulerName") or "default-scheduler"
    rows = [("scheduler", scheduler if scheduler == names.SCHEDULER_NAME else f"{scheduler} (not Boathouse)")]
    rows.append(("phase", f"{pod.phase}, created {text.ago(now_s - pod.created_s)} ago"))
    rows += [("node", pod.node)] if pod.node else []
    rows += [("queue", pod.queue)] if pod.queue else []
    rows += of_pod(raw, now_s=now_s)
    rows += [("event", f"{each.get('reason')}: {each.get('message')}") for each in _last(events)]
    return Explanation(headline=f"pod/{pod.name} {_pod_standing(raw, pod, now_s)}", details=tuple(rows))


def describe_queue(queue: Queue) -> str:
    """Return one line on a queue's usage."""
    weight = "" if queue.weight is None else f", weight {queue.weight:g}"
    fair = "" if queue.fair_share is None else f", fair share {queue.fair_share:.0%}"
    return f"{queue.name}{weight}: {queue.pods} pods hold {queue.share:.0%} of the cluster{fair}"


def _standing(job: model.Job, now_s: float) -> str:
    failed, suspended = job.condition(ConditionType.FAILED), job.condition(ConditionType.SUSPENDED)
    if failed and failed.status == "True":
        return f"failed: {because(failed)}"
    if job.holds(ConditionType.SUCCEEDED):
        took = text.duration((job.completed_s or now_s) - job.created_s)
        outcome = f"; {job.outcome}" if job.outcome else ""
        return f"succeeded in {took} ({job.progress}){outcome}"
    if not job.conditions:
        return unreconciled(now_s - job.created_s)
    if refused := job.denial(ConditionType.ADMITTED):
        return f"was not admitted: {because(refused)}"
    if suspended and suspended.status == "True":
        return f"is suspended: {suspended.message or suspended.reason}"
    return _under_way(job)


def _under_way(job: model.Job) -> str:
    running = job.denial(ConditionType.RUNNING)
    if running and running.reason not in NO_PROBLEM:
        return f"is blocked: {because(running)}"
    stands = ", ".join(filter(None, (job.progress, job.activity))) or "no tasks yet"
    phase = f"is in phase {job.phase} ({stands})"
    if waits := waiting(job):
        why = f"is pending: {waits.message or waits.reason}"
        return f"{phase} and {why}" if job.is_busy else why
    return phase


def waiting(job: model.Job) -> model.Condition | None:
    """Return the condition that says why a job lacks something that it needs."""
    executors = job.denial(SparkCondition.EXECUTORS_READY) if job.holds(ConditionType.RUNNING) else None
    return job.denial(ConditionType.SCHEDULED) or executors


def unreconciled(age_s: float) -> str:
    """Return what is known of an object without a status."""
    if age_s < UNRECONCILED_AFTER_S:
        return "was created just now; the operator has not reconciled it yet"
    return (
        f"was created {text.ago(age_s)} ago and no operator has reconciled it: "
        f"check `kubectl get pods -n {names.OPERATOR_NAMESPACE}`, "
        "and that the chart value `namespaces` includes this namespace"
    )


def because(condition: model.Condition) -> str:
    """Return the reason of a condition with its message."""
    return f"{condition.reason}: {condition.message}" if condition.message else condition.reason


def describe_pods(pods: Iterable[model.TaskPod]) -> str:
    """Return the pods counted by node and state."""
    by_place = collections.Counter((pod.node or "no node yet", pod.waiting or pod.phase) for pod in pods)
    return ", ".join(f"{count} {state} on {node}" for (node, state), count in sorted(by_place.items()))


def _pod_standing(raw: model.Raw, pod: model.TaskPod, now_s: float) -> str:
    scheduled = model.conditions(raw).get("PodScheduled")
    match pod.phase:
        case "Succeeded":
            return f"succeeded after {text.duration((pod.finished_s or now_s) - pod.created_s)}"
        case "Failed":
            return f"failed: {_pod_failure(raw, pod)}"
        case "Running":
            return f"has run on {pod.node} for {text.ago(now_s - (pod.started_s or pod.created_s))}"
        case _:
            return _not_started(pod, scheduled)


def _not_started(pod: model.TaskPod, scheduled: model.Condition | None) -> str:
    if pod.node:
        return f"is starting on {pod.node}{': ' + pod.waiting if pod.waiting else ''}"
    if scheduled and scheduled.status == "False":
        return f"is pending: {scheduled.message or scheduled.reason}"
    return "is pending; no scheduler has reported a reason yet"


def _pod_failure(raw: model.Raw, pod: model.TaskPod) -> str:
    if pod.result and pod.result.reason:
        return f"{pod.result.reason}: {pod.result.message}"
    status = raw.get("status") or {}
    return ": ".join(filter(None, (status.get("reason"), status.get("message")))) or "its container was killed"


def _last(events: Iterable[model.Raw]) -> list[model.Raw]:
    def when(event: model.Raw) -> str:
        return event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or ""

    return sorted(events, key=when)[-_SHOWN_EVENTS:]
