"""Why a job or pod waits, or where it stands: one line first, then details. Pure."""

from __future__ import annotations

import collections
import dataclasses
from typing import TYPE_CHECKING, Final

from boathouse.resources import names
from boathouse.resources.names import ConditionType, Reason
from boathouse.resources.sparkapp.names import ConditionType as SparkCondition
from boathouse.resources.sparkapp.names import Reason as SparkReason
from boathouse_cli import model, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boathouse_cli.queues import Queue

UNSEEN_AFTER_S: Final = 10.0
"""A job without status for so long is not being looked at: a running operator takes well under a second."""

NO_PROBLEM: Final = frozenset(
    {
        *(Reason.WAITING_FOR_TASKS, Reason.JOB_FINISHED, Reason.TASKS_RUNNING, Reason.SUSPENDED, ""),
        *(SparkReason.DRIVER_STARTING, SparkReason.RESTARTING),
    }
)
"""Reasons for which a job does not run yet, while nothing is wrong with its pods."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A line that answers, and rows of (what, details) for those who want to know more."""

    headline: str
    details: tuple[tuple[str, str], ...]


def explain_job(job: model.Job, pods: Sequence[model.TaskPod], queue: Queue | None, *, now_s: float) -> Explanation:
    """Where a job stands.

    Args:
        job: The job.
        pods: Its pods.
        queue: Its queue's use, if it could be read.
        now_s: For ages.
    """
    rows = [("phase", f"{job.phase or 'none yet'}, created {text.ago(now_s - job.created_s)} ago")]
    rows += job.details
    rows += [("pods", _pods(pods))] if pods else []
    rows += [("queue", describe_queue(queue))] if queue else []
    return Explanation(headline=f"{job.title} {_standing(job, now_s)}", details=tuple(rows))


def explain_pod(raw: model.Raw, events: Iterable[model.Raw], *, now_s: float) -> Explanation:
    """Where a pod stands.

    Args:
        raw: The pod.
        events: Events about it, in any order.
        now_s: For ages.
    """
    pod = model.task_pod(raw)
    scheduler = raw["spec"].get("schedulerName") or "default-scheduler"
    rows = [("scheduler", scheduler if scheduler == names.SCHEDULER_NAME else f"{scheduler} (not Boathouse)")]
    rows.append(("phase", f"{pod.phase}, created {text.ago(now_s - pod.created_s)} ago"))
    rows += [("node", pod.node)] if pod.node else []
    rows += [("queue", pod.queue)] if pod.queue else []
    decision = (raw["metadata"].get("annotations") or {}).get(names.ANNOTATION_DECISION)
    rows += [("decision", decision)] if decision else []
    rows += [("event", f"{each.get('reason')}: {each.get('message')}") for each in _last(events)]
    return Explanation(headline=f"pod/{pod.name} {_pod_standing(raw, pod, now_s)}", details=tuple(rows))


def describe_queue(queue: Queue) -> str:
    """A queue's use in words."""
    weight = "" if queue.weight is None else f", weight {queue.weight:g}"
    fair = "" if queue.fair_share is None else f", fair share {queue.fair_share:.0%}"
    return f"{queue.name}{weight}: {queue.pods} pods hold {queue.share:.0%} of the cluster{fair}"


def _standing(job: model.Job, now_s: float) -> str:
    failed, suspended = job.condition(ConditionType.FAILED), job.condition(ConditionType.SUSPENDED)
    if failed and failed.status == "True":
        return f"failed: {_because(failed)}"
    if job.holds(ConditionType.SUCCEEDED):
        took = text.duration((job.completed_s or now_s) - job.created_s)
        outcome = f"; {job.outcome}" if job.outcome else ""
        return f"succeeded in {took} ({job.progress}){outcome}"
    if not job.conditions:
        return _unseen(now_s - job.created_s)
    if refused := job.denial(ConditionType.ADMITTED):
        return f"was not admitted: {_because(refused)}"
    if suspended and suspended.status == "True":
        return f"is suspended: {suspended.message or suspended.reason}"
    return _under_way(job)


def _under_way(job: model.Job) -> str:
    running = job.denial(ConditionType.RUNNING)
    if running and running.reason not in NO_PROBLEM:
        return f"cannot go on: {_because(running)}"
    stands = ", ".join(filter(None, (job.progress, job.activity))) or "no tasks yet"
    phase = f"is in phase {job.phase} ({stands})"
    if waits := waiting(job):
        why = f"waits: {waits.message or waits.reason}"
        return f"{phase} and {why}" if job.is_busy else why
    return phase


def waiting(job: model.Job) -> model.Condition | None:
    """The condition that says why a job has not all that it needs."""
    executors = job.denial(SparkCondition.EXECUTORS_READY) if job.holds(ConditionType.RUNNING) else None
    return job.denial(ConditionType.SCHEDULED) or executors


def _unseen(age_s: float) -> str:
    if age_s < UNSEEN_AFTER_S:
        return "was created just now; the operator has not looked at it yet"
    return (
        f"was created {text.ago(age_s)} ago and no operator has looked at it: "
        f"see `kubectl get pods -n {names.OPERATOR_NAMESPACE}`, "
        "and whether the chart's value `namespaces` includes this one"
    )


def _because(condition: model.Condition) -> str:
    return f"{condition.reason}: {condition.message}" if condition.message else condition.reason


def _pods(pods: Iterable[model.TaskPod]) -> str:
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
            return f"runs on {pod.node} since {text.ago(now_s - (pod.started_s or pod.created_s))}"
        case _:
            return _not_started(pod, scheduled)


def _not_started(pod: model.TaskPod, scheduled: model.Condition | None) -> str:
    if pod.node:
        return f"is starting on {pod.node}{': ' + pod.waiting if pod.waiting else ''}"
    if scheduled and scheduled.status == "False":
        return f"waits for a node: {scheduled.message or scheduled.reason}"
    return "waits for a node; no scheduler has said why yet"


def _pod_failure(raw: model.Raw, pod: model.TaskPod) -> str:
    if pod.result and pod.result.reason:
        return f"{pod.result.reason}: {pod.result.message}"
    status = raw.get("status") or {}
    return ": ".join(filter(None, (status.get("reason"), status.get("message")))) or "its container was killed"


def _last(events: Iterable[model.Raw], count: int = 5) -> list[model.Raw]:
    def when(event: model.Raw) -> str:
        return event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or ""

    return sorted(events, key=when)[-count:]
