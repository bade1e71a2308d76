"""The scheduler's side: who is offered idle nodes, and who is asked to give some back (Koala, IV.B, IV.C).

Equipartition is named in the paper and not defined; as in the readings: Equipartition-All splits the idle nodes of all
sites equally over the clusters, Equipartition-PerSite those of each site. What does not divide goes to those with the
fewest nodes beyond their first ones, then by name: the scheduler "tries to achieve fairness between multiple MR
clusters". Reclaims take from those with the most transient nodes, one at a time, for the same reason.

Ours: clusters have weights, so that "equally", "fewest" and "most" are by weight. If fewer nodes are idle than the sum
of the weights, the cluster that has grown least by weight receives up to its weight in nodes first. Not every idle node
has room for the worker of every cluster, so idle nodes come in pools by who may use them.
"""

from __future__ import annotations

import collections
import dataclasses
import heapq
from typing import TYPE_CHECKING

from boathouse_policies.koala.config import Partition

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from boathouse_policies import model
    from boathouse_policies.koala.cluster import Cluster


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Idle nodes of one site that the same clusters may use.

    Attributes:
        site: The site.
        nodes: Their number.
        users: The clusters.
    """

    site: str
    nodes: int
    users: frozenset[model.JobId]


def pools(idle: Mapping[str, int], sites: Mapping[Cluster, Collection[str]]) -> list[Pool]:
    """Return the pools where a cluster may use either all or none of a site.

    Args:
        idle: Idle nodes by site.
        sites: Where each cluster may have nodes.
    """
    return [
        Pool(
            site=site, nodes=nodes, users=frozenset(cluster.name for cluster, usable in sites.items() if site in usable)
        )
        for site, nodes in idle.items()
    ]


def without(idle: Collection[Pool], needed: int) -> list[Pool]:
    """Return what is left of the pools once nodes are kept for submissions: of the largest pool first, one by one."""
    if needed >= sum(pool.nodes for pool in idle):
        return [dataclasses.replace(pool, nodes=0) for pool in idle]
    left = [(-pool.nodes, pool.site, sorted(pool.users), pool) for pool in idle]
    heapq.heapify(left)
    for _ in range(needed):
        nodes, site, users, pool = left[0]
        heapq.heapreplace(left, (nodes + 1, site, users, pool))
    return [dataclasses.replace(pool, nodes=-nodes) for nodes, _, _, pool in left]


def split(
    idle: Collection[Pool], clusters: Collection[Cluster], partition: Partition
) -> dict[model.JobId, dict[str, int]]:
    """Return the part of each cluster.

    Args:
        idle: Idle nodes; no cluster need be able to use them.
        clusters: All that take part.
        partition: All sites together, or each by itself.

    Returns:
        Nodes by site for each cluster, no more than it may take. Without that bound they add up to the idle nodes that
        some cluster may use.
    """
    known = {cluster.name: cluster for cluster in clusters}
    parts: dict[model.JobId, dict[str, int]] = {name: {} for name in known}
    dealt: collections.Counter[tuple[str, model.JobId]] = collections.Counter()
    room = {name: cluster.growth for name, cluster in known.items()}

    def turn(among: str, name: model.JobId) -> tuple[int, float, model.JobId]:
        """Return a place in the line: by rounds, each of as many nodes as the weight says, and then by what it has."""
        cluster, given = known[name], dealt[among, name]
        return given // cluster.weight, (cluster.nodes - cluster.first_core_nodes + given) / cluster.weight, name

    # Pools that fewest may use first: with the others the rest can still be evened out.
    for pool in sorted(idle, key=lambda pool: (len(pool.users), pool.site, sorted(pool.users))):
        among = pool.site if partition is Partition.PER_SITE else ""
        line = [turn(among, name) for name in pool.users if room[name]]
        heapq.heapify(line)
        for _ in range(pool.nodes if line else 0):
            _, _, name = line[0]
            parts[name][pool.site] = parts[name].get(pool.site, 0) + 1
            dealt[among, name] += 1
            room[name] -= 1
            if room[name]:
                heapq.heapreplace(line, turn(among, name))
            else:
                heapq.heappop(line)
            if not line:
                break
    return parts


def reclaims(needed: int, clusters: Sequence[Cluster]) -> dict[model.JobId, int]:
    """Return how many nodes each cluster is asked for, of those that are asked for any.

    Args:
        needed: Nodes that submissions wait for; those that leave already are taken off here.
        clusters: All of them.
    """
    weights = {cluster.name: cluster.weight for cluster in clusters}
    left = {cluster.name: cluster.transient_nodes for cluster in clusters}
    least = {cluster.name: cluster.transient_nodes - cluster.spare_nodes for cluster in clusters}
    needed -= sum(cluster.leaving_nodes for cluster in clusters)
    for _ in range(min(needed, sum(cluster.spare_nodes for cluster in clusters))):
        givers = [name for name in left if left[name] > least[name]]
        left[min(givers, key=lambda name: (-left[name] / weights[name], name))] -= 1
    asked = {cluster.name: cluster.transient_nodes - left[cluster.name] for cluster in clusters}
    return {name: count for name, count in asked.items() if count}
