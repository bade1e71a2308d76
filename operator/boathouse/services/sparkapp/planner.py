"""The life of an application: one attempt after another, never two at a time. Pure.

| phase | goes to | when |
|---|---|---|
| Pending | Starting | the driver has a node |
| Starting | Running | its container runs |
| Starting, Running | Succeeded, Failed, Restarting | the attempt ended: `_ending` says how, `_settled` what follows |
| Restarting | Pending | the backoff is over, and so are all drivers of earlier attempts |
| any but Succeeded, Failed | Suspended | `spec.suspend`: the attempt is settled as suspended, its driver deleted |
| Suspended | Pending | resumed, and the drivers of earlier attempts are over |
| any but Succeeded, Failed | Failed | `spec.activeDeadlineSeconds` |

A number of an attempt is in the status before anything with this number is created. Objects have names by this number,
so what a crash leaves half done is completed, not repeated.
"""

import dataclasses
from collections.abc import Sequence
from typing import Final

from boathouse.resources import names, quantity
from boathouse.resources.sparkapp import status as wire
from boathouse.resources.sparkapp.names import ConditionType, Reason
from boathouse.services.frame import pod_life
from boathouse.services.frame.kind import Refusal
from boathouse.services.sparkapp import conditions, gang, rest, user_properties
from boathouse.services.sparkapp.model import App, AppState
from boathouse.services.sparkapp.observation import DriverPod, Ending, Observation, Plan

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
IN_FLIGHT_REQUEUE_S: Final = 0.5
"""The interval at which the next attempt waits for the answer to the creation of an earlier driver."""
NO_SERVICE: Final = {"service_name": None, "ui_address": None}
REFUSED_REQUEUE_S: Final = 15.0
"""The interval at which an application that lacks something it needs is reconciled."""


def plan(observation: Observation) -> Plan:
    """Return what to do next; the same for the same observation."""
    planned, now_s = _plan(observation), observation.now_s
    state = planned.state
    is_over = state.is_finished or state.is_settled
    former = [pod for pod in observation.drivers if is_over or pod.attempt != state.attempt]
    moments_s = (planned.requeue_s, None if state.is_finished else _deadline_s(observation, state))
    return dataclasses.replace(
        planned,
        delete=[pod for pod in former if pod.state.is_live and pod.deleting_since_s is None],
        orphaned=[pod for pod in observation.drivers if pod in former or _is_over(observation, pod)],
        requeue_s=min((moment_s for moment_s in moments_s if moment_s is not None and moment_s > now_s), default=None),
    )


def _plan(observation: Observation) -> Plan:
    """Return the plan, but for what `plan` adds to each."""
    app, state = observation.app, observation.state
    if not state.is_finished:
        state = dataclasses.replace(state, observed_generation=app.generation, queue=app.queue)
        if not state.is_settled and (ended := _ending(observation, state)) is not None:
            state = _settled(observation, state, ended)
    if state.is_finished:
        return Plan(state=state)
    deadline_s = _deadline_s(observation, state)
    if deadline_s is not None and observation.now_s >= deadline_s:
        limit_s, reason = app.spec.active_deadline_seconds, names.Reason.DEADLINE_EXCEEDED
        message = f"the application was active for longer than spec.activeDeadlineSeconds ({limit_s} s)"
        state = _stopped(observation, state, "Application", reason, message)
        return Plan(state=conditions.finished(state, observation.now_s, "Failed", str(reason), message))
    if app.spec.suspend:
        state = _stopped(observation, state, "Suspended", names.Reason.SUSPENDED, "spec.suspend was set")
        is_live = any(pod.state.is_live for pod in observation.drivers)
        return Plan(state=conditions.suspended(state, observation.now_s, is_live=is_live))
    return _next_attempt(observation, state) if state.is_settled else _going_on(observation, state)


def _settled(observation: Observation, state: AppState, ended: wire.Attempt) -> AppState:
    """Count an attempt that ended, and decide whether there is another one."""
    state = _counted(observation, state, ended)
    pod = observation.driver(ended.number)
    if pod is not None and pod.ending is not None and pod.ending.log:
        state = dataclasses.replace(state, last_log=pod.ending.log[-wire.MAX_LOG :])
    wait_s = _retry_after_s(observation, state, ended)
    if wait_s is not None:
        return conditions.restarting(state, ended, observation.now_s, wait_s)
    if ended.cause is None:
        return conditions.finished(state, observation.now_s, "Succeeded", "", f"attempt {state.attempt} succeeded")
    message = f"{ended.message} (attempt {state.attempt})" if state.attempt > 1 else ended.message
    return conditions.finished(state, observation.now_s, "Failed", ended.reason, message)


def _stopped(observation: Observation, state: AppState, cause: wire.Cause, reason: str, message: str) -> AppState:
    """Count the attempt in progress, if there is one, as ended from here."""
    if state.is_settled:
        return state
    return _counted(observation, state, _ended(observation, state, cause, Ending(reason=reason, message=message)))


def _next_attempt(observation: Observation, state: AppState) -> Plan:
    """Begin the next attempt when its time has come and no earlier driver can still run."""
    app, now_s = observation.app, observation.now_s
    if observation.is_in_flight:
        return Plan(state=state, requeue_s=now_s + IN_FLIGHT_REQUEUE_S)
    waiting, retry_s = _may_run(observation), state.failures.retry_s or now_s
    if waiting or now_s < retry_s:
        deleting_s = [pod.deleting_since_s for pod in waiting if pod.deleting_since_s is not None]
        over_s = [_lost_at_s(observation, since_s) for since_s in deleting_s]
        return Plan(state=state, requeue_s=max((retry_s, *over_s)))
    if observation.refusal is not None:
        return _refused(observation, state, observation.refusal)
    attempt = app.attempt(state.attempt + 1)
    former = state.driver or wire.DriverStatus(pod_name="")  # all attempts have the same Service
    state = dataclasses.replace(
        state,
        phase="Pending",
        reason="",
        attempt=attempt.attempt,
        application_id=attempt.application_id,
        attempt_start_s=None,
        start_s=now_s if state.start_s is None else state.start_s,
        failures=dataclasses.replace(state.failures, retry_s=None),
        driver=former.model_copy(update={"pod_name": attempt.driver_pod, "node": None}),
        executors=wire.ExecutorCounts(minimum=app.minimum),
        requests=_requests(app),
        stages=None,
        tasks=None,
        progress_percent=None,
    )
    return Plan(state=conditions.begun(state, now_s), submit=attempt.attempt, reserve=app.minimum)


def _refused(observation: Observation, state: AppState, refusal: Refusal) -> Plan:
    state = conditions.refused(state, refusal, observation.app.generation, observation.now_s)
    return Plan(state=state, requeue_s=observation.now_s + REFUSED_REQUEUE_S)


def _going_on(observation: Observation, state: AppState) -> Plan:
    app, report = observation.app, observation.report
    pod = observation.driver(state.attempt)
    if pod is None and observation.refusal is not None:
        return _refused(observation, state, observation.refusal)
    is_running = pod is not None and pod.state is pod_life.PodLife.RUNNING
    has_requested = not is_running or _has_requested(observation, state, pod)
    state = dataclasses.replace(
        state,
        phase="Pending"
        if pod is None or pod.state is pod_life.PodLife.UNPLACED
        else "Running"
        if is_running
        else "Starting",
        attempt_start_s=pod.started_s if pod and pod.started_s is not None else state.attempt_start_s,
        driver=_driver(observation, state, pod),
        executors=observation.executors.model_copy(update={"minimum": app.minimum}),
        requests=_requests(gang.with_chosen_memory(app, pod)),
        stages=report.progress.stages if report.progress else state.stages,
        tasks=report.progress.tasks if report.progress else state.tasks,
        progress_percent=report.progress.percent if report.progress else state.progress_percent,
    )
    state = conditions.in_progress(observation, state, pod, has_requested=has_requested)
    return Plan(
        state=state,
        submit=None if pod is None and _may_run(observation) else state.attempt,
        reserve=app.minimum if has_requested and not _is_promise_over(observation, state, pod) else 0,
        requeue_s=_timeout_s(observation, state, pod),
    )


def _has_requested(observation: Observation, state: AppState, pod: DriverPod | None) -> bool:
    """Whether the driver has requested executors, or may still be about to."""
    if observation.executors.pending or observation.executors.running or state.holds(ConditionType.EXECUTORS_READY):
        return True
    if rest.MASTER in (observation.report.overridden or ()):
        return False  # it runs its tasks by itself
    started_s = pod.started_s if pod else None
    return started_s is None or observation.now_s < started_s + NO_REQUEST_S


def _is_promise_over(observation: Observation, state: AppState, pod: DriverPod | None) -> bool:
    """Whether a driver has had its time to request its minimum of executors."""
    started_s = None if pod is None or state.holds(ConditionType.EXECUTORS_READY) else pod.started_s
    return started_s is not None and observation.now_s >= started_s + PROMISE_S


def _driver(observation: Observation, state: AppState, pod: DriverPod | None) -> wire.DriverStatus | None:
    driver, app = state.driver, observation.app
    if pod is not None:
        driver = driver or wire.DriverStatus(pod_name=pod.name)
        driver = driver.model_copy(update={"pod_name": pod.name, "node": pod.node})
    if driver is None or observation.has_service is None:
        return driver
    name = app.attempt(state.attempt).service
    address = f"http://{name}.{app.namespace}.svc:{user_properties.UI_PORT}"
    service = {"service_name": name, "ui_address": address} if observation.has_service else NO_SERVICE
    return driver.model_copy(update=service)


def _requests(app: App) -> wire.Requests:
    driver, executor = (
        wire.RoleRequests(cpu=requests.cpu, memory=quantity.format_bytes(requests.memory_bytes))
        for requests in (app.driver, app.executor)
    )
    return wire.Requests(driver=driver, executor=executor)


def _may_run(observation: Observation) -> Sequence[DriverPod]:
    """Return the drivers that may still run: a node that was removed may have come back."""
    return [pod for pod in observation.drivers if not _is_over(observation, pod)]


def _deadline_s(observation: Observation, state: AppState) -> float | None:
    limit_s = observation.app.spec.active_deadline_seconds
    if limit_s is None or state.start_s is None or observation.app.spec.suspend:
        return None
    return state.start_s + limit_s


def _timeout_s(observation: Observation, state: AppState, pod: DriverPod | None) -> float | None:
    if pod is None:
        return None
    timeouts, since_s = observation.app.spec.timeouts, 0.0
    limits_s: Sequence[float] = ()
    if pod.deleting_since_s is not None:
        since_s, limits_s = pod.deleting_since_s, (timeouts.driver_lost_seconds,)
    elif pod.state is pod_life.PodLife.STARTING and pod.placed_s is not None:
        missing_s = observation.app.defaults.missing_object_timeout_seconds
        since_s, limits_s = pod.placed_s, (timeouts.driver_start_seconds, IMAGE_S, missing_s)
        if observation.app.mounts_objects:
            limits_s = (*limits_s, observation.now_s + pod_life.MOUNTS_S - since_s)
    elif pod.started_s is not None and not state.holds(ConditionType.EXECUTORS_READY):
        since_s = pod.started_s
        limits_s = (timeouts.executor_start_seconds, NO_REQUEST_S, PROMISE_S)
    moments = (since_s + limit_s for limit_s in limits_s if limit_s)
    return min((moment for moment in moments if moment > observation.now_s), default=None)


# When an attempt has ended, who is to blame, and whether there is another one


def _ending(observation: Observation, state: AppState) -> wire.Attempt | None:
    """Return how the current attempt ended; None while it is in progress."""
    pod = observation.driver(state.attempt)
    if pod is None:
        was_there = observation.is_lost or state.phase in {"Starting", "Running"}
        end = _lost("the driver's pod is gone: it was deleted, or its node was removed") if was_there else None
    elif pod.state is pod_life.PodLife.SUCCEEDED:
        return _ended(observation, state, None, Ending(reason=""))
    elif pod.state is pod_life.PodLife.FAILED:
        end = _failed(pod)
    else:
        end = _silent(observation, pod) or _too_slow(observation, state, pod)
    if end is None:
        return None
    return _ended(observation, state, "Infrastructure" if end.is_infrastructure else "Application", end)


def _is_over(observation: Observation, pod: DriverPod) -> bool:
    """Return whether a driver can be taken to have ended, so that the next attempt may start."""
    return (
        not pod.state.is_live
        or pod.node_gone
        or (pod.deleting_since_s is not None and observation.now_s >= _lost_at_s(observation, pod.deleting_since_s))
    )


def _lost_at_s(observation: Observation, deleting_since_s: float) -> float:
    """Return when a driver that is being deleted is taken to have ended, whatever its node says."""
    return deleting_since_s + observation.app.spec.timeouts.driver_lost_seconds


def _counted(observation: Observation, state: AppState, end: wire.Attempt) -> AppState:
    """Return the state with an attempt that ended counted; the stages and tasks that its driver reported are over."""
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


def _retry_after_s(observation: Observation, state: AppState, end: wire.Attempt) -> float | None:
    """Return the seconds to the next attempt, or None; one whose driver never ran is repeated under each policy."""
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
    if not _is_over(observation, pod):
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


def _ended(observation: Observation, state: AppState, cause: wire.Cause | None, end: Ending) -> wire.Attempt:
    """Return the current attempt with its end; without a cause it succeeded."""
    pod = observation.driver(state.attempt)
    ended_s = pod.ended_s if pod else None
    return wire.Attempt(
        number=state.attempt,
        application_id=state.application_id,
        cause=cause,
        reason=str(end.reason),
        message=end.message[:MAX_MESSAGE],
        node=pod.node if pod else state.driver.node if state.driver else None,
        start_s=(pod.started_s if pod else None) or state.attempt_start_s,
        end_s=observation.now_s if ended_s is None else ended_s,
        exit_code=0 if cause is None else None if end.is_infrastructure else end.exit_code,
    )
