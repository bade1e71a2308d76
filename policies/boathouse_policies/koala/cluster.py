"""A dynamic cluster as its policy sees it, what the policy may answer, and what the cluster's master reports.

In the paper the MR-Runner counts jobs and tasks of its cluster (Koala, IV.B). Here the master's pod reports, with the
counters of its `Progress` events.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_policies import model


class Kind(enum.StrEnum):
    """Of a node of a cluster (IV.A)."""

    CORE = "core"
    TRANSIENT = "transient"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What a cluster's master knows, in nodes and tasks.

    Attributes:
        name: Its job.
        running: Map and reduce tasks that run.
        waiting: Tasks that could run at once if there were a slot.
        slots: Map and reduce slots of the nodes that are up and do not leave.
        node_slots: Slots of one node.
        core: Nodes that hold data, the first ones included.
        transient: Nodes without data.
        first_core: Nodes that it was made with.
        pending: Nodes that it took and that are not up yet.
        leaving: Nodes that it gave back and that still run tasks.
        ended: Whether its workload is over.
    """

    name: model.JobId
    running: int = 0
    waiting: int = 0
    slots: int = 0
    node_slots: int = 1
    core: int = 0
    transient: int = 0
    first_core: int = 0
    pending: int = 0
    leaving: int = 0
    ended: bool = False

    @property
    def nodes(self) -> int:
        """All that it keeps, those that are not up yet included."""
        return self.core + self.transient + self.pending


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Grow:
    """Take so many of the nodes offered, as this kind."""

    nodes: int
    kind: Kind
    reason: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shrink:
    """Give so many transient nodes back."""

    nodes: int
    reason: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Decline:
    """Stay as it is."""

    reason: str


Answer: TypeAlias = Grow | Shrink | Decline


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A node of a cluster, for choosing who leaves.

    Attributes:
        name: The node, or the pod on it.
        kind: Whether it holds data.
        tasks: Tasks that run on it.
    """

    name: str
    kind: Kind
    tasks: int


def leaving(workers: Sequence[Worker], count: int) -> tuple[str, ...]:
    """Who leaves: transient nodes with the fewest tasks, then by name (the paper does not say). Never a core node."""
    transient = sorted((worker.tasks, worker.name) for worker in workers if worker.kind is Kind.TRANSIENT)
    return tuple(name for _, name in transient[:count])


class Counter(enum.StrEnum):
    """Each is a number; see `Cluster` for what they count."""

    RUNNING = "running_tasks"
    WAITING = "runnable_tasks"
    SLOTS = "slots"
    NODE_SLOTS = "node_slots"
    CORE = "core_nodes"
    TRANSIENT = "transient_nodes"
    FIRST_CORE = "first_core_nodes"
    PENDING = "pending_nodes"
    LEAVING = "leaving_nodes"
    ENDED = "workload_ended"


def written(cluster: Cluster) -> Mapping[str, float]:
    """Return a state as counters, for the shell that reports it."""
    return {counter.value: float(getattr(cluster, counter.name.lower())) for counter in Counter}


def read(job: model.JobId, counters: Mapping[str, float]) -> Cluster | None:
    """Return the state of a cluster; None where some counter is missing, as in reports of other programs."""
    if any(counter.value not in counters for counter in Counter):
        return None
    fields = {counter.name.lower(): int(counters[counter.value]) for counter in Counter if counter is not Counter.ENDED}
    return Cluster(name=job, ended=bool(counters[Counter.ENDED.value]), **fields)
