"""The whole operator under load: 10,000 pods on 1,000 fake nodes, against kube-scheduler on the same API server.

    python -m benchmarks.load [--pods 10000] [--pairs 1] [--nodes 1000]
    python -m benchmarks.load --profiles fair,boathouse [--pods 10000] [--pairs 1] [--nodes 1000]

Binding: as in bind.py, both schedulers are stopped (SIGSTOP) while the pods are created, and one of them goes on; the
time until the last pod has its node counts. Here Boathouse is the operator itself (`python -m boathouse`, outside the
cluster, with an administrator's credentials). Then, with the pods bound: its memory; the time from the start of a new
process in place of a killed one to its first bind; and the time from the SIGKILL of a leader, with the default Lease,
to the first bind of its stand-by. About 10 minutes on two cores.

With `--profiles` the operator binds the same pods with each profile in turn, and the others are compared with the first
one: CPU time a pod, of the operator's process alone; time from restart to first bind; peak memory. All nodes report the
address of a server that answers as a kubelet of 110 pods; profiles that use measurements of nodes read it. `idle` is
the CPU time a second before the pods come, most of it for that.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import kubelet_metrics, support
from boathouse.cluster import catalogue
from boathouse.services.instruments import kubelet_client
from boathouse_e2e.local.provider import LocalProvider

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Iterator

CRDS = Path(__file__).parents[2] / "crds"
SYSTEM = "boathouse-system"
LEAD_WITHIN_S = 180
IDLE_S, RESTARTS = 20, 3
PODS_OF_A_KUBELET = 110
CPU_RATIO_LIMIT, RESTART_RATIO_LIMIT = 1.5, 1.3
RSS_LIMIT_MIB, RESTART_LIMIT_S, FAILOVER_LIMIT_S, RATIO_AIM = 250, 10, 20, 0.8
PATIENT = {"durationSeconds": 3600, "renewDeadlineSeconds": 3000}  # it is stopped between rounds
ROUNDS = itertools.count(1)


def free_ports() -> Iterator[int]:
    """Yield ports that no process listens on."""
    while True:
        with socket.create_server(("", 0)) as server:
            port = server.getsockname()[1]
        yield port


PORTS = free_ports()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """A process of the operator."""

    process: subprocess.Popen[bytes]
    metrics_port: int
    health_port: int

    @property
    def leads(self) -> bool:
        """Whether it leads and has listed all."""
        scheduling = "boathouse_leader 1.0" in _get(self.metrics_port, "metrics")
        return scheduling and _get(self.health_port, "readyz") == "ok\n"


def _get(port: int, path: str) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=5) as answer:
            return str(answer.read().decode())
    except (urllib.error.URLError, OSError):
        return ""


@contextlib.contextmanager
def operator(
    folder: Path, kubeconfig: Path, identity: str, lease: dict[str, int] | None = None, **settings: Any
) -> Iterator[Operator]:
    """Run the operator until the block ends."""
    config = folder / f"{identity}.json"
    config.write_text(json.dumps({"namespace": SYSTEM, "lease": lease or {}, **settings}))
    ports = {name: next(PORTS) for name in ("metrics", "health", "progress")}
    command = [sys.executable, "-m", "boathouse", f"--config={config}", f"--kubeconfig={kubeconfig}"]
    command += [f"--identity={identity}", *(f"--{name}-port={port}" for name, port in ports.items())]
    with (folder / f"{identity}.log").open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        yield Operator(process=process, metrics_port=ports["metrics"], health_port=ports["health"])
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait(timeout=30)


async def leading(one: Operator) -> Operator:
    """Wait until an operator leads."""
    deadline = time.monotonic() + LEAD_WITHIN_S
    while not await asyncio.to_thread(lambda: one.leads):
        if one.process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("the operator did not come to lead: see the logs in the temporary folder")
        await asyncio.sleep(0.2)
    return one


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a profile costs: CPU time a pod, CPU time a second before the pods came, peak memory."""

    cpu_ms: float
    idle_ms: float
    peak_mib: float


class Load:
    """The rounds, on one cluster."""

    def __init__(self, cluster: Any, pods: support.Bulk, owner: dict[str, Any], folder: Path, count: int) -> None:
        self._cluster, self._pods, self._owner, self._folder, self._count = cluster, pods, owner, folder, count
        self.rss_mib = 0.0

    def operator(self, identity: str, lease: dict[str, int] | None = None, **settings: Any) -> Any:
        """Run an operator on the cluster."""
        return operator(self._folder, self._cluster.kubeconfig, identity, lease, **settings)

    async def rate(self, scheduler: str, resume: Any, stop: Any) -> float:
        """Create the pods while the scheduler stands still, let it go, and return pods per second."""
        prefix = f"p{next(ROUNDS)}"  # KWOK deletes by name, late: a name is used once
        for begin in range(0, self._count, 1000):
            names = range(begin, min(begin + 1000, self._count))
            await self._pods.create([support.pod(f"{prefix}-{i:05}", scheduler, owner=self._owner) for i in names])
        support.say(f"    {self._count} pods created for {scheduler} (load {os.getloadavg()[0]:.0f})")
        async with self._pods.stopwatch(self._count, limit_s=1200) as watch:
            watch.start()
            resume()
        stop()
        support.say(f"    {scheduler:17} {watch.rate:6.0f} pods/s (load {os.getloadavg()[0]:.0f})")
        return watch.rate

    async def first_bind_s(self, name: str) -> float:
        """Create a pod, and return the seconds from the call to its node."""
        began = time.monotonic()
        await self._pods.create([support.pod(name, "boathouse", owner=self._owner)])
        while not await self._pods.node_of(name):
            if time.monotonic() - began > LEAD_WITHIN_S:
                raise SystemExit(f"{name} was not bound within {LEAD_WITHIN_S} s")
            await asyncio.sleep(0.05)
        return time.monotonic() - began

    async def bind(self, pairs: int) -> list[tuple[float, float]]:
        """Run the rounds; the pods of the last one of Boathouse's stay."""
        provider, name, found = LocalProvider(), self._cluster.name, []
        provider.signal(name, "kube-scheduler", signal.SIGSTOP)
        with self.operator("bench", PATIENT) as ours:
            await leading(ours)
            ours.process.send_signal(signal.SIGSTOP)
            for pair in range(pairs):
                support.say(f"==> pair {pair + 1} of {pairs}")
                theirs = await self.rate(
                    "default-scheduler",
                    lambda: provider.signal(name, "kube-scheduler", signal.SIGCONT),
                    lambda: provider.signal(name, "kube-scheduler", signal.SIGSTOP),
                )
                await self._pods.clear()
                used_s = support.cpu_s(ours.process.pid)
                mine = await self.rate("boathouse", lambda: ours.process.send_signal(signal.SIGCONT), lambda: None)
                cpu_ms = (support.cpu_s(ours.process.pid) - used_s) / self._count * 1e3
                support.say(f"    {cpu_ms:.2f} ms of CPU a pod; resident {support.rss_mib(ours.process.pid):.0f} MiB")
                found.append((mine, theirs))
                if pair + 1 < pairs:
                    await asyncio.sleep(5)  # let the last events be written
                    ours.process.send_signal(signal.SIGSTOP)
                    await self._pods.clear()
            await asyncio.sleep(10)
            self.rss_mib = support.rss_mib(ours.process.pid)
            support.say(f"==> resident memory with {self._count} pods bound: {self.rss_mib:.0f} MiB")
        return found

    async def restart_s(self, **settings: Any) -> float:
        """Return the seconds from the start of a process, in place of one that was killed, to its first bind."""
        with self.operator("bench", PATIENT, **settings) as ours:
            passed_s = await self.first_bind_s(f"after-restart-{next(ROUNDS)}")
            used_s = support.cpu_s(ours.process.pid)
        support.say(f"    {passed_s:.1f} s from start to first bind, {used_s:.1f} s of CPU")
        return passed_s

    async def failover_s(self) -> float:
        """Return the seconds from the SIGKILL of a leader to the first bind of its stand-by."""
        self._cluster.run("delete", "lease", "boathouse", "-n", SYSTEM)
        with self.operator("first") as first:
            await leading(first)
            with self.operator("second"):
                await self.first_bind_s("before-failover")
                await asyncio.sleep(10)  # the stand-by has seen the Lease renewed
                first.process.kill()
                return await self.first_bind_s("after-failover")

    async def cost(self, **settings: Any) -> Cost:
        """Bind the pods, which are created while the operator stands still; they stay."""
        await self._pods.clear()
        with self.operator("bench", PATIENT, **settings) as ours:
            process = (await leading(ours)).process
            listed_s = support.cpu_s(process.pid)
            await asyncio.sleep(IDLE_S)
            idle_s = support.cpu_s(process.pid)
            process.send_signal(signal.SIGSTOP)
            await self.rate("boathouse", lambda: process.send_signal(signal.SIGCONT), lambda: None)
            await asyncio.sleep(5)  # let the last events be written
            return Cost(
                cpu_ms=(support.cpu_s(process.pid) - idle_s) / self._count * 1e3,
                idle_ms=(idle_s - listed_s) / IDLE_S * 1e3,
                peak_mib=support.rss_mib(process.pid, peak=True),
            )


async def compare(load: Load, profiles: list[str], pairs: int, signals: dict[str, Any]) -> dict[str, bool]:
    """Measure the profiles in turn; return what all but the first pass."""
    costs: dict[str, list[Cost]] = {name: [] for name in profiles}
    restarts_s: dict[str, list[float]] = {name: [] for name in profiles}
    for name in profiles * pairs:
        costs[name].append(cost := await load.cost(profile=name, signals=signals))
        support.say(f"==> {name}: {cost.cpu_ms:.2f} ms of CPU a pod, idle {cost.idle_ms:.0f} ms a second")
    for name in profiles * RESTARTS:
        support.say(f"==> restart with {name}")
        restarts_s[name].append(await load.restart_s(profile=name, signals=signals))
    passed: dict[str, bool] = {}
    first = profiles[0]
    for name in profiles[1:]:
        cpu = statistics.median(ours.cpu_ms / base.cpu_ms for ours, base in zip(costs[name], costs[first], strict=True))
        restart = statistics.median(restarts_s[name]) / statistics.median(restarts_s[first])
        peak_mib = max(cost.peak_mib for cost in costs[name])
        passed |= {
            f"{name}: CPU a pod {cpu:.2f} times {first}'s (limit {CPU_RATIO_LIMIT})": cpu <= CPU_RATIO_LIMIT,
            f"{name}: restart {restart:.2f} times {first}'s (limit {RESTART_RATIO_LIMIT})": (
                restart <= RESTART_RATIO_LIMIT
            ),
            f"{name}: peak memory {peak_mib:.0f} MiB (limit {RSS_LIMIT_MIB})": peak_mib <= RSS_LIMIT_MIB,
        }
    return passed


@contextlib.asynccontextmanager
async def readable_nodes(cluster: Any, pods: support.Bulk, folder: Path) -> AsyncIterator[dict[str, Any]]:
    """Let all nodes report the address of one server that answers as a kubelet; give the setting that reads it."""
    cluster.run("create", "serviceaccount", kubelet_client.ACCOUNT, "-n", SYSTEM)
    address = {"addresses": [{"type": "InternalIP", "address": kubelet_metrics.ADDRESS}]}
    for node in (await pods.api.list(catalogue.NODES)).items:
        await pods.api.patch_status(catalogue.NODES, node.metadata.name, address)
    with kubelet_metrics.kubelets(1, PODS_OF_A_KUBELET) as ((port,), pem):
        (ca_file := folder / "kubelets.crt").write_text(pem)
        yield {"kubelets": {"enabled": True, "port": port, "caFile": str(ca_file)}}


async def against_kube_scheduler(load: Load, pairs: int) -> dict[str, bool]:
    """Measure Boathouse and kube-scheduler in turn; return what Boathouse passes."""
    found = await load.bind(pairs)
    support.say("==> restart")
    restart_s = await load.restart_s()
    failover_s = await load.failover_s()
    support.say(f"==> from SIGKILL of the leader to the first bind of its stand-by: {failover_s:.1f} s")
    support.report(
        [ours for ours, _ in found], [theirs for _, theirs in found], "pods bound per second", "kube-scheduler"
    )
    return {
        f"resident memory {load.rss_mib:.0f} MiB (limit {RSS_LIMIT_MIB})": load.rss_mib < RSS_LIMIT_MIB,
        f"restart to first bind {restart_s:.1f} s (limit {RESTART_LIMIT_S})": restart_s < RESTART_LIMIT_S,
        f"failover {failover_s:.1f} s (limit {FAILOVER_LIMIT_S})": failover_s < FAILOVER_LIMIT_S,
        f"ratio at least {RATIO_AIM}": min(a / b for a, b in found) >= RATIO_AIM,
    }


async def main(arguments: argparse.Namespace) -> None:
    """Run all, print all, and fail where a limit is passed."""
    folder = Path(tempfile.mkdtemp(prefix="boathouse-bench-load-"))
    support.say(f"==> logs in {folder}")
    with support.cluster("load", arguments.nodes) as cluster:
        cluster.run("create", "namespace", SYSTEM)
        cluster.run("apply", "--server-side", "-f", str(CRDS))
        async with support.bulk(cluster.kubeconfig) as pods:
            load = Load(cluster, pods, await pods.prepare(), folder, arguments.pods)
            if arguments.profiles:
                async with readable_nodes(cluster, pods, folder) as signals:
                    passed = await compare(load, arguments.profiles.split(","), arguments.pairs, signals)
            else:
                passed = await against_kube_scheduler(load, arguments.pairs)
    for text, holds in passed.items():
        support.say(f"{'ok     ' if holds else 'MISSED '} {text}")
    raise SystemExit(0 if all(passed.values()) else 1)


if __name__ == "__main__":
    asyncio.run(main(support.options(__doc__ or "", pods=10000, pairs=1, nodes=1000, profiles="")))
