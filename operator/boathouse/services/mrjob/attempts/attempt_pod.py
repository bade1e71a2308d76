"""A task pod as the planner sees it: which attempt of which task it is, and how it does."""

import dataclasses
import enum

from boathouse_task import contract
from boathouse_task.contract import TaskType


class AttemptState(enum.Enum):
    """The life of a pod, as far as the planner cares."""

    UNPLACED = "unplaced"
    """It exists, so that people and autoscalers see what is missing, but has no node yet."""
    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"

    @property
    def is_live(self) -> bool:
        """Whether the pod has yet to end."""
        return self is not AttemptState.SUCCEEDED and self is not AttemptState.FAILED  # a set would hash, in Python


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a pod does not start, in words for people."""

    reason: str
    message: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How an attempt ended without success."""

    reason: str
    message: str
    user_error: bool
    exit_code: int | None = None
    time_s: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AttemptPod:
    """One attempt of one task.

    Attributes:
        step: of the job, from 0.
        placed_s: when it got its node, from which its start is timed.
        deleting_since_s: when it was asked to go; such a pod may linger on a node that does not answer.
        result: of a pod that succeeded.
        ending: of a pod that failed.
        problem: of a pod that cannot start.
        memory_bytes: its memory limit.
        ideal_memory_bytes: what it asked for, where it was started with less; else 0.
        started_s: when its container started.
    """

    name: str
    uid: str
    task_type: TaskType
    index: int
    attempt: int
    state: AttemptState
    placed_s: float
    step: int = 0
    node: str | None = None
    deleting_since_s: float | None = None
    problem: Problem | None = None
    result: contract.TaskResult | None = None
    ending: Ending | None = None
    memory_bytes: int = 0
    ideal_memory_bytes: int = 0
    started_s: float | None = None

    @property
    def is_active(self) -> bool:
        """Whether the pod has yet to end, and nobody has deleted it."""
        return self.state.is_live and self.deleting_since_s is None

    @property
    def task_name(self) -> str:
        """`m-00042`."""
        return contract.task_name(self.task_type, self.index)
