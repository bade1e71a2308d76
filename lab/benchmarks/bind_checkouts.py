"""CPU time for a bound pod: this checkout's scheduler against another checkout's, in alternating rounds.

    python -m benchmarks.bind_checkouts BASE_DIRECTORY [--pods 2000] [--pairs 5] [--nodes 100]

BASE_DIRECTORY is another checkout of this repository, with its own `.venv`. All rounds are on one API server. In each,
a new process of one checkout becomes leader, binds 200 pods that do not count, and then the pods, which are created
while it is stopped (SIGSTOP). CPU time counts until no Scheduled event has come for 2 s. About 3 minutes on two cores.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import signal
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import support
from boathouse.cluster import catalogue, errors

if TYPE_CHECKING:
    import subprocess

ROUNDS = itertools.count(1)
WARM_UP = 200


async def bind(
    process: subprocess.Popen[str], pods: support.Bulk, owner: dict[str, Any], count: int
) -> tuple[float, float]:
    """Let a stopped scheduler bind pods, and stop it; return its milliseconds of CPU for a pod, and pods per second."""
    prefix = f"p{next(ROUNDS)}"  # KWOK deletes by name, late: a name is used once
    await pods.create([support.pod(f"{prefix}-{i:05}", "boathouse", owner=owner) for i in range(count)])
    used_s = support.cpu_s(process.pid)
    async with pods.stopwatch(count) as watch:
        watch.start()
        process.send_signal(signal.SIGCONT)
    await pods.events_settled()
    cpu_ms = (support.cpu_s(process.pid) - used_s) / count * 1e3
    process.send_signal(signal.SIGSTOP)
    await pods.count_events()
    await pods.clear()
    return cpu_ms, watch.rate


async def main(base: Path, arguments: argparse.Namespace) -> None:
    """Run all rounds; print the medians and the ratio."""
    log = Path(tempfile.gettempdir()) / "boathouse-bench-bind-checkouts.log"
    checkouts = {"base": base, "this": None}
    found: dict[str, list[float]] = {name: [] for name in checkouts}
    with support.cluster("bind-checkouts", arguments.nodes) as cluster:
        async with support.bulk(cluster.kubeconfig) as pods:
            owner = await pods.prepare()
            for pair in range(arguments.pairs):
                for name in sorted(checkouts, reverse=bool(pair % 2)):
                    with contextlib.suppress(errors.NotFound):  # so that nobody waits for its end
                        await pods.api.delete(catalogue.LEASES, "boathouse", "default")
                    with support.boathouse(cluster.kubeconfig, log=log, checkout=checkouts[name]) as process:
                        process.send_signal(signal.SIGSTOP)
                        await bind(process, pods, owner, WARM_UP)
                        cpu_ms, rate = await bind(process, pods, owner, arguments.pods)
                    found[name].append(cpu_ms)
                    support.say(f"    {name}: {cpu_ms:.3f} ms of CPU a pod, {rate:.0f} pods/s")
    ratios = sorted(this / base for base, this in zip(found["base"], found["this"], strict=True))
    this, other = statistics.median(found["this"]), statistics.median(found["base"])
    support.say(f"\n{this:.3f} ms of CPU a pod, base {other:.3f} ms (medians)")
    support.say(
        f"ratio {statistics.median(ratios):.2f} (median of {len(ratios)} pairs; {ratios[0]:.2f} to {ratios[-1]:.2f})"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("base", type=Path, help="the other checkout")
    for option, default in (("--pods", 2000), ("--pairs", 5), ("--nodes", 100)):
        parser.add_argument(option, type=int, default=default)
    given = parser.parse_args()
    asyncio.run(main(given.base.resolve(), given))
