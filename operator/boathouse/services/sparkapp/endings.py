"""When an attempt has ended, who is to blame, and whether there is another one. Pure."""

import dataclasses
from typing import Final

from boathouse.resources import names
from boathouse.resources.sparkapp import status as wire
from boathouse.resources.sparkapp.names import ConditionType, Reason
from boathouse.services.frame import pod_life
from boathouse.services.sparkapp.model import AppState
from boathouse.services.sparkapp.observation import DriverPod, Ending, Observation

MAX_MESSAGE: Final = 1200
IMAGE_S: Final = 300.0
"""How long an image may fail to be pulled before the application is to blame."""
NO_REQUEST_S: Final = 300.0
"""How long a driver may run without requesting its executors before nothing is reserved for it: on a loaded machine it
takes minutes to create its SparkContext."""
PROMISE_S: Final = 600.0
"""How long after the start of its driver room is reserved for executors of the minimum that it has not requested yet,
whatever the timeouts of the application: a driver may request one that fits nowhere, and then none any more."""
_MISSING: Final = frozenset({names.Reason.SECRET_NOT_FOUND, names.Reason.CONFIG_MAP_NOT_FOUND})


def ending_of_current(observation: Observation, state: AppState) -> wire.Attempt | None:
    """Return how the current attempt ended; None while it is in progress."""
    pod = observation.driver(state.attempt)
    if pod is None:
        was_there = observation.is_lost or state.phase in {"Starting", "Running"}
        end = _lost("the driver's pod is gone: it was deleted, or its node was removed") if was_there else None
    elif pod.state is pod_life.PodLife.SUCCEEDED:
        return ended(observation, state, pod, cause=None)
    elif pod.state is pod_life.PodLife.FAILED:
        end = _failed(pod)
    else:
        end = _silent(observation, pod) or _too_slow(observation, state, pod)
    if end is None:
        return None
    cause: wire.Cause = "Infrastructure" if end.is_infrastructure else "Application"
    exit_code = None if end.is_infrastructure else end.exit_code
    return ended(observation, state, pod, cause=cause, reason=end.reason, message=end.message, exit_code=exit_code)


def is_over(observation: Observation, pod: DriverPod) -> bool:
    """Return whether a driver can be taken to have ended, so that the next attempt may start."""
    if not pod.state.is_live or pod.node_gone:
        return True
    return pod.deleting_since_s is not None and observation.now_s >= lost_at_s(observation, pod.deleting_since_s)


def lost_at_s(observation: Observation, deleting_since_s: float) -> float:
    """Return when a driver that is being deleted is taken to have ended, whatever its node says."""
    return deleting_since_s + observation.app.spec.timeouts.driver_lost_seconds


def counted(observation: Observation, state: AppState, end: wire.Attempt) -> AppState:
    """Return the state with an attempt that ended, and with its failure counted.

    The stages and tasks that the driver reported last, up to ten seconds before its end, are over.
    """
    reset_s, minimum = observation.app.spec.restart_policy.reset_after_seconds, observation.app.minimum
    is_reset = end.start_s is not None and observation.now_s - end.start_s >= reset_s
    failures = wire.FailureCounts(retry_s=state.failures.retry_s) if is_reset else state.failures
    others = (attempt for attempt in state.past_attempts if attempt.number != end.number)
    return dataclasses.replace(
        state,
        executors=wire.ExecutorCounts(minimum=minimum, failed=state.executors.failed if state.executors else 0),
        stages=None,
        tasks=None,
        progress_percent=100 if end.cause is None else None,
        past_attempts=(*others, end)[-wire.MAX_ATTEMPTS_KEPT :],
        failures=dataclasses.replace(
            failures,
            application=failures.application + (end.cause == "Application"),
            infrastructure=failures.infrastructure + (end.cause == "Infrastructure"),
        ),
    )


def retry_after_s(observation: Observation, state: AppState, end: wire.Attempt) -> float | None:
    """Return how long to wait before the next attempt; None if there is none.

    An attempt whose driver never ran is repeated under each policy: nothing of the program has happened.
    """
    policy = observation.app.spec.restart_policy
    if end.cause is None:
        return float(policy.on_failure_retry_interval) if policy.type == "Always" else None
    if end.cause == "Application":
        failures, limit = state.failures.application, policy.on_failure_retries
    else:
        failures, limit = state.failures.infrastructure, policy.on_infrastructure_failure_retries
    is_repeatable = end.cause == "Infrastructure" and end.start_s is None
    if failures > limit or (policy.type == "Never" and not is_repeatable):
        return None
    doubled = policy.on_failure_retry_interval * 2.0 ** min(failures - 1, 30)
    return min(doubled, float(policy.max_retry_interval_seconds))


def _failed(pod: DriverPod) -> Ending:
    ending = pod.ending or _lost("the driver's pod failed without a reason")
    if ending.is_infrastructure:
        return ending
    reason = names.Reason.OOM_KILLED if ending.reason == pod_life.OOM_KILLED else Reason.APPLICATION_FAILED
    message = ending.message or f"the driver ended with exit code {ending.exit_code}"
    return dataclasses.replace(ending, reason=reason, message=message)


def _lost(message: str) -> Ending:
    return Ending(reason=Reason.DRIVER_LOST, message=message, is_infrastructure=True)


def _silent(observation: Observation, pod: DriverPod) -> Ending | None:
    if pod.node_gone:
        return _lost(f"the driver's node {pod.node} was removed")
    if not is_over(observation, pod):
        return None
    waited_s = observation.app.spec.timeouts.driver_lost_seconds
    return _lost(
        f"the driver's pod was deleted {waited_s} s ago, and its node {pod.node} does not confirm that it ended"
    )


def _too_slow(observation: Observation, state: AppState, pod: DriverPod) -> Ending | None:
    if pod.deleting_since_s is not None or pod.placed_s is None:
        return None
    if pod.state is pod_life.PodLife.STARTING:
        return _not_started(observation, pod, observation.now_s - pod.placed_s)
    executors, minimum = observation.executors, observation.app.minimum
    limit_s = observation.app.spec.timeouts.executor_start_seconds
    since_s = pod.started_s if pod.state is pod_life.PodLife.RUNNING else None
    is_late = since_s is not None and 0 < limit_s <= observation.now_s - since_s
    has_requested = executors.pending + executors.running > 0
    was_ready = state.holds(ConditionType.EXECUTORS_READY)  # later losses of executors are the driver's to replace
    if not is_late or not has_requested or executors.running >= minimum or was_ready:
        return None
    why = f"{limit_s} s after the driver started (timeouts.executorStartSeconds)"
    message = f"{executors.running} of {minimum} executors run {why}"
    return Ending(reason=Reason.EXECUTOR_START_TIMEOUT, message=message, is_infrastructure=True)


def _not_started(observation: Observation, pod: DriverPod, waited_s: float) -> Ending | None:
    problem, missing_s = pod.problem, observation.app.defaults.missing_object_timeout_seconds
    if problem is not None and problem.reason == names.Reason.IMAGE_PULL_FAILED and waited_s >= IMAGE_S:
        message = f"{problem.message}: correct spec.image, or add the Secret for its registry to spec.imagePullSecrets"
        return Ending(reason=problem.reason, message=message)
    if problem is not None and problem.reason in _MISSING and waited_s >= missing_s:
        return Ending(reason=problem.reason, message=problem.message)
    limit_s = observation.app.spec.timeouts.driver_start_seconds
    if not 0 < limit_s <= waited_s:
        return None
    why = f": {problem.reason}: {problem.message}" if problem else ""
    message = f"the driver did not start within {limit_s} s on node {pod.node} (timeouts.driverStartSeconds){why}"
    return Ending(reason=Reason.DRIVER_START_TIMEOUT, message=message, is_infrastructure=True)


def ended(
    observation: Observation,
    state: AppState,
    pod: DriverPod | None,
    *,
    cause: wire.Cause | None,
    reason: str = "",
    message: str = "",
    exit_code: int | None = None,
) -> wire.Attempt:
    """Return the end of an attempt, by default its success."""
    ended_s = pod.ended_s if pod else None
    return wire.Attempt(
        number=state.attempt,
        application_id=state.application_id,
        cause=cause,
        reason=str(reason),
        message=message[:MAX_MESSAGE],
        node=pod.node if pod else state.driver.node if state.driver else None,
        start_s=(pod.started_s if pod else None) or state.attempt_start_s,
        end_s=observation.now_s if ended_s is None else ended_s,
        exit_code=0 if cause is None else exit_code,
    )
