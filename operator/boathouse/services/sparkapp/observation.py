"""What the planner may know of an application, and how drivers and executors are read from their pods. Pure.

All of it are values, so that a decision can be repeated.
"""

import dataclasses
import re
from collections.abc import Sequence
from typing import ClassVar, Final

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.resources.sparkapp.names import LABEL_ATTEMPT, LABEL_TASK_TYPE, TASK_TYPE_DRIVER, Reason
from boathouse.resources.sparkapp.status import MAX_LOG, ExecutorCounts
from boathouse.scheduling.pods import facts
from boathouse.scheduling.reasons import JobDiagnosis
from boathouse.services.frame import pod_life
from boathouse.services.frame.kind import Refusal
from boathouse.services.frame.status_codec import printable
from boathouse.services.sparkapp.model import App, AppState
from boathouse.services.sparkapp.pods import DRIVER_CONTAINER
from boathouse.services.sparkapp.rest import Report
from boathouse_policies import model

_NUMBER: Final = re.compile("[1-9][0-9]{0,8}")
_BYTES: Final = re.compile("[1-9][0-9]{0,17}")
EXECUTOR_FAILED: Final = "ExecutorFailed"
DRIVER_FAILED: Final = "DriverFailed"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Why a driver's pod failed, with its last lines; with `is_infrastructure` the cluster is to blame."""

    reason: str
    message: str = ""
    is_infrastructure: bool = False
    exit_code: int | None = None
    log: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AppPod:
    """A driver or an executor, as policies know it, with when it got its node, when it ended, and why it failed."""

    suspension: ClassVar[None] = None
    is_suspended: ClassVar[bool] = False
    name: str
    uid: str
    stage: model.Stage
    state: pod_life.PodLife
    node: str | None = None
    resources: model.Resources = dataclasses.field(default_factory=model.Resources)
    placed_s: float | None = None
    ended_s: float | None = None
    reason: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DriverPod(AppPod):
    """The driver's pod of an attempt.

    After `deleting_since_s` it may linger on a node that does not respond. `executor_bytes` is the memory that was
    chosen for its executors; 0: that of the spec.
    """

    stage: model.Stage = model.Stage.DRIVER
    attempt: int
    namespace: str = ""
    address: str = ""
    started_s: float | None = None
    ending: Ending | None = None
    problem: pod_life.Problem | None = None
    deleting_since_s: float | None = None
    node_gone: bool = False
    executor_bytes: int = 0


def driver_pod(pod: facts.PodFacts) -> DriverPod | None:
    """Return the driver of a pod; None if the pod is not a driver of Boathouse."""
    labels = pod.metadata.labels
    number = labels.get(LABEL_ATTEMPT, "")
    if labels.get(LABEL_TASK_TYPE) != TASK_TYPE_DRIVER or not _NUMBER.fullmatch(number):
        return None
    status = pod_life.container(pod, DRIVER_CONTAINER)
    executor_bytes = pod.metadata.annotations.get(names.ANNOTATION_EXECUTOR_MEMORY, "")
    life = pod_life.life(pod, status)
    ending = _ending(pod, status) if life is pod_life.PodLife.FAILED else None
    return DriverPod(
        attempt=int(number),
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        namespace=pod.metadata.namespace,
        state=life,
        node=pod.node_name or None,
        address=pod.status.pod_ip,
        placed_s=pod_life.placed_s(pod) if pod.node_name else None,
        started_s=pod_life.started_s(pod, status),
        ended_s=None if life.is_live else pod_life.ended_s(pod, status),
        ending=ending,
        reason=ending.reason if ending else "",
        problem=pod_life.problem(status) if life is pod_life.PodLife.STARTING else None,
        deleting_since_s=pod_life.deleting_since_s(pod),
        resources=pod.resources,
        executor_bytes=int(executor_bytes) if _BYTES.fullmatch(executor_bytes) else 0,
    )


def _ending(pod: facts.PodFacts, status: wire.ContainerStatus | None) -> Ending:
    """Return what the pod's end says, the strongest first: its eviction, a disruption, its container."""
    ended = status.state.terminated if status else None
    log = printable(ended.message[-MAX_LOG:], MAX_LOG) if ended else ""
    if pod_life.is_over_its_limit(pod):
        return Ending(reason="Evicted", message=f"{pod.status.message} (raise driver.ephemeralStorage)", log=log)
    disrupted = pod_life.disruption(pod)
    if disrupted is not None:
        return Ending(reason=disrupted.reason, message=disrupted.message, is_infrastructure=True, log=log)
    if ended is None:
        message = "the pod failed before its container ran"
        return Ending(reason=Reason.DRIVER_LOST, message=message, is_infrastructure=True)
    return _of_the_container(ended, log)


def _of_the_container(ended: wire.StateTerminated, log: str) -> Ending:
    code = ended.exit_code
    if ended.reason == pod_life.OOM_KILLED:
        message = "the driver used more memory than its pod has: raise driver.memory or driver.memoryOverhead"
        return Ending(reason=pod_life.OOM_KILLED, message=message, exit_code=code, log=log)
    if pod_life.has_not_started(ended):
        message = f"{printable(ended.message, pod_life.MAX_MESSAGE)} (is spec.image an image of Spark?)"
        return Ending(reason=ended.reason, message=message, exit_code=code)
    if pod_life.was_killed(ended):
        message = f"the driver was killed (exit code {code})"
        return Ending(reason=Reason.DRIVER_LOST, message=message, is_infrastructure=True, exit_code=code, log=log)
    return Ending(reason="Error", exit_code=code, log=log)


def of_executor(pod: facts.PodFacts) -> AppPod:
    """Return an executor. A driver ends an executor by deleting it: this counts as its success."""
    disruption = pod_life.disruption(pod) if pod.status.reason or pod.condition("DisruptionTarget") else None
    state, reason = _life(pod), ""
    if state is pod_life.PodLife.FAILED or (disruption is not None and not state.is_live):
        state, reason = pod_life.PodLife.FAILED, disruption.reason if disruption else EXECUTOR_FAILED
    return AppPod(
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        stage=model.Stage.EXECUTOR,
        node=pod.node_name or None,
        state=state,
        resources=pod.resources,
        placed_s=pod_life.placed_s(pod) if pod.node_name else None,
        reason=reason,
    )


def ended(pod: AppPod, reason: str = "") -> AppPod:
    """Return a pod that ended, if it has not: it failed if there is a reason."""
    if not pod.state.is_live:
        return pod
    return dataclasses.replace(
        pod, state=pod_life.PodLife.FAILED if reason else pod_life.PodLife.SUCCEEDED, reason=reason
    )


def _life(pod: facts.PodFacts) -> pod_life.PodLife:
    code = pod_life.settled_exit_code(pod)
    if code is not None:
        return pod_life.PodLife.FAILED if code else pod_life.PodLife.SUCCEEDED
    life = pod_life.life_by_phase(pod, has_started=pod.status.phase == "Running")
    is_deleted = pod.metadata.deletion_timestamp is not None and life in {
        pod_life.PodLife.STARTING,
        pod_life.PodLife.RUNNING,
    }
    return pod_life.PodLife.SUCCEEDED if is_deleted else life


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """All that a decision may depend on, with the pods of all attempts that exist.

    `is_lost`: the current attempt's pod was observed, and is neither there nor about to be created. `is_in_flight`: a
    driver that was decided may still be created. `refusal` is what an attempt lacks to be submitted. `has_service` is
    None if it is not known whether Spark's UI has its Service.
    """

    app: App
    state: AppState
    now_s: float
    drivers: Sequence[DriverPod] = ()
    executors: ExecutorCounts = dataclasses.field(default_factory=ExecutorCounts)
    is_lost: bool = False
    is_in_flight: bool = False
    obstacle: pod_life.Problem | None = None
    diagnosis: JobDiagnosis | None = None
    report: Report = dataclasses.field(default_factory=Report)
    refusal: Refusal | None = None
    has_service: bool | None = None

    def driver(self, attempt: int) -> DriverPod | None:
        """Return the pod of an attempt."""
        return next((pod for pod in self.drivers if pod.attempt == attempt), None)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do, in this order: write the state, delete pods, have the driver of an attempt scheduled.

    Executors of `orphaned` drivers, which count as ended, must end. The attempt `submit` must have its objects, and its
    driver must be scheduled if it has no pod. While the driver starts, room is reserved for `reserve` executors.
    """

    state: AppState
    delete: Sequence[DriverPod] = ()
    orphaned: Sequence[DriverPod] = ()
    submit: int | None = None
    reserve: int = 0
    requeue_s: float | None = None
