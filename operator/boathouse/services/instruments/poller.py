"""Read each ready node's kubelet at an interval, and publish what the node uses.

At most 50 nodes are read in a second, one request in flight for each, in the order in which they are due. Reads of a
large cluster are spread over the interval. A node that fails is read less often. `SignalStatus` says whether the
policies get the measurements that they use, and what to do if not.
"""

import asyncio
import collections
import dataclasses
import math
import time
from collections.abc import Callable, Mapping
from typing import Final

from boathouse.cluster import errors, retries, store, wire
from boathouse.resources.names import Reason
from boathouse.services.frame.pod_life import Problem
from boathouse.services.instruments.counters import Rates, cadvisor_usage, node_usage
from boathouse.services.instruments.kubelet_client import KubeletClient, MetricsToken, ReadError, Result, is_readable
from boathouse.telemetry import logs

_log = logs.get(__name__)
RESOURCE_PATH, CADVISOR_PATH = "/metrics/resource", "/metrics/cadvisor"
RESOURCE_BYTES, CADVISOR_BYTES = 2 * 1024 * 1024, 8 * 1024 * 1024
READS_A_S: Final = 50
MOST_IN_A_ROUND: Final = 3 * READS_A_S
AT_ONCE: Final = 32
ROUND_S: Final = 1.0
STALE_AFTER: Final = 4
LOG_EVERY_S: Final = 10.0
_JITTER: Final = 0.05
_BACKOFF: Final = retries.Backoff(base_s=15.0, cap_s=300.0)
STATES: Final[Mapping[str, int]] = {"fresh": 0, "stale": 0, "failed": 0, "off": 0}
UNCHANGED: Final = "unchanged"
_ENOUGH: Final = 0.5
"""Share of the nodes of which measurements are recent, from which on signals count as available."""
_ADVICE: Final[Mapping[str, str]] = {
    "unauthorized": "grant get on nodes/metrics to the service account boathouse-signals",
    "certificate": "set signals.kubelets.caConfigMap to the authority that signs the kubelets' serving certificates",
    "timeout": "allow connections from the operator to the kubelets' port",
    "connection": "allow connections from the operator to the kubelets' port",
    "no_address": "nodes need an InternalIP that is an IP address",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SignalStatus:
    """How many nodes are measured, by state; `stale` if that was too long ago, or did not happen yet.

    `failures` are the nodes whose last read failed, by result, or by `UNCHANGED` if it had no new measurement. `error`
    is why no kubelet can be read, such as a token that was refused.
    """

    nodes: Mapping[str, int]
    failures: Mapping[str, int] = dataclasses.field(default_factory=dict)
    error: str = ""
    is_needed: bool = True
    is_enabled: bool = True

    def problem(self) -> Problem | None:
        """Return why policies decide without measurements; None if they have them, or use none."""
        if not self.is_needed:
            return None
        if not self.is_enabled:
            message = "tasks are placed by requests, because no kubelet is read: set signals.kubelets.enabled"
            return Problem(reason=Reason.KUBELETS_NOT_READ, message=message)
        total, failed = sum(self.nodes.values()), sum(self.failures.values())
        if self.nodes.get("fresh", 0) >= _ENOUGH * total or not (failed or self.error):
            return None
        return Problem(reason=Reason.KUBELETS_FAILING, message=f"tasks are placed by requests: {self._failing()}")

    def _failing(self) -> str:
        """Return the most frequent failure, without numbers, which would change the status of each job often."""
        if self.error:
            return f"no token for kubelets: {self.error}"
        worst = max(self.failures, key=lambda result: self.failures[result])
        if worst == UNCHANGED:
            return "most kubelets answer with old measurements: look for errors in the kubelets' logs"
        text = f"most kubelets cannot be read ({worst})"
        return f"{text}: {_ADVICE[worst]}" if worst in _ADVICE else text


class Signals:
    """The problem if the policies do not get the measurements of nodes that they use, or None."""

    def __init__(self) -> None:
        self.problem: Problem | None = None

    def update(self, status: SignalStatus) -> None:
        """Note how many nodes are measured; log a change."""
        before, self.problem = self.problem, status.problem()
        if self.problem is not None and (before is None or before.reason != self.problem.reason):
            _log.warning("policies have no measurements of nodes", reason=self.problem.reason, why=self.problem.message)
        elif self.problem is None and before is not None:
            _log.info("policies have measurements of nodes")


Publish = Callable[[str, Mapping[str, float]], None]


@dataclasses.dataclass(slots=True, kw_only=True)
class _Node:
    """A node whose kubelet is read, when that is due, how it ended, and when it was measured, if that is in use."""

    view: wire.NodeView
    due_s: float
    since_s: float
    failures: int = 0
    result: Result | None = None
    measured_s: float | None = None


class Poller:
    """Measures nodes, and publishes their usage, which is empty if the last measurement of a node is stale.

    A node is read every `interval_s` seconds, or less often if there are more nodes than can be read in it, at `port`,
    or with 0 at the port that it reports. With `cadvisor` disks and pressure are read.
    """

    def __init__(
        self,
        kubelets: KubeletClient,
        token: MetricsToken,
        rates: Rates,
        publish: Publish,
        signals: Signals,
        *,
        interval_s: float,
        port: int,
        cadvisor: bool,
        count: Callable[[Result, float], None],
        monotonic: Callable[[], float] = time.monotonic,
        jitter: retries.Jitter = retries.JITTER,
    ) -> None:
        self._kubelets, self._token, self._rates, self._publish = kubelets, token, rates, publish
        self._interval_s, self._port, self._cadvisor = interval_s, port, cadvisor
        self._signals, self._count, self._monotonic, self._jitter = signals, count, monotonic, jitter
        self._nodes: dict[str, _Node] = {}
        self._round_s = monotonic()
        self._error = ""
        self._logged_s = -math.inf

    @property
    def interval_s(self) -> float:
        """Seconds between two reads of a node."""
        return max(self._interval_s, len(self._nodes) / READS_A_S)

    def on_node(self, change: store.Change[wire.NodeView]) -> None:
        """Follow the nodes."""
        if isinstance(change, store.Deleted):
            self._nodes.pop(change.key, None)
            self._rates.forget(change.key)
        elif (node := self._nodes.get(change.key)) is not None:
            node.view = change.new
        else:
            now_s = self._monotonic()
            due_s = now_s + self._jitter.uniform(0, self._interval_s)
            self._nodes[change.key] = _Node(view=change.new, due_s=due_s, since_s=now_s)

    async def run(self) -> None:
        """Read kubelets until cancelled; then close the connections."""
        try:
            await retries.Loop("kubelets", self._round, every_s=ROUND_S).run()
        finally:
            self._kubelets.close()

    async def _round(self) -> None:
        try:
            await self.run_once()
        finally:
            self._signals.update(self.status())

    async def run_once(self) -> None:
        """Read the nodes that are due; raises `errors.ClusterError` if there is no token."""
        self._drop_stale()
        due = self._due()
        if not due:
            return
        try:
            token = await self._token.current()
        except errors.ClusterError as error:
            self._error = str(error)
            raise
        self._error = ""
        self._kubelets.refresh(len(self._nodes))
        places = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for name, node in due:
                group.create_task(self._read(name, node, token, places))

    def status(self) -> SignalStatus:
        """Return how many nodes are measured."""
        states = dict(STATES)
        failures: collections.Counter[str] = collections.Counter()
        for node in self._nodes.values():
            failed = node.result not in {None, Result.SUCCESS}
            states["fresh" if node.measured_s is not None else "failed" if failed else "stale"] += 1
            if failed and node.result is not None:
                failures[node.result.value] += 1
            elif self._is_unchanged(node):
                failures[UNCHANGED] += 1
        return SignalStatus(nodes=states, failures=failures, error=self._error)

    def _is_unchanged(self, node: _Node) -> bool:
        """Return whether a kubelet answers, but has not measured its node for as long as a measurement is used."""
        is_old = self._monotonic() - node.since_s > STALE_AFTER * self.interval_s
        return node.result is Result.SUCCESS and node.measured_s is None and node.view.is_ready and is_old

    def _due(self) -> list[tuple[str, _Node]]:
        """Return the ready nodes that are due, longest due first, as many as may be read since the last round."""
        now_s = self._monotonic()
        most = min(MOST_IN_A_ROUND, max(1, int(READS_A_S * (now_s - self._round_s))))
        self._round_s = now_s
        due = [(name, node) for name, node in self._nodes.items() if node.due_s <= now_s and node.view.is_ready]
        return sorted(due, key=lambda item: item[1].due_s)[:most]

    async def _read(self, name: str, node: _Node, token: str, places: asyncio.Semaphore) -> None:
        async with places:
            began_s = self._monotonic()
            try:
                usage = await self._measure(name, node.view, token)
            except ReadError as error:
                self._failed(name, node, error)
            else:
                node.result, node.failures = Result.SUCCESS, 0
                if usage and name in self._nodes:
                    node.measured_s = self._monotonic()
                    self._publish(name, usage)
            now_s = self._monotonic()
            self._count(node.result or Result.CONNECTION, now_s - began_s)
            backoff_s = _BACKOFF.delay_s(node.failures, self._jitter) if node.failures else 0.0
            node.due_s = now_s + max(backoff_s, self.interval_s * self._jitter.uniform(1 - _JITTER, 1 + _JITTER))

    async def _measure(self, name: str, view: wire.NodeView, token: str) -> Mapping[str, float] | None:
        sample = node_usage(await self._get(view, RESOURCE_PATH, token, RESOURCE_BYTES))
        if sample is None:
            raise ReadError(Result.MALFORMED, f"{RESOURCE_PATH} has no valid node_cpu_usage_seconds_total")
        usage = self._rates.cpu(name, sample)
        if not self._cadvisor:
            return usage
        disks = cadvisor_usage(await self._get(view, CADVISOR_PATH, token, CADVISOR_BYTES))
        more = self._rates.disks(name, disks) if disks is not None else {}
        return None if usage is None else {**usage, **more}

    async def _get(self, view: wire.NodeView, path: str, token: str, limit_bytes: int) -> bytes:
        address, port = view.internal_ip, self._port or view.status.daemon_endpoints.kubelet_endpoint.port
        if not is_readable(address) or not 0 < port < 2**16:
            raise ReadError(Result.NO_ADDRESS, f"the node reports the address {address!r} and the kubelet port {port}")
        return await self._kubelets.get(address, port, path, token=token, limit_bytes=limit_bytes)

    def _failed(self, name: str, node: _Node, error: ReadError) -> None:
        """Note a failed read, and log it if it is another failure than before: one node of many that fail at once."""
        now_s = self._monotonic()
        if node.result is not error.result and now_s >= self._logged_s + LOG_EVERY_S:
            self._logged_s = now_s
            _log.warning("cannot read a kubelet", node=name, result=error.result.value, error=str(error))
        node.result, node.failures = error.result, node.failures + 1
        if error.result is Result.UNAUTHORIZED:
            self._token.reject()

    def _drop_stale(self) -> None:
        oldest_s = self._monotonic() - STALE_AFTER * self.interval_s
        for name, node in self._nodes.items():
            if node.measured_s is not None and node.measured_s < oldest_s:
                node.measured_s = None
                self._publish(name, {})
