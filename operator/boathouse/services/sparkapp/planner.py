"""The life of an application: one attempt after another, never two at a time. Pure.

| phase | goes to | when |
|---|---|---|
| Pending | Starting | the driver has a node |
| Starting | Running | its container runs |
| Starting, Running | Succeeded, Failed, Restarting | the attempt ended: `endings` says how, and what follows |
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
from boathouse.resources.sparkapp.names import ConditionType
from boathouse.resources.sparkapp.status import Attempt
from boathouse.services.frame import pod_life
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.sparkapp import conditions, endings, gang, rest, user_properties
from boathouse.services.sparkapp.model import App, AppState, AttemptNames
from boathouse.services.sparkapp.observation import DriverPod, Observation, Plan

IN_FLIGHT_REQUEUE_S: Final = 0.5
"""The interval at which the next attempt waits for the answer to the creation of an earlier driver."""
NO_SERVICE: Final = {"service_name": None, "ui_address": None}
REFUSED_REQUEUE_S: Final = 15.0
"""The interval at which an application that lacks something it needs is reconciled."""


def plan(observation: Observation) -> Plan:
    """Return what to do next; the same for the same observation."""
    planned = _plan(observation)
    over = planned.state.is_settled
    orphaned = [
        pod
        for pod in observation.drivers
        if over or pod.attempt != planned.state.attempt or endings.is_over(observation, pod)
    ]
    return dataclasses.replace(planned, orphaned=orphaned)


def _plan(observation: Observation) -> Plan:
    if observation.state.is_finished:
        return Plan(state=observation.state, delete=_to_delete(observation))
    state = dataclasses.replace(
        observation.state, observed_generation=observation.app.generation, queue=observation.app.queue
    )
    if not state.is_settled:
        ended = endings.ending_of_current(observation, state)
        if ended is not None:
            state = _settled(observation, state, ended)
            if state.is_finished:
                return Plan(state=state, delete=_to_delete(observation))
    if _is_overdue(observation, state):
        return _overdue(observation, state)
    if observation.app.spec.suspend:
        return _suspended(observation, state)
    if state.is_settled:
        return _next_attempt(observation, state)
    return _going_on(observation, state)


def _settled(observation: Observation, state: AppState, ended: Attempt) -> AppState:
    """Count an attempt that ended, and decide whether there is another one."""
    state = endings.counted(observation, state, ended)
    pod = observation.driver(ended.number)
    if pod is not None and pod.ending is not None and pod.ending.log:
        state = dataclasses.replace(state, last_log=pod.ending.log[-wire.MAX_LOG :])
    wait_s = endings.retry_after_s(observation, state, ended)
    if wait_s is not None:
        return conditions.restarting(state, ended, observation.now_s, wait_s)
    if ended.cause is None:
        return conditions.succeeded(state, observation.now_s)
    restarts = state.attempt - 1
    after = f" (attempt {state.attempt})" if restarts else ""
    return conditions.failed(state, observation.now_s, ended.reason, f"{ended.message}{after}")


def _overdue(observation: Observation, state: AppState) -> Plan:
    limit_s = observation.app.spec.active_deadline_seconds
    message = f"the application was active for longer than spec.activeDeadlineSeconds ({limit_s} s)"
    if not state.is_settled:
        ended = _stopped(observation, state, "Application", names.Reason.DEADLINE_EXCEEDED, message)
        state = endings.counted(observation, state, ended)
    state = conditions.failed(state, observation.now_s, str(names.Reason.DEADLINE_EXCEEDED), message)
    return Plan(state=state, delete=_to_delete(observation))


def _suspended(observation: Observation, state: AppState) -> Plan:
    if not state.is_settled:
        ended = _stopped(observation, state, "Suspended", names.Reason.SUSPENDED, "spec.suspend was set")
        state = endings.counted(observation, state, ended)
    live = _live(observation)
    return Plan(state=conditions.suspended(state, observation.now_s, live=len(live)), delete=_to_delete(observation))


def _next_attempt(observation: Observation, state: AppState) -> Plan:
    """Begin the next attempt when its time has come and no earlier driver can still run."""
    waiting = _may_run(observation)
    retry_s = state.failures.retry_s or observation.now_s
    if observation.is_in_flight:
        return Plan(state=state, delete=_to_delete(observation), requeue_s=observation.now_s + IN_FLIGHT_REQUEUE_S)
    if waiting or observation.now_s < retry_s:
        over_s = [
            endings.lost_at_s(observation, pod.deleting_since_s) for pod in waiting if pod.deleting_since_s is not None
        ]
        requeue_s = _deadline_or(observation, state, max((retry_s, *over_s)))
        return Plan(state=state, delete=_to_delete(observation), requeue_s=requeue_s)
    if observation.refusal is not None:
        return _refused(observation, state)
    number = state.attempt + 1
    attempt = AttemptNames(application=observation.app.name, uid=observation.app.uid, attempt=number)
    state = dataclasses.replace(
        state,
        phase="Pending",
        reason="",
        attempt=number,
        application_id=attempt.application_id,
        attempt_start_s=None,
        start_s=observation.now_s if state.start_s is None else state.start_s,
        failures=dataclasses.replace(state.failures, retry_s=None),
        driver=_next_driver(state, attempt),
        executors=wire.ExecutorCounts(minimum=observation.app.minimum),
        requests=_requests(observation.app),
        stages=None,
        tasks=None,
        progress_percent=None,
    )
    state = conditions.begun(state, observation.now_s)
    requeue_s = _deadline_or(observation, state, None)
    return Plan(
        state=state, delete=_to_delete(observation), submit=number, reserve=observation.app.minimum, requeue_s=requeue_s
    )


def _refused(observation: Observation, state: AppState) -> Plan:
    assert observation.refusal is not None
    state = conditions.refused(state, observation.refusal, observation.app.generation, observation.now_s)
    requeue_s = _deadline_or(observation, state, observation.now_s + REFUSED_REQUEUE_S)
    return Plan(state=state, delete=_to_delete(observation), requeue_s=requeue_s)


def _going_on(observation: Observation, state: AppState) -> Plan:
    pod = observation.driver(state.attempt)
    if pod is None and observation.refusal is not None:
        return _refused(observation, state)
    is_running = pod is not None and pod.state is PodLife.RUNNING
    has_requested = not is_running or _has_requested(observation, state, pod)
    state = dataclasses.replace(
        state,
        phase=_phase(pod),
        attempt_start_s=pod.started_s if pod and pod.started_s is not None else state.attempt_start_s,
        driver=_driver(observation, state, pod),
        executors=wire.ExecutorCounts(
            minimum=observation.app.minimum,
            pending=observation.executors.pending,
            running=observation.executors.running,
            failed=observation.executors.failed,
        ),
        requests=_requests(gang.with_chosen_memory(observation.app, pod)),
    )
    state = conditions.in_progress(observation, _reported(observation, state), pod, has_requested=has_requested)
    return Plan(
        state=state,
        delete=_to_delete(observation, but=state.attempt),
        submit=None if pod is None and _may_run(observation) else state.attempt,
        reserve=observation.app.minimum if has_requested and not _is_promise_over(observation, state, pod) else 0,
        requeue_s=_deadline_or(observation, state, _timeout_s(observation, state, pod)),
    )


def _reported(observation: Observation, state: AppState) -> AppState:
    progress = observation.report.progress
    if progress is None:
        return state
    return dataclasses.replace(state, stages=progress.stages, tasks=progress.tasks, progress_percent=progress.percent)


def _has_requested(observation: Observation, state: AppState, pod: DriverPod | None) -> bool:
    """Whether the driver has requested executors, or may still be about to."""
    if observation.executors.pending or observation.executors.running or state.holds(ConditionType.EXECUTORS_READY):
        return True
    if rest.MASTER in (observation.report.overridden or ()):
        return False  # it runs its tasks by itself
    started_s = pod.started_s if pod else None
    return started_s is None or observation.now_s < started_s + endings.NO_REQUEST_S


def _is_promise_over(observation: Observation, state: AppState, pod: DriverPod | None) -> bool:
    """Whether a driver has had its time to request its minimum of executors."""
    if state.holds(ConditionType.EXECUTORS_READY) or pod is None or pod.started_s is None:
        return False
    return observation.now_s >= pod.started_s + endings.PROMISE_S


def _phase(pod: DriverPod | None) -> wire.Phase:
    if pod is None or pod.state is PodLife.UNPLACED:
        return "Pending"
    return "Running" if pod.state is PodLife.RUNNING else "Starting"


def _driver(observation: Observation, state: AppState, pod: DriverPod | None) -> wire.DriverStatus | None:
    driver = state.driver
    if pod is not None:
        driver = driver or wire.DriverStatus(pod_name=pod.name)
        driver = driver.model_copy(update={"pod_name": pod.name, "node": pod.node})
    if driver is None or observation.has_service is None:
        return driver
    name = AttemptNames(application=observation.app.name, uid=observation.app.uid, attempt=state.attempt).service
    address = f"http://{name}.{observation.app.namespace}.svc:{user_properties.UI_PORT}"
    service = {"service_name": name, "ui_address": address} if observation.has_service else NO_SERVICE
    return driver.model_copy(update=service)


def _next_driver(state: AppState, attempt: AttemptNames) -> wire.DriverStatus:
    """Return the status of a driver that is to be created. All attempts have the same Service."""
    former = state.driver or wire.DriverStatus(pod_name="")
    return former.model_copy(update={"pod_name": attempt.driver_pod, "node": None})


def _requests(app: App) -> wire.Requests:
    driver, executor = (
        wire.RoleRequests(cpu=requests.cpu, memory=quantity.format_bytes(requests.memory_bytes))
        for requests in (app.driver, app.executor)
    )
    return wire.Requests(driver=driver, executor=executor)


def _live(observation: Observation) -> Sequence[DriverPod]:
    return [pod for pod in observation.drivers if pod.state.is_live]


def _may_run(observation: Observation) -> Sequence[DriverPod]:
    """Return the drivers that may still run: a node that was removed may have come back."""
    return [pod for pod in _live(observation) if not endings.is_over(observation, pod)]


def _to_delete(observation: Observation, *, but: int = 0) -> Sequence[DriverPod]:
    """Return the live drivers of all attempts but one that are not being deleted yet."""
    return [pod for pod in _live(observation) if pod.attempt != but and pod.deleting_since_s is None]


def _stopped(observation: Observation, state: AppState, cause: wire.Cause, reason: str, message: str) -> Attempt:
    """Return the end of an attempt that is ended from here."""
    pod = observation.driver(state.attempt)
    return Attempt(
        number=state.attempt,
        application_id=state.application_id,
        cause=cause,
        reason=str(reason),
        message=message,
        node=pod.node if pod else None,
        start_s=(pod.started_s if pod else None) or state.attempt_start_s,
        end_s=observation.now_s,
    )


def _is_overdue(observation: Observation, state: AppState) -> bool:
    end_s = _deadline_s(observation, state)
    return end_s is not None and observation.now_s >= end_s


def _deadline_s(observation: Observation, state: AppState) -> float | None:
    limit_s = observation.app.spec.active_deadline_seconds
    if limit_s is None or state.start_s is None or observation.app.spec.suspend:
        return None
    return state.start_s + limit_s


def _deadline_or(observation: Observation, state: AppState, moment_s: float | None) -> float | None:
    moments = [
        moment
        for moment in (moment_s, _deadline_s(observation, state))
        if moment is not None and moment > observation.now_s
    ]
    return min(moments, default=None)


def _timeout_s(observation: Observation, state: AppState, pod: DriverPod | None) -> float | None:
    """When the next timeout of a driver passes."""
    if pod is None:
        return None
    timeouts, since_s = observation.app.spec.timeouts, 0.0
    limits_s: Sequence[float] = ()
    if pod.deleting_since_s is not None:
        since_s, limits_s = pod.deleting_since_s, (timeouts.driver_lost_seconds,)
    elif pod.state is PodLife.STARTING and pod.placed_s is not None:
        missing_s = observation.app.defaults.missing_object_timeout_seconds
        since_s, limits_s = pod.placed_s, (timeouts.driver_start_seconds, endings.IMAGE_S, missing_s)
        if observation.app.mounts_objects:
            limits_s = (*limits_s, observation.now_s + pod_life.MOUNTS_S - since_s)
    elif pod.started_s is not None and not state.holds(ConditionType.EXECUTORS_READY):
        since_s = pod.started_s
        limits_s = (timeouts.executor_start_seconds, endings.NO_REQUEST_S, endings.PROMISE_S)
    moments = (since_s + limit_s for limit_s in limits_s if limit_s)
    return min((moment for moment in moments if moment > observation.now_s), default=None)
