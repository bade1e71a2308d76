"""Nodes on which tasks slow each other down: the simulator's model of rates, in real time, and kubelets that report it.

A task's run time follows from its memory, its CPU and its neighbours (`boathouse_sim.live.shared`). The kubelets answer
`/metrics/resource` and `/metrics/cadvisor` with what the model uses.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import datetime as dt
import time
from typing import TYPE_CHECKING, Any

from boathouse.services.progress import certificates
from boathouse_sim import conditions
from boathouse_sim.clock import Clock
from boathouse_sim.live.shared import SharedRates
from boathouse_sim.topology import Host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from boathouse_sim.live.rates import Activity, Gate

ADDRESS = "127.0.0.1"
STEP_S = 0.02
SAMPLE_S = 0.5
MB = 1_000_000
_NODE = "# TYPE node_cpu_usage_seconds_total counter\nnode_cpu_usage_seconds_total {cpu:.9f} {at}\n"
_PODS = "# TYPE pod_cpu_usage_seconds_total counter\n"
_POD = 'pod_cpu_usage_seconds_total{{namespace="{namespace}",pod="{name}"}} {cpu:.9f} {at}\n'
_DISK = "# TYPE container_fs_{way}_bytes_total counter\n"
_DISK_LINE = 'container_fs_{way}_bytes_total{{container="",device="/dev/sda",id="/"}} {value:.0f} {at}\n'


@dataclasses.dataclass(slots=True, eq=False, kw_only=True)
class Running:
    """A pod that uses its node.

    Attributes:
        activity: What it does now; None for nothing.
        cpu_s: CPU seconds that it has used.
    """

    node: str
    namespace: str
    name: str
    activity: Activity | None = None
    cpu_s: float = 0.0


class Nodes:
    """The rates of all tasks in real time.

    Args:
        names: Names of the nodes.
        cores: Of each.
    """

    def __init__(self, names: Sequence[str], cores: int) -> None:
        hosts = [Host(name=name, cores=float(cores)) for name in names]
        self._clock = Clock()
        self._rates = SharedRates(self._clock, hosts, conditions.Saturation())
        self._began_s = time.monotonic()
        self._pods: set[Running] = set()
        self._cpu_s: dict[str, float] = collections.defaultdict(float)
        self._disk_bytes: dict[str, float] = collections.defaultdict(float)
        self.names = tuple(names)

    async def run(self) -> None:
        """Let time pass until cancelled."""
        sampled_s = time.monotonic()
        while True:
            await asyncio.sleep(STEP_S)
            self._pass()
            if (now_s := time.monotonic()) - sampled_s >= SAMPLE_S:
                self._sample(now_s - sampled_s)
                sampled_s = now_s

    def _pass(self) -> None:
        """Let all happen that is due."""
        now_ms = round((time.monotonic() - self._began_s) * 1000)
        while (next_ms := self._clock.next_ms()) is not None and next_ms <= now_ms:
            self._clock.step()
            self._rates.settle()
        self._clock.now_ms = now_ms

    def _sample(self, passed_s: float) -> None:
        for pod in self._pods:
            if pod.activity is not None:
                cores, disk_mb, _, _ = self._rates.used(pod.activity)
                pod.cpu_s += cores * passed_s
                self._cpu_s[pod.node] += cores * passed_s
                self._disk_bytes[pod.node] += disk_mb * MB * passed_s

    # Pods

    def add(self, pod: Running) -> None:
        """Add a pod that does nothing."""
        self._pods.add(pod)

    def remove(self, pod: Running) -> None:
        """Remove a pod, with what it does."""
        self._pods.discard(pod)
        self.drop(pod)

    def drop(self, pod: Running) -> None:
        """End what a pod does, if anything."""
        activity, pod.activity = pod.activity, None
        if activity is not None and activity.slot >= 0:
            self._change(lambda: self._rates.stop(activity))

    def mapped(self, gate: Gate, copying: Iterable[Running]) -> None:
        """Let the output of one more map exist; after the last map, let the pods that copy it end."""
        self._pass()
        gate.more(self._clock.now_ms)
        for pod in copying:
            self.change(pod, lambda _activity: None)

    def start(self, pod: Running, activity: Activity) -> None:
        """Let a pod begin an activity."""
        pod.activity = activity
        self._change(lambda: self._rates.start(activity))

    def change(self, pod: Running, how: Callable[[Activity], None]) -> None:
        """Change the rate of what a pod does, or open its gate."""
        activity = pod.activity
        if activity is not None and activity.slot >= 0:
            self._change(lambda: self._at_rates(activity, how))

    def _at_rates(self, activity: Activity, how: Callable[[Activity], None]) -> None:
        self._rates.update(activity)
        how(activity)
        self._rates.update(activity)

    def left_ms(self, activity: Activity) -> float:
        """Work that is left."""
        self._pass()
        return self._rates.left_ms(activity)

    def _change(self, how: Callable[[], object]) -> None:
        self._pass()
        how()
        self._rates.settle()

    # Kubelets

    def resource_metrics(self, node: str) -> str:
        """Return the answer of `/metrics/resource`."""
        at = round(time.time() * 1000)
        pods = (pod for pod in self._pods if pod.node == node)
        lines = (_POD.format(namespace=pod.namespace, name=pod.name, cpu=pod.cpu_s, at=at) for pod in pods)
        return "# kubelet\n" + _NODE.format(cpu=self._cpu_s[node], at=at) + _PODS + "".join(lines) + "# end\n"

    def disk_metrics(self, node: str) -> str:
        """Return the answer of `/metrics/cadvisor`: half of the bytes are read, half written."""
        at, half = round(time.time() * 1000), self._disk_bytes[node] / 2
        blocks = (_DISK.format(way=way) + _DISK_LINE.format(way=way, value=half, at=at) for way in ("reads", "writes"))
        return "# kubelet\n" + "".join(blocks) + "# end\n"


class Kubelets:
    """Serves the metrics of each node over TLS, each node on its own port.

    Attributes:
        pem: The certificates' authority.
        ports: By node.
    """

    def __init__(self) -> None:
        self._now = dt.datetime.now(dt.UTC)
        self._authority = certificates.authority(None, "kubelets", self._now)
        self._servers: list[asyncio.Server] = []
        self.nodes: Nodes | None = None
        self.pem: str = self._authority.pem
        self.ports: dict[str, int] = {}

    async def start(self, names: Iterable[str]) -> None:
        """Listen."""
        context = certificates.server_context(self._authority, [ADDRESS], self._now)
        for name in names:
            server = await asyncio.start_server(self._connected(name), ADDRESS, 0, ssl=context)
            self._servers.append(server)
            self.ports[name] = server.sockets[0].getsockname()[1]

    def status(self, name: str) -> dict[str, Any]:
        """Return the part of a node's status that says where its kubelet is."""
        addresses = [{"type": "InternalIP", "address": ADDRESS}, {"type": "Hostname", "address": name}]
        return {"addresses": addresses, "daemonEndpoints": {"kubeletEndpoint": {"Port": self.ports[name]}}}

    def _connected(self, name: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(asyncio.IncompleteReadError, OSError):
                while request := await reader.readuntil(b"\r\n\r\n"):
                    answer = b"" if self.nodes is None else self._answer(name, request).encode()
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)
            writer.close()

        return connected

    def _answer(self, name: str, request: bytes) -> str:
        assert self.nodes is not None
        is_disks = b"/metrics/cadvisor" in request.split(b"\r\n", 1)[0]
        return self.nodes.disk_metrics(name) if is_disks else self.nodes.resource_metrics(name)

    def close(self) -> None:
        """Stop listening."""
        for server in self._servers:
            server.close()
