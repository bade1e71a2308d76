"""Overhead of Boathouse: CPU time, memory and durations for a job of thousands of empty tasks on fake nodes.

    python -m benchmarks.noop_job [--maps 5000] [--reduces 100] [--nodes 40] [--picture noop-job.svg]

A real API server with the chart's roles and policies; the operator is a separate process with its own account; KWOK
starts pods, and the fault tests' model of kubelets ends them as soon as they run. All figures but the operator's CPU
and memory are taken from the API server's audit log. About 3 minutes on two cores of its
own, four times as long where others work there too.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks import noop_audit, noop_picture, support
from boathouse.cluster import catalogue, client, config
from boathouse.services.mrjob.model import MRJOBS
from boathouse_e2e import kubelets, lab
from boathouse_e2e.spec import ClusterSpec

NAME = "noop"
FINAL = ("Succeeded", "Failed")
LEAD_WITHIN_S = 60
WRITES_AIM = 6.0
QUIET_S = 600  # nodes that renew their leases seldom: KWOK starts all pods of a node anew when it was late with one
PARTS = {
    "scheduling cycles": "boathouse_scheduling_cycle_duration_seconds_sum",
    "looks at the job": "boathouse_reconcile_busy_seconds_total",
}


class Meter:
    """The operator's own figures."""

    def __init__(self, operator: lab.Operator) -> None:
        self._operator = operator
        self.rss_mib = 0.0

    def read(self) -> dict[str, float]:
        """CPU seconds so far, and seconds by part."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._operator.metrics_port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        known = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {part: float(known[name]) for part, name in PARTS.items()} | {"CPU": support.cpu_s(self._operator.pid)}

    async def watch_memory(self) -> None:
        """Remember the largest resident size, until cancelled."""
        while self._operator.lives:
            self.rss_mib = max(self.rss_mib, support.rss_mib(self._operator.pid))
            await asyncio.sleep(0.5)


async def leading(place: lab.Lab, operator: lab.Operator) -> None:
    """Wait until the operator leads and is ready for jobs."""
    deadline = time.monotonic() + LEAD_WITHIN_S
    while '"became leader"' not in operator.log.read_text():
        if not operator.lives or time.monotonic() > deadline:
            raise SystemExit(f"the operator did not come to lead: see {place.folder}")
        await asyncio.sleep(0.2)
    await asyncio.sleep(3)  # its first lists


async def status(api: client.ApiClient) -> dict[str, Any]:
    """Return the job's status."""
    return (await support.reading(lambda: api.get(MRJOBS, NAME, lab.NAMESPACE))).get("status") or {}


async def follow(api: client.ApiClient, operator: lab.Operator) -> None:
    """Wait for the job's end, and say how far it is."""
    said = ""
    while (now := await status(api)).get("phase") not in FINAL:
        if now.get("progress") != said:
            said = now.get("progress") or ""
            support.say(f"    {now.get('phase', 'Pending'):8} {said:32} load {os.getloadavg()[0]:.1f}")
        if not operator.lives:
            raise SystemExit("the operator ended")
        await asyncio.sleep(2)
    if now["phase"] == "Failed":
        raise SystemExit(f"the job failed: {now['conditions']}")


async def gone(api: client.ApiClient) -> None:
    """Delete the job, and wait until the garbage collector has its pods."""
    await api.delete(MRJOBS, NAME, lab.NAMESPACE)
    # The end of a garbage collection is not reported anywhere.
    while (await support.reading(lambda: api.list(catalogue.PODS, lab.NAMESPACE))).items:  # noqa: ASYNC110
        await asyncio.sleep(2)


async def measure(place: lab.Lab, shape: kubelets.Shape) -> noop_audit.Run:
    """Run the job once; the audit log from the submission to the end, and what the operator used."""
    admin = config.from_kubeconfig(place.cluster.kubeconfig)
    async with client.ApiClient(admin) as api, kubelets.running(api, place) as nodes:
        with place.operator() as operator:
            operator.start()
            nodes.operators.append(operator)
            await leading(place, operator)
            meter = Meter(operator)
            memory = asyncio.create_task(meter.watch_memory())
            skipped = place.audit_log.stat().st_size
            before, began_s = meter.read(), time.monotonic()
            made = await api.create(MRJOBS, shape.manifest(NAME), lab.NAMESPACE)
            nodes.jobs[made["metadata"]["uid"]] = kubelets.Ledger(shape)
            await follow(api, operator)
            elapsed_s, after = time.monotonic() - began_s, meter.read()
            ended = place.audit_log.stat().st_size
            await gone(api)
            memory.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await memory
    return noop_audit.Run(
        tasks=shape.maps + shape.reduces,
        elapsed_s=elapsed_s,
        rss_mib=meter.rss_mib,
        used_s={part: after[part] - before[part] for part in after},
        audit=noop_audit.read(place.audit_log, skipped, ended),
        cleaning=noop_audit.read(place.audit_log, ended, place.audit_log.stat().st_size),
    )


def tell(run: noop_audit.Run, load: float) -> bool:
    """Print all; whether the aim is met."""
    per_task_ms = 1000 / run.tasks
    support.say(
        f"\n==> {run.tasks} tasks in {run.elapsed_s:.1f} s: {run.elapsed_s * per_task_ms:.1f} ms of time a task"
    )
    support.say(f"    operator: {run.used_s['CPU'] * per_task_ms:.2f} ms of CPU a task, {run.rss_mib:.0f} MiB at most")
    for part in PARTS:
        support.say(f"      {part} kept its loop for {run.used_s[part] * per_task_ms:.2f} ms a task by the clock")
    support.say("\n==> where a map's time goes (ms)    median      90 %      mean")
    for name, values in run.stretches.items():
        support.say(f"    {name:32}{values.median:10.0f}{values.p90:10.0f}{values.mean:10.0f}")
    support.say("\n==> API writes a task, while the job ran")
    for (user, what), count in run.writes.most_common():
        support.say(f"    {count / run.tasks:6.3f}  {user:44} {what}")
    operators = sum(count for (user, _), count in run.writes.items() if user == noop_audit.OPERATOR)
    everything = sum(run.writes.values()) + sum(run.cleaning_writes.values())
    support.say(f"    {operators / run.tasks:6.3f}  the operator's")
    support.say(f"    {sum(run.cleaning_writes.values()) / run.tasks:6.3f}  when the job was deleted")
    met = everything / run.tasks <= WRITES_AIM
    support.say(f"{'ok     ' if met else 'MISSED '} {everything / run.tasks:.2f} in all (limit {WRITES_AIM:g})")
    support.say(f"        load {load:.1f}, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    return met


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--maps", type=int, default=5000, help="maps of the job (default: %(default)s)")
    parser.add_argument("--reduces", type=int, default=100, help="reduces of the job (default: %(default)s)")
    parser.add_argument("--nodes", type=int, default=40, help="fake nodes with 32 CPUs each (default: %(default)s)")
    parser.add_argument("--picture", type=Path, help="file for an SVG of the durations; requires the simulator extra")
    parser.add_argument("--folder", type=Path, help="empty folder for logs (default: a new temporary folder)")
    return parser.parse_args()


def main() -> None:
    """Start the cluster, run the job, tell."""
    asked = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # so that the cluster is taken down
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="boathouse-bench-noop-"))
    folder.mkdir(parents=True, exist_ok=True)
    support.say(f"==> {asked.maps} maps, {asked.reduces} reduces on {asked.nodes} fake nodes; logs in {folder}")
    spec = ClusterSpec(
        nodes=0,
        kwok_nodes=asked.nodes,
        controller_manager_args=support.FAST,
        node_monitor_grace_period_s=QUIET_S,
    )
    with lab.laboratory(folder, spec) as place:
        run = asyncio.run(measure(place, kubelets.Shape(maps=asked.maps, reduces=asked.reduces)))
    met = tell(run, os.getloadavg()[0])
    if asked.picture:
        noop_picture.draw(run, asked.picture)
        support.say(f"==> drawn: {asked.picture}")
    raise SystemExit(0 if met else 1)


if __name__ == "__main__":
    main()
