"""Drivers and executors as policies know them. Pure."""

import dataclasses
from typing import ClassVar

from boathouse.scheduling.pods import facts
from boathouse.services.frame import pod_life
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.sparkapp.planning.observation import DriverPod
from boathouse_policies import model

EXECUTOR_FAILED = "ExecutorFailed"
DRIVER_FAILED = "DriverFailed"


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
