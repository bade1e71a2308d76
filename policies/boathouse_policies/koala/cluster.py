"""A dynamic cluster as its policy sees it, what the policy may answer, and what the cluster's master reports.

In the paper the MR-Runner counts jobs and tasks of its cluster (Koala, IV.B). Here the master's pod reports: the fields
of `Cluster` but its name are the counters of its `Progress` events.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_policies import model


UNBOUNDED = 1 << 30
"""More nodes than any cluster has."""


class Kind(enum.StrEnum):
    """Kinds of a cluster's nodes (IV.A)."""

    CORE = "core"
    TRANSIENT = "transient"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What a cluster's master knows, in nodes and tasks.

    Attributes:
        name: Its job.
        running_tasks: Map and reduce tasks that run.
        runnable_tasks: Tasks that could run at once if there were a slot.
        slots: Map and reduce slots of the nodes that are up and do not leave.
        node_slots: Slots of one node.
        core_nodes: Nodes that hold data, the first ones included.
        transient_nodes: Nodes without data.
        first_core_nodes: Nodes that it was made with.
        pending_nodes: Nodes that it took and that are not up yet.
        leaving_nodes: Nodes that it gave back and that still run tasks.
        workload_ended: 1 once its workload is over, 0 before.
        least_transient_nodes: Transient nodes that it keeps in any case.
        most_nodes: Nodes that it may have.
        weight: Its share of idle nodes, relative to other clusters.
    """

    name: model.JobId
    running_tasks: int = 0
    runnable_tasks: int = 0
    slots: int = 0
    node_slots: int = 1
    core_nodes: int = 0
    transient_nodes: int = 0
    first_core_nodes: int = 0
    pending_nodes: int = 0
    leaving_nodes: int = 0
    workload_ended: int = 0
    least_transient_nodes: int = 0
    most_nodes: int = UNBOUNDED
    weight: int = 1

    @property
    def nodes(self) -> int:
        """All that it keeps, those that are not up yet included."""
        return self.core_nodes + self.transient_nodes + self.pending_nodes

    @property
    def growth(self) -> int:
        """Nodes that it may still take."""
        return max(0, self.most_nodes - self.nodes)

    @property
    def spare_nodes(self) -> int:
        """Transient nodes that it may give back."""
        return max(0, self.transient_nodes - self.least_transient_nodes)

    def counters(self) -> dict[str, int]:
        """Return the state as counters, for the shell that reports it."""
        return {name: getattr(self, name) for name in _COUNTERS}


_COUNTERS = tuple(field.name for field in dataclasses.fields(Cluster) if field.name != "name")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a policy answers: a number of nodes of one kind to take, or, below 0, of transient nodes to give back."""

    nodes: int
    kind: Kind = Kind.TRANSIENT
    reason: str


def read(job: model.JobId, counters: Mapping[str, float]) -> Cluster | None:
    """Return the state of a cluster; None where some counter is missing, as in reports of other programs."""
    if not counters.keys() >= set(_COUNTERS):
        return None
    return Cluster(name=job, **{name: int(counters[name]) for name in _COUNTERS})
