"""A SparkApp's conditions (metav1.Condition) and its one-word reason. Pure."""

import dataclasses
from collections.abc import Sequence
from typing import Final

from boathouse.resources import names
from boathouse.resources.sparkapp.names import ConditionType, Reason
from boathouse.resources.sparkapp.status import Attempt
from boathouse.services.frame.kind import Refusal
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.frame.status_codec import ConditionTable
from boathouse.services.sparkapp.model import AppState
from boathouse.services.sparkapp.observation import DriverPod, Observation

_NOT_REQUESTED: Final = (
    "the driver has requested no executors, so nothing is reserved for it any more: does the program create a "
    "SparkContext, and with the master that it is given?"
)


def table(state: AppState, now_s: float) -> ConditionTable:
    """Return the conditions of an application, to be changed."""
    return ConditionTable(state.conditions, state.observed_generation, now_s, order=ConditionType)


def _admit(state: AppState, conditions: ConditionTable) -> None:
    conditions.set(ConditionType.ADMITTED, True, names.Reason.ADMITTED, f"in queue {state.queue}")


def refused(state: AppState, refusal: Refusal, generation: int, now_s: float) -> AppState:
    """Return the pending state of an invalid resource; the cause may be corrected in another object."""
    if state.is_finished:
        return state
    state = dataclasses.replace(state, observed_generation=generation, reason=refusal.reason)
    conditions = table(state, now_s)
    conditions.set(ConditionType.ADMITTED, False, refusal.reason, refusal.message)
    return dataclasses.replace(state, conditions=conditions.conditions)


def begun(state: AppState, now_s: float) -> AppState:
    """Return the state of an application whose next attempt may start."""
    conditions = table(state, now_s)
    _admit(state, conditions)
    if state.condition(ConditionType.SUSPENDED) is not None:
        conditions.set(ConditionType.SUSPENDED, False, names.Reason.RESUMED, "")
    waits = f"attempt {state.attempt} has no node yet"
    conditions.set(
        ConditionType.SCHEDULED, False, names.Reason.PENDING_EVALUATION, "not evaluated by the scheduler yet"
    )
    conditions.set(ConditionType.RUNNING, False, Reason.DRIVER_STARTING, waits)
    conditions.set(ConditionType.EXECUTORS_READY, False, Reason.WAITING_FOR_EXECUTORS, waits)
    return dataclasses.replace(state, conditions=conditions.conditions)


def in_progress(observation: Observation, state: AppState, pod: DriverPod | None, *, has_requested: bool) -> AppState:
    """Return the state with the conditions of an attempt in progress."""
    conditions, reason = table(state, observation.now_s), ""
    if not state.holds(ConditionType.ADMITTED):
        _admit(state, conditions)
    if pod is None or pod.state is PodLife.UNPLACED:
        why = observation.obstacle or observation.diagnosis
        if why is not None:
            reason = why.reason
            conditions.set(ConditionType.SCHEDULED, False, why.reason, why.message)
    else:
        conditions.set(ConditionType.SCHEDULED, True, Reason.DRIVER_PLACED, f"the driver is on node {pod.node}")
    if pod is not None and pod.state is PodLife.RUNNING:
        conditions.set(ConditionType.RUNNING, True, Reason.DRIVER_RUNNING, f"attempt {state.attempt}")
        reason = _executors(observation, state, conditions, has_requested=has_requested)
        _set_overridden(state, conditions, observation.report.overridden)
    elif pod is not None and pod.problem is not None:
        reason = pod.problem.reason
        conditions.set(ConditionType.RUNNING, False, pod.problem.reason, pod.problem.message)
    return dataclasses.replace(state, reason=reason, conditions=conditions.conditions)


def _executors(observation: Observation, state: AppState, conditions: ConditionTable, *, has_requested: bool) -> str:
    """Set whether the minimum of executors runs, or has run; return the reason if it does not."""
    running, minimum = observation.executors.running, observation.app.minimum
    if running >= minimum or state.holds(ConditionType.EXECUTORS_READY):
        conditions.set(ConditionType.EXECUTORS_READY, True, Reason.MINIMUM_RUNNING, f"at least {minimum}")
        return ""
    reason = Reason.WAITING_FOR_EXECUTORS if has_requested else Reason.NO_EXECUTORS_REQUESTED
    message = f"{running} of {minimum} run" if has_requested else _NOT_REQUESTED
    conditions.set(ConditionType.EXECUTORS_READY, False, reason, message)
    return reason


def _set_overridden(state: AppState, conditions: ConditionTable, keys: Sequence[str] | None) -> None:
    if keys:
        message = f"the program sets {', '.join(keys)} itself: set them in spec or spec.sparkConf instead"
        conditions.set(ConditionType.CONFIG_OVERRIDDEN, True, Reason.PROPERTIES_CHANGED_IN_PROGRAM, message)
    elif keys is not None and state.condition(ConditionType.CONFIG_OVERRIDDEN) is not None:
        conditions.set(ConditionType.CONFIG_OVERRIDDEN, False, Reason.DRIVER_RUNNING, "")


def restarting(state: AppState, ended: Attempt, now_s: float, wait_s: float) -> AppState:
    """Return the state between two attempts."""
    conditions = table(state, now_s)
    why = f"attempt {ended.number} ended: {ended.reason or 'it succeeded'}; the next starts in {wait_s:.0f} s or later"
    conditions.set(ConditionType.SCHEDULED, False, Reason.RESTARTING, why)
    conditions.set(ConditionType.RUNNING, False, Reason.RESTARTING, ended.message or why)
    conditions.set(ConditionType.EXECUTORS_READY, False, Reason.RESTARTING, "")
    return dataclasses.replace(
        state,
        phase="Restarting",
        reason=ended.reason or str(Reason.RESTARTING),
        failures=dataclasses.replace(state.failures, retry_s=now_s + wait_s),
        conditions=conditions.conditions,
    )


def suspended(state: AppState, now_s: float, *, live: int) -> AppState:
    """Return the state of an application that may not run."""
    conditions = table(state, now_s)
    ending = "; its driver has not ended yet" if live else ""
    _admit(state, conditions)
    conditions.set(
        ConditionType.SUSPENDED,
        True,
        names.Reason.SUSPENDED,
        f"spec.suspend is true: set it to false to resume{ending}",
    )
    for condition_type in (ConditionType.SCHEDULED, ConditionType.RUNNING, ConditionType.EXECUTORS_READY):
        conditions.set(condition_type, False, names.Reason.SUSPENDED, "")
    return dataclasses.replace(
        state,
        phase="Suspended",
        reason=str(names.Reason.SUSPENDED),
        start_s=None,
        failures=dataclasses.replace(state.failures, retry_s=None),
        conditions=conditions.conditions,
    )


def succeeded(state: AppState, now_s: float) -> AppState:
    """Return the state of an application whose driver ended well."""
    return _finished(state, now_s, "Succeeded", "", f"attempt {state.attempt} succeeded")


def failed(state: AppState, now_s: float, reason: str, message: str) -> AppState:
    """Return the state of an application that is not started again."""
    return _finished(state, now_s, "Failed", reason, message)


def _finished(state: AppState, now_s: float, phase: str, reason: str, message: str) -> AppState:
    conditions, is_success = table(state, now_s), phase == "Succeeded"
    why = str(names.Reason.SUCCEEDED) if is_success else reason
    conditions.set(ConditionType.RUNNING, False, names.Reason.JOB_FINISHED, "")
    conditions.set(ConditionType.EXECUTORS_READY, False, names.Reason.JOB_FINISHED, "")
    conditions.set(ConditionType.SUCCEEDED, is_success, why, message)
    conditions.set(ConditionType.FAILED, not is_success, why, "" if is_success else message)
    return dataclasses.replace(
        state,
        phase="Succeeded" if is_success else "Failed",
        reason=reason,
        completion_s=now_s,
        failures=dataclasses.replace(state.failures, retry_s=None),
        conditions=conditions.conditions,
    )
