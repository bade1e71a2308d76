"""What the ledger keeps of one pod, and sums over pods."""

from __future__ import annotations

import dataclasses
import enum
from typing import Generic, TypeVar

from boathouse_policies import model

K = TypeVar("K")
V = TypeVar("V")


class State(enum.Enum):
    """Where a pod is. What waits, or is gone, is not in the ledger."""

    ASSUMED = "assumed"
    CONFIRMED = "confirmed"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What one pod takes.

    Attributes:
        id: `namespace/name`.
        node: spec.nodeName; None while it has none.
        resources: By Kubernetes' request formula, the larger of spec, allocated and actuated while a resize is on its
            way.
        uid: metadata.uid; None for an assumed Create, whose UID is not known yet.
        job: The job of ours that it belongs to.
        queue: The queue that it is charged to.
        task_class: Its class.
        host_ports: Ports of the node that it takes.
    """

    id: model.TaskId
    node: model.NodeName | None
    resources: model.Resources
    uid: model.PodUid | None = None
    job: model.JobId | None = None
    queue: model.QueueName | None = None
    task_class: model.ClassId | None = None
    host_ports: tuple[model.HostPort, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Freed:
    """Room that came free: what may wake those who wait. The node may be gone meanwhile."""

    node: model.NodeName
    queue: model.QueueName | None


@dataclasses.dataclass(slots=True, eq=False)
class Entry:
    """A pod in the ledger: what was assumed of it, until it is seen.

    Attributes:
        node: Where it is.
        vector: What is charged for it.
        state: How certain that is.
        placement: What was assumed, as long as no pod was seen.
        pod: What was seen of it.
        resizing: A size that was asked for.
    """

    node: model.NodeName
    vector: model.IntVector
    state: State
    placement: model.Placement | None
    pod: Account | None = None
    resizing: model.Resources | None = None

    @property
    def charged(self) -> tuple[model.JobId | None, model.QueueName | None, model.ClassId | None]:
        """The job and the queue that it is charged to, and the class that it counts for."""
        if self.pod is not None:
            return self.pod.job, self.pod.queue, self.pod.task_class
        assert self.placement is not None
        job = self.placement.job
        return job.id, job.queue, self.placement.task_class.id

    @property
    def host_ports(self) -> tuple[model.HostPort, ...]:
        """What it takes of the node."""
        if self.pod is not None:
            return self.pod.host_ports
        assert self.placement is not None
        return self.placement.task_class.constraints.host_ports

    @property
    def account(self) -> Account:
        """The pod. Of what was assumed it is put together when somebody asks: most are over before that."""
        if self.pod is None:
            assert self.placement is not None
            self.pod = _account(self.placement)
        return self.pod


def assumed(placement: model.Placement, vector: model.IntVector) -> Entry:
    """The entry of what a cycle decided."""
    return Entry(placement.node, vector, State.ASSUMED, placement)


def seen(pod: Account, node: model.NodeName, vector: model.IntVector) -> Entry:
    """The entry of a pod that the watch shows."""
    return Entry(node, vector, State.CONFIRMED, None, pod)


def _account(placement: model.Placement) -> Account:
    return Account(
        id=placement.task.id,
        node=placement.node,
        resources=placement.resources,
        uid=placement.task.pod_uid,
        job=placement.job.id,
        queue=placement.job.queue,
        task_class=placement.task_class.id,
        host_ports=placement.task_class.constraints.host_ports,
    )


class Shared(Generic[K, V]):
    """A dictionary that is copied at the first write after it was handed out."""

    def __init__(self) -> None:
        self._values: dict[K, V] = {}
        self._handed_out = False

    def freeze(self) -> dict[K, V]:
        """Hand it out: nobody may write to it from now on."""
        self._handed_out = True
        return self._values

    def write(self) -> dict[K, V]:
        """The dictionary to write to."""
        if self._handed_out:
            self._values = self._values.copy()
            self._handed_out = False
        return self._values


class Sums(Shared[K, model.IntVector]):
    """Vectors added up by key."""

    def add(self, key: K, vector: model.IntVector) -> None:
        """Add to a sum; a sum of zero is left out."""
        sums = self.write() if self._handed_out else self._values
        known = sums.get(key)
        total = vector if known is None else plus(known, vector)
        if total[model.PODS] or total.any():  # nearly always the first, which is the cheaper
            sums[key] = total
        else:
            sums.pop(key, None)


def plus(a: model.IntVector, b: model.IntVector) -> model.IntVector:
    """Sum of vectors of which one may be older than a resource."""
    if len(a) == len(b):
        return a + b
    short, long = (a, b) if len(a) < len(b) else (b, a)
    total = long.copy()
    total[: len(short)] += short
    return total


def keep_labels(pod: Account, known: Account) -> Account:
    """What the ledger was told of job, queue and class stands where the pod's own labels do not say it."""
    return dataclasses.replace(
        pod,
        job=pod.job if pod.job is not None else known.job,
        queue=pod.queue if pod.queue is not None else known.queue,
        task_class=pod.task_class if pod.task_class is not None else known.task_class,
    )


def unlike(known: Account, listed: Account) -> bool:
    """Whether a pod differs in what is counted."""
    return (known.node, known.uid, known.resources, known.host_ports) != (
        listed.node,
        listed.uid,
        listed.resources,
        listed.host_ports,
    )
