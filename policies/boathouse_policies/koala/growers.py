"""F, the load of a cluster, and how it answers offers and reclaims: GSP, GGP, GGDP and static clusters (Koala, IV.C).

What the paper leaves open, and how it is read here:

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

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from boathouse_policies.koala.cluster import Decline, Grow, Kind, Shrink
from boathouse_policies.koala.config import Policy, Reading

if TYPE_CHECKING:
    from boathouse_policies.koala.cluster import Answer, Cluster
    from boathouse_policies.koala.config import Config


def load(cluster: Cluster, reading: Reading, *, less: int = 0) -> float:
    """Return F.

    Args:
        cluster: Its state.
        reading: What F is.
        less: As it would be with so many nodes fewer.

    Returns:
        At least 0; infinite where tasks find no slot at all.
    """
    slots = cluster.slots + (cluster.pending - less) * cluster.node_slots
    tasks = cluster.running
    if reading is Reading.WAITING:
        tasks += cluster.waiting
    else:
        slots -= cluster.running
    if slots > 0:
        return tasks / slots
    return math.inf if tasks else 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Grower:
    """A cluster's own policy: pure functions of its state. This one keeps its size.

    Attributes:
        config: The constants.
        every_s: Between two offers to it (T).
        most: Nodes of an offer to it, at most.
    """

    config: Config
    every_s: float
    most: int

    def offered(self, cluster: Cluster, nodes: int) -> Answer:  # noqa: ARG002  the protocol's
        """Return the answer to an offer of so many nodes."""
        return _STATIC

    def reclaimed(self, cluster: Cluster, nodes: int) -> Answer:  # noqa: ARG002  the protocol's
        """Return the answer to a request to give so many nodes back."""
        return _STATIC

    def unasked(self, cluster: Cluster) -> Shrink | Decline:  # noqa: ARG002  the protocol's
        """Return what it gives back by itself."""
        return _STATIC


_STATIC = Decline(reason="static: it keeps its size")


class GrowShrink(Grower):
    """GSP: keeps F between two thresholds with transient nodes."""

    def offered(self, cluster: Cluster, nodes: int) -> Answer:
        """Return the answer: up to S+ nodes while F is above its maximum."""
        found, most = load(cluster, self.config.reading), self.config.grow_above
        if nodes < 1:
            return Decline(reason="GSP: no node is offered")
        if found <= most:
            return Decline(reason=f"GSP: F = {found:.2f} is not above {most:g}")
        return Grow(nodes=min(nodes, self.most), kind=Kind.TRANSIENT, reason=f"GSP: F = {found:.2f} is above {most:g}")

    def reclaimed(self, cluster: Cluster, nodes: int) -> Answer:
        """Return the answer: up to S- nodes, unless F would then be above its maximum."""
        count = min(nodes, self.config.shrink_by, cluster.transient)
        if count < 1:
            return Decline(reason="GSP: it has no transient nodes")
        after, most = load(cluster, self.config.reading, less=count), self.config.grow_above
        if after > most:
            return Decline(reason=f"GSP: with {count} nodes fewer F = {after:.2f} would be above {most:g}")
        return Shrink(nodes=count, reason=f"GSP: reclaimed; F = {after:.2f} then")

    def unasked(self, cluster: Cluster) -> Shrink | Decline:
        """Return the answer: up to S- nodes while F is below its minimum."""
        found, least = load(cluster, self.config.reading), self.config.shrink_below
        count = min(self.config.shrink_by, cluster.transient)
        if found >= least or count < 1:
            return Decline(reason=f"GSP: F = {found:.2f}, {cluster.transient} transient nodes")
        return Shrink(nodes=count, reason=f"GSP: F = {found:.2f} is below {least:g}")


@dataclasses.dataclass(frozen=True, slots=True)
class Greedy(Grower):
    """GGP, with transient nodes, and GGDP, with core nodes: every offer is taken."""

    kind: Kind

    @property
    def _name(self) -> str:
        return "GGDP" if self.kind is Kind.CORE else "GGP"

    def offered(self, cluster: Cluster, nodes: int) -> Answer:
        """Return the answer: all of it, until the workload is over."""
        if nodes < 1:
            return Decline(reason=f"{self._name}: no node is offered")
        if cluster.ended:
            return Decline(reason=f"{self._name}: the workload is over")
        return Grow(nodes=min(nodes, self.most), kind=self.kind, reason=f"{self._name}: every offer is taken")

    def reclaimed(self, cluster: Cluster, nodes: int) -> Answer:  # noqa: ARG002  the protocol's
        """Return the answer: declined."""
        return Decline(reason=f"{self._name}: every reclaim is declined")

    def unasked(self, cluster: Cluster) -> Shrink | Decline:
        """Return the answer: all transient nodes, once the workload is over; GGDP has none."""
        if not cluster.ended or not cluster.transient:
            return Decline(reason=f"{self._name}: it shrinks only when its workload is over")
        return Shrink(nodes=cluster.transient, reason=f"{self._name}: the workload is over")


def grower(policy: Policy, config: Config) -> Grower:
    """Return a policy with its constants."""
    match policy:
        case Policy.STATIC:
            return Grower(config, config.gsp_every_s, 0)
        case Policy.GSP:
            return GrowShrink(config, config.gsp_every_s, config.grow_by)
        case Policy.GGP | Policy.GGDP:
            kind = Kind.TRANSIENT if policy is Policy.GGP else Kind.CORE
            return Greedy(config, config.greedy_every_s, config.offer_nodes, kind)
