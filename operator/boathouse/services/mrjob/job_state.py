"""Model of a job's status for the planner, and its conversion from and to JSON.

The state has everything that must survive the deletion of pods: finished tasks and their winning attempts, the number
of attempts of each task, and the causes of failures. For an unfinished task, `user_failures + infrastructure_failures
+ killed` attempts are settled: they ended, and each was counted once, in order.
"""

import base64
import dataclasses
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from boathouse.resources import statuses
from boathouse.resources.mrjob import spec
from boathouse.resources.mrjob.status import (
    MAX_APPLICATIONS,
    AttemptArrays,
    Attempts,
    FailureCounts,
    HadoopStatus,
    JobFields,
    MRJobStatus,
    TaskCounts,
)
from boathouse.services.frame import status_codec
from boathouse_task import contract

MAX_ATTEMPT = 0xFFFF  # the status stores attempt numbers in 16 bits
MAX_LAST_FAILURES = 5
_SINGLE = (contract.TaskType.SETUP, contract.TaskType.UBER, contract.TaskType.COMMIT, contract.TaskType.CLEANUP)
_COUNTED: Final = ("last", "user_failures", "infrastructure_failures", "killed")
"""Fields of `StageState` and `AttemptArrays`."""
TERMINAL = frozenset({"Succeeded", "Failed"})
_CODEC: Final = status_codec.StatusCodec(MRJobStatus)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HadoopState(HadoopStatus):
    """The current attempt, which is in the status before a client of it is submitted: its number is used once.

    If it is stopping, its client is deleted and its applications are killed. These are as last reported, the newest
    last. The tasks are None until an application reports them.
    """

    maps: TaskCounts | None = None
    reduces: TaskCounts | None = None

    @property
    def is_open(self) -> bool:
        """Whether its client or its applications may still run."""
        return self.ended_s is None


def hadoop_tag(uid: str, attempt: int) -> str:
    """Return the tag of an attempt's applications. YARN stores tags in lower case."""
    return f"{uid}-{attempt}".lower()


def counts_of_applications(done: int, total: int) -> TaskCounts:
    """Return the tasks of a stage as the ResourceManager counts them. What runs is not known: it counts as pending."""
    return TaskCounts(total=total, succeeded=done, pending=max(0, total - done))


def _hadoop_state(status: MRJobStatus) -> HadoopState | None:
    if status.hadoop is None or not 0 < status.hadoop.attempt <= MAX_ATTEMPT:
        return None
    stages = status.maps, status.reduces
    maps, reduces = (stage and counts_of_applications(stage.succeeded, stage.total) for stage in stages)
    return HadoopState(**status_codec.fields_of(HadoopStatus, status.hadoop), maps=maps, reduces=reduces)


@dataclasses.dataclass(slots=True, kw_only=True)
class StageState:
    """Tasks of one stage by index. Mutable: the planner works on its own copy."""

    winner: list[int]  # the attempt whose commit won; 0 while the task is not done
    last: list[int]  # the highest attempt number observed
    user_failures: list[int]
    infrastructure_failures: list[int]
    killed: list[int]  # attempts that the operator ended, which are not failures

    @classmethod
    def empty(cls, total: int) -> "StageState":
        """Return a stage without attempts."""
        return cls(**{field.name: [0] * total for field in dataclasses.fields(cls)})

    @property
    def total(self) -> int:
        """Number of tasks."""
        return len(self.winner)

    @property
    def succeeded(self) -> int:
        """Number of finished tasks."""
        return self.total - self.winner.count(0)

    @property
    def done(self) -> bool:
        """Whether every task is done."""
        return 0 not in self.winner

    def settled(self, index: int) -> int:
        """Return the number of attempts of the task that ended without success and are counted."""
        return self.failures(index) + self.killed[index]

    def failures(self, index: int) -> int:
        """Return the number of failed attempts of the task."""
        return self.user_failures[index] + self.infrastructure_failures[index]

    def copy(self) -> "StageState":
        """Return an independent copy."""
        return StageState(**{name: numbers[:] for name, numbers in status_codec.fields_of(StageState, self).items()})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobState(JobFields):
    """A job's status.

    Plan and stages belong to the current step, except the commit and cleanup stages. Setup, uber, commit and cleanup
    have one task each; map and reduce exist once the plan is accepted. A job on a Hadoop cluster has no stages.
    """

    step: int = 0
    steps: int = 1
    past_failures: tuple[int, int] = (0, 0)  # user and infrastructure failures of previous steps
    stages: Mapping[contract.TaskType, StageState] = dataclasses.field(
        default_factory=lambda: {task_type: StageState.empty(1) for task_type in _SINGLE}
    )
    active: Mapping[contract.TaskType, tuple[int, int]] = dataclasses.field(default_factory=dict)
    suspended_reduces: int = 0
    hadoop: HadoopState | None = None

    @property
    def finished(self) -> bool:
        """Whether the job has succeeded or failed."""
        return self.phase in TERMINAL

    def total(self, task_type: contract.TaskType) -> int:
        """Return the number of tasks of a stage of the current step; 0 until it is known."""
        return self.stages[task_type].total if task_type in self.stages else 0

    def since_s(self, condition_type: str) -> float | None:
        """Return since when a condition has its status, in epoch seconds; None if the job has none of the type."""
        condition = self.condition(condition_type)
        return statuses.epoch(condition.last_transition_time) if condition is not None else None

    @property
    def failures(self) -> tuple[int, int]:
        """Failed attempts of all steps so far: user errors, infrastructure errors."""
        user, infrastructure = self.past_failures
        user += sum(sum(stage.user_failures) for stage in self.stages.values())
        return user, infrastructure + sum(sum(stage.infrastructure_failures) for stage in self.stages.values())


def to_status(state: JobState) -> dict[str, Any]:
    """Return the status as JSON with all fields, so that a merge patch also clears removed values."""
    user, infrastructure = state.failures
    hadoop = status_codec.fields_of(HadoopStatus, state.hadoop) if state.hadoop else {}
    if state.hadoop:
        hadoop["applications"] = state.hadoop.applications[-MAX_APPLICATIONS:]
    status = MRJobStatus(
        **status_codec.fields_of(JobFields, state),
        progress=progress(state),
        maps=_counts(state, contract.TaskType.MAP),
        reduces=_counts(state, contract.TaskType.REDUCE),
        failures=FailureCounts(user=user, infrastructure=infrastructure),
        current_step=state.step if state.steps > 1 else None,
        steps=state.steps if state.steps > 1 else None,
        succeeded_maps=_bitmap(state, contract.TaskType.MAP),
        succeeded_reduces=_bitmap(state, contract.TaskType.REDUCE),
        attempts=Attempts(
            **{stage: _arrays(state.stages.get(contract.TaskType(stage))) for stage in Attempts.model_fields}
        ),
        hadoop=HadoopStatus(**hadoop) if state.hadoop else None,
    )
    return _CODEC.write(status)


def without_free_parts(state: JobState) -> JobState:
    """Return the state without informational fields with tasks' data, which the API server may reject."""
    return dataclasses.replace(state, counters={}, last_failures=(), running=None)


def from_status(status: Mapping[str, Any] | None, reduces: int) -> JobState:
    """Return the state in a status, whose current step has `reduces`. Unreadable fields are derived again.

    Another version may have written the status: an unknown phase counts as in progress, an unknown condition is kept.
    """
    read = _CODEC.read(status)
    plan = read.plan if read.plan and 0 <= read.plan.splits <= spec.MAX_MAPS else None
    stages = {task_type: _stage(read, task_type, 1) for task_type in _SINGLE}
    if plan:
        stages[contract.TaskType.MAP] = _stage(read, contract.TaskType.MAP, plan.splits, read.succeeded_maps)
        stages[contract.TaskType.REDUCE] = _stage(read, contract.TaskType.REDUCE, reduces, read.succeeded_reduces)
        stages[contract.TaskType.SETUP].winner[0] = stages[contract.TaskType.SETUP].last[0] or 1
        if stages[contract.TaskType.MAP].done and stages[contract.TaskType.REDUCE].done:
            stages[contract.TaskType.UBER].winner[0] = stages[contract.TaskType.UBER].last[0]
    if read.phase == "Succeeded":
        stages[contract.TaskType.COMMIT].winner[0] = stages[contract.TaskType.COMMIT].last[0] or 1
    state = JobState(
        **status_codec.fields_of(JobFields, read) | {"plan": plan},
        step=read.current_step or 0,
        steps=max(1, read.steps or 1),
        stages=stages,
        hadoop=_hadoop_state(read),
    )
    if read.failures is None:
        return state
    here = state.failures
    past = max(0, read.failures.user - here[0]), max(0, read.failures.infrastructure - here[1])
    return dataclasses.replace(state, past_failures=past)


def progress(state: JobState) -> str | None:
    """Return `maps 12/40, reduces 0/2`, with several steps `step 2/3, maps ...`; None without a plan."""
    maps, reduces = _counts(state, contract.TaskType.MAP), _counts(state, contract.TaskType.REDUCE)
    tasks = [f"maps {maps.succeeded}/{maps.total}"] if maps is not None else []
    tasks += [f"reduces {reduces.succeeded}/{reduces.total}"] if reduces is not None and reduces.total else []
    step = [f"step {state.step + 1}/{state.steps}"] if state.steps > 1 and (tasks or state.step) else []
    return ", ".join([*step, *tasks]) or None


def _counts(state: JobState, task_type: contract.TaskType) -> TaskCounts | None:
    if state.hadoop is not None:
        return state.hadoop.maps if task_type is contract.TaskType.MAP else state.hadoop.reduces
    stage = state.stages.get(task_type)
    if stage is None:
        return None
    running = state.active.get(task_type, (0, 0))[1]
    return TaskCounts(
        total=stage.total,
        succeeded=stage.succeeded,
        running=running,
        pending=0 if state.finished else stage.total - stage.succeeded - running,
        failed_attempts=sum(stage.user_failures) + sum(stage.infrastructure_failures),
        killed_attempts=sum(stage.killed),
        suspended=state.suspended_reduces if task_type is contract.TaskType.REDUCE else 0,
    )


def _bitmap(state: JobState, task_type: contract.TaskType) -> str | None:
    stage = state.stages.get(task_type)
    if stage is None or not stage.succeeded:
        return None
    return contract.encode_bitmap((index for index, winner in enumerate(stage.winner) if winner), stage.total)


def _arrays(stage: StageState | None) -> AttemptArrays | None:
    if stage is None or not any(stage.last):
        return None
    others = _pack([0 if winner == 1 else winner for winner in stage.winner])
    return AttemptArrays(winners=others, **{name: _pack(getattr(stage, name)) for name in _COUNTED})


def _stage(read: MRJobStatus, kind: contract.TaskType, total: int, bitmap: str | None = None) -> StageState:
    arrays: AttemptArrays = getattr(read.attempts, kind.value, None) or AttemptArrays()
    done = status_codec.value(lambda: contract.decode_bitmap(bitmap or "", total), set[int]())
    winners = [(winner or 1) if index in done else 0 for index, winner in enumerate(_unpack(arrays.winners, total))]
    return StageState(winner=winners, **{name: _unpack(getattr(arrays, name), total) for name in _COUNTED})


def _pack(values: Sequence[int]) -> str | None:
    """Return base64(zlib(little-endian unsigned shorts)); None if all numbers are 0."""
    if not any(values):
        return None
    raw = struct.pack(f"<{len(values)}H", *(min(value, MAX_ATTEMPT) for value in values))
    return base64.b64encode(zlib.compress(raw, 9)).decode()


def _unpack(text: str | None, total: int) -> list[int]:
    """Return what `_pack` encoded, a number per task; zeros for an invalid text. Decompresses no more bytes."""
    try:
        raw = zlib.decompressobj().decompress(base64.b64decode(text), 2 * total) if text and total else b""
    except (ValueError, zlib.error):
        raw = b""
    return [*struct.unpack(f"<{len(raw) // 2}H", raw[: len(raw) // 2 * 2]), *[0] * total][:total]
