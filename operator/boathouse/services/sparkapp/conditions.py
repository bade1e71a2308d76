"""A SparkApp's conditions (metav1.Condition) and its one-word reason. Pure."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Final, Literal

from boathouse.resources import names
from boathouse.resources.sparkapp.names import ConditionType, Reason
from boathouse.resources.sparkapp.status import Attempt
from boathouse.services.frame import status_codec
from boathouse.services.frame.kind import Refusal
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.sparkapp.model import AppState
from boathouse.services.sparkapp.observation import DriverPod, Observation

_NOT_REQUESTED: Final = (
    "the driver has requested no executors, so nothing is reserved for it any more: does the program create a "
    "SparkContext, and with the master that it is given?"
)
_Change = tuple[ConditionType, bool, str, str]


def _changed(state: AppState, now_s: float, *changes: _Change, **fields: Any) -> AppState:
    return status_codec.with_conditions(state, now_s, ConditionType, changes, **fields)


def _admitted(state: AppState) -> _Change:
    return ConditionType.ADMITTED, True, names.Reason.ADMITTED, f"in queue {state.queue}"


def refused(state: AppState, refusal: Refusal, generation: int, now_s: float) -> AppState:
    """Return the pending state of an invalid resource; the cause may be corrected in another object."""
    if state.is_finished:
        return state
    why = (ConditionType.ADMITTED, False, refusal.reason, refusal.message)
    return _changed(state, now_s, why, observed_generation=generation, reason=refusal.reason)


def begun(state: AppState, now_s: float) -> AppState:
    """Return the state of an application whose next attempt may start."""
    was_suspended = state.condition(ConditionType.SUSPENDED) is not None
    evaluated, waits = "not evaluated by the scheduler yet", f"attempt {state.attempt} has no node yet"
    return _changed(
        state,
        now_s,
        _admitted(state),
        *([(ConditionType.SUSPENDED, False, names.Reason.RESUMED, "")] if was_suspended else []),
        (ConditionType.SCHEDULED, False, names.Reason.PENDING_EVALUATION, evaluated),
        (ConditionType.RUNNING, False, Reason.DRIVER_STARTING, waits),
        (ConditionType.EXECUTORS_READY, False, Reason.WAITING_FOR_EXECUTORS, waits),
    )


def in_progress(observation: Observation, state: AppState, pod: DriverPod | None, *, has_requested: bool) -> AppState:
    """Return the state with the conditions of an attempt in progress."""
    changes, reason = [] if state.holds(ConditionType.ADMITTED) else [_admitted(state)], ""
    if pod is None or pod.state is PodLife.UNPLACED:
        if why := observation.obstacle or observation.diagnosis:
            reason = why.reason
            changes.append((ConditionType.SCHEDULED, False, reason, why.message))
    else:
        changes.append((ConditionType.SCHEDULED, True, Reason.DRIVER_PLACED, f"the driver is on node {pod.node}"))
    if pod is not None and pod.state is PodLife.RUNNING:
        _, is_ready, why_not, _ = ready = _executors(observation, state, has_requested=has_requested)
        reason = "" if is_ready else why_not
        changes += [(ConditionType.RUNNING, True, Reason.DRIVER_RUNNING, f"attempt {state.attempt}"), ready]
        changes += _overridden(state, observation.report.overridden)
    elif pod is not None and pod.problem is not None:
        reason = pod.problem.reason
        changes.append((ConditionType.RUNNING, False, reason, pod.problem.message))
    return _changed(state, observation.now_s, *changes, reason=reason)


def _executors(observation: Observation, state: AppState, *, has_requested: bool) -> _Change:
    running, minimum = observation.executors.running, observation.app.minimum
    if running >= minimum or state.holds(ConditionType.EXECUTORS_READY):
        return ConditionType.EXECUTORS_READY, True, Reason.MINIMUM_RUNNING, f"at least {minimum}"
    if has_requested:
        return ConditionType.EXECUTORS_READY, False, Reason.WAITING_FOR_EXECUTORS, f"{running} of {minimum} run"
    return ConditionType.EXECUTORS_READY, False, Reason.NO_EXECUTORS_REQUESTED, _NOT_REQUESTED


def _overridden(state: AppState, keys: Sequence[str] | None) -> list[_Change]:
    if keys:
        message = f"the program sets {', '.join(keys)} itself: set them in spec or spec.sparkConf instead"
        return [(ConditionType.CONFIG_OVERRIDDEN, True, Reason.PROPERTIES_CHANGED_IN_PROGRAM, message)]
    if keys is not None and state.condition(ConditionType.CONFIG_OVERRIDDEN) is not None:
        return [(ConditionType.CONFIG_OVERRIDDEN, False, Reason.DRIVER_RUNNING, "")]
    return []


def restarting(state: AppState, ended: Attempt, now_s: float, wait_s: float) -> AppState:
    """Return the state between two attempts."""
    why = f"attempt {ended.number} ended: {ended.reason or 'it succeeded'}; the next starts in {wait_s:.0f} s or later"
    return _changed(
        state,
        now_s,
        (ConditionType.SCHEDULED, False, Reason.RESTARTING, why),
        (ConditionType.RUNNING, False, Reason.RESTARTING, ended.message or why),
        (ConditionType.EXECUTORS_READY, False, Reason.RESTARTING, ""),
        phase="Restarting",
        reason=ended.reason or str(Reason.RESTARTING),
        failures=dataclasses.replace(state.failures, retry_s=now_s + wait_s),
    )


def suspended(state: AppState, now_s: float, *, is_live: bool) -> AppState:
    """Return the state of an application that may not run; `is_live`: a driver has not ended yet."""
    ending = "; its driver has not ended yet" if is_live else ""
    message = f"spec.suspend is true: set it to false to resume{ending}"
    return _changed(
        state,
        now_s,
        _admitted(state),
        (ConditionType.SUSPENDED, True, names.Reason.SUSPENDED, message),
        (ConditionType.SCHEDULED, False, names.Reason.SUSPENDED, ""),
        (ConditionType.RUNNING, False, names.Reason.SUSPENDED, ""),
        (ConditionType.EXECUTORS_READY, False, names.Reason.SUSPENDED, ""),
        phase="Suspended",
        reason=str(names.Reason.SUSPENDED),
        start_s=None,
        failures=dataclasses.replace(state.failures, retry_s=None),
    )


def finished(
    state: AppState, now_s: float, phase: Literal["Succeeded", "Failed"], reason: str, message: str
) -> AppState:
    """Return the last state of an application."""
    is_success = phase == "Succeeded"
    why = names.Reason.SUCCEEDED if is_success else reason
    return _changed(
        state,
        now_s,
        (ConditionType.RUNNING, False, names.Reason.JOB_FINISHED, ""),
        (ConditionType.EXECUTORS_READY, False, names.Reason.JOB_FINISHED, ""),
        (ConditionType.SUCCEEDED, is_success, why, message),
        (ConditionType.FAILED, not is_success, why, "" if is_success else message),
        phase=phase,
        reason=reason,
        completion_s=now_s,
        failures=dataclasses.replace(state.failures, retry_s=None),
    )
