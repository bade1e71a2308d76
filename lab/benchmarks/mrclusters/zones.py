"""Two clusters under load share two zones, of which one cluster may use the first only: both partitions of idle nodes.

Equipartition-All divides all idle nodes equally over the clusters, Equipartition-PerSite those of each zone. The
cluster `near` has nodes in the first zone only, `wide` in both. Both have equal weights, and work for more nodes than
there are. A cluster takes an offer whole, so that the first offers show the partition.
"""

from __future__ import annotations

import collections
import os
import time
from typing import TYPE_CHECKING, Final

from benchmarks.mrclusters import world

if TYPE_CHECKING:
    import argparse

    from benchmarks.mrclusters.modelled_clusters import Cluster

CORE: Final = 2
FIRST, SECOND = "first", "second"
GSP: Final = {"policy": "GSP", "growBy": 50, "shrinkBelowPercent": 1}
STABLE_S: Final = 300.0
LIMIT_S: Final = 3600.0


async def shared(arguments: argparse.Namespace, partition: str) -> dict[str, collections.Counter[str]]:
    """Return the transient nodes of each cluster by zone, when no more change for five minutes; print the offers."""
    nodes = {FIRST: arguments.first + 2 * CORE, SECOND: arguments.second}
    async with world.running(nodes, partition=partition) as around:
        clusters: dict[str, Cluster] = {}
        for name in ("near", "wide"):
            body = world.manifest(name, core=CORE, transient=arguments.first + arguments.second, policy="GSP")
            body["spec"] |= {"zones": [FIRST], "resizing": GSP}
            clusters[name] = await around.create(body)
        around.api.change("mrclusters", "demo/wide", {"spec": {"zones": [FIRST, SECOND]}})
        for cluster in clusters.values():
            cluster.hadoop.yarn.submit("load-1", [1e6] * 1000, time.monotonic())
        said: dict[str, str] = {}

        def is_stable() -> bool:
            for name in clusters:
                reason = around.status(f"demo/{name}").get("size", {}).get("reason", "")
                if reason != said.get(name, ""):
                    said[name] = reason
                    print(f"{partition:8}{name:6}{reason}")
            return min(time.monotonic() - cluster.changed_s for cluster in clusters.values()) > STABLE_S

        await around.until(is_stable, LIMIT_S, "sizes do not change any more")
        return {name: _by_zone(cluster) for name, cluster in clusters.items()}


def _by_zone(cluster: Cluster) -> collections.Counter[str]:
    pods = [pod for host, pod in cluster.pods.items() if host.startswith("t") and pod["spec"].get("nodeName")]
    return collections.Counter(pod["spec"]["nodeName"].partition("-")[0] for pod in pods)


async def main(arguments: argparse.Namespace) -> None:
    """Run both partitions."""
    first, second = arguments.first, arguments.second
    print(f"{first} idle nodes in the first zone, {second} in the second; near may use the first only")
    ratios = {}
    for partition in ("All", "PerSite"):
        found = await shared(arguments, partition)
        for name, zones in found.items():
            print(f"{partition:8}{name:6}{zones.total():4} nodes: {zones[FIRST]} first, {zones[SECOND]} second")
        ratios[partition] = found["near"].total() / max(1, found["wide"].total())
    print(f"nodes of near over those of wide: {ratios['PerSite']:.2f} with PerSite, {ratios['All']:.2f} with All")
    print(f"load {os.getloadavg()[0]:.1f}")
