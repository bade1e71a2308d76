"""Round of an agent: ask the cluster's daemons, report to the operator, carry out its orders.

HDFS and YARN read the exclude files again whenever they could have missed a change. Of each daemon the agent keeps what
it has read last: the exclude list, when the daemon started, and the addresses of the listed DataNodes, which the
NameNode resolves when it reads the list. If any of these changes, the agent requests another refresh. A new agent knows
none of it and requests one too.
"""

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar
from urllib.parse import quote

from msgspec.structs import replace

from boathouse_task.agent.host_files import AGENT, HostFiles, Stored
from boathouse_task.agent.name_node import DataNode, NameNode
from boathouse_task.agent.resource_manager import NodeManager, ResourceManager
from boathouse_task.cluster_contract import (
    MOST_NODES,
    AgentOrders,
    AgentReport,
    AgentSpec,
    ApplicationFigures,
    DfsState,
    HdfsFigures,
    Leaving,
    NodeFigures,
    Request,
    Version,
    YarnFigures,
    YarnState,
    encode_report,
)
from boathouse_task.environment import Environment
from boathouse_task.progress import Endpoint, Unavailable, delays
from boathouse_task.rest import RestError, clip


class AgentClient:
    """Sends the reports of one agent to the endpoint of its MRCluster."""

    def __init__(self, endpoint: Endpoint, environment: Environment) -> None:
        self._endpoint = endpoint
        self._path = f"cluster/{quote(environment.pod_name)}/report"

    def report(self, report: AgentReport) -> AgentOrders:
        """Send a report and return the orders. Raises Unavailable if the request failed."""
        return self._endpoint.ask(AgentOrders, "POST", self._path, encode_report(report))


DISTANCE_S = 5.0
"""Minimum time between requests of one kind: each starts a JVM."""
RETRY_S = 30.0
"""Time after which a request that failed is sent again."""
PATIENCE_S = 180.0
"""Time after which a request that is not carried out is an error. The commands have a limit of 60 s each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a daemon should have read."""

    started_s: int
    """When the daemon started."""
    hosts: str
    """The exclude list."""
    addresses: tuple[str, ...] = ()
    """Addresses of the hosts, where the daemon resolves them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """A request in flight."""

    wanted: Wanted
    number: int
    sent_s: float


class Refresher:
    """Requests refreshes of the daemons. `clock` returns monotonic seconds."""

    def __init__(self, files: HostFiles, clock: Callable[[], float]) -> None:
        self._files = files
        self._clock = clock
        self._read: dict[Request, Wanted] = {}
        self._sent: dict[Request, _Sent] = {}
        self._errors: dict[Request, str] = {}

    @property
    def error(self) -> str:
        """What went wrong last, or ""."""
        return "; ".join(self._errors.values())

    def update(self, wanted: Mapping[Request, Wanted]) -> bool:
        """Take results of requests and request what is missing; return whether the daemons have read what they should.

        Raises OSError if the files of the requests cannot be read or written.
        """
        for kind, state in wanted.items():
            self._take_result(kind)
            if self._read.get(kind) == state:
                self._errors.pop(kind, None)
            else:
                self._request(kind, state)
        return all(self._read.get(kind) == state for kind, state in wanted.items())

    def _take_result(self, kind: Request) -> None:
        sent, done = self._sent.get(kind), self._files.done(kind)
        if sent is None or sent.wanted == self._read.get(kind):
            return
        if done is None or done.number < sent.number:
            if self._clock() - sent.sent_s > PATIENCE_S:
                self._errors[kind] = f"container refresh has not run request {sent.number} of {kind} yet: see its log"
        elif done.number == sent.number and done.status == 0:
            self._read[kind] = sent.wanted
        else:
            self._errors[kind] = f"refresh of {kind} ended with status {done.status}: see the log of container refresh"

    def _request(self, kind: Request, wanted: Wanted) -> None:
        """Send a request, unless the same one is in flight or another was sent just now.

        From now on it is unknown what the daemon has read.
        """
        sent, done, now_s = self._sent.get(kind), self._files.done(kind), self._clock()
        if sent is not None:
            in_flight = done is None or done.number < sent.number
            distance_s = RETRY_S if sent.wanted == wanted else DISTANCE_S
            if now_s - sent.sent_s < distance_s or (in_flight and sent.wanted == wanted):
                return
        self._read.pop(kind, None)
        self._sent[kind] = _Sent(wanted=wanted, number=self._files.request(kind), sent_s=now_s)


FOLDERS: Mapping[str, str] = {
    "/tmp": "1777",  # noqa: S108 - in HDFS
    "/tmp/hadoop-yarn": "755",  # noqa: S108
    "/tmp/hadoop-yarn/staging": "1777",  # noqa: S108
    "/tmp/logs": "1777",  # noqa: S108
    "/mr-history": "755",
    "/mr-history/tmp": "1777",
    "/mr-history/done": "1777",
    "/user": "755",
    "/user/hadoop": "755",
}
"""Folders that YARN and MapReduce need in HDFS, with their permissions."""
QUERY_BUDGET_S = 10.0
"""Time in a round after which the agent asks for no further tag and no further details."""
_LEAST_DISTANCE_S = 2.0
_LONGEST_DISTANCE_S = 60.0
_ERROR_CHARS = 300
T = TypeVar("T")


class Agent:
    """Agent of one cluster.

    Args:
        resource_manager: None if the cluster has no compute.
        resolve: returns the addresses of a domain name, none if it has none.
        canary: returns whether the ports for the test of the network listen.
    """

    def __init__(
        self,
        spec: AgentSpec,
        name_node: NameNode,
        resource_manager: ResourceManager | None,
        client: AgentClient,
        *,
        resolve: Callable[[str], Sequence[str]],
        canary: Callable[[], bool],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._domain = spec.domain
        self._name_node = name_node
        self._resource_manager = resource_manager
        self._client = client
        self._resolve = resolve
        self._canary = canary
        self._monotonic = monotonic
        self._files = HostFiles(spec)
        self._refresher = Refresher(self._files, monotonic)
        self._delays = delays()
        self._rounds = self._answer = 0
        self._tags: Sequence[str] = ()
        self._addresses: dict[str, tuple[str, ...]] = {}
        self._folders_s = -1
        self._errors: list[str] = []
        self._stored = self._files.read()
        self._names: dict[str, str] = {}
        self._files.derive(self._stored)

    def step(self) -> float:
        """Run one round and return the seconds until the next."""
        began_s = self._monotonic()
        self._rounds += 1
        hdfs, data_nodes = self._try(self._name_node.state) or (None, {})
        manager = self._resource_manager
        ask = partial(manager.state, self._files.names(self._stored)) if manager is not None else lambda: None
        yarn, managers = self._try(ask) or (None, {})
        self._learn_names(data_nodes, managers)
        self._make_folders(hdfs)
        refreshed = self._refresh(hdfs, yarn)
        report = AgentReport(
            version=self._stored.version,
            refreshed=refreshed,
            hdfs=hdfs,
            yarn=yarn,
            nodes=_nodes(data_nodes, managers),
            tags=self._ask_applications(began_s) if yarn is not None else {},
            canary=self._canary(),
            follows=self._answer,
        )
        AGENT.hit("before-report")
        try:
            orders = self._client.report(
                replace(report, error=self._error(), took_ms=int((self._monotonic() - began_s) * 1000))
            )
            AGENT.hit("after-report")
        except Unavailable as error:
            return max(next(self._delays), error.retry_after_s)
        self._delays = delays()
        self._answer = orders.number
        self._take(orders)
        self._refresh(hdfs, yarn)
        return max(_LEAST_DISTANCE_S, min(_LONGEST_DISTANCE_S, orders.next_s))

    def _learn_names(self, data_nodes: Mapping[str, DataNode], managers: Mapping[str, NodeManager]) -> None:
        """Keep the names that the nodes have registered, and mend the exclude files if they have others.

        HDFS compares addresses and YARN names, so the names of NodeManagers matter more.
        """
        self._names = {host: node.name for host, node in data_nodes.items() if node.name} | self._stored.names
        self._names |= {host: node.name for host, node in managers.items() if node.name}
        self._store(self._stored.version, self._stored.leaving)

    def _store(self, version: Version, leaving: list[Leaving]) -> bool:
        """Store orders with the names of their nodes; return whether the agent holds them now."""
        names = {node.host: self._names[node.host] for node in leaving if node.host in self._names}
        stored = Stored(version=version, leaving=leaving, names=names)
        if stored != self._stored and self._succeeds(lambda: self._files.write(stored)):
            self._stored = stored
        return stored == self._stored

    def _ask_applications(self, began_s: float) -> dict[str, list[ApplicationFigures]]:
        """Return the applications of each tag. Rounds start with different tags, as there may be no time for all."""
        manager, figures_by_tag = self._resource_manager, dict[str, list[ApplicationFigures]]()

        def has_time() -> bool:
            return self._monotonic() - began_s <= QUERY_BUDGET_S

        first = self._rounds % max(1, len(self._tags))
        for tag in (*self._tags[first:], *self._tags[:first]):
            if manager is None or not has_time():
                break
            applications = self._try(partial(manager.applications, tag, has_time))
            if applications is not None:
                figures_by_tag[tag] = applications
        return figures_by_tag

    def _make_folders(self, hdfs: HdfsFigures | None) -> None:
        """Make the folders in HDFS, once after each start of the NameNode."""
        if hdfs is None or hdfs.safe_mode or hdfs.started_s == self._folders_s:
            return
        if self._succeeds(lambda: self._name_node.make_folders(FOLDERS)):
            self._folders_s = hdfs.started_s

    def _refresh(self, hdfs: HdfsFigures | None, yarn: YarnFigures | None) -> bool:
        """Make the daemons read the orders; return whether all daemons of the cluster have read them."""
        wanted = {}
        if hdfs is not None:
            hosts = self._files.hdfs_exclude(self._stored)
            wanted[Request.HDFS] = Wanted(started_s=hdfs.started_s, hosts=hosts, addresses=self._find_addresses())
        if yarn is not None:
            wanted[Request.YARN] = Wanted(started_s=yarn.started_s, hosts=self._files.yarn_exclude(self._stored))
        done = self._try(lambda: self._refresher.update(wanted))
        return bool(done) and len(wanted) == (1 if self._resource_manager is None else len(Request))

    def _find_addresses(self) -> tuple[str, ...]:
        """Return the addresses of the leaving DataNodes. One without an address keeps its last: its pod is gone."""
        hosts = [node.host for node in self._stored.leaving if node.stores]
        self._addresses = {
            host: tuple(self._resolve(f"{host}.{self._domain}")) or self._addresses.get(host, ()) for host in hosts
        }
        return tuple(address for host in hosts for address in self._addresses[host])

    def _take(self, orders: AgentOrders) -> None:
        """Carry out orders, unless they are older than the stored ones: those of a former leader.

        After a restore of etcd, orders may differ from stored ones of the same version. The last answer counts.
        """
        if orders.version is None or orders.version < self._stored.version:
            return
        if not self._store(orders.version, orders.leaving):
            return
        self._tags = orders.tags
        for application_id in orders.kill:
            if self._resource_manager is not None:
                self._succeeds(partial(self._resource_manager.kill, application_id))

    def _try(self, function: Callable[[], T]) -> T | None:
        """Return the result of a function; None if it fails, which is reported."""
        try:
            return function()
        except (RestError, OSError) as error:
            self._errors.append(str(error))
            return None

    def _succeeds(self, function: Callable[[], None]) -> bool:
        """Call a function; return False if it fails, which is reported."""
        errors = len(self._errors)
        self._try(function)
        return len(self._errors) == errors

    def _error(self) -> str:
        """Return what went wrong since the last report."""
        errors = dict.fromkeys([self._refresher.error, *self._errors])
        self._errors = []
        return clip("; ".join(filter(None, errors)), _ERROR_CHARS)


def _nodes(data_nodes: Mapping[str, DataNode], managers: Mapping[str, NodeManager]) -> list[NodeFigures]:
    no_data, no_manager = DataNode(state=DfsState.NONE), NodeManager(state=YarnState.NONE)
    hosts = sorted({*data_nodes, *managers})[:MOST_NODES]
    known = ((host, data_nodes.get(host, no_data), managers.get(host, no_manager)) for host in hosts)
    return [
        NodeFigures(
            host=host,
            dfs=data_node.state,
            yarn=manager.state,
            containers=manager.containers,
            memory_mb=manager.memory_mb,
            blocks_left=data_node.blocks_left,
            free_bytes=data_node.free_bytes,
            used_bytes=data_node.used_bytes,
        )
        for host, data_node, manager in known
    ]


def addresses(name: str) -> list[str]:
    """Return the addresses of a domain name, sorted; none if it cannot be resolved."""
    try:
        return sorted({str(info[4][0]) for info in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)})
    except OSError:
        return []
