"""An MRJob's conditions (metav1.Condition) and its one-word reason."""

import dataclasses
from collections.abc import Iterable

from boathouse.resources import base
from boathouse.resources.names import ConditionType, Reason
from boathouse.services import times
from boathouse.services.mrjob.attempts import results
from boathouse.services.mrjob.attempts.attempt_pod import AttemptPod
from boathouse.services.mrjob.attempts.settle import Verdict
from boathouse.services.mrjob.state.job_state import JobState
from boathouse_task import contract

MAX_MESSAGE = 4096
"""The CRD takes eight times as many characters; nobody reads them."""


MAX_CONDITIONS = 16
_TYPES = frozenset(map(str, ConditionType))


class Table:
    """Conditions by type; `lastTransitionTime` moves only when the status does."""

    def __init__(self, conditions: Iterable[base.Condition], generation: int, now_s: float) -> None:
        self._by_type = {each.type: each for each in conditions}
        self._generation = generation
        self._now = times.rfc3339(now_s) or ""

    def set(self, condition_type: ConditionType, holds: bool, reason: str, message: str) -> None:
        """Set one condition."""
        status = "True" if holds else "False"
        old = self._by_type.get(condition_type)
        self._by_type[condition_type] = base.Condition(
            type=condition_type.value,
            status="True" if holds else "False",
            reason=str(reason),
            message=results.printable(message, MAX_MESSAGE),
            last_transition_time=old.last_transition_time if old and old.status == status else self._now,
            observed_generation=self._generation,
        )

    @property
    def conditions(self) -> tuple[base.Condition, ...]:
        """In the order of a job's life; behind them those that another version wrote."""
        ours = [self._by_type[each] for each in ConditionType if each in self._by_type]
        others = [each for kind, each in self._by_type.items() if kind not in _TYPES]
        return (*ours, *others[: MAX_CONDITIONS - len(ours)])


def failed(state: JobState, verdict: Verdict, now_s: float) -> JobState:
    """The job has failed."""
    reason = Reason.TASK_FAILED if verdict.reason == contract.Reason.USER_COMMAND_FAILED else verdict.reason
    table = Table(state.conditions, state.observed_generation, now_s)
    table.set(ConditionType.RUNNING, False, Reason.JOB_FINISHED, "")
    table.set(ConditionType.SUCCEEDED, False, reason, verdict.message)
    table.set(ConditionType.FAILED, True, reason, verdict.message)
    return dataclasses.replace(
        state, phase="Failed", reason=str(reason), completion_s=now_s, active={}, conditions=table.conditions
    )


def succeeded(state: JobState, now_s: float) -> JobState:
    """The output is complete."""
    table = Table(state.conditions, state.observed_generation, now_s)
    table.set(ConditionType.RUNNING, False, Reason.JOB_FINISHED, "")
    table.set(ConditionType.SUCCEEDED, True, Reason.SUCCEEDED, "the output is complete")
    table.set(ConditionType.FAILED, False, Reason.SUCCEEDED, "")
    return dataclasses.replace(
        state, phase="Succeeded", reason="", completion_s=now_s, active={}, conditions=table.conditions
    )


def suspended(state: JobState, now_s: float, *, live: int) -> JobState:
    """The job may not run; what has finished counts when it is resumed."""
    table = Table(state.conditions, state.observed_generation, now_s)
    table.set(ConditionType.ADMITTED, True, Reason.ADMITTED, f"in queue {state.queue}")
    ending = f"; {live} of its pods have not ended yet" if live else ""
    table.set(
        ConditionType.SUSPENDED, True, Reason.SUSPENDED, f"spec.suspend is true: set it to false to resume{ending}"
    )
    table.set(ConditionType.SCHEDULED, False, Reason.SUSPENDED, "")
    table.set(ConditionType.RUNNING, False, Reason.SUSPENDED, "")
    return dataclasses.replace(
        state, phase="Suspended", reason=str(Reason.SUSPENDED), start_s=None, conditions=table.conditions
    )


def in_progress(
    state: JobState,
    *,
    now_s: float,
    running: int,
    problem: AttemptPod | None,
    waiting: bool,
    diagnosis: tuple[str, str] | None,
    less: int = 0,
) -> JobState:
    """The job is on its way; say what it waits for, if for anything."""
    table = Table(state.conditions, state.observed_generation, now_s)
    table.set(ConditionType.ADMITTED, True, Reason.ADMITTED, f"in queue {state.queue}")
    if state.condition(ConditionType.SUSPENDED) is not None:
        table.set(ConditionType.SUSPENDED, False, Reason.RESUMED, "")
    reason = ""
    squeezed = (
        f" ({less} run with less memory than they requested, because no node had more free memory)" if less else ""
    )
    if waiting and diagnosis is not None:
        reason = diagnosis[0]
        table.set(ConditionType.SCHEDULED, False, diagnosis[0], diagnosis[1] + squeezed)
    elif not waiting:
        table.set(
            ConditionType.SCHEDULED, True, Reason.ALL_TASKS_PLACED, f"every task that may run has a node{squeezed}"
        )
    elif state.condition(ConditionType.SCHEDULED) is None:
        table.set(ConditionType.SCHEDULED, False, Reason.PENDING_EVALUATION, "not evaluated by the scheduler yet")
    if problem is not None and problem.problem is not None:
        reason = problem.problem.reason
        where = f"{problem.task_name} on node {problem.node}: {problem.problem.message}"
        table.set(ConditionType.RUNNING, False, problem.problem.reason, where)
    elif running:
        table.set(ConditionType.RUNNING, True, Reason.TASKS_RUNNING, "")
    elif state.condition(ConditionType.RUNNING) is None:
        table.set(ConditionType.RUNNING, False, Reason.WAITING_FOR_TASKS, "no task has started yet")
    return dataclasses.replace(state, reason=reason, conditions=table.conditions)
