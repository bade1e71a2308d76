"""Read a pod's life from its status, as far as it is the same for the pods of all kinds. Pure."""

import dataclasses
import enum
import re
from collections.abc import Container, Sequence
from typing import Any, ClassVar, Final, Protocol, TypeVar

from boathouse.cluster import server_time, wire
from boathouse.resources import names
from boathouse.scheduling.pods import facts
from boathouse.services.frame.status_codec import printable

MAX_MESSAGE: Final = 1200
MOUNTS_S: Final = 10.0
"""How long a pod may take to start before its events are read: they say which Secret or ConfigMap its volumes lack."""
OOM_KILLED: Final = "OOMKilled"
_IMAGE_PROBLEMS: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
)
_CONFIG_PROBLEMS: Final = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
_ABSENT: Final = ("not found", "couldn't find key", "non-existent")
_AFTER_MOUNTING: Final = frozenset({"Pulling", "Pulled", "Created", "Started"})
"""Reasons of a kubelet's events that show that all volumes are mounted."""
_NOT_STARTED: Final = frozenset({"StartError", "ContainerCannotRun"})
_OVER_ITS_LIMIT: Final = re.compile(r"exceeds the (total )?limit|exceed(s|ed) its local ephemeral storage limit")
_EXIT_CODE: Final = re.compile("-?[0-9]{1,10}")
_KILLED: Final = frozenset({137, 143})
_NODE_SKEW_S: Final = 60.0
"""A node's clock that is further ahead is wrong, and what it says of a container's times is not used."""


class PodLife(enum.Enum):
    """The life of a pod, as far as a planner cares."""

    UNPLACED = "unplaced"
    """The pod exists without a node, so that users and autoscalers see the unmet request."""
    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"

    @property
    def is_live(self) -> bool:
        """Whether the pod has yet to end."""
        return self is not PodLife.SUCCEEDED and self is not PodLife.FAILED  # a set would hash, in Python


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Reason and message why a pod does not start, or an object does not go on."""

    reason: str
    message: str


class ObservedPod(Protocol):
    """A pod as a kind reads it: a dataclass, that compares by its parts, with the field `node_gone` or `problem`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def uid(self) -> str:
        """Its UID."""

    @property
    def node(self) -> str | None:
        """Its node; None before it has one."""


class LivePod(ObservedPod, Protocol):
    """A pod that is somewhere in its life."""

    @property
    def state(self) -> PodLife:
        """Where it is in its life."""


P = TypeVar("P", bound=ObservedPod)


def with_node(pod: P, nodes: Container[str]) -> P:
    """Return a pod, marked if its node does not exist any more."""
    return pod if pod.node is None or pod.node in nodes else dataclasses.replace(pod, node_gone=True)


def container(pod: facts.PodFacts, name: str) -> wire.ContainerStatus | None:
    """Return the status of a container or init container."""
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return next((status for status in statuses if status.name == name), None)


def life(pod: facts.PodFacts, status: wire.ContainerStatus | None) -> PodLife:
    """Return where a pod is in its life: if its own container has ended, by the exit code of that.

    The phase also depends on containers that admission injected: a proxy may run on, or fail when it is stopped. If the
    pod was disrupted, exit code 0 may be that of a program that was stopped, so the phase decides.
    """
    ended = status.state.terminated if status else None
    if ended is not None and ended.exit_code:
        return PodLife.FAILED
    if ended is not None and disruption(pod) is None:
        return PodLife.SUCCEEDED
    return life_by_phase(pod, has_started=ended is not None or (status is not None and bool(status.state.running)))


def life_by_phase(pod: facts.PodFacts, *, has_started: bool) -> PodLife:
    """Return where a pod is in its life by its phase, and by whether one of its containers has started."""
    match pod.status.phase:
        case "Succeeded":
            return PodLife.SUCCEEDED
        case "Failed":
            return PodLife.FAILED
        case _ if not pod.node_name:
            return PodLife.UNPLACED
        case _:
            return PodLife.RUNNING if has_started else PodLife.STARTING


def settled_exit_code(pod: facts.PodFacts) -> int | None:
    """Return the exit code of a pod's own container if others outlived it; None if the pod is not known to be so."""
    text = pod.metadata.annotations.get(names.ANNOTATION_EXIT_CODE, "")
    return int(text) if _EXIT_CODE.fullmatch(text) else pod.outlived_exit_code


def started_s(pod: facts.PodFacts, status: wire.ContainerStatus | None) -> float | None:
    """Return when the container started."""
    if status is None:
        return None
    state = status.state.terminated or status.state.running
    started = state.started_at if state is not None else None
    return _plausible_s(pod, started.timestamp()) if started is not None else None


def placed_s(pod: facts.PodFacts) -> float:
    """Return when the pod got its node."""
    scheduled = pod.condition("PodScheduled")
    if scheduled is not None and scheduled.status == "True" and scheduled.last_transition_time:
        return scheduled.last_transition_time.timestamp()
    moment = pod.status.start_time or pod.metadata.creation_timestamp
    return moment.timestamp() if moment else 0.0


def ended_s(pod: facts.PodFacts, status: wire.ContainerStatus | None) -> float | None:
    """Return when a pod that has ended did so, as nearly as it says."""
    ended = status.state.terminated if status else None
    when = ended.finished_at if ended else None
    if when is not None:
        return _plausible_s(pod, when.timestamp())
    moment = pod.metadata.deletion_timestamp or pod.metadata.creation_timestamp
    return moment.timestamp() if moment else None


def _plausible_s(pod: facts.PodFacts, kubelet_s: float) -> float:
    """Return a time by the node's clock, or that of the placement if the node's clock cannot be right."""
    earliest_s, now_s = placed_s(pod), server_time.SERVER_TIME.now_s()
    return earliest_s if kubelet_s > now_s + _NODE_SKEW_S else max(earliest_s, min(kubelet_s, now_s))


def deleting_since_s(pod: facts.PodFacts) -> float | None:
    """Return when the pod was deleted, its grace period included; None if it was not."""
    deleted = pod.metadata.deletion_timestamp
    return deleted.timestamp() if deleted else None


def problem(status: wire.ContainerStatus | None, image: str = "spec.image") -> Problem | None:
    """Return why the container does not start; `image` names the field that the user may correct."""
    waiting = status.state.waiting if status else None
    if waiting is None:
        return None
    message = printable(waiting.message or waiting.reason, MAX_MESSAGE)
    if waiting.reason in _IMAGE_PROBLEMS:
        return Problem(reason=names.Reason.IMAGE_PULL_FAILED, message=f"{message} (check {image} and the pull secrets)")
    if waiting.reason in _CONFIG_PROBLEMS:
        return Problem(reason=_missing(waiting.message) or names.Reason.INVALID_POD, message=message)
    return None


def mount_problem(events: Sequence[wire.Manifest]) -> Problem | None:
    """Return which Secret or ConfigMap a kubelet lacks to mount the volumes of a pod, by the pod's events."""
    if any(event.get("reason") in _AFTER_MOUNTING for event in events):
        return None
    notes = [str(event.get("note") or "") for event in events if event.get("reason") == "FailedMount"]
    missing = ((reason, note) for note in reversed(notes) if (reason := _missing(note)) is not None)
    reason, note = next(missing, (None, ""))
    return None if reason is None else Problem(reason=reason, message=printable(note, MAX_MESSAGE))


def _missing(message: str) -> names.Reason | None:
    """Return the reason of a kubelet's message such as `secret "x" not found`, `couldn't find key k in Secret ns/x`."""
    lowered = message.lower()
    for word, reason in (("secret", names.Reason.SECRET_NOT_FOUND), ("configmap", names.Reason.CONFIG_MAP_NOT_FOUND)):
        if word in lowered and any(absent in lowered for absent in _ABSENT):
            return reason
    return None


def is_over_its_limit(pod: facts.PodFacts) -> bool:
    """Return whether the pod was evicted for using more scratch space than it may: that is its own fault."""
    is_evicted = pod.status.reason == "Evicted" and not _was_ended(pod)
    return is_evicted and _OVER_ITS_LIMIT.search(pod.status.message) is not None


def disruption(pod: facts.PodFacts) -> Problem | None:
    """Return the cause if the kubelet rejected or removed the pod, or it was disrupted before its container ended."""
    if _was_ended(pod):
        return None
    if pod.status.reason:
        return _closed(pod.status.reason, pod.status.message)
    disrupted = pod.condition("DisruptionTarget")
    if disrupted is not None and disrupted.status == "True":
        return _closed(disrupted.reason, disrupted.message)
    if pod.metadata.deletion_timestamp is not None:
        return Problem(reason=names.Reason.POD_LOST, message="the pod was deleted while it ran")
    return None


def _was_ended(pod: facts.PodFacts) -> bool:
    """Return whether the operator ended the pod, after its own container: what came after that concerns others."""
    return names.ANNOTATION_EXIT_CODE in pod.metadata.annotations


def _closed(reason: str, message: str) -> Problem:
    """Return a reason of the closed set, and the message, which names a reason that is not in the set."""
    closed = names.pod_reason(reason, names.Reason.POD_LOST)
    return Problem(reason=closed, message=message if closed == reason or not reason else f"{reason}: {message}")


def has_not_started(ended: wire.StateTerminated) -> bool:
    """Return whether the container has ended because its command could not be started."""
    return ended.reason in _NOT_STARTED


def was_killed(ended: wire.StateTerminated) -> bool:
    """Return whether the container was killed, or its node does not know how it ended."""
    return ended.exit_code in _KILLED or ended.reason == "ContainerStatusUnknown"
