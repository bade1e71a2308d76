"""An MRJob's conditions (metav1.Condition) and its reason. Pure."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

from boathouse.resources import statuses
from boathouse.resources.names import ANNOTATION_SUSPEND_UNTIL, ConditionType, Reason
from boathouse.scheduling import reasons
from boathouse.services.frame import status_codec
from boathouse.services.frame.pod_life import Problem
from boathouse.services.mrjob.attempt_pods import AttemptPod
from boathouse.services.mrjob.job_state import JobState
from boathouse.services.mrjob.model import Job
from boathouse.services.mrjob.planning.observation import Observation
from boathouse_policies.profiles.guard import Off, Part
from boathouse_task import contract

_NAMES: Final[Mapping[Part, str]] = {
    Part.MEMORY: "less memory than requested",
    Part.REFUSAL: "waiting for nodes with other neighbours",
    Part.SUSPENSION: "suspending reduces",
}
RESUME_LATE_S: Final = 15.0  # a reduce that is suspended for this long after its deadline could not be resumed
BY_USER: Final = "user"
_NAMED: Final = 5
Condition = tuple[ConditionType, bool, str, str]  # type, whether it holds, reason, message


def with_conditions(
    state: JobState, now_s: float, *conditions: Condition, generation: int | None = None, **fields: Any
) -> JobState:
    """Return the state with other fields and conditions; these are about `generation`, by default the observed one."""
    about = state if generation is None else dataclasses.replace(state, observed_generation=generation)
    table = status_codec.with_conditions(about, now_s, ConditionType, conditions).conditions
    return dataclasses.replace(state, conditions=table, **fields)


def admitted(state: JobState) -> Condition:
    """Return the condition of a job that may run."""
    return ConditionType.ADMITTED, True, Reason.ADMITTED, f"in queue {state.queue}"


def finished(state: JobState, verdict: Problem | None, now_s: float) -> JobState:
    """Return the state of a job that has failed, or whose output is complete if there is no verdict."""
    reason, message = (verdict.reason, verdict.message) if verdict else (Reason.SUCCEEDED, "the output is complete")
    reason = Reason.TASK_FAILED if reason == contract.Reason.USER_COMMAND_FAILED else reason
    return with_conditions(
        state,
        now_s,
        (ConditionType.RUNNING, False, Reason.JOB_FINISHED, ""),
        (ConditionType.SUCCEEDED, verdict is None, reason, message),
        (ConditionType.FAILED, verdict is not None, reason, message if verdict else ""),
        phase="Failed" if verdict else "Succeeded",
        reason=str(reason) if verdict else "",
        completion_s=now_s,
        active={},
    )


def suspended(state: JobState, now_s: float, *, live: int) -> JobState:
    """Return the state of a suspended job, of which this number of pods has not ended."""
    message = "spec.suspend is true: set it to false to resume"
    message += f"; {live} of its pods have not ended yet" if live else ""
    return with_conditions(
        state,
        now_s,
        admitted(state),
        (ConditionType.SUSPENDED, True, Reason.SUSPENDED, message),
        (ConditionType.SCHEDULED, False, Reason.SUSPENDED, ""),
        (ConditionType.RUNNING, False, Reason.SUSPENDED, ""),
        phase="Suspended",
        reason=str(Reason.SUSPENDED),
        start_s=None,
    )


def in_progress(
    state: JobState,
    *,
    now_s: float,
    running: int,
    problem: Problem | None,
    waiting: bool,
    diagnosis: reasons.JobDiagnosis | None,
    less: int = 0,
) -> JobState:
    """Return the state with the conditions of a job in progress, of whose tasks `less` run with less memory."""
    conditions = [admitted(state)]
    if state.condition(ConditionType.SUSPENDED) is not None:
        conditions.append((ConditionType.SUSPENDED, False, Reason.RESUMED, ""))
    why_less = "with less memory than they requested, because no node had more free memory"
    squeezed = f" ({less} run {why_less})" if less else ""
    if not waiting:
        message = f"all runnable tasks have a node{squeezed}"
        conditions.append((ConditionType.SCHEDULED, True, Reason.ALL_TASKS_PLACED, message))
    elif diagnosis is not None:
        conditions.append((ConditionType.SCHEDULED, False, diagnosis.reason, diagnosis.message + squeezed))
    elif state.condition(ConditionType.SCHEDULED) is None:
        message = "not evaluated by the scheduler yet"
        conditions.append((ConditionType.SCHEDULED, False, Reason.PENDING_EVALUATION, message))
    if problem is not None:
        conditions.append((ConditionType.RUNNING, False, problem.reason, problem.message))
    elif running:
        conditions.append((ConditionType.RUNNING, True, Reason.TASKS_RUNNING, ""))
    elif state.condition(ConditionType.RUNNING) is None:
        conditions.append((ConditionType.RUNNING, False, Reason.WAITING_FOR_TASKS, "no task has started yet"))
    obstacle = problem or (diagnosis if waiting else None)
    return with_conditions(state, now_s, *conditions, reason=obstacle.reason if obstacle is not None else "")


def with_measurements(state: JobState, problem: Problem | None, now_s: float) -> JobState:
    """Return the state with the condition `SignalsAvailable`, which a job has from its first problem on."""
    wrong = (problem.reason, problem.message) if problem is not None else None
    return _since_first(state, now_s, ConditionType.SIGNALS_AVAILABLE, wrong, Reason.KUBELETS_READ)


def with_parts_off(state: JobState, off: Sequence[Off], now_s: float) -> JobState:
    """Return the state with the condition `PoliciesActive`, which a job has once a part has been off for it."""
    wrong = (Reason.HARMFUL, "; ".join(map(_effect_text, off))) if off else None
    return _since_first(state, now_s, ConditionType.POLICIES_ACTIVE, wrong, Reason.TRIED_AGAIN)


def _since_first(
    state: JobState, now_s: float, kind: ConditionType, wrong: tuple[str, str] | None, fine: Reason
) -> JobState:
    """Return the state with a condition which an unfinished job has from its first problem on."""
    if state.finished or (wrong is None and state.condition(kind) is None):
        return state
    return with_conditions(state, now_s, (kind, wrong is None, *(wrong or (fine, ""))))


def parts_off_event(before: JobState, after: JobState) -> tuple[str, str] | None:
    """Return reason and note of the event about a part that was just switched off or on; None for no event."""
    last, now = (state.condition(ConditionType.POLICIES_ACTIVE) for state in (before, after))
    if now is None or (last is not None and (last.status, last.message) == (now.status, now.message)):
        return None
    return ("PolicyOff", now.message) if now.status == "False" else ("PolicyOn", "all policies decide again")


def suspension_event(before: JobState, after: JobState) -> tuple[str, str] | None:
    """Return reason and note of the event about reduces that were just suspended or resumed; None for no event."""
    last, now = (state.condition(ConditionType.REDUCERS_SUSPENDED) for state in (before, after))
    if now is None or now.status == (last.status if last is not None else "False"):
        return None
    return ("ReducerSuspended", now.message) if now.status == "True" else ("ReducerResumed", "all continue")


def cleanup_failure(before: JobState, after: JobState) -> str | None:
    """Return why the clean-up has just failed; None if it has not."""
    last, now = (state.condition(ConditionType.CLEANED_UP) for state in (before, after))
    if now is None or now.reason != Reason.CLEAN_UP_FAILED or (last is not None and last.reason == now.reason):
        return None
    return now.message


def _effect_text(off: Off) -> str:
    why, effect = "it did harm in most namespaces", off.effect
    if off.in_blocks:
        lost = f"jobs of the namespace lost {-effect.realised_s:.0f} s, compared with blocks without it"
        why = f"in {effect.decisions} blocks of time with it, {lost}"
    elif effect.decisions:
        saved = f"{effect.predicted_s:.0f} s of job time and saved {effect.realised_s:.0f} s"
        why = f"{effect.decisions} decisions for the program were to save {saved}"
    return f"{_NAMES[off.part]} is off until {statuses.rfc3339(off.until_s)}: {why}"


def suspended_until_s(job: Job, now_s: float) -> float | None:
    """Return until when the job's author suspends its reduces; None if not, or if the time is over or invalid."""
    wanted_s = _requested_until_s(job)
    return wanted_s if wanted_s is not None and now_s < wanted_s <= now_s + contract.MOST_SUSPENDED_S else None


def _requested_until_s(job: Job) -> float | None:
    return status_codec.value(lambda: statuses.epoch(job.suspend_reducers_until), None)


def with_suspensions(state: JobState, observation: Observation, pods: Sequence[AttemptPod]) -> JobState:
    """Return the state with the number of suspended reduces, and with the condition `ReducersSuspended`."""
    now_s, kind = observation.now_s, ConditionType.REDUCERS_SUSPENDED
    reduces = [pod for pod in pods if pod.task_type is contract.TaskType.REDUCE and pod.state.is_live]
    reduces = [] if state.finished else reduces
    paused, owed = [pod for pod in reduces if pod.is_suspended], [pod for pod in reduces if pod.is_owed_cpu]
    state = dataclasses.replace(state, suspended_reduces=len(paused))
    if paused or owed:
        return with_conditions(state, now_s, (kind, True, *_reason(paused, owed, now_s)))
    problem = None if state.finished else _problem(observation)
    if problem is None and state.condition(kind) is None:
        return state
    return with_conditions(state, now_s, (kind, False, *(problem or (Reason.RESUMED, ""))))


def _reason(paused: Sequence[AttemptPod], owed: Sequence[AttemptPod], now_s: float) -> tuple[str, str]:
    records = [pod.suspension for pod in paused if pod.suspension is not None]
    late = [pod for pod in paused if pod.suspension is None or pod.suspension.until_s + RESUME_LATE_S < now_s]
    if late:
        return Reason.RESUME_REFUSED, f"{_named(late)} could not be resumed in time: see the events of the pods"
    if not records:
        return Reason.REQUEST_OWED, f"{_named(owed)} runs without its CPU request, until its node or its quota has room"
    end = statuses.rfc3339(max(record.until_s for record in records))
    if any(record.by == BY_USER for record in records):
        return Reason.BY_HAND, f"{_named(paused)} suspended until {end}, by the annotation {ANNOTATION_SUSPEND_UNTIL}"
    return Reason.WAITING_FOR_MAPS, f"{_named(paused)} suspended until {end} at the latest: map output is missing"


def _named(pods: Sequence[AttemptPod]) -> str:
    names = ", ".join(sorted(pod.task_name for pod in pods)[:_NAMED])
    return f"{len(pods)} reduce{'s' * (len(pods) != 1)} ({names}{', …' if len(pods) > _NAMED else ''})"


def _problem(observation: Observation) -> tuple[str, str] | None:
    """Return reason and message if the author's annotation has no effect; None if it has one, or is absent or over."""
    job, now_s, ignored = observation.job, observation.now_s, f"the annotation {ANNOTATION_SUSPEND_UNTIL} has no effect"
    until_s = _requested_until_s(job)
    if job.suspend_reducers_until is not None and (until_s is None or until_s > now_s + contract.MOST_SUSPENDED_S):
        example = statuses.rfc3339(now_s + contract.MOST_SUSPENDED_S / 2)
        return Reason.INVALID_TIME, f"{ignored}: its value must be a time such as {example}, at most an hour ahead"
    if suspended_until_s(job, now_s) is not None and not observation.may_suspend:
        return Reason.SWITCHED_OFF, f"{ignored}: an administrator must set the chart value actuators.suspend"
    return None
