"""Models of jobs, task pods and events, decoded from the API's JSON. Pure: no I/O, no clock.

Times are seconds since the epoch (UTC); None is "not yet".
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Mapping
from typing import Any

import msgspec

from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse_task import contract

Raw = Mapping[str, Any]
"""A decoded API object."""

FINISHED_PHASES = frozenset({"Succeeded", "Failed"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition of a job or pod."""

    status: str
    reason: str
    message: str
    since_s: float | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Task counts of one stage by state."""

    total: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed_attempts: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One failed attempt, from the job's status."""

    task: str
    step: int | None
    attempt: int
    node: str
    reason: str
    message: str
    user_error: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """An MRJob with its status, decoded from the API's JSON."""

    name: str
    namespace: str
    uid: str
    queue: str
    phase: str
    output: str
    created_s: float
    started_s: float | None
    completed_s: float | None
    conditions: Mapping[str, Condition]
    maps: Counts
    reduces: Counts
    progress: str
    failures: tuple[Failure, ...]
    counters: Mapping[str, Mapping[str, int]]

    @property
    def title(self) -> str:
        """`mrjob/NAME`, as kubectl writes it."""
        return f"mrjob/{self.name}"

    @property
    def finished(self) -> bool:
        """Whether the job is complete."""
        return self.phase in FINISHED_PHASES

    def condition(self, kind: names.ConditionType) -> Condition | None:
        """Return the condition of this type, if the operator has set it."""
        return self.conditions.get(kind)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TaskPod:
    """One attempt of a task: its pod, and its result once it has ended.

    Attributes:
        placed_s: time of its binding, which is later than `created_s` for a pod that was created before it had a node.
    """

    name: str
    task: str
    task_type: str
    attempt: int
    queue: str
    node: str | None
    phase: str
    created_s: float
    placed_s: float
    started_s: float | None
    finished_s: float | None
    waiting: str
    result: contract.TaskResult | None

    @property
    def failed(self) -> bool:
        """Whether this attempt ended without success."""
        return self.phase == "Failed"


def job(raw: Raw) -> Job:
    """Decode an MRJob."""
    metadata, spec, status = raw["metadata"], raw.get("spec", {}), raw.get("status") or {}
    return Job(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        queue=status.get("queue") or spec.get("queue") or "",
        phase=status.get("phase") or "",
        output=spec.get("output", ""),
        created_s=epoch_s(metadata["creationTimestamp"]),
        started_s=_epoch_or_none(status.get("startTime")),
        completed_s=_epoch_or_none(status.get("completionTime")),
        conditions=conditions(raw),
        maps=_counts(status.get("maps")),
        reduces=_counts(status.get("reduces")),
        progress=status.get("progress") or "",
        failures=tuple(map(_failure, status.get("lastFailures") or ())),
        counters=status.get("counters") or {},
    )


def conditions(raw: Raw) -> dict[str, Condition]:
    """Return the object's conditions by type."""
    return {
        each["type"]: Condition(
            status=each["status"],
            reason=each.get("reason") or "",
            message=each.get("message") or "",
            since_s=_epoch_or_none(each.get("lastTransitionTime")),
        )
        for each in (raw.get("status") or {}).get("conditions") or ()
    }


def task_pod(raw: Raw) -> TaskPod:
    """Decode a pod of a job."""
    metadata, status = raw["metadata"], raw.get("status") or {}
    labels = metadata.get("labels") or {}
    state = _container_state(status)
    ended = state.get("terminated") or {}
    task_type = labels.get(mrjob_names.LABEL_TASK_TYPE, "")
    created_s = epoch_s(metadata["creationTimestamp"])
    return TaskPod(
        name=metadata["name"],
        task=_task_name(
            task_type, labels.get(mrjob_names.LABEL_TASK_INDEX, "0"), labels.get(mrjob_names.LABEL_STEP, "0")
        )
        or metadata["name"],
        task_type=task_type,
        attempt=int(labels.get(mrjob_names.LABEL_ATTEMPT, "1")),
        queue=labels.get(names.LABEL_QUEUE, ""),
        node=raw.get("spec", {}).get("nodeName"),
        phase=status.get("phase") or "Pending",
        created_s=created_s,
        placed_s=_placed_s(raw) or created_s,
        started_s=_epoch_or_none((state.get("running") or ended).get("startedAt")),
        finished_s=_epoch_or_none(ended.get("finishedAt")),
        waiting=(state.get("waiting") or {}).get("reason") or "",
        result=_result(ended.get("message") or ""),
    )


def epoch_s(text: str) -> float:
    """Return seconds since the epoch of an RFC 3339 time."""
    return dt.datetime.fromisoformat(text).timestamp()


def _epoch_or_none(text: str | None) -> float | None:
    return epoch_s(text) if text else None


def _counts(raw: Raw | None) -> Counts:
    raw = raw or {}
    return Counts(
        total=raw.get("total", 0),
        pending=raw.get("pending", 0),
        running=raw.get("running", 0),
        succeeded=raw.get("succeeded", 0),
        failed_attempts=raw.get("failedAttempts", 0),
    )


def _failure(raw: Raw) -> Failure:
    return Failure(
        task=raw["task"],
        step=raw.get("step"),
        attempt=raw["attempt"],
        node=raw.get("node") or "",
        reason=raw["reason"],
        message=raw.get("message") or "",
        user_error=raw.get("userError", False),
    )


def _placed_s(raw: Raw) -> float | None:
    scheduled = conditions(raw).get("PodScheduled")
    return scheduled.since_s if scheduled and scheduled.status == "True" else None


def _container_state(status: Raw) -> Raw:
    for each in status.get("containerStatuses") or ():
        if each["name"] == names.CONTAINER:
            state: Raw = each.get("state") or {}
            return state
    return {}


def _task_name(task_type: str, index: str, step: str) -> str | None:
    """`m-00042`, of a later step `s1-m-00042`."""
    try:
        name = contract.task_name(contract.TaskType(task_type), int(index))
    except ValueError:
        return None
    return name if step == "0" else f"s{step}-{name}"


def _result(message: str) -> contract.TaskResult | None:
    """Return the termination message, if the runtime wrote it: a killed container leaves none."""
    try:
        return msgspec.json.decode(message, type=contract.TaskResult)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
