"""What a SparkApp's status remembers, as values the planner can count with; to and from the wire.

A state is all that survives when pods vanish: which attempt is the last, how those before it ended, and when the next
may start. Numbers of attempts are never used twice.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from boathouse.resources import base
from boathouse.resources.sparkapp import status as wire
from boathouse.resources.sparkapp.names import ConditionType
from boathouse.services import times
from boathouse.services.frame import merge_patch, tolerant

TERMINAL: Final = frozenset({"Succeeded", "Failed"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EndedAttempt:
    """How an attempt ended.

    Attributes:
        cause: Who is to blame; None: it succeeded.
        start_s: When its driver began to run; None: it never did.
    """

    number: int
    application_id: str
    cause: wire.Cause | None = None
    reason: str = ""
    message: str = ""
    node: str | None = None
    start_s: float | None = None
    end_s: float | None = None
    exit_code: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AppState:
    """An application's status.

    Attributes:
        attempt: The number of the last attempt that was begun; 0: none.
        attempt_start_s: When the driver of this attempt began to run.
        ended: The last attempts that ended, the latest last.
        application_failures: Since the last reset.
        retry_s: When the next attempt may start.
        completion_s: When the application ended.
    """

    phase: wire.Phase = "Pending"
    observed_generation: int = 0
    queue: str = ""
    reason: str = ""
    conditions: tuple[base.Condition, ...] = ()
    start_s: float | None = None
    completion_s: float | None = None
    attempt: int = 0
    application_id: str = ""
    attempt_start_s: float | None = None
    ended: tuple[EndedAttempt, ...] = ()
    application_failures: int = 0
    infrastructure_failures: int = 0
    retry_s: float | None = None
    driver: wire.DriverStatus | None = None
    executors: wire.ExecutorCounts | None = None
    stages: wire.StageCounts | None = None
    tasks: wire.TaskCounts | None = None
    progress_percent: int | None = None
    requests: wire.Requests | None = None
    last_log: str = ""

    @property
    def is_finished(self) -> bool:
        """Return whether the application has ended, one way or the other."""
        return self.phase in TERMINAL

    @property
    def is_settled(self) -> bool:
        """Return whether the last attempt has ended and is counted, or there was none."""
        return self.attempt == 0 or any(each.number == self.attempt for each in self.ended)

    def condition(self, condition_type: ConditionType) -> base.Condition | None:
        """Return the condition of a type."""
        return next((each for each in self.conditions if each.type == condition_type), None)

    def holds(self, condition_type: ConditionType) -> bool:
        """Return whether a condition is True."""
        condition = self.condition(condition_type)
        return condition is not None and condition.status == "True"


def from_status(status: Mapping[str, Any] | None) -> AppState:
    """Return the state that a status holds; what another version wrote and this one cannot read is left out."""
    read = tolerant.read(wire.SparkAppStatus, status)
    failures = read.failures or wire.FailureCounts()
    return AppState(
        phase=read.phase or "Pending",
        observed_generation=read.observed_generation or 0,
        queue=read.queue or "",
        reason=read.reason or "",
        conditions=tuple(read.conditions or ()),
        start_s=_epoch(read.start_time),
        completion_s=_epoch(read.completion_time),
        attempt=max(0, read.attempt or 0, *(each.number for each in read.past_attempts or ())),
        application_id=read.application_id or "",
        attempt_start_s=_epoch(read.attempt_start_time),
        ended=tuple(map(_ended, read.past_attempts or ())),
        application_failures=max(0, failures.application),
        infrastructure_failures=max(0, failures.infrastructure),
        retry_s=_epoch(failures.retry_time),
        driver=read.driver,
        executors=read.executors,
        stages=read.stages,
        tasks=read.tasks,
        progress_percent=read.progress_percent,
        requests=read.requests,
        last_log=read.last_log or "",
    )


def to_status(state: AppState) -> dict[str, Any]:
    """Return the status as JSON, every field present, so that a merge patch clears what is gone."""
    status = wire.SparkAppStatus(
        observed_generation=state.observed_generation,
        phase=state.phase,
        conditions=list(state.conditions),
        queue=state.queue or None,
        reason=state.reason or None,
        start_time=times.rfc3339(state.start_s),
        completion_time=times.rfc3339(state.completion_s),
        attempt=state.attempt or None,
        application_id=state.application_id or None,
        attempt_start_time=times.rfc3339(state.attempt_start_s),
        past_attempts=list(map(_attempt, state.ended[-wire.MAX_ATTEMPTS_KEPT :])) or None,
        failures=wire.FailureCounts(
            application=state.application_failures,
            infrastructure=state.infrastructure_failures,
            retry_time=times.rfc3339(state.retry_s),
        ),
        driver=state.driver,
        executors=state.executors,
        stages=state.stages,
        tasks=state.tasks,
        progress_percent=state.progress_percent,
        requests=state.requests,
        last_log=state.last_log or None,
    )
    return merge_patch.cleared(status)


def without_free_parts(state: AppState) -> AppState:
    """Return the state without what only informs people and comes from drivers: the rest of a status is ours alone."""
    ended = tuple(dataclasses.replace(each, message="") for each in state.ended)
    return dataclasses.replace(state, last_log="", ended=ended, stages=None, tasks=None, progress_percent=None)


def _ended(attempt: wire.Attempt) -> EndedAttempt:
    return EndedAttempt(
        number=attempt.number,
        application_id=attempt.application_id,
        cause=attempt.cause,
        reason=attempt.reason,
        message=attempt.message,
        node=attempt.node,
        start_s=_epoch(attempt.start_time),
        end_s=_epoch(attempt.end_time),
        exit_code=attempt.exit_code,
    )


def _attempt(ended: EndedAttempt) -> wire.Attempt:
    return wire.Attempt(
        number=ended.number,
        application_id=ended.application_id,
        cause=ended.cause,
        reason=ended.reason,
        message=ended.message,
        node=ended.node,
        start_time=times.rfc3339(ended.start_s),
        end_time=times.rfc3339(ended.end_s),
        exit_code=ended.exit_code,
    )


def _epoch(timestamp: str | None) -> float | None:
    return tolerant.value(lambda: times.epoch(timestamp), None)
