"""A dynamic cluster as its policy sees it; F, its load; and how it answers offers and reclaims (Koala, IV.B, IV.C).

In the paper the MR-Runner counts jobs and tasks of its cluster (Koala, IV.B). Here the master's pod reports: the fields
of `Cluster` but its name are the counters of its `Progress` events.

The answers are those of GSP, GGP, GGDP and static clusters. What the paper leaves open, and how it is read here:

* GSP gives nodes back by itself while F is below its minimum, at the times of offers; a reclaim it meets with S- nodes
  unless that alone would lift F above its maximum ("maintains the value of F to be between a minimum and a maximum").
* The greedy policies "accept every resource offer, and shrink only when the workload execution is completed"; but GGDP
  declines all shrinks, as its nodes hold data (readings). A workload that is over takes nothing more: else GGP would
  grow and shrink for ever.
* No policy ever gives core nodes back; so none falls below its first ones.

The paper: "the ratio F of the number of running tasks and the number of available slots". With slots taken or not,
that never exceeds 1, and GSP grows above 1.5. Two readings:

* WAITING: (running + runnable waiting tasks) / all slots, above 1.5 when half a wave of tasks waits.
* FREE: running / free slots, above 1.5 when 60 % of the slots are busy, below 0.25 when 20 % are.

Deviation: nodes that were taken and are not up yet count with their slots, free ones; else a cluster that boots slower
than it is offered nodes takes them again for the same tasks.
"""

import dataclasses
import enum
import math
from collections.abc import Mapping

from boathouse_policies import model
from boathouse_policies.koala.config import Config, Policy, Reading

UNBOUNDED = 1 << 30  # more nodes than any cluster has


class Kind(enum.StrEnum):
    """Kinds of a cluster's nodes (IV.A)."""

    CORE = "core"
    TRANSIENT = "transient"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What a cluster's master knows, in nodes and tasks."""

    name: model.JobId  # its job
    running_tasks: int = 0  # map and reduce tasks that run
    runnable_tasks: int = 0  # tasks that could run at once if there were a slot
    slots: int = 0  # map and reduce slots of the nodes that are up and do not leave
    node_slots: int = 1  # slots of one node
    core_nodes: int = 0  # nodes that hold data, the first ones included
    transient_nodes: int = 0  # nodes without data
    first_core_nodes: int = 0  # nodes that it was made with
    pending_nodes: int = 0  # nodes that it took and that are not up yet
    leaving_nodes: int = 0  # nodes that it gave back and that still run tasks
    workload_ended: int = 0  # 1 once its workload is over, 0 before
    least_transient_nodes: int = 0  # transient nodes that it keeps in any case
    most_nodes: int = UNBOUNDED  # nodes that it may have
    weight: int = 1  # its share of idle nodes, relative to other clusters

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


def load(cluster: Cluster, reading: Reading, *, less: int = 0) -> float:
    """Return F, as it would be with so many nodes less: at least 0; infinite where tasks find no slot at all."""
    slots = cluster.slots + (cluster.pending_nodes - less) * cluster.node_slots
    tasks = cluster.running_tasks
    if reading is Reading.WAITING:
        tasks += cluster.runnable_tasks
    else:
        slots -= cluster.running_tasks
    if slots > 0:
        return tasks / slots
    return math.inf if tasks else 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Grower:
    """A cluster's own policy: pure functions of its state; None stays as it is. This one keeps its size."""

    config: Config
    every_s: float  # between two offers to it (T)
    most: int  # nodes of an offer to it, at most

    def offered(self, cluster: Cluster, nodes: int) -> Change | None:  # noqa: ARG002  the protocol's
        """Return the answer to an offer of so many nodes."""
        return None

    def reclaimed(self, cluster: Cluster, nodes: int) -> Change | None:  # noqa: ARG002  the protocol's
        """Return the answer to a request to give so many nodes back."""
        return None

    def unrequested(self, cluster: Cluster) -> Change | None:  # noqa: ARG002  the protocol's
        """Return what it gives back by itself."""
        return None


class GrowShrink(Grower):
    """GSP: keeps F between two thresholds with transient nodes."""

    def offered(self, cluster: Cluster, nodes: int) -> Change | None:
        """Return the answer: up to S+ nodes while F is above its maximum."""
        found, most = load(cluster, self.config.reading), self.config.grow_above
        count = min(nodes, self.most, cluster.growth)
        if count < 1 or found <= most:
            return None
        return Change(nodes=count, reason=f"GSP: F = {found:.2f} is above {most:g}")

    def reclaimed(self, cluster: Cluster, nodes: int) -> Change | None:
        """Return the answer: up to S- nodes, unless F would then be above its maximum."""
        count = min(nodes, self.config.shrink_by, cluster.spare_nodes)
        after = load(cluster, self.config.reading, less=count)
        if count < 1 or after > self.config.grow_above:
            return None
        return Change(nodes=-count, reason=f"GSP: reclaimed; F = {after:.2f} then")

    def unrequested(self, cluster: Cluster) -> Change | None:
        """Return the answer: up to S- nodes while F is below its minimum."""
        found, least = load(cluster, self.config.reading), self.config.shrink_below
        count = min(self.config.shrink_by, cluster.spare_nodes)
        if count < 1 or found >= least:
            return None
        return Change(nodes=-count, reason=f"GSP: F = {found:.2f} is below {least:g}")


@dataclasses.dataclass(frozen=True, slots=True)
class Greedy(Grower):
    """GGP, with transient nodes, and GGDP, with core nodes: it takes every offer and declines every reclaim."""

    policy: Policy

    def offered(self, cluster: Cluster, nodes: int) -> Change | None:
        """Return the answer: all of it, until the workload is over."""
        count = min(nodes, self.most, cluster.growth)
        if count < 1 or cluster.workload_ended:
            return None
        kind = Kind.CORE if self.policy is Policy.GGDP else Kind.TRANSIENT
        return Change(nodes=count, kind=kind, reason=f"{self.policy.upper()}: every offer is taken")

    def unrequested(self, cluster: Cluster) -> Change | None:
        """Return the answer: all transient nodes that it need not keep, once the workload is over; GGDP has none."""
        if not cluster.workload_ended or not cluster.spare_nodes:
            return None
        return Change(nodes=-cluster.spare_nodes, reason=f"{self.policy.upper()}: the workload is over")


def grower(policy: Policy, config: Config) -> Grower:
    """Return a policy with its constants."""
    match policy:
        case Policy.STATIC:
            return Grower(config, config.gsp_every_s, 0)
        case Policy.GSP:
            return GrowShrink(config, config.gsp_every_s, config.grow_by)
        case Policy.GGP | Policy.GGDP:
            return Greedy(config, config.greedy_every_s, config.offer_nodes, policy)
