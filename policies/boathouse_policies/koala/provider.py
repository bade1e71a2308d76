"""The scheduler's side: who is offered idle nodes, and who is asked to give some back (Koala, IV.B, IV.C).

Equipartition is named in the paper and not defined; as in the readings: Equipartition-All splits the idle nodes of all
sites equally over the clusters, Equipartition-PerSite those of each site. What does not divide goes to those with the
fewest nodes beyond their first ones, then by name: the scheduler "tries to achieve fairness between multiple MR
clusters". Reclaims take from those with the most transient nodes, one at a time, for the same reason.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_policies.koala.config import Partition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_policies import model
    from boathouse_policies.koala.cluster import Cluster


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Claimant:
    """A cluster among which idle nodes are split.

    Attributes:
        cluster: Its state.
        sites: Where it may have nodes.
    """

    cluster: Cluster
    sites: frozenset[str]


def split(
    idle: Mapping[str, int], claimants: Sequence[Claimant], partition: Partition
) -> dict[model.JobId, dict[str, int]]:
    """Return the part of each cluster.

    Args:
        idle: Idle nodes by site.
        claimants: The clusters; none named twice.
        partition: All sites together, or each by itself.

    Returns:
        Nodes by site for each cluster. They add up to the idle nodes of the sites that some cluster may use.
    """
    parts: dict[model.JobId, dict[str, int]] = {claimant.cluster.name: {} for claimant in claimants}
    extra = {claimant.cluster.name: claimant.cluster.nodes - claimant.cluster.first_core for claimant in claimants}
    dealt = dict.fromkeys(parts, 0)
    # Sites that fewest may use first: with the others the rest can still be evened out.
    for site in sorted(idle, key=lambda site: (sum(site in claimant.sites for claimant in claimants), site)):
        here = [claimant.cluster.name for claimant in claimants if site in claimant.sites]
        counted = dealt if partition is Partition.ALL else dict.fromkeys(here, 0)
        for _ in range(idle[site] if here else 0):
            name = min(here, key=lambda name: (counted[name], extra[name], name))
            parts[name][site] = parts[name].get(site, 0) + 1
            counted[name] += 1
    return parts


def reclaims(needed: int, clusters: Sequence[Cluster]) -> dict[model.JobId, int]:
    """Return how many nodes each cluster is asked for.

    Args:
        needed: Nodes that submissions wait for; those that leave already are taken off here.
        clusters: All of them.
    """
    left = {cluster.name: cluster.transient for cluster in clusters}
    asked = dict.fromkeys(left, 0)
    for _ in range(max(0, needed - sum(cluster.leaving for cluster in clusters))):
        name = min(left, key=lambda name: (-left[name], name), default=None)
        if name is None or not left[name]:
            break
        left[name] -= 1
        asked[name] += 1
    return {name: count for name, count in asked.items() if count}
