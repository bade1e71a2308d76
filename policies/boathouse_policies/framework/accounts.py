"""What the ledger keeps of one pod, and sums over pods."""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

from boathouse_policies import model

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        queue: The queue that it is charged to.
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
    queue: model.QueueName | None
    counted: model.ClassId | None
    host_ports: tuple[model.HostPort, ...]
    placement: model.Placement | None = None
    pod: Account | None = None
    resizing: model.Resources | None = None

    @property
    def account(self) -> Account:
        """The pod. Of what was assumed it is put together when somebody asks: most are over before that."""
        if self.pod is None:
            assert self.placement is not None
            self.pod = _account(self.placement)
        return self.pod


def assumed(placement: model.Placement, amounts: model.Amounts) -> Entry:
    """The entry of what a cycle decided."""
    job, one = placement.job, placement.task_class
    counted = one.id if one.gang_min else None
    ports = one.constraints.host_ports
    return Entry(placement.node, amounts, State.ASSUMED, job.id, job.queue, counted, ports, placement)


def seen(pod: Account, node: model.NodeName, amounts: model.Amounts) -> Entry:
    """The entry of a pod that the watch shows."""
    return Entry(node, amounts, State.CONFIRMED, pod.job, pod.queue, pod.task_class, pod.host_ports, pod=pod)


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


class Sums(Generic[K]):
    """Amounts added up by key: plain numbers, for they change one at a time.

    Args:
        axis: Says how many rows there are.

    Attributes:
        plain: The sum of each key by row, as long as the axis was when it began or last grew; those of zero are left
            out.
        changed: Whose sum is another since `vectors` was asked last, or somebody cleared it.
    """

    def __init__(self, axis: model.Axis) -> None:
        self._axis = axis
        self._vectors: dict[K, model.IntVector] = {}
        self.plain: dict[K, list[int]] = {}
        self.changed: set[K] = set()

    def add(self, key: K, amounts: model.Amounts, sign: int) -> None:
        """Add amounts, or take them away with the sign -1."""
        self.changed.add(key)
        total = self.plain.get(key)
        if total is None:
            total = self.plain[key] = [0] * self._axis.width
        elif amounts[-1][0] >= len(total):
            total += [0] * (self._axis.width - len(total))
        for row, amount in amounts:
            total[row] += sign * amount
        if not total[_PODS] and not any(total):  # the first is the cheaper, and nearly always settles it
            del self.plain[key]

    def vectors(self) -> Mapping[K, model.IntVector]:
        """The same as vectors, which do not move: what changed is in a new dictionary."""
        if self.changed:
            self._vectors = vectors = self._vectors.copy()
            for key in self.changed:
                total = self.plain.get(key)
                if total is None:
                    vectors.pop(key, None)
                else:
                    vectors[key] = np.array(total, np.int64)
        self.changed = set()  # another one: what changed until now may be of use to whoever asked
        return self._vectors


def difference(now: model.Amounts, before: model.Amounts) -> model.Amounts:
    """What has to be added to amounts, so that they are others."""
    rows = dict(now)
    for row, amount in before:
        rows[row] = rows.get(row, 0) - amount
    return tuple((row, amount) for row, amount in sorted(rows.items()) if amount)


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


_PODS = model.PODS
