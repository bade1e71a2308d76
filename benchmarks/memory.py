"""Memory and CPU of Boathouse's scheduler with many pods in view.

    python benchmarks/memory.py [--pods 10000] [--nodes 200]

The pods run on fake nodes before the scheduler starts. Printed are its resident memory before and after the first list
of all pods, the time from its start until it leads and knows all, and its CPU while pods come and go. About 2 minutes.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import support

if TYPE_CHECKING:
    import argparse

CHURN = 1000
LIMIT_MIB = 200


async def main(arguments: argparse.Namespace) -> None:
    """Fill the cluster, start the scheduler, look at it."""
    log = Path(tempfile.gettempdir()) / "boathouse-bench-memory.log"
    with support.cluster("memory", arguments.nodes) as cluster:
        async with support.bulk(cluster.kubeconfig) as pods:
            await pods.prepare()
            with support.boathouse(cluster.kubeconfig, log=log) as process:
                empty_mib = support.rss_mib(process.pid)
            support.say(f"==> {arguments.pods} pods")
            for begin in range(0, arguments.pods, 1000):
                names = range(begin, min(begin + 1000, arguments.pods))
                await pods.create([support.pod(f"p-{i:05}", "default-scheduler") for i in names])
                support.say(f"    {names[-1] + 1} created")
            started = time.perf_counter()
            with support.boathouse(cluster.kubeconfig, log=log) as process:
                ready_s, listed_s = time.perf_counter() - started, support.cpu_s(process.pid)
                await asyncio.sleep(5)
                settled_mib = support.rss_mib(process.pid)
                before_s = support.cpu_s(process.pid)
                await pods.create([support.pod(f"late-{i:05}", "default-scheduler") for i in range(CHURN)])
                await asyncio.sleep(10)
                per_pod_us = (support.cpu_s(process.pid) - before_s) / CHURN * 1e6
                peak_mib = support.rss_mib(process.pid)
    support.say(f"\nresident memory: {empty_mib:.0f} MiB without pods, {settled_mib:.0f} MiB with {arguments.pods}")
    support.say(f"after {CHURN} more pods came: {peak_mib:.0f} MiB (limit {LIMIT_MIB})")
    support.say(f"from start to leading with all in view: {ready_s:.1f} s, {listed_s:.1f} s of CPU")
    support.say(f"CPU for a pod of another scheduler that comes and runs: {per_pod_us:.0f} us (3 to 4 events)")
    if peak_mib > LIMIT_MIB:
        raise SystemExit(f"more than {LIMIT_MIB} MiB")


if __name__ == "__main__":
    asyncio.run(main(support.options(__doc__ or "", pods=10000, nodes=200)))
