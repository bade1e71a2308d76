"""Plan the clean-up of a job: a task removes its work folder and its ownership mark. Pure.

    spec.cleanUp OnEnd:     the job fails, or a failed one expires -> CleaningUp -> CleanedUp or CleanUpFailed
    spec.cleanUp OnDelete:  the job is deleted -> CleaningUp -> CleanedUp or CleanUpFailed -> the finalizer is removed

The condition `CleanedUp` stores the state, so the clean-up continues after a restart at any point. Setup writes nothing
for a job that it rejects, and commit leaves nothing, so only jobs between the two need a clean-up.
"""

import dataclasses
from typing import Final

from boathouse.resources.names import ConditionType, Reason
from boathouse.services.mrjob import conditions, settle
from boathouse.services.mrjob.job_state import MAX_LAST_FAILURES, JobState
from boathouse.services.mrjob.model import Job
from boathouse.services.mrjob.planning import steps
from boathouse.services.mrjob.planning.observation import Desired, Observation
from boathouse_task import contract

GIVE_UP_S: Final = 600.0
MAX_ATTEMPTS: Final = 5  # maximum attempts of the cleanup task, for user and infrastructure errors alike


def begin(job: Job, state: JobState, now_s: float) -> JobState:
    """Return the state of a job that has just failed, with the clean-up begun if the job requests it."""
    is_due = state.phase == "Failed" and job.spec.clean_up == "OnEnd" and _leaves_something(state)
    return _noted(job, state, now_s, Reason.CLEANING_UP, f"a task removes {job.work_url}") if is_due else state


def plan(all_steps: Observation, observation: Observation, job_state: JobState) -> Desired:
    """Return the next actions for a job that has ended or is being deleted; `observation` has one step's pods."""
    state = _begun(all_steps, job_state)
    if not is_in_progress(state):
        return Desired(state=state, delete=[pod for pod in all_steps.pods if pod.is_active])
    others = [pod for pod in all_steps.pods if pod.task_type is not contract.TaskType.CLEANUP]
    lost_since_s = observation.now_s - settle.LOST_AFTER_S  # deleted pods on unreachable nodes count only for a time
    are_writing = any(
        pod.state.is_live and (pod.deleting_since_s is None or pod.deleting_since_s > lost_since_s) for pod in others
    )
    control = steps.HOLD if are_writing else settle.RUN
    limits = dataclasses.replace(observation.limits, max_attempts=MAX_ATTEMPTS, max_infrastructure=MAX_ATTEMPTS)
    settlement = steps.settled(observation, state, contract.TaskType.CLEANUP, control, limits=limits)
    state = _advance(observation, state, settlement)
    if not is_in_progress(state):
        return Desired(state=state, delete=[pod for pod in all_steps.pods if pod.is_active], settlement=settlement)
    return Desired(
        state=state,
        cleaning=True,
        delete=[*(pod for pod in others if pod.is_active), *settlement.obsolete],
        waiting=settlement.waiting,
        recheck_at_s=min(settlement.recheck_at_s, _deadline_s(state)),
        settlement=settlement,
    )


def _begun(observation: Observation, state: JobState) -> JobState:
    job = observation.job
    if state.condition(ConditionType.CLEANED_UP) is not None:
        return state
    if job.deleting_since_s is None:
        ttl_s, ended_s = job.spec.ttl_seconds_after_finished, state.completion_s
        is_due = ttl_s is not None and ended_s is not None and observation.now_s >= ended_s + ttl_s
        return begin(job, state, observation.now_s) if is_due else state
    if job.spec.clean_up != "OnDelete" or state.phase == "Succeeded":
        return state
    if not _leaves_something(state) and not observation.pods:
        return state
    return _noted(job, state, observation.now_s, Reason.CLEANING_UP, f"a task removes {job.work_url}")


def _leaves_something(state: JobState) -> bool:
    """Return whether the storage may contain files of the job. Setup writes only after it has accepted the job."""
    setup = state.stages[contract.TaskType.SETUP]
    began = state.plan is not None or state.step > 0 or setup.last[0] > setup.user_failures[0]
    return began or state.reason == contract.Reason.PLAN_TOO_LARGE


def is_in_progress(state: JobState) -> bool:
    """Return whether the clean-up is in progress, so that the job must not be deleted."""
    condition = state.condition(ConditionType.CLEANED_UP)
    return condition is not None and condition.reason == Reason.CLEANING_UP


def _deadline_s(state: JobState) -> float:
    return (state.since_s(ConditionType.CLEANED_UP) or 0.0) + GIVE_UP_S


def _advance(observation: Observation, state: JobState, settlement: settle.Settlement) -> JobState:
    state = dataclasses.replace(
        state,
        stages={**state.stages, **settlement.stages},
        last_failures=(*state.last_failures, *settlement.failures)[-MAX_LAST_FAILURES:],
    )
    job, now_s = observation.job, observation.now_s
    if state.stages[contract.TaskType.CLEANUP].done:
        return _noted(job, state, now_s, Reason.CLEANED_UP, f"removed {job.work_url}")
    if observation.namespace_terminating:
        why = "the namespace is terminating, and no pod can be created in it"
    elif settlement.verdict is not None:
        why = settlement.verdict.message
    elif now_s >= _deadline_s(state):
        cause = f": {observation.diagnosis.message}" if observation.diagnosis else ""
        why = f"the clean-up did not finish within {GIVE_UP_S:.0f} s{cause}"
    else:
        return state
    return _noted(job, state, now_s, Reason.CLEAN_UP_FAILED, f"{why}; remove {job.work_url} manually")


def _noted(job: Job, state: JobState, now_s: float, reason: Reason, message: str) -> JobState:
    condition = (ConditionType.CLEANED_UP, reason is Reason.CLEANED_UP, reason, message)
    return conditions.with_conditions(state, now_s, condition, generation=job.generation)
