"""Read drivers and executors from their pods: for the planner, and as policies know them. Pure."""

import dataclasses
import re
from typing import ClassVar, Final

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.resources.sparkapp.names import LABEL_ATTEMPT, LABEL_TASK_TYPE, TASK_TYPE_DRIVER, Reason
from boathouse.resources.sparkapp.status import MAX_LOG
from boathouse.scheduling.pods import facts
from boathouse.services.frame import pod_life
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.frame.status_codec import printable
from boathouse.services.sparkapp.observation import DriverPod, Ending
from boathouse.services.sparkapp.pods import DRIVER_CONTAINER
from boathouse_policies import model

_NUMBER: Final = re.compile("[1-9][0-9]{0,8}")
_BYTES: Final = re.compile("[1-9][0-9]{0,17}")
_MORE_STORAGE: Final = "raise driver.ephemeralStorage"
EXECUTOR_FAILED = "ExecutorFailed"
DRIVER_FAILED = "DriverFailed"


def driver_pod(pod: facts.PodFacts) -> DriverPod | None:
    """Return the driver of a pod; None if the pod is not a driver of Boathouse."""
    labels = pod.metadata.labels
    number = labels.get(LABEL_ATTEMPT, "")
    if labels.get(LABEL_TASK_TYPE) != TASK_TYPE_DRIVER or not _NUMBER.fullmatch(number):
        return None
    status = pod_life.container(pod, DRIVER_CONTAINER)
    life = pod_life.life(pod, status)
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
        ending=_ending(pod, status) if life is PodLife.FAILED else None,
        problem=pod_life.problem(status) if life is PodLife.STARTING else None,
        deleting_since_s=pod_life.deleting_since_s(pod),
        resources=pod.resources,
        executor_bytes=_executor_bytes(pod.metadata.annotations.get(names.ANNOTATION_EXECUTOR_MEMORY, "")),
    )


def _executor_bytes(text: str) -> int:
    return int(text) if _BYTES.fullmatch(text) else 0


def _ending(pod: facts.PodFacts, status: wire.ContainerStatus | None) -> Ending:
    """Return what the pod's end says, the strongest first: its eviction, a disruption, its container."""
    ended = status.state.terminated if status else None
    log = printable(ended.message[-MAX_LOG:], MAX_LOG) if ended else ""
    if pod_life.is_over_its_limit(pod):
        return Ending(reason="Evicted", message=f"{pod.status.message} ({_MORE_STORAGE})", log=log)
    disrupted = pod_life.disruption(pod)
    if disrupted is not None:
        return Ending(reason=disrupted.reason, message=disrupted.message, is_infrastructure=True, log=log)
    if ended is None:
        return Ending(
            reason=Reason.DRIVER_LOST, message="the pod failed before its container ran", is_infrastructure=True
        )
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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AppPod:
    """A driver or an executor.

    Attributes:
        stage: DRIVER or EXECUTOR.
        placed_s: When it got its node, in epoch seconds.
        ended_s: When it ended; None if it has not, or if that is not known.
        reason: Why it failed; empty if it did not.
    """

    suspension: ClassVar[None] = None
    is_suspended: ClassVar[bool] = False
    name: str
    uid: str
    stage: model.Stage
    node: str | None
    state: PodLife
    resources: model.Resources
    placed_s: float
    ended_s: float | None = None
    reason: str = ""


def of_driver(pod: DriverPod) -> AppPod:
    """Return a driver."""
    return AppPod(
        name=pod.name,
        uid=pod.uid,
        stage=model.Stage.DRIVER,
        node=pod.node,
        state=pod.state,
        resources=pod.resources,
        placed_s=pod.placed_s or 0.0,
        ended_s=pod.ended_s,
        reason=(pod.ending.reason if pod.ending else DRIVER_FAILED) if pod.state is PodLife.FAILED else "",
    )


def of_executor(pod: facts.PodFacts) -> AppPod:
    """Return an executor. A driver ends an executor by deleting it: this counts as its success."""
    disruption = pod_life.disruption(pod) if pod.status.reason or pod.condition("DisruptionTarget") else None
    state, reason = _life(pod), ""
    if state is PodLife.FAILED or (disruption is not None and not state.is_live):
        state, reason = PodLife.FAILED, disruption.reason if disruption else EXECUTOR_FAILED
    return AppPod(
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        stage=model.Stage.EXECUTOR,
        node=pod.node_name or None,
        state=state,
        resources=pod.resources,
        placed_s=pod_life.placed_s(pod) if pod.node_name else 0.0,
        reason=reason,
    )


def ended(pod: AppPod, reason: str = "") -> AppPod:
    """Return a pod that ended, if it has not: it failed if there is a reason."""
    if not pod.state.is_live:
        return pod
    return dataclasses.replace(pod, state=PodLife.FAILED if reason else PodLife.SUCCEEDED, reason=reason)


def _life(pod: facts.PodFacts) -> PodLife:
    code = pod_life.settled_exit_code(pod)
    match pod.status.phase if code is None else "Failed" if code else "Succeeded":
        case "Succeeded":
            return PodLife.SUCCEEDED
        case "Failed":
            return PodLife.FAILED
        case _ if not pod.node_name:
            return PodLife.UNPLACED
        case _ if pod.metadata.deletion_timestamp is not None:
            return PodLife.SUCCEEDED
        case "Running":
            return PodLife.RUNNING
        case _:
            return PodLife.STARTING
