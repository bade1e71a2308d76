"""What the ledger keeps of one pod."""

from __future__ import annotations

import dataclasses
import enum
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from boathouse_policies import model

K = TypeVar("K")
V = TypeVar("V")

Share: TypeAlias = "tuple[model.QueueName, model.NamespaceName]"
"""What a namespace's jobs have of a queue."""


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
        namespace: The namespace whose share of the queue it is charged to.
        task_class: Its class.
        host_ports: Ports of the node that it takes.
    """

    id: model.TaskId
    node: model.NodeName | None
    resources: model.Resources
    uid: model.PodUid | None = None
    job: model.JobId | None = None
    queue: model.QueueName | None = None
    namespace: model.NamespaceName = model.NamespaceName("")  # noqa: RUF009 - a text
    task_class: model.ClassId | None = None
    host_ports: tuple[model.HostPort, ...] = ()


class Freed(NamedTuple):
    """Room that came free: what may wake those who wait. The node may be gone meanwhile."""

    node: model.NodeName
    queue: model.QueueName | None


@dataclasses.dataclass(slots=True, eq=False)
class Entry:
    """A pod in the ledger: what was assumed of it, until it is seen.

    Attributes:
        node: Where it is.
        amounts: What is charged for it.
        state: How certain that is.
        job: The job that it is charged to.
        share: The queue and the namespace that it is charged to.
        counted: The class that it counts for; None where nobody asks, for it does not start together with others.
        host_ports: What it takes of the node.
        placement: What was assumed, as long as no pod was seen.
        pod: What was seen of it.
        resizing: A size that was asked for.
    """

    node: model.NodeName
    amounts: model.Amounts
    state: State
    job: model.JobId | None
    share: Share | None
    counted: model.ClassId | None
    host_ports: tuple[model.HostPort, ...]
    placement: model.Placement | None = None
    pod: Account | None = None
    resizing: model.Resources | None = None

    @property
    def queue(self) -> model.QueueName | None:
        """The queue that it is charged to."""
        return None if self.share is None else self.share[0]

    @property
    def account(self) -> Account:
        """The pod. Of what was assumed it is put together when somebody asks: most are over before that."""
        if self.pod is None:
            assert self.placement is not None
            self.pod = _account(self.placement)
        return self.pod

    @property
    def size(self) -> model.Resources:
        """What it is to be charged for: the larger amounts while a resize is on its way."""
        resources = self.account.resources
        return resources if self.resizing is None else resources.most(self.resizing)


def assumed(placement: model.Placement, amounts: model.Amounts) -> Entry:
    """The entry of what a cycle decided."""
    job, one = placement.job, placement.task_class
    counted = one.id if one.gang_min else None
    ports = one.constraints.host_ports
    share = (job.queue, job.namespace)
    return Entry(placement.node, amounts, _ASSUMED, job.id, share, counted, ports, placement)


def seen(pod: Account, node: model.NodeName, amounts: model.Amounts) -> Entry:
    """The entry of a pod that the watch shows."""
    share = None if pod.queue is None else (pod.queue, pod.namespace)
    return Entry(node, amounts, State.CONFIRMED, pod.job, share, pod.task_class, pod.host_ports, pod=pod)


def _account(placement: model.Placement) -> Account:
    return Account(
        id=placement.task.id,
        node=placement.node,
        resources=placement.resources,
        uid=placement.task.pod_uid,
        job=placement.job.id,
        queue=placement.job.queue,
        namespace=placement.job.namespace,
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


def keep_labels(pod: Account, known: Account) -> Account:
    """What the ledger was told of job, queue and class stands where the pod's own labels do not say it."""
    return dataclasses.replace(
        pod,
        job=pod.job if pod.job is not None else known.job,
        queue=pod.queue if pod.queue is not None else known.queue,
        task_class=pod.task_class if pod.task_class is not None else known.task_class,
    )


def charged_to(pod: Account) -> tuple[object, ...]:
    """Whom a pod is charged to."""
    return pod.job, pod.queue, pod.namespace, pod.task_class


def unlike(known: Account, listed: Account) -> bool:
    """Whether a pod differs in what is counted."""
    return (known.node, known.uid, known.resources, known.host_ports) != (
        listed.node,
        listed.uid,
        listed.resources,
        listed.host_ports,
    )


_ASSUMED = State.ASSUMED  # to look into an enum each time is slow
