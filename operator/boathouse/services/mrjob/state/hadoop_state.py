"""The attempt of a job on a Hadoop cluster in its status, as the planner counts with it."""

import dataclasses
from collections.abc import Sequence

from boathouse.resources.mrjob.status import MAX_APPLICATIONS, HadoopStatus, MRJobStatus, TaskCounts
from boathouse.services.frame import status_codec
from boathouse_task.contract import TaskType

MAX_ATTEMPT = 0xFFFF


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """Tasks of the attempt's applications, as the ResourceManager counts them."""

    done: int = 0
    total: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HadoopState(HadoopStatus):
    """The current attempt. It is in the status before a client of it is submitted.

    Attributes:
        attempt: From 1; a number is used once.
        cluster: UID of its cluster; empty if it is unknown.
        is_stopping: Whether the operator ends the attempt: its client is deleted, its applications are killed.
        applications: Its applications as last reported, the newest last.
        maps: None until an application reports them.
    """

    maps: Tasks | None = None
    reduces: Tasks | None = None

    @property
    def is_open(self) -> bool:
        """Whether its client or its applications may still run."""
        return self.ended_s is None


def tag(uid: str, attempt: int) -> str:
    """Return the tag of an attempt's applications. YARN stores tags in lower case."""
    return f"{uid}-{attempt}".lower()


def to_status(state: HadoopState) -> HadoopStatus:
    """Return the part `hadoop` of the status."""
    latest = dataclasses.replace(state, applications=state.applications[-MAX_APPLICATIONS:])
    return HadoopStatus(**status_codec.fields_of(HadoopStatus, latest))


def from_status(status: MRJobStatus) -> HadoopState | None:
    """Return the attempt in a status; None if it has none."""
    read = status.hadoop
    if read is None or not 0 < read.attempt <= MAX_ATTEMPT:
        return None
    fields = status_codec.fields_of(HadoopStatus, read)
    return HadoopState(**fields, maps=_tasks(status.maps), reduces=_tasks(status.reduces))


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


def _tasks(counts: TaskCounts | None) -> Tasks | None:
    return Tasks(done=counts.succeeded, total=counts.total) if counts else None
