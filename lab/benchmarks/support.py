"""Common parts of the scheduling benchmarks: a control plane with fake nodes, pods in bulk, timing by a watch."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from boathouse.cluster import catalogue, client, config, errors, retries
from boathouse_e2e.local.provider import LocalProvider
from boathouse_e2e.spec import ClusterSpec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

NAMESPACE = "bench"
AT_ONCE = 32
ROUND_LIMIT_S = 180
SETTLED_S = 2
FAST = ("--kube-api-qps=5000", "--kube-api-burst=5000")
ON_A_NODE = "spec.nodeName!="
ADDED = b'{"type":"ADDED"'
PATIENCE = retries.Backoff(base_s=0.5, attempts=10)
"""Up to a minute: the watch cache of a slow API server answers a list with `504 Too large resource version`."""


def say(text: str) -> None:
    """Print progress at once."""
    print(text, flush=True)


def options(description: str, **defaults: float | str) -> argparse.Namespace:
    """Read the command line: one option of the same type for each default."""
    parser = argparse.ArgumentParser(description=description)
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=type(value), default=value, help=f"(default {value!r})")
    return parser.parse_args()


@contextlib.contextmanager
def cluster(name: str, nodes: int, **shape: Any) -> Iterator[Any]:
    """Start a control plane with fake nodes and fast clients; end it afterwards.

    Args:
        name: Of the cluster.
        nodes: Number of nodes.
        shape: More fields of the `ClusterSpec`.
    """
    spec = ClusterSpec(
        name=f"{name}-{os.getpid()}",
        nodes=0,
        kwok_nodes=nodes,
        scheduler_args=FAST,
        controller_manager_args=FAST,
        **shape,
    )
    provider = LocalProvider()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # so that the cluster is taken down
    faulthandler.register(signal.SIGUSR2)
    say(f"==> control plane with {nodes} fake nodes")
    try:
        yield provider.up(spec)
    finally:
        provider.down(spec.name)


@contextlib.contextmanager
def boathouse(
    kubeconfig: Path, *arguments: str, log: Path, checkout: Path | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run Boathouse's scheduler as a separate process until the block ends; it is ready when this returns.

    Args:
        kubeconfig: The cluster.
        arguments: More arguments of `scheduler_process.py`.
        log: Where its standard error goes.
        checkout: Another checkout, with its own `.venv`, whose scheduler is meant.
    """
    python = checkout / ".venv/bin/python" if checkout else Path(sys.executable)
    there = checkout / "lab/benchmarks" if checkout else Path(__file__).resolve().parent
    if not there.is_dir():
        there = there.parents[1] / "benchmarks"  # where 0.1.0 has them
    program = there / "scheduler_process.py"
    with log.open("w") as errors_to:
        process = subprocess.Popen(
            [python, program, str(kubeconfig), *arguments],
            stdout=subprocess.PIPE,
            stderr=errors_to,
            text=True,
        )
        try:
            assert process.stdout is not None
            if process.stdout.readline().strip() != "ready":
                raise SystemExit(f"the scheduler did not start: see {log}")
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            process.wait(timeout=20)


def pod(name: str, scheduler: str, *, owner: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a small pod."""
    metadata: dict[str, Any] = {"name": name, "namespace": NAMESPACE, "labels": {"app": "bench"}}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(scheduler)}


def pod_spec(scheduler: str) -> dict[str, Any]:
    """Return the spec that all pods of the benchmarks have."""
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    return {
        "schedulerName": scheduler,
        "automountServiceAccountToken": False,
        "containers": [{"name": "task", "image": "none", "resources": resources}],
    }


class Bulk:
    """Pods by the thousand."""

    def __init__(self, api: client.ApiClient) -> None:
        self.api = api

    async def read_all(self, resource: catalogue.Resource[Any], *, fields: str = "") -> catalogue.Page[Any]:
        """Return all objects of the namespace; a list that fails is retried."""
        return await reading(lambda: self.api.list(resource, NAMESPACE, fields=fields))

    async def prepare(self) -> dict[str, Any]:
        """Make the namespace and an object to own pods; return the owner reference."""
        for kind, manifest, namespace in (
            (catalogue.NAMESPACES.untyped(), {"metadata": {"name": NAMESPACE}}, None),
            (_SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, NAMESPACE),
            (catalogue.CONFIG_MAPS, {"metadata": {"name": "owner"}}, NAMESPACE),
        ):
            with contextlib.suppress(errors.AlreadyExists):
                await self.api.create(kind, manifest, namespace)
        made = await self.api.get(catalogue.CONFIG_MAPS, "owner", NAMESPACE)
        uid = made["metadata"]["uid"]
        return {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "controller": True}

    async def create(self, manifests: Sequence[dict[str, Any]]) -> None:
        """Create pods, many at once."""
        await _all(self.api.create_pod(NAMESPACE, manifest) for manifest in manifests)

    async def clear(self) -> None:
        """Delete all pods, and wait until they are gone."""
        while (page := await self.read_all(catalogue.PODS)).items:
            await _all(self._delete(one.metadata.name) for one in page.items)

    async def _delete(self, name: str) -> None:
        with contextlib.suppress(errors.NotFound):
            await self.api.delete(catalogue.PODS, name, NAMESPACE, grace_period_s=0)

    async def node_of(self, name: str) -> str:
        """Return the node of a pod; empty while it has none."""
        return (await reading(lambda: self.api.get(catalogue.PODS, name, NAMESPACE))).spec.node_name

    async def count_events(self) -> int:
        """Return how many Scheduled events there are, and delete all."""
        page = await self.read_all(catalogue.EVENTS, fields="reason=Scheduled")
        await _all(self.api.delete(catalogue.EVENTS, one["metadata"]["name"], NAMESPACE) for one in page.items)
        return len(page.items)

    async def events_settled(self) -> None:
        """Wait until there has been no further Scheduled event for `SETTLED_S`."""
        before = -1
        while (count := len((await self.read_all(catalogue.EVENTS, fields="reason=Scheduled")).items)) != before:
            before = count
            await asyncio.sleep(SETTLED_S)

    @contextlib.asynccontextmanager
    async def stopwatch(self, count: int, *, limit_s: float = ROUND_LIMIT_S) -> AsyncIterator[Stopwatch]:
        """Watch until so many pods have a node; the block starts what is measured."""
        watch = Stopwatch(self, count)
        await watch.open()
        counting = asyncio.create_task(watch.follow())
        yield watch
        async with asyncio.timeout(limit_s):
            await counting


class Stopwatch:
    """Counts pods that have a node, and remembers when the last one came."""

    def __init__(self, pods: Bulk, count: int) -> None:
        self._pods, self._count = pods, count
        self._seen = 0
        self._revision = ""
        self._begin_s = time.perf_counter()
        self._end_s = 0.0

    def start(self) -> None:
        """From here on time counts."""
        self._begin_s = time.perf_counter()

    async def open(self) -> None:
        """Count what has a node already."""
        page = await self._pods.read_all(catalogue.PODS, fields=ON_A_NODE)
        self._seen, self._revision = len(page.items), page.metadata.resource_version

    async def follow(self) -> None:
        """Watch until all have a node; a watch that fails, or that the server ends, is opened again."""
        while self._seen < self._count:
            with contextlib.suppress(errors.ConnectionLost, errors.Gone, errors.ServerError):
                async with self._pods.api.watch(
                    catalogue.PODS, NAMESPACE, resource_version=self._revision, fields=ON_A_NODE
                ) as batches:
                    await self._count_lines(batches)
            if self._seen < self._count:
                await self.open()
        self._end_s = time.perf_counter()

    async def _count_lines(self, batches: AsyncIterator[list[bytes]]) -> None:
        async for lines in batches:
            self._seen += sum(line.startswith(ADDED) for line in lines)
            if self._seen >= self._count:
                return

    @property
    def rate(self) -> float:
        """Pods a second, from the start to the last."""
        return self._count / (self._end_s - self._begin_s)


@contextlib.asynccontextmanager
async def bulk(kubeconfig: Path) -> AsyncIterator[Bulk]:
    """Give a client for pods in bulk."""
    async with client.ApiClient(config.load(kubeconfig)) as api:
        yield Bulk(api)


def report(ours: list[float], theirs: list[float], what: str, them: str) -> None:
    """Print the medians and the ratio."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    say(f"\n{what}: Boathouse {statistics.median(ours):.0f}, {them} {statistics.median(theirs):.0f} (medians)")
    say(
        f"ratio {statistics.median(ratios):.2f} (median of {len(ratios)} pairs; {min(ratios):.2f} to {max(ratios):.2f})"
    )


async def cancel(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for its end."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def free_port() -> int:
    """Return a port that no process listens on, so that two benchmarks can run at the same time."""
    with socket.create_server(("", 0)) as listening:
        return int(listening.getsockname()[1])


def cpu_s(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mib(pid: int, *, peak: bool = False) -> float:
    """Return a process's resident memory in MiB; with `peak`, the most that it has been."""
    field = "VmHWM" if peak else "VmRSS"
    line = next(one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith(field))
    return int(line.split()[1]) / 1024


T = TypeVar("T")


async def reading(call: Callable[[], Awaitable[T]]) -> T:
    """Call what only reads; retry as the operator's informers do, for `PATIENCE` at most."""
    return await retries.retrying(call, idempotent=True, backoff=PATIENCE)


async def _all(calls: Any) -> None:
    """Await calls, many at once, in order of their making."""
    waiting = iter(calls)

    async def work() -> None:
        for call in waiting:
            await call

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())


_SERVICE_ACCOUNTS = catalogue.Resource(plural="serviceaccounts", kind="ServiceAccount", view=dict)
