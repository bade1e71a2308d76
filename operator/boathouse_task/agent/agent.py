"""Agent of a Hadoop cluster: the container `agent`, which runs `boathouse-task agent`.

In each round it asks the cluster's daemons, reports to the operator and carries out its orders.

The operator connects to two ports to find out whether NetworkPolicies are enforced. No policy allows the canary port,
so a connection to it shows that they are not. The policies allow the control port for the operator: if it cannot
connect to this one either, the canary shows nothing.
"""

import contextlib
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import TypeVar
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from boathouse_task.agent.daemons import DataNode, MapReduce, NameNode, NodeManager, ResourceManager
from boathouse_task.agent.host_files import AGENT, HostFiles, Refresher, Stored, Wanted
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
from boathouse_task.processes import background
from boathouse_task.progress import Endpoint, Unavailable, delays
from boathouse_task.rest import Rest, RestError, clip


class AgentClient:
    """Sends the reports of one agent to the endpoint of its MRCluster."""

    def __init__(self, endpoint: Endpoint, environment: Environment) -> None:
        self._endpoint = endpoint
        self._path = f"cluster/{quote(environment.pod_name)}/report"

    def report(self, report: AgentReport) -> AgentOrders:
        """Send a report and return the orders. Raises Unavailable if the request failed."""
        return self._endpoint.ask(AgentOrders, "POST", self._path, encode_report(report))


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
    """Agent of one cluster, without a `resource_manager` if the cluster has no compute.

    `resolve` returns the addresses of a domain name; `canary`, whether the ports for the test of the network listen.
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
        self._domain, self._resolve, self._canary, self._monotonic = spec.domain, resolve, canary, monotonic
        self._name_node, self._resource_manager, self._client = name_node, resource_manager, client
        self._files = HostFiles(spec)
        self._refresher = Refresher(self._files, monotonic)
        self._delays = delays()
        self._rounds = self._answer = 0
        self._tags: Sequence[str] = ()
        self._addresses: dict[str, tuple[str, ...]] = {}
        self._folders_s = -1
        self._errors: list[str] = []
        self._names: dict[str, str] = {}
        self._stored = self._files.read()
        self._files.derive(self._stored)

    def step(self) -> float:
        """Run one round and return the seconds until the next."""
        began_s = self._monotonic()
        self._rounds += 1
        hdfs, data_nodes = self._try(self._name_node.state) or (None, {})
        yarn, managers = self._try(self._ask_yarn) or (None, {})
        self._learn_names(data_nodes, managers)
        self._make_folders(hdfs)
        report = AgentReport(
            version=self._stored.version,
            refreshed=self._refresh(hdfs, yarn),
            hdfs=hdfs,
            yarn=yarn,
            nodes=_nodes(data_nodes, managers),
            tags=self._ask_applications(began_s) if yarn is not None else {},
            canary=self._canary(),
            follows=self._answer,
        )
        report = replace(report, error=self._error(), took_ms=int((self._monotonic() - began_s) * 1000))
        AGENT.hit("before-report")
        try:
            orders = self._client.report(report)
            AGENT.hit("after-report")
        except Unavailable as error:
            return max(next(self._delays), error.retry_after_s)
        self._delays = delays()
        self._answer = orders.number
        self._take(orders)
        self._refresh(hdfs, yarn)
        return max(_LEAST_DISTANCE_S, min(_LONGEST_DISTANCE_S, orders.next_s))

    def _ask_yarn(self) -> tuple[YarnFigures, Mapping[str, NodeManager]] | None:
        manager = self._resource_manager
        return None if manager is None else manager.state(self._files.names(self._stored))

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
        manager = self._resource_manager
        if manager is None:
            return {}

        def has_time() -> bool:
            return self._monotonic() - began_s <= QUERY_BUDGET_S

        first = self._rounds % max(1, len(self._tags))
        tags = takewhile(lambda _: has_time(), (*self._tags[first:], *self._tags[:first]))
        answers = ((tag, self._try(partial(manager.applications, tag, has_time))) for tag in tags)
        return {tag: applications for tag, applications in answers if applications is not None}

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
        version = orders.version
        if version is None or version < self._stored.version or not self._store(version, orders.leaving):
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
        errors, self._errors = dict.fromkeys([self._refresher.error, *self._errors]), []
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


class Canary:
    """Accepts connections on a port of all addresses (0: any port) and closes them at once."""

    def __init__(self, port: int) -> None:
        dual = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if dual else socket.AF_INET
        self._server = socket.create_server(("", port), family=family, dualstack_ipv6=dual)
        self._thread = background("canary", self._run)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.getsockname()[1])

    @property
    def listens(self) -> bool:
        """Whether it accepts connections."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Stop listening."""
        with contextlib.suppress(OSError):  # it wakes the thread
            self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._server.accept()[0].close()


_SMALL_BYTES = 1024 * 1024
"""Limit of responses about one job."""


def run_pod(order: str, environment: Environment) -> None:
    """Run an agent until SIGTERM.

    Raises TaskError: InternalError if the progress URL is not one, msgspec.DecodeError if the order is not an
    `AgentSpec`, OSError if the master's volume cannot be read or written or a port of the canary is in use, ValueError
    if the environment names a failpoint that does not exist.
    """
    AGENT.arm(environment.variables)
    spec = msgspec.json.decode(order, type=AgentSpec)
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: stopped.set())
    with contextlib.ExitStack() as stack:
        ports = (spec.canary_port, spec.control_port)
        canaries = [stack.enter_context(contextlib.closing(Canary(port))) for port in ports]
        agent = _agent(spec, environment, lambda: all(canary.listens for canary in canaries))
        while not stopped.wait(agent.step()):
            pass


def _agent(spec: AgentSpec, environment: Environment, canary: Callable[[], bool]) -> Agent:
    endpoint = Endpoint(spec.progress_url, spec.namespace, spec.cluster_uid, environment)
    manager = None
    if spec.has_compute:
        proxy = Rest("ResourceManager", spec.resource_manager_port, most_bytes=_SMALL_BYTES)
        history = Rest("JobHistoryServer", spec.history_port, most_bytes=_SMALL_BYTES)
        map_reduce = MapReduce(proxy, history)
        manager = ResourceManager(Rest("ResourceManager", spec.resource_manager_port), map_reduce, spec)
    name_node = NameNode(Rest("NameNode", spec.name_node_port), spec.domain)
    return Agent(spec, name_node, manager, AgentClient(endpoint, environment), resolve=addresses, canary=canary)
