"""How a cluster answers offers and reclaims: GSP, GGP, GGDP and static clusters (Koala, IV.C).

What the paper leaves open, and how it is read here:

* GSP gives nodes back by itself while F is below its minimum, at the times of offers; a reclaim it meets with S- nodes
  unless that alone would lift F above its maximum ("maintains the value of F to be between a minimum and a maximum").
* The greedy policies "accept every resource offer, and shrink only when the workload execution is completed"; but GGDP
  declines all shrinks, as its nodes hold data (readings). A workload that is over takes nothing more: else GGP would
  grow and shrink for ever.
* No policy ever gives core nodes back; so none falls below its first ones.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Protocol, assert_never

from boathouse_policies.koala.cluster import Decline, Grow, Kind, Shrink
from boathouse_policies.koala.config import Policy
from boathouse_policies.koala.load import load

if TYPE_CHECKING:
    from boathouse_policies.koala.cluster import Answer, Cluster
    from boathouse_policies.koala.config import Config


class Grower(Protocol):
    """A cluster's own policy: pure functions of its state."""

    @property
    def every_s(self) -> float:
        """Between two offers to it (T)."""
        ...

    @property
    def most(self) -> int:
        """Nodes of an offer to it, at most."""
        ...

    def offered(self, cluster: Cluster, nodes: int) -> Answer:
        """The answer to an offer of so many nodes."""
        ...

    def reclaimed(self, cluster: Cluster, nodes: int) -> Answer:
        """The answer to a request to give so many nodes back."""
        ...

    def unasked(self, cluster: Cluster) -> Shrink | Decline:
        """What it gives back by itself."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Static:
    """A cluster that keeps its size."""

    every_s: float
    most: int = 0

    def offered(self, cluster: Cluster, nodes: int) -> Answer:  # noqa: ARG002  the protocol's
        """Declined."""
        return Decline(reason="static: it keeps its size")

    def reclaimed(self, cluster: Cluster, nodes: int) -> Answer:  # noqa: ARG002  the protocol's
        """Declined."""
        return Decline(reason="static: it keeps its size")

    def unasked(self, cluster: Cluster) -> Shrink | Decline:  # noqa: ARG002  the protocol's
        """Nothing."""
        return Decline(reason="static: it keeps its size")


@dataclasses.dataclass(frozen=True, slots=True)
class GrowShrink:
    """GSP: keeps F between two thresholds with transient nodes."""

    config: Config

    @property
    def every_s(self) -> float:
        """T."""
        return self.config.gsp_every_s

    @property
    def most(self) -> int:
        """S+."""
        return self.config.grow_by

    def offered(self, cluster: Cluster, nodes: int) -> Answer:
        """Up to S+ nodes while F is above its maximum."""
        found, most = load(cluster, self.config.reading), self.config.grow_above
        if nodes < 1:
            return Decline(reason="GSP: no node is offered")
        if found <= most:
            return Decline(reason=f"GSP: F = {found:.2f} is not above {most:g}")
        return Grow(nodes=min(nodes, self.most), kind=Kind.TRANSIENT, reason=f"GSP: F = {found:.2f} is above {most:g}")

    def reclaimed(self, cluster: Cluster, nodes: int) -> Answer:
        """Up to S- nodes, unless F would then be above its maximum."""
        count = min(nodes, self.config.shrink_by, cluster.transient)
        if count < 1:
            return Decline(reason="GSP: it has no transient nodes")
        after, most = load(cluster, self.config.reading, less=count), self.config.grow_above
        if after > most:
            return Decline(reason=f"GSP: with {count} nodes fewer F = {after:.2f} would be above {most:g}")
        return Shrink(nodes=count, reason=f"GSP: reclaimed; F = {after:.2f} then")

    def unasked(self, cluster: Cluster) -> Shrink | Decline:
        """Up to S- nodes while F is below its minimum."""
        found, least = load(cluster, self.config.reading), self.config.shrink_below
        count = min(self.config.shrink_by, cluster.transient)
        if found >= least or count < 1:
            return Decline(reason=f"GSP: F = {found:.2f}, {cluster.transient} transient nodes")
        return Shrink(nodes=count, reason=f"GSP: F = {found:.2f} is below {least:g}")


@dataclasses.dataclass(frozen=True, slots=True)
class Greedy:
    """GGP, with transient nodes, and GGDP, with core nodes: every offer is taken."""

    config: Config
    kind: Kind

    @property
    def every_s(self) -> float:
        """T."""
        return self.config.greedy_every_s

    @property
    def most(self) -> int:
        """The size of an offer."""
        return self.config.offer_nodes

    @property
    def _name(self) -> str:
        return "GGDP" if self.kind is Kind.CORE else "GGP"

    def offered(self, cluster: Cluster, nodes: int) -> Answer:
        """All of it, until the workload is over."""
        if nodes < 1:
            return Decline(reason=f"{self._name}: no node is offered")
        if cluster.ended:
            return Decline(reason=f"{self._name}: the workload is over")
        return Grow(nodes=min(nodes, self.most), kind=self.kind, reason=f"{self._name}: every offer is taken")

    def reclaimed(self, cluster: Cluster, nodes: int) -> Answer:  # noqa: ARG002  the protocol's
        """Declined."""
        return Decline(reason=f"{self._name}: every reclaim is declined")

    def unasked(self, cluster: Cluster) -> Shrink | Decline:
        """All transient nodes, once the workload is over; GGDP has none."""
        if not cluster.ended or not cluster.transient:
            return Decline(reason=f"{self._name}: it shrinks only when its workload is over")
        return Shrink(nodes=cluster.transient, reason=f"{self._name}: the workload is over")


def grower(policy: Policy, config: Config) -> Grower:
    """A policy with its constants."""
    match policy:
        case Policy.STATIC:
            return Static(config.gsp_every_s)
        case Policy.GSP:
            return GrowShrink(config)
        case Policy.GGP:
            return Greedy(config, Kind.TRANSIENT)
        case Policy.GGDP:
            return Greedy(config, Kind.CORE)
        case _:
            assert_never(policy)
