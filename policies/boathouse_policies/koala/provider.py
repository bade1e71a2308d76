"""The scheduler's side: who is offered idle nodes, and who is asked to give some back (Koala, IV.B, IV.C).

Equipartition is named in the paper and not defined; as in the readings: Equipartition-All splits the idle nodes of all
sites equally over the clusters, Equipartition-PerSite those of each site. What does not divide goes to those with the
fewest nodes beyond their first ones, then by name: the scheduler "tries to achieve fairness between multiple MR
clusters". Reclaims take from those with the most transient nodes, one at a time, for the same reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies.koala.config import Partition

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from boathouse_policies import model
    from boathouse_policies.koala.cluster import Cluster


def split(
    idle: Mapping[str, int], sites: Mapping[Cluster, Collection[str]], partition: Partition
) -> dict[model.JobId, dict[str, int]]:
    """Return the part of each cluster.

    Args:
        idle: Idle nodes by site.
        sites: Where each cluster may have nodes.
        partition: All sites together, or each by itself.

    Returns:
        Nodes by site for each cluster. They add up to the idle nodes of the sites that some cluster may use.
    """
    parts: dict[model.JobId, dict[str, int]] = {cluster.name: {} for cluster in sites}
    extra = {cluster.name: cluster.nodes - cluster.first_core_nodes for cluster in sites}
    users = {site: [cluster.name for cluster, usable in sites.items() if site in usable] for site in idle}
    dealt = dict.fromkeys(parts, 0)
    # Sites that fewest may use first: with the others the rest can still be evened out.
    for site in sorted(idle, key=lambda site: (len(users[site]), site)):
        counted = dealt if partition is Partition.ALL else dict.fromkeys(users[site], 0)
        for _ in range(idle[site] if users[site] else 0):
            name = min(users[site], key=lambda name: (counted[name], extra[name], name))
            parts[name][site] = parts[name].get(site, 0) + 1
            counted[name] += 1
    return parts


def reclaims(needed: int, clusters: Sequence[Cluster]) -> dict[model.JobId, int]:
    """Return how many nodes each cluster is asked for, of those that are asked for any.

    Args:
        needed: Nodes that submissions wait for; those that leave already are taken off here.
        clusters: All of them.
    """
    left = {cluster.name: cluster.transient_nodes for cluster in clusters}
    needed -= sum(cluster.leaving_nodes for cluster in clusters)
    for _ in range(min(needed, sum(left.values()))):
        left[min(left, key=lambda name: (-left[name], name))] -= 1
    asked = {cluster.name: cluster.transient_nodes - left[cluster.name] for cluster in clusters}
    return {name: count for name, count in asked.items() if count}
