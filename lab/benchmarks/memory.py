"""Memory and CPU time of the operator in a cluster with many pods.

    python -m benchmarks.memory [--pods 10000] [--nodes 200]

The whole operator (`python -m boathouse`) runs outside the cluster with an administrator's credentials. The pods run on
fake nodes before it starts. Printed are its resident memory without and with them, the time from its start until it
leads and knows all, and its CPU while more pods come. About 2 minutes.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import support

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

CHURN = 1000
LIMIT_MIB = 200
READY_LIMIT_S = 120
CRDS = Path(__file__).parents[2] / "crds"
PORTS = {"metrics": 28080, "health": 28081, "progress": 28443}


@contextlib.contextmanager
def operator(kubeconfig: Path, log: Path) -> Iterator[int]:
    """Run the operator until the block ends; give its pid when it leads and has listed all."""
    ports = [f"--{name}-port={port}" for name, port in PORTS.items()]
    command = [sys.executable, "-m", "boathouse", f"--kubeconfig={kubeconfig}", "--identity=bench", *ports]
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            deadline = time.monotonic() + READY_LIMIT_S
            while "boathouse_leader 1.0" not in scrape() or scrape("health", "readyz") != "ok\n":
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"the operator did not come to lead: see {log}")
                time.sleep(0.2)
            yield process.pid
        finally:
            process.terminate()
            process.wait(timeout=30)


def scrape(port: str = "metrics", path: str = "metrics") -> str:
    """Return what the operator serves; nothing while it does not."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORTS[port]}/{path}", timeout=5) as answer:
            return str(answer.read().decode())
    except (urllib.error.URLError, OSError):
        return ""


async def main(arguments: argparse.Namespace) -> None:
    """Fill the cluster, start the operator, look at it."""
    log = Path(tempfile.gettempdir()) / "boathouse-bench-memory.log"
    with support.cluster("memory", arguments.nodes) as cluster:
        cluster.run("create", "namespace", "boathouse-system")
        cluster.run("apply", "--server-side", "-f", str(CRDS))
        async with support.bulk(cluster.kubeconfig) as pods:
            await pods.prepare()
            with operator(cluster.kubeconfig, log) as pid:
                await asyncio.sleep(5)
                empty_mib = support.rss_mib(pid)
            support.say(f"==> {arguments.pods} pods")
            for begin in range(0, arguments.pods, 1000):
                names = range(begin, min(begin + 1000, arguments.pods))
                await pods.create([support.pod(f"p-{i:05}", "default-scheduler") for i in names])
                support.say(f"    {names[-1] + 1} created")
            started = time.perf_counter()
            with operator(cluster.kubeconfig, log) as pid:
                ready_s, listed_s = time.perf_counter() - started, support.cpu_s(pid)
                await asyncio.sleep(5)
                settled_mib, before_s = support.rss_mib(pid), support.cpu_s(pid)
                await pods.create([support.pod(f"late-{i:05}", "default-scheduler") for i in range(CHURN)])
                await asyncio.sleep(10)
                per_pod_us = (support.cpu_s(pid) - before_s) / CHURN * 1e6
                peak_mib = support.rss_mib(pid)
    support.say(f"\nresident memory: {empty_mib:.0f} MiB without pods, {settled_mib:.0f} MiB with {arguments.pods}")
    support.say(f"after {CHURN} more pods came: {peak_mib:.0f} MiB (limit {LIMIT_MIB})")
    support.say(f"from start to leading with all in view: {ready_s:.1f} s, {listed_s:.1f} s of CPU")
    support.say(f"CPU for a pod of another scheduler that comes and runs: {per_pod_us:.0f} us (3 to 4 events)")
    if peak_mib > LIMIT_MIB:
        raise SystemExit(f"more than {LIMIT_MIB} MiB")


if __name__ == "__main__":
    asyncio.run(main(support.options(__doc__ or "", pods=10000, nodes=200)))
