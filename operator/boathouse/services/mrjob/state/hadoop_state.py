"""The attempt of a job on a Hadoop cluster in its status, and its conversion from and to JSON."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from boathouse.resources.mrjob.status import HadoopApplication, HadoopStatus, TaskCounts
from boathouse.services import times
from boathouse.services.frame import tolerant
from boathouse_task.contract import TaskType

MAX_APPLICATIONS = 8
MAX_ATTEMPT = 0xFFFF


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """Tasks of the attempt's applications, as the ResourceManager counts them."""

    done: int = 0
    total: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HadoopState:
    """The current attempt. It is in the status before a client of it is submitted.

    Attributes:
        attempt: From 1; a number is used once.
        tag: Of its applications.
        cluster: UID of its cluster; empty if it is unknown.
        is_stopping: Whether the operator ends the attempt: its client is deleted, its applications are killed.
        ended_s: When its client and applications had ended; None: they may still run.
        applications: Its applications as last reported, the newest last.
        maps: None until an application reports them.
    """

    attempt: int
    tag: str
    since_s: float
    cluster: str = ""
    is_stopping: bool = False
    ended_s: float | None = None
    applications: Sequence[HadoopApplication] = ()
    maps: Tasks | None = None
    reduces: Tasks | None = None

    @property
    def is_open(self) -> bool:
        """Whether its client or its applications may still run."""
        return self.ended_s is None


def tag(uid: str, attempt: int) -> str:
    """Return the tag of an attempt's applications. YARN stores tags in lower case."""
    return f"{uid}-{attempt}".lower()


def to_status(state: HadoopState) -> dict[str, Any]:
    """Return the part `hadoop` of the status with all fields, so that a merge patch also clears removed values."""
    status = HadoopStatus(
        attempt=state.attempt,
        tag=state.tag,
        clusterUID=state.cluster or None,
        since=times.rfc3339(state.since_s) or "",
        stopping=state.is_stopping,
        ended=times.rfc3339(state.ended_s),
        applications=list(state.applications[-MAX_APPLICATIONS:]) or None,
    )
    return status.model_dump(mode="json", by_alias=True)


def from_status(status: Mapping[str, Any]) -> HadoopState | None:
    """Return the attempt in a status; None if it has none that can be read."""
    part = status.get("hadoop")
    read = tolerant.value(lambda: HadoopStatus.model_validate(part), None) if part else None
    if read is None or not 0 < read.attempt <= MAX_ATTEMPT:
        return None
    return HadoopState(
        attempt=read.attempt,
        tag=read.tag,
        since_s=tolerant.value(lambda: times.epoch(read.since), None) or 0.0,
        cluster=read.cluster_uid or "",
        is_stopping=read.stopping,
        ended_s=tolerant.value(lambda: times.epoch(read.ended), None),
        applications=tuple(read.applications or ()),
        maps=_tasks(status.get("maps")),
        reduces=_tasks(status.get("reduces")),
    )


def progress(state: HadoopState) -> str | None:
    """Return `maps 12/40, reduces 0/2`; None until an application reports its tasks."""
    parts = [f"{word} {tasks.done}/{tasks.total}" for word, tasks in _by_word(state) if tasks]
    return ", ".join(parts) or None


def _by_word(state: HadoopState) -> Sequence[tuple[str, Tasks | None]]:
    return ("maps", state.maps), ("reduces", state.reduces)


def counts(state: HadoopState, task_type: TaskType) -> TaskCounts | None:
    """Return the tasks of a stage. What runs is not known: it counts as pending."""
    tasks = {TaskType.MAP: state.maps, TaskType.REDUCE: state.reduces}.get(task_type)
    if tasks is None:
        return None
    return TaskCounts(total=tasks.total, succeeded=tasks.done, pending=max(0, tasks.total - tasks.done))


def _tasks(counts: object) -> Tasks | None:
    if not isinstance(counts, Mapping):
        return None
    return tolerant.value(lambda: Tasks(done=int(counts["succeeded"]), total=int(counts["total"])), None)
