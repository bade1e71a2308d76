"""Set an MRJob's conditions (metav1.Condition) and its reason."""

import dataclasses

from boathouse.resources.names import ConditionType, Reason
from boathouse.services.frame.conditions import ConditionTable
from boathouse.services.frame.pod_life import Problem
from boathouse.services.mrjob.attempts.settle import Verdict
from boathouse.services.mrjob.state.job_state import JobState
from boathouse_task import contract


def table(state: JobState, now_s: float, generation: int | None = None) -> ConditionTable:
    """Return a mutable table of a job's conditions; `generation` defaults to its observed generation."""
    generation = state.observed_generation if generation is None else generation
    return ConditionTable(state.conditions, generation, now_s, order=ConditionType)


def finished(state: JobState, verdict: Verdict | None, now_s: float) -> JobState:
    """Return the state of a job that has failed, or whose output is complete if there is no verdict."""
    reason, message = (verdict.reason, verdict.message) if verdict else (Reason.SUCCEEDED, "the output is complete")
    reason = Reason.TASK_FAILED if reason == contract.Reason.USER_COMMAND_FAILED else reason
    known = table(state, now_s)
    known.set(ConditionType.RUNNING, False, Reason.JOB_FINISHED, "")
    known.set(ConditionType.SUCCEEDED, verdict is None, reason, message)
    known.set(ConditionType.FAILED, verdict is not None, reason, message if verdict else "")
    return dataclasses.replace(
        state,
        phase="Failed" if verdict else "Succeeded",
        reason=str(reason) if verdict else "",
        completion_s=now_s,
        active={},
        conditions=known.conditions,
    )


def suspended(state: JobState, now_s: float, *, live: int) -> JobState:
    """Return the state of a suspended job. Finished tasks count after a resume."""
    known = table(state, now_s)
    known.set(ConditionType.ADMITTED, True, Reason.ADMITTED, f"in queue {state.queue}")
    ending = f"; {live} of its pods have not ended yet" if live else ""
    known.set(
        ConditionType.SUSPENDED, True, Reason.SUSPENDED, f"spec.suspend is true: set it to false to resume{ending}"
    )
    known.set(ConditionType.SCHEDULED, False, Reason.SUSPENDED, "")
    known.set(ConditionType.RUNNING, False, Reason.SUSPENDED, "")
    return dataclasses.replace(
        state, phase="Suspended", reason=str(Reason.SUSPENDED), start_s=None, conditions=known.conditions
    )


def in_progress(
    state: JobState,
    *,
    now_s: float,
    running: int,
    problem: Problem | None,
    waiting: bool,
    diagnosis: tuple[str, str] | None,
    less: int = 0,
) -> JobState:
    """Return the conditions of a job in progress, with the reason if it is pending."""
    known = table(state, now_s)
    known.set(ConditionType.ADMITTED, True, Reason.ADMITTED, f"in queue {state.queue}")
    if state.condition(ConditionType.SUSPENDED) is not None:
        known.set(ConditionType.SUSPENDED, False, Reason.RESUMED, "")
    reason = ""
    squeezed = (
        f" ({less} run with less memory than they requested, because no node had more free memory)" if less else ""
    )
    if waiting and diagnosis is not None:
        reason = diagnosis[0]
        known.set(ConditionType.SCHEDULED, False, diagnosis[0], diagnosis[1] + squeezed)
    elif not waiting:
        known.set(ConditionType.SCHEDULED, True, Reason.ALL_TASKS_PLACED, f"all runnable tasks have a node{squeezed}")
    elif state.condition(ConditionType.SCHEDULED) is None:
        known.set(ConditionType.SCHEDULED, False, Reason.PENDING_EVALUATION, "not evaluated by the scheduler yet")
    if problem is not None:
        reason = problem.reason
        known.set(ConditionType.RUNNING, False, problem.reason, problem.message)
    elif running:
        known.set(ConditionType.RUNNING, True, Reason.TASKS_RUNNING, "")
    elif state.condition(ConditionType.RUNNING) is None:
        known.set(ConditionType.RUNNING, False, Reason.WAITING_FOR_TASKS, "no task has started yet")
    return dataclasses.replace(state, reason=reason, conditions=known.conditions)
