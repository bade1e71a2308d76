"""Pods bound per second: Boathouse's scheduler against kube-scheduler, on one API server and 200 fake nodes.

    python -m benchmarks.bind [--pods 2000] [--pairs 5] [--nodes 200] [--only boathouse]
    python -m benchmarks.bind --pods 10000 --nodes 1000 --apart 2000

Both schedulers run as processes of their own all the time and write a Scheduled event for each pod. In each round both
are stopped (SIGSTOP), the pods are created, and one of them goes on; the time from then until the last pod has its node
counts. Rounds alternate. About 3 minutes on two cores.

Watch events of kube-scheduler's rounds reach Boathouse while it is stopped, and it handles them in its next round. With
`--only boathouse` there are no rounds of kube-scheduler, so the CPU time is that of Boathouse's own pods.

CPU time counts until no Scheduled event has come for 2 s, because Boathouse writes binds before events. With `--apart`,
so many of the pods exclude their like from their node, in groups of 20, and each pair has one more round of Boathouse,
without them: the ratio of CPU time per pod is printed too.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import support
from boathouse_e2e.local.provider import LocalProvider

if TYPE_CHECKING:
    import argparse
    import subprocess

ROUNDS = itertools.count(1)
GROUP, MOST_CPU = 20, 1.3
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


def pod(name: str, scheduler: str, owner: dict[str, Any], group: int | None) -> dict[str, Any]:
    """Return a pod; one of a group excludes the others from its node."""
    found = support.pod(name, scheduler, owner=owner)
    if group is not None:
        found["metadata"]["labels"]["group"] = f"g{group}"
        like = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"group": f"g{group}"}}}
        found["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [like]}}
    return found


async def run_round(
    which: str, both: Schedulers, pods: support.Bulk, owner: dict[str, Any], count: int, apart: int = 0
) -> tuple[float, float]:
    """Run one round; return pods per second, and Boathouse's milliseconds of CPU for a pod."""
    prefix = f"p{next(ROUNDS)}"  # KWOK deletes by name, late: a name is used once
    groups = [i // GROUP if i < apart else None for i in range(count)]
    await pods.create([pod(f"{prefix}-{i:05}", NAMES[which], owner, group) for i, group in enumerate(groups)])
    used_s = support.cpu_s(both.ours.pid)
    async with pods.stopwatch(count) as watch:
        watch.start()
        both.signal(which, signal.SIGCONT)
    bound_ms = (support.cpu_s(both.ours.pid) - used_s) / count * 1e3
    await pods.events_settled()
    cpu_ms = (support.cpu_s(both.ours.pid) - used_s) / count * 1e3
    cpu = f", {cpu_ms:.2f} ms of CPU a pod, {bound_ms:.2f} ms until the last bind" if which == "Boathouse" else ""
    both.signal(which, signal.SIGSTOP)
    support.say(f"    {which:15} {watch.rate:6.0f} pods/s, {await pods.count_events()} Scheduled events{cpu}")
    await pods.clear()
    return watch.rate, cpu_ms


def asked(only: str) -> list[str]:
    """Return the schedulers that have rounds."""
    chosen = [which for which in NAMES if only.lower() in {"", which.lower()}]
    if not chosen:
        raise SystemExit(f"--only {only}: no such scheduler; set it to one of {', '.join(NAMES).lower()}")
    return chosen


async def main(arguments: argparse.Namespace) -> None:
    """Run all rounds; print the ratio, or the medians of one scheduler."""
    schedulers = asked(arguments.only)
    log = Path(tempfile.gettempdir()) / "boathouse-bench-bind.log"
    with support.cluster("bind", arguments.nodes) as cluster:
        async with support.bulk(cluster.kubeconfig) as pods:
            owner = await pods.prepare()
            with support.boathouse(cluster.kubeconfig, log=log) as process:
                both = Schedulers(cluster.name, process)
                found: dict[str, list[tuple[float, float]]] = {which: [] for which in schedulers}
                plain: list[float] = []
                count, apart = arguments.pods, arguments.apart
                for pair in range(arguments.pairs):
                    support.say(f"==> pair {pair + 1} of {arguments.pairs}")
                    for which in sorted(schedulers, reverse=bool(pair % 2)):
                        found[which].append(await run_round(which, both, pods, owner, count, apart))
                    if apart and "Boathouse" in schedulers:
                        support.say("    without anti-affinity:")
                        plain.append((await run_round("Boathouse", both, pods, owner, count))[1])
    rates = {which: [rate for rate, _ in rounds] for which, rounds in found.items()}
    if "Boathouse" in found:
        used = sorted(cpu_ms for _, cpu_ms in found["Boathouse"])
        support.say(f"\n{statistics.median(used):.2f} ms of CPU a pod ({used[0]:.2f} to {used[-1]:.2f})")
        if plain:
            ratios = [cpu_ms / without for (_, cpu_ms), without in zip(found["Boathouse"], plain, strict=True)]
            support.say(f"{statistics.median(ratios):.2f} times that without anti-affinity (at most {MOST_CPU})")
    if len(rates) == len(NAMES):
        support.report(rates["Boathouse"], rates["kube-scheduler"], "pods bound per second", "kube-scheduler")
    else:
        support.say(f"{schedulers[0]}: {statistics.median(rates[schedulers[0]]):.0f} pods/s (median)")


if __name__ == "__main__":
    asyncio.run(main(support.options(__doc__ or "", pods=2000, pairs=5, nodes=200, only="", apart=0)))
