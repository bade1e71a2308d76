"""Models of jobs, task pods and events, decoded from the API's JSON, and durations and sizes as text. Pure.

Times are seconds since the epoch (UTC); None is "not yet".
"""

import dataclasses
import datetime as dt
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.resources.mrcluster import names as cluster_names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse_task import contract

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def ago(seconds: float) -> str:
    """Return an age with its largest unit, as kubectl prints it: 200 s is "3m"."""
    whole = max(0, int(seconds))
    size, letter = next((unit for unit in _UNITS if whole >= unit[0]), (1, "s"))
    return f"{whole // size}{letter}"


def duration(seconds: float) -> str:
    """Return a duration with its two largest units: 200 s is "3m20s"."""
    whole = max(0, round(seconds))
    parts: list[str] = []
    for size, letter in _UNITS:
        if whole >= size or parts:
            parts.append(f"{whole // size}{letter}")
            whole %= size
    return "".join(parts[:2]) or "0s"


def size(size_bytes: float) -> str:
    """Return a size with a binary unit: 1536 bytes are "1.5 KiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size_bytes < 1024:  # noqa: PLR2004 - the step between binary units
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} TiB"


T = TypeVar("T")
Raw = Mapping[str, Any]
"""A decoded API object."""

FINISHED_PHASES = frozenset({"Succeeded", "Failed", "Expired"})

CLIENT = cluster_names.Role.CLIENT.value
"""The task that submits a job to a Hadoop cluster."""
_DAEMONS: Mapping[str, str] = {
    cluster_names.Role.MASTER: "namenode",
    cluster_names.Role.CORE: "datanode",
    cluster_names.Role.TRANSIENT: "nodemanager",
}
"""The container by which a node of a cluster is judged, by role."""

SPARK_ROLE = "spark-role"
SPARK_EXECUTOR_ID = "spark-exec-id"
SPARK_APPLICATION_ID = "spark-app-selector"
DRIVER = "driver"
EXECUTOR = "executor"
SPARK_ROLES = (DRIVER, EXECUTOR)
"""Labels of Spark's own on its pods, and their values."""


class Time(float):
    """Seconds since the epoch, decoded from RFC 3339."""


class Status(wire.View, frozen=True, kw_only=True):
    """What the statuses of all kinds have."""

    queue: str = ""
    phase: str = ""
    started_s: Time | None = msgspec.field(default=None, name="startTime")
    completed_s: Time | None = msgspec.field(default=None, name="completionTime")
    conditions: tuple[wire.Condition, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A part of a job's work, with a text such as `3/7, 2 running`; a total of 0 is unknown."""

    name: str
    total: int
    done: int
    text: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """An object of any kind that runs in a queue."""

    kind: str
    name: str
    namespace: str
    uid: str
    queue: str
    phase: str
    created_s: float
    started_s: float | None
    completed_s: float | None
    conditions: Mapping[str, wire.Condition]
    progress: str = ""  # how far it is, in a few words
    activity: str = ""  # what of it runs now
    is_busy: bool = False
    concern: wire.Condition | None = None  # what it lacks, if its kind has conditions of its own for that
    outcome: str = ""  # what its success left, in a sentence
    stages: tuple[Stage, ...] = ()  # what is drawn while it runs
    details: tuple[tuple[str, str], ...] = ()  # what is explained beside, as (what, text)

    @property
    def title(self) -> str:
        """`KIND/NAME`, as kubectl writes it."""
        return f"{self.kind}/{self.name}"

    @property
    def finished(self) -> bool:
        """Whether the job is complete."""
        return self.phase in FINISHED_PHASES

    def condition(self, kind: str) -> wire.Condition | None:
        """Return the condition of this type, if the operator has set it."""
        return self.conditions.get(kind)

    def confirmed(self, kind: str, status: str = "True") -> wire.Condition | None:
        """The condition of this type if it has a status."""
        found = self.conditions.get(kind)
        return found if found is not None and found.status == status else None

    def holds(self, kind: str) -> bool:
        """Whether a condition is True."""
        return self.confirmed(kind) is not None

    def denial(self, kind: str) -> wire.Condition | None:
        """The condition of this type if it is False."""
        return self.confirmed(kind, "False")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TaskPod:
    """One attempt of a task, a driver or an executor: its pod, and its result once it has ended."""

    name: str
    task: str
    task_type: str
    attempt: int
    queue: str
    node: str | None
    phase: str
    created_s: float
    placed_s: float  # when it was bound; its creation, if it has no node
    started_s: float | None
    finished_s: float | None
    container: str = ""
    waiting: str = ""
    result: contract.TaskResult | None = None
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether this attempt ended without success."""
        return self.phase == "Failed"


def decoded(raw: Any, kind: type[T]) -> T:
    """Return a part of an object as a Struct."""
    return msgspec.convert(raw, kind, dec_hook=lambda _, text: Time(epoch_s(text)))


def common(raw: Raw, kind: str, status: Status) -> dict[str, Any]:
    """Return the fields of a `Job` that do not depend on its kind, as keywords."""
    metadata = raw["metadata"]
    return {
        "kind": kind,
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "uid": metadata["uid"],
        "queue": status.queue or raw.get("spec", {}).get("queue") or "",
        "phase": status.phase,
        "created_s": epoch_s(metadata["creationTimestamp"]),
        "started_s": status.started_s,
        "completed_s": status.completed_s,
        "conditions": {condition.type: condition for condition in status.conditions},
    }


def task_pod(raw: Raw) -> TaskPod:
    """Decode a pod of a job."""
    pod = msgspec.convert(raw, wire.PodView)
    labels, created_s = pod.metadata.labels, epoch_s(raw["metadata"]["creationTimestamp"])
    role, task_type = labels.get(SPARK_ROLE, ""), labels.get(names.LABEL_TASK_TYPE, "")
    is_spark = role in SPARK_ROLES
    container = f"spark-kubernetes-{role}" if is_spark else _DAEMONS.get(task_type, names.CONTAINER)
    # The attempt of an executor is that of its driver, which the application's ID ends with.
    attempt = labels.get(mrjob_names.LABEL_ATTEMPT) or labels.get(SPARK_APPLICATION_ID, "").rpartition("-")[2]
    main = next((status for status in pod.status.container_statuses if status.name == container), None)
    state = main.state if main else wire.ContainerState()
    return TaskPod(
        name=pod.metadata.name,
        task=_task_name(labels) or pod.metadata.name,
        task_type=role or task_type,
        container=container,
        attempt=int(attempt) if attempt.isascii() and attempt.isdigit() else 1,
        queue=labels.get(names.LABEL_QUEUE, ""),
        node=pod.spec.node_name or None,
        phase=pod.status.phase or "Pending",
        created_s=created_s,
        placed_s=placed_s(pod) or created_s,
        started_s=_started_s(pod, main),
        finished_s=_epoch_s(state.terminated.finished_at) if state.terminated else None,
        waiting=state.waiting.reason if state.waiting else "",
        result=result(state),
        annotations=pod.metadata.annotations,
    )


def epoch_s(text: str) -> float:
    """Return seconds since the epoch of an RFC 3339 time."""
    return dt.datetime.fromisoformat(text).timestamp()


def _epoch_s(time: dt.datetime | None) -> float | None:
    return None if time is None else time.timestamp()


def placed_s(pod: wire.PodView) -> float | None:
    """Return when a pod got its node, None if it has none."""
    scheduled = pod.condition("PodScheduled")
    return _epoch_s(scheduled.last_transition_time) if scheduled and scheduled.status == "True" else None


def _started_s(pod: wire.PodView, main: wire.ContainerStatus | None) -> float | None:
    """Return when a container started; of one that was restarted, when its pod did."""
    if main is None:
        return None
    state = main.state.running or main.state.terminated
    return _epoch_s((main.restart_count and pod.status.start_time) or (state.started_at if state else None))


def _task_name(labels: Mapping[str, str]) -> str | None:
    """`m-00042`, of a later step `s1-m-00042`; `driver`, `executor-3`."""
    role = labels.get(SPARK_ROLE, "")
    if role in SPARK_ROLES:
        return role if role == DRIVER else f"{role}-{labels.get(SPARK_EXECUTOR_ID, '?')}"
    if host := labels.get(cluster_names.LABEL_HOST):
        return host
    if labels.get(names.LABEL_TASK_TYPE) == cluster_names.Role.CLIENT:
        return CLIENT
    try:
        task_type = contract.TaskType(labels.get(names.LABEL_TASK_TYPE, ""))
        name = contract.task_name(task_type, int(labels.get(mrjob_names.LABEL_TASK_INDEX, "0")))
    except ValueError:
        return None
    step = labels.get(mrjob_names.LABEL_STEP, "0")
    return name if step == "0" else f"s{step}-{name}"


def result(state: wire.ContainerState) -> contract.TaskResult | None:
    """Return the termination message, if the runtime wrote it: a killed container leaves none."""
    message = state.terminated.message if state.terminated else ""
    if len(message) > contract.TERMINATION_LOG_MAX_BYTES:
        return None
    try:
        return msgspec.json.decode(message, type=contract.TaskResult)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
