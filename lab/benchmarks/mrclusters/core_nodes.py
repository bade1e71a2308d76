"""GGDP adds core nodes to a cluster with data, and `core.maximum` is lowered: what shrinking costs, and what is lost.

The NameNode of the model copies 10 blocks a second; blocks have 128 MiB. A core node whose pod is deleted loses its
disk. The baseline is copying all that the leaving nodes store, at the same rate.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

from benchmarks.mrclusters import world
from boathouse_e2e.hadoop_master import COPIES_PER_S
from boathouse_e2e.hadoop_model import stores

if TYPE_CHECKING:
    import argparse

BLOCK_GB: Final = 128 * 1024**2 / 1e9
LIMIT_S: Final = 4 * 3600.0
REPLICATION: Final = 2
KEY: Final = "demo/data"


async def main(arguments: argparse.Namespace) -> None:
    """Grow, write, shrink, and print."""
    core, most = arguments.core, arguments.core + arguments.added
    body = world.manifest("data", core=core, core_maximum=most, policy="GGDP", hdfs={"replication": REPLICATION})
    async with world.running({"z": most}) as around:
        cluster = await around.create(body)
        hdfs, yarn = cluster.hadoop.hdfs, cluster.hadoop.yarn
        yarn.submit("load-1", [1e6] * 8 * most, time.monotonic())
        grown_s = await around.until(lambda: len(cluster.up) == most, LIMIT_S, f"{most} core nodes are up")
        print(f"GGDP: from {core} to {most} core nodes in {grown_s:.0f} s")
        for application in list(yarn.applications):
            yarn.kill(application, time.monotonic())
        for _ in range(arguments.blocks):
            hdfs.write(set(filter(stores, cluster.up)))
        leaving = sorted(cluster.up, key=lambda host: int(host[1:]))[core:]
        held, before = sum(len(hdfs.disks[host]) for host in leaving), hdfs.copied
        around.api.change("mrclusters", KEY, {"spec": {"core": {"maximum": core}, "resizing": {"policy": "Static"}}})
        shrunk_s = await around.until(lambda: len(cluster.workers) == core, LIMIT_S, f"{core} core nodes are left")
        await around.until(lambda: not hdfs.excluded, LIMIT_S, "the exclude file is empty")
        copied = hdfs.copied - before
        left = sorted(cluster.up, key=lambda host: int(host[1:]))
        lacking, missing = len(hdfs.lacking(set(left))), len(hdfs.missing(set(left))) + cluster.lost
    alone_s = held / COPIES_PER_S
    print(
        f"core.maximum lowered to {core}: {', '.join(leaving)} left in {shrunk_s:.0f} s, {shrunk_s / alone_s:.2f} "
        f"times the {alone_s:.0f} s of copying alone; {copied * BLOCK_GB:.1f} GB copied, {copied / held:.2f} times the "
        f"{held * BLOCK_GB:.1f} GB that they stored"
    )
    print(f"{missing} blocks without a replica, {lacking} with too few; left: {', '.join(left)}")
    print(f"load {os.getloadavg()[0]:.1f}")
    raise SystemExit(1 if missing or lacking else 0)
