"""Model of a task pod for the planner: its attempt, its state, its result or failure."""

import dataclasses

from boathouse.services.frame.pod_events import LENT_MILLI
from boathouse.services.frame.pod_life import PodLife, Problem
from boathouse.suspension.stages import SuspensionRecord
from boathouse_policies import model as policy
from boathouse_task import contract
from boathouse_task.contract import TaskType


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
        placed_s: time of its binding, from which its start timeout counts.
        deleting_since_s: time of its deletion; on an unreachable node such a pod may exist for long.
        result: result of a pod that succeeded.
        ending: failure of a pod that failed.
        problem: problem of a pod that cannot start.
        memory_bytes: its memory limit.
        ideal_memory_bytes: the memory that the task requested, if the pod started with less; else 0.
        started_s: start time of its container.
        resources: what it takes of its node now.
        suspension: record of its last suspension.
        is_suspended: whether it has the CPU of a suspended task.
    """

    name: str
    uid: str
    task_type: TaskType
    index: int
    attempt: int
    state: PodLife
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
    resources: policy.Resources = policy.Resources()  # noqa: RUF009 - frozen
    suspension: SuspensionRecord | None = None
    is_suspended: bool = False

    @property
    def is_active(self) -> bool:
        """Whether the pod has neither ended nor been deleted."""
        return self.state.is_live and self.deleting_since_s is None

    @property
    def is_owed_cpu(self) -> bool:
        """Whether its suspension is over, but its CPU request is still that of a suspended task."""
        record = self.suspension
        is_lent = 0 < self.resources.cpu_milli <= LENT_MILLI
        return record is not None and not self.is_suspended and is_lent and record.cpu_request_milli > LENT_MILLI

    @property
    def task_name(self) -> str:
        """Name of the task, such as `m-00042`."""
        return contract.task_name(self.task_type, self.index)
