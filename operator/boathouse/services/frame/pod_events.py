"""Publish events about the pods of one object to the profile's observers, from the changes between two reconciles.

Events are derived from observed pods, not from actions. After a restart the first reconcile publishes events for all
existing pods, including ended ones, so that observers have the running tasks.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Generic, Protocol, TypeVar

from boathouse.services.frame.pod_life import LivePod, PodLife
from boathouse.suspension.stages import SuspensionRecord
from boathouse_policies import framework, model
from boathouse_task import contract

LOST: Final = "PodLost"
LENT_MILLI: Final = 2
"""The CPU request of a suspended task is at most this, as kubelets report it."""


class PolicyPod(LivePod, Protocol):
    """A pod as policies know it."""

    @property
    def resources(self) -> model.Resources:
        """What it takes of its node now."""

    @property
    def suspension(self) -> SuspensionRecord | None:
        """The record of its last suspension."""

    @property
    def is_suspended(self) -> bool:
        """Whether it has the CPU of a suspended task."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a task ended: run time and counters if it succeeded, else the reason why it failed."""

    duration_s: float = 0.0
    counters: Mapping[str, float] = dataclasses.field(default_factory=dict)
    reason: str = ""


P = TypeVar("P", bound=PolicyPod)


class Publisher:
    """Passes events about the objects of a kind to the observers of a profile."""

    def __init__(self, observers: Sequence[framework.Observer], now: Callable[[], float]) -> None:
        self._observers, self.now = observers, now

    def publish(self, event: model.Event) -> None:
        """Publish an event."""
        for observer in self._observers:
            observer.observe(event)

    def submitted(
        self,
        job: model.Job,
        classes: tuple[model.TaskClass, ...],
        tasks: Mapping[model.ClassId, int],
        totals: Mapping[model.ClassId, int] | None = None,
    ) -> None:
        """Publish a new or changed object, with the tasks that have no published placement, and all where they end."""
        counts, of_all = dict(tasks), dict(totals or {})
        self.publish(model.Submitted(now_s=self.now(), job=job, classes=classes, tasks=counts, totals=of_all))

    def ended(self, job: model.JobId, *, succeeded: bool) -> None:
        """Publish the end of an object."""
        self.publish(model.Ended(now_s=self.now(), job=job, succeeded=succeeded))

    def about(self, job: model.JobId, namespace: str, pod: PolicyPod, task_class: model.ClassId) -> model.About:
        """Return the time and the names of a pod that has a node."""
        assert pod.node is not None
        task = model.TaskId(f"{namespace}/{pod.name}")
        node = model.NodeName(pod.node)
        return {"now_s": self.now(), "task": task, "task_class": task_class, "job": job, "node": node}


class PodEvents(Generic[P]):
    """Publishes events about the pods of one object.

    `about` returns the time and the names of a pod that has a node, `distance` how far its input is, `ended`, called
    once for each pod, how its task ended, and `second_of` the task that a new pod repeats while that runs, or None.
    """

    def __init__(
        self,
        publish: Callable[[model.Event], None],
        *,
        about: Callable[[P], model.About],
        distance: Callable[[P], model.Distance],
        ended: Callable[[P], Ended],
        second_of: Callable[[P], model.TaskId | None] = lambda _: None,
    ) -> None:
        self._publish, self._about, self._distance, self._ended = publish, about, distance, ended
        self._second_of = second_of
        self._pods: dict[str, P] = {}

    def find(self, name: str) -> P | None:
        """Return the last published version of a pod."""
        return self._pods.get(name)

    def knows(self, pod: P) -> bool:
        """Return whether events about a pod were published."""
        published = self._pods.get(pod.name)
        return published is not None and published.uid == pod.uid

    def update(self, pods: Iterable[P]) -> list[P]:
        """Publish what changed about pods with a node; return those about which nothing was published before."""
        placed = [pod for pod in pods if pod.node is not None]
        here = {pod.uid for pod in placed}
        for pod in list(self._pods.values()):
            if pod.uid not in here:
                self._vanished(pod)
        return [pod for pod in placed if self._changed(pod)]

    def forget(self, pods: Iterable[P] = ()) -> None:
        """Publish the last changes of the pods of an object that ended, and the failure of those that have not."""
        for pod in pods:
            if pod.node is not None:  # includes pods that started and ended since the last reconcile
                self._changed(pod)
        for published in list(self._pods.values()):
            self._vanished(published)

    def _changed(self, pod: P) -> bool:
        """Publish the changes of a pod that has a node; return whether it is new."""
        published = self._pods.get(pod.name)
        before = published if published is not None and published.uid == pod.uid else None
        if before is not None and (before is pod or not before.state.is_live):
            return False
        self._pods[pod.name] = pod
        about, size = self._about(pod), _size(pod)
        if before is None:
            repeated = self._second_of(pod)
            self._publish(model.Placed(**about, resources=size, distance=self._distance(pod), second_of=repeated))
        elif pod.state.is_live and size != _size(before):
            self._publish(model.Resized(**about, resources=size))
        if pod.state is not PodLife.STARTING and (before is None or before.state is PodLife.STARTING):
            self._publish(model.Started(**about))
        if not pod.state.is_live:
            self._end(pod)
        elif pod.is_suspended and (before is None or not before.is_suspended):
            kept = dataclasses.replace(size, cpu_milli=contract.SUSPENDED_REQUEST_MILLI)
            until_s = pod.suspension.until_s if pod.suspension is not None else None
            self._publish(model.Suspended(**about, resources=kept, until_s=until_s))
        elif before is not None and before.is_suspended and not pod.is_suspended:
            self._publish(model.Resumed(**about, resources=size))
        return before is None

    def _vanished(self, pod: P) -> None:
        del self._pods[pod.name]
        if pod.state.is_live:
            self._publish(model.Failed(**self._about(pod), reason=LOST))

    def _end(self, pod: P) -> None:
        ended, about = self._ended(pod), self._about(pod)
        if ended.reason:
            self._publish(model.Failed(**about, reason=ended.reason))
        else:
            self._publish(model.Finished(**about, duration_s=ended.duration_s, counters=ended.counters))


def _size(pod: PolicyPod) -> model.Resources:
    """Return what a pod takes of its node, or will take again when its suspension is over."""
    record = pod.suspension
    if record is None or pod.resources.cpu_milli > LENT_MILLI:
        return pod.resources
    return dataclasses.replace(pod.resources, cpu_milli=record.cpu_request_milli)
