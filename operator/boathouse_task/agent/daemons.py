"""Clients of the daemons of a cluster, for its agent.

`NameNode`: figures by JMX, folders by WebHDFS. `ResourceManager`: nodes, applications, kill. `MapReduce`: progress and
counters of applications. While an application runs, its ApplicationMaster knows its progress, and the ResourceManager's
proxy passes requests to it. Once it has ended, the JobHistoryServer knows its progress and its counters.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import quote, urlencode

import msgspec
from msgspec.structs import replace

from boathouse_task.cluster_contract import (
    APPLICATION_ID,
    MOST_APPLICATIONS,
    MOST_COUNTERS,
    MOST_GROUPS,
    MOST_SAFE_MODE_CHARS,
    MOST_VERSION_CHARS,
    WORD,
    AgentSpec,
    ApplicationFigures,
    DfsState,
    HdfsFigures,
    YarnFigures,
    YarnState,
)
from boathouse_task.contract import clamp
from boathouse_task.rest import Rest, RestError, clip, figure, host_of

USER = "hadoop"
STALE_S = 30
"""dfs.namenode.stale.datanode.interval."""
_SAFE_MODE_ON = "Safe mode is ON. "
_JMX = "/jmx?qry=Hadoop:service=NameNode,name="


@dataclass(frozen=True, slots=True, kw_only=True)
class DataNode:
    """State of a DataNode."""

    state: DfsState
    name: str = ""
    """The name that it registered."""
    blocks_left: int = 0
    """Under-replicated blocks, if it is being decommissioned."""
    free_bytes: int = 0
    used_bytes: int = 0


class NameNode:
    """Asks a NameNode at its HTTP port. DataNodes outside the domain of the cluster's nodes are left out."""

    def __init__(self, rest: Rest, domain: str) -> None:
        self._rest, self._domain = rest, domain

    def state(self) -> tuple[HdfsFigures, Mapping[str, DataNode]]:
        """Return the figures of HDFS and the state of each host with a DataNode. Raises RestError if that fails."""
        info = next(iter(self._rest.get(f"{_JMX}NameNodeInfo", list[_Info], "beans")), _Info())
        if not info.cluster_id:
            raise RestError("NameNode: it has not loaded its namespace yet")
        systems = self._rest.get(f"{_JMX}FSNamesystem", list[_System], "beans")
        if not systems:
            raise RestError("NameNode: it has no figures yet")
        system = systems[0]
        return HdfsFigures(
            cluster_id=clip(info.cluster_id, 100),
            started_s=figure(info.started_ms // 1000),
            safe_mode=bool(info.safe_mode),
            capacity_bytes=figure(system.capacity_total),
            used_bytes=figure(system.capacity_used),
            free_bytes=figure(system.capacity_remaining),
            files=figure(system.files_total),
            missing=figure(system.missing_blocks),
            corrupt=figure(system.corrupt_blocks),
            under_replicated=figure(system.under_replicated_blocks),
            pending_replication=figure(system.pending_replication_blocks),
            version=clip(info.software_version, MOST_VERSION_CHARS),
            safe_mode_text=clip(info.safe_mode.removeprefix(_SAFE_MODE_ON), MOST_SAFE_MODE_CHARS),
        ), self._data_nodes(info)

    def make_folders(self, permissions: Mapping[str, str]) -> None:
        """Make missing folders, with octal permissions. Raises RestError if that fails, as in safe mode."""
        for path, permission in permissions.items():
            query = urlencode({"op": "MKDIRS", "permission": permission, "user.name": USER})
            self._rest.put(f"/webhdfs/v1{quote(path)}?{query}")

    def _data_nodes(self, info: "_Info") -> dict[str, DataNode]:
        """Return the DataNodes. Of two with one name, one is dead: the former volume of the node."""
        decommissioning = _listed(info.decommissioning)
        data_nodes = {}
        for is_live, text in ((False, info.dead), (True, info.live)):
            for address, node in _listed(text).items():
                name = address.rpartition(":")[0]
                host = host_of(name, self._domain)
                if host is not None:
                    data_nodes[host] = DataNode(
                        state=_state(node, is_live=is_live),
                        name=name,
                        blocks_left=figure(decommissioning.get(address, _DataNode()).under_replicated_blocks),
                        free_bytes=figure(node.remaining),
                        used_bytes=figure(node.used),
                    )
        return data_nodes


def _state(node: "_DataNode", *, is_live: bool) -> DfsState:
    if node.admin_state == "Decommissioned":
        return DfsState.DECOMMISSIONED
    if not is_live:
        return DfsState.DEAD
    if node.admin_state == "Decommission In Progress":
        return DfsState.DECOMMISSIONING
    return DfsState.STALE if node.last_contact > STALE_S else DfsState.LIVE


class _Info(msgspec.Struct):
    """The bean NameNodeInfo. Its lists of nodes are texts with JSON."""

    cluster_id: str = msgspec.field(default="", name="ClusterId")
    software_version: str = msgspec.field(default="", name="SoftwareVersion")
    started_ms: int = msgspec.field(default=0, name="NNStartedTimeInMillis")
    safe_mode: str = msgspec.field(default="", name="Safemode")
    live: str = msgspec.field(default="{}", name="LiveNodes")
    dead: str = msgspec.field(default="{}", name="DeadNodes")
    decommissioning: str = msgspec.field(default="{}", name="DecomNodes")


class _System(msgspec.Struct, rename="pascal"):
    """The bean FSNamesystem."""

    capacity_total: int
    capacity_used: int
    capacity_remaining: int
    files_total: int
    missing_blocks: int
    corrupt_blocks: int
    under_replicated_blocks: int
    pending_replication_blocks: int


class _DataNode(msgspec.Struct, rename="camel"):
    """A DataNode in one of the lists, which have different attributes."""

    admin_state: str = ""
    last_contact: int = 0
    used: int = 0
    remaining: int = 0
    under_replicated_blocks: int = 0


def _listed(text: str) -> dict[str, _DataNode]:
    try:
        return msgspec.json.decode(text, type=dict[str, _DataNode])
    except (msgspec.DecodeError, RecursionError) as error:
        raise RestError(f"NameNode: unexpected list of nodes: {error}") from None


MOST_KEPT = 512
"""Applications whose details are kept after their end, so that the JobHistoryServer is asked once."""
PAUSE_S = 5.0
"""Time after a timeout of the JobHistoryServer in which it is not asked: one that hangs would delay each report."""
_HISTORY = "/ws/v1/history/mapreduce/jobs"
_NAME_CHARS = 128


class MapReduce:
    """Adds the details of MapReduce to applications, by the ResourceManager's web port and the JobHistoryServer."""

    def __init__(self, proxy: Rest, history: Rest, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._proxy, self._history, self._monotonic = proxy, history, monotonic
        self._paused_until_s = 0.0
        self._ended: dict[str, ApplicationFigures] = {}

    def add_details(self, application: ApplicationFigures) -> ApplicationFigures:
        """Return an application with the details that are known now."""
        if not application.has_ended:
            return self._running(application) if application.state == "RUNNING" else application
        if application.id not in self._ended:
            if self._monotonic() < self._paused_until_s:
                return application
            try:
                details = self._details(application)
            except RestError as error:  # it has the job some seconds after its end, or never if the job did not start
                if error.is_timeout:
                    self._paused_until_s = self._monotonic() + PAUSE_S
                return application
            while len(self._ended) >= MOST_KEPT:
                del self._ended[next(iter(self._ended))]
            self._ended[application.id] = details
        return self._ended[application.id]

    def _running(self, application: ApplicationFigures) -> ApplicationFigures:
        try:
            jobs = self._proxy.get(f"/proxy/{application.id}/ws/v1/mapreduce/jobs", list[_Job], "jobs", "job")
        except RestError:
            return application
        return _with_progress(application, jobs[0]) if jobs else application

    def _details(self, application: ApplicationFigures) -> ApplicationFigures:
        """Return an ended application with progress and counters. Raises RestError if these are unknown."""
        path = f"{_HISTORY}/{application.id.replace('application', 'job')}"
        job = self._history.get(path, _Job, "job")
        groups = self._history.get(f"{path}/counters", list[_Group], "jobCounters", "counterGroup")
        return replace(_with_progress(application, job), counters=_counters(groups))


def _with_progress(application: ApplicationFigures, job: "_Job") -> ApplicationFigures:
    return replace(
        application,
        maps=(figure(job.maps_completed), figure(job.maps_total)),
        reduces=(figure(job.reduces_completed), figure(job.reduces_total)),
    )


def _counters(groups: "list[_Group]") -> dict[str, dict[str, int]]:
    """Return counters by the short names of their groups, within the limits of the wire."""
    left, counters_by_group = MOST_COUNTERS, {}
    for group in groups[:MOST_GROUPS]:
        counters = {
            clip(counter.name, _NAME_CHARS): clamp(counter.total_counter_value) for counter in group.counter[:left]
        }
        left -= len(counters)
        if counters:
            counters_by_group[clip(group.counter_group_name, _NAME_CHARS)] = counters
    return counters_by_group


class _Job(msgspec.Struct, rename="camel"):
    maps_total: int = 0
    maps_completed: int = 0
    reduces_total: int = 0
    reduces_completed: int = 0


class _Counter(msgspec.Struct, rename="camel"):
    name: str
    total_counter_value: int = 0


class _Group(msgspec.Struct, rename="camel"):
    counter_group_name: str
    counter: list[_Counter] = []


_CLUSTER = "/ws/v1/cluster"
_ACTIVE = "NEW,RUNNING,UNHEALTHY,DECOMMISSIONING"
"""Other states are asked for by name: YARN may list every node that ever left."""
_LEFT_OUT = "resourceRequests,timeouts,appNodeLabelExpression,amNodeLabelExpression,resourceInfo"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeManager:
    """State of a NodeManager, and the name that it registered."""

    state: YarnState
    name: str = ""
    containers: int = 0
    memory_mb: int = 0
    used_mb: int = 0


class ResourceManager:
    """Asks a ResourceManager at its web port. NodeManagers of other domains than the spec's are left out."""

    def __init__(
        self, rest: Rest, map_reduce: MapReduce, spec: AgentSpec, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._rest, self._map_reduce, self._clock = rest, map_reduce, clock
        self._domain, self._port = spec.domain, spec.node_manager_port

    def state(self, leaving: Mapping[str, str]) -> tuple[YarnFigures, Mapping[str, NodeManager]]:
        """Return the figures of YARN and the state of each host with a NodeManager.

        The state of hosts in `leaving` is wanted even if their NodeManager has ended, by its name. Raises RestError if
        the ResourceManager does not respond.
        """
        started_ms = self._rest.get(f"{_CLUSTER}/info", int, "clusterInfo", "startedOn")
        metrics = self._rest.get(f"{_CLUSTER}/metrics", _ClusterMetrics, "clusterMetrics")
        nodes = self._active()
        running = [node for node in nodes.values() if node.state is YarnState.RUNNING]
        figures = YarnFigures(
            started_s=figure(started_ms // 1000),
            up_s=figure(self._clock() - started_ms / 1000),
            running=sum(node.containers for node in nodes.values()),
            pending=figure(metrics.containers_pending),
            apps_running=figure(metrics.apps_running),
            apps_pending=figure(metrics.apps_pending),
            memory_mb=sum(node.memory_mb for node in running),
            used_mb=sum(node.used_mb for node in nodes.values()),
        )
        gone = ((host, self._ended(name)) for host, name in leaving.items() if host not in nodes)
        return figures, nodes | {host: node for host, node in gone if node is not None}

    def applications(self, tag: str, has_time: Callable[[], bool]) -> list[ApplicationFigures]:
        """Return the applications with a tag: first those that run, then the newest, with details while there is time.

        Raises RestError if the ResourceManager does not respond.
        """
        path = f"{_CLUSTER}/apps?applicationTags={quote(tag)}&deSelects={_LEFT_OUT}"
        applications = self._rest.get(path, list[_Application], "apps", "app")
        all_figures = [_figures(found) for found in applications if re.fullmatch(APPLICATION_ID, found.id)]
        all_figures.sort(key=lambda figures: (figures.has_ended, -figures.started_ms, figures.id))
        kinds = {application.id: application.application_type for application in applications}
        return [
            self._map_reduce.add_details(figures) if kinds[figures.id] == "MAPREDUCE" and has_time() else figures
            for figures in all_figures[:MOST_APPLICATIONS]
        ]

    def kill(self, application_id: str) -> None:
        """Kill an application. Raises RestError if the ResourceManager does not respond, or has no such application."""
        self._rest.put(f"{_CLUSTER}/apps/{quote(application_id)}/state?user.name={USER}", b'{"state":"KILLED"}')

    def _active(self) -> dict[str, NodeManager]:
        nodes = self._rest.get(f"{_CLUSTER}/nodes?states={_ACTIVE}", list[_NodeManager], "nodes", "node")
        hosts = ((host_of(node.node_host_name, self._domain), node) for node in nodes)
        return {host: _node_manager(node, node.node_host_name) for host, node in hosts if host is not None}

    def _ended(self, name: str) -> NodeManager | None:
        """Return the state of a NodeManager that has ended; None if the ResourceManager does not know it."""
        try:
            return _node_manager(self._rest.get(f"{_CLUSTER}/nodes/{name}:{self._port}", _NodeManager, "node"), name)
        except RestError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise


def _node_manager(node: "_NodeManager", name: str) -> NodeManager:
    used_mb = figure(node.used_memory_mb)
    return NodeManager(
        state=YarnState.__members__.get(node.state, YarnState.NONE),
        name=name,
        containers=figure(node.num_containers),
        memory_mb=used_mb + figure(node.avail_memory_mb),
        used_mb=used_mb,
    )


def _figures(application: "_Application") -> ApplicationFigures:
    return ApplicationFigures(
        id=application.id,
        name=clip(application.name or "", 80),
        state=_word(application.state),
        final=_word(application.final_status),
        progress=min(100, figure(application.progress)),
        started_ms=figure(application.started_time),
        finished_ms=figure(application.finished_time),
        diagnostics=clip(application.diagnostics or "", 500),
    )


def _word(text: str) -> str:
    return text if re.fullmatch(WORD, text) else "UNKNOWN"


class _ClusterMetrics(msgspec.Struct, rename="camel"):
    apps_pending: int
    apps_running: int
    containers_pending: int


class _NodeManager(msgspec.Struct, rename="camel"):
    state: str
    node_host_name: str
    num_containers: int = 0
    used_memory_mb: int = msgspec.field(default=0, name="usedMemoryMB")
    avail_memory_mb: int = msgspec.field(default=0, name="availMemoryMB")


class _Application(msgspec.Struct, rename="camel"):
    id: str
    name: str | None = ""
    state: str = "UNKNOWN"
    final_status: str = "UNDEFINED"
    progress: float = 0.0
    started_time: int = 0
    finished_time: int = 0
    application_type: str = ""
    diagnostics: str | None = ""
