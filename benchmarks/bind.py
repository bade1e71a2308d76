"""Pods bound per second: Boathouse's scheduler against kube-scheduler, on one API server and 200 fake nodes.

    python benchmarks/bind.py [--pods 2000] [--pairs 5] [--nodes 200]

Both schedulers run as processes of their own all the time and write a Scheduled event for each pod. In each round both
are stopped (SIGSTOP), the pods are created, and one of them goes on; the time from then until the last pod has its node
counts. Rounds alternate. About 3 minutes on two cores.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import support

from boathouse_e2e.local.provider import LocalProvider

if TYPE_CHECKING:
    import argparse
    import subprocess

ROUNDS = itertools.count(1)
NAMES = {"kube-scheduler": "default-scheduler", "Boathouse": "boathouse"}


class Schedulers:
    """The two schedulers, both stopped; one at a time goes on."""

    def __init__(self, cluster: str, ours: subprocess.Popen[str]) -> None:
        self._cluster, self.ours = cluster, ours
        for which in NAMES:
            self.signal(which, signal.SIGSTOP)

    def signal(self, which: str, number: signal.Signals) -> None:
        """Send one of them a signal."""
        if which == "Boathouse":
            self.ours.send_signal(number)
        else:
            LocalProvider().signal(self._cluster, which, number)


async def rate(which: str, both: Schedulers, pods: support.Bulk, owner: dict[str, Any], count: int) -> float:
    """Run one round and return pods per second."""
    prefix = f"p{next(ROUNDS)}"  # KWOK deletes by name, late: a name is used once
    await pods.create([support.pod(f"{prefix}-{i:05}", NAMES[which], owner=owner) for i in range(count)])
    used_s = support.cpu_s(both.ours.pid)
    async with pods.stopwatch(count) as watch:
        watch.start()
        both.signal(which, signal.SIGCONT)
    cpu = (
        f", {(support.cpu_s(both.ours.pid) - used_s) / count * 1e3:.2f} ms of CPU a pod" if which == "Boathouse" else ""
    )
    await asyncio.sleep(2)  # let the last events be written
    both.signal(which, signal.SIGSTOP)
    support.say(f"    {which:15} {watch.rate:6.0f} pods/s, {await pods.count_events()} Scheduled events{cpu}")
    await pods.clear()
    return watch.rate


async def main(arguments: argparse.Namespace) -> None:
    """Run all rounds and print the ratio."""
    log = Path(tempfile.gettempdir()) / "boathouse-bench-bind.log"
    with support.cluster("bind", arguments.nodes) as cluster:
        async with support.bulk(cluster.kubeconfig) as pods:
            owner = await pods.prepare()
            with support.boathouse(cluster.kubeconfig, log=log) as process:
                both = Schedulers(cluster.name, process)
                found: dict[str, list[float]] = {which: [] for which in NAMES}
                for pair in range(arguments.pairs):
                    support.say(f"==> pair {pair + 1} of {arguments.pairs}")
                    for which in sorted(NAMES, reverse=bool(pair % 2)):
                        found[which].append(await rate(which, both, pods, owner, arguments.pods))
    support.report(found["Boathouse"], found["kube-scheduler"], "pods bound per second", "kube-scheduler")


if __name__ == "__main__":
    asyncio.run(main(support.options(__doc__ or "", pods=2000, pairs=5, nodes=200)))
