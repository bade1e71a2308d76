"""Client of a cluster's ResourceManager: nodes, applications with their progress and counters, kill, node labels.

While an application runs, its ApplicationMaster knows its progress, and the ResourceManager's proxy passes requests to
it. Once it has ended, the JobHistoryServer knows its progress and its counters.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from boathouse_task.cluster_contract import (
    MOST_APPLICATIONS,
    MOST_COUNTERS,
    MOST_GROUPS,
    AgentSpec,
    ApplicationFigures,
    YarnFigures,
    YarnState,
)
from boathouse_task.contract import clamp
from boathouse_task.rest import Rest, RestError, clip, figure, host_of

MOST_KEPT = 512
"""Applications whose details are kept after their end, so that the JobHistoryServer is asked once."""
PAUSE_S = 5.0
"""Time after a timeout of the JobHistoryServer in which it is not asked: one that hangs would delay each report."""
_HISTORY = "/ws/v1/history/mapreduce/jobs"
_NAME_CHARS = 128


class MapReduce:
    """Adds the details of MapReduce to applications.

    Args:
        proxy: connection to the ResourceManager's web port.
        history: connection to the JobHistoryServer.
        monotonic: clock of the pause after a timeout.
    """

    def __init__(self, proxy: Rest, history: Rest, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._proxy = proxy
        self._history = history
        self._monotonic = monotonic
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
        """Return an ended application with progress and counters.

        Raises RestError if the JobHistoryServer does not respond, or does not know the job.
        """
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


_NOT_FOUND = 404
_CLUSTER = "/ws/v1/cluster"
_ACTIVE = "NEW,RUNNING,UNHEALTHY,DECOMMISSIONING"
"""Other states are asked for by name: YARN may list every node that ever left."""
_LEFT_OUT = "resourceRequests,timeouts,appNodeLabelExpression,amNodeLabelExpression,resourceInfo"
_APPLICATION_ID = re.compile(r"application_[0-9]{1,20}_[0-9]{1,10}")
_WORD = re.compile(r"[A-Z_]{1,24}")


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
        self._rest = rest
        self._map_reduce = map_reduce
        self._domain = spec.domain
        self._port = spec.node_manager_port
        self._clock = clock

    def state(self, leaving: Mapping[str, str]) -> tuple[YarnFigures, Mapping[str, NodeManager]]:
        """Return the figures of YARN and the state of each host with a NodeManager.

        The state of hosts in `leaving` is wanted even if their NodeManager has ended, by its name. Raises RestError if
        the ResourceManager does not respond.
        """
        info = self._rest.get(f"{_CLUSTER}/info", _ClusterInfo, "clusterInfo")
        metrics = self._rest.get(f"{_CLUSTER}/metrics", _ClusterMetrics, "clusterMetrics")
        nodes = self._active()
        running = [node for node in nodes.values() if node.state is YarnState.RUNNING]
        figures = YarnFigures(
            started_s=figure(info.started_on // 1000),
            up_s=figure(self._clock() - info.started_on / 1000),
            running=sum(node.containers for node in nodes.values()),
            pending=figure(metrics.containers_pending),
            apps_running=figure(metrics.apps_running),
            apps_pending=figure(metrics.apps_pending),
            memory_mb=sum(node.memory_mb for node in running),
            used_mb=sum(node.used_mb for node in nodes.values()),
        )
        gone = ((host, self._ended(name)) for host, name in leaving.items() if host not in nodes)
        ended = {host: node for host, node in gone if node is not None}
        return figures, nodes | ended

    def applications(self, tag: str, has_time: Callable[[], bool]) -> list[ApplicationFigures]:
        """Return the applications with a tag: first those that run, then the newest, with details while there is time.

        Raises RestError if the ResourceManager does not respond.
        """
        path = f"{_CLUSTER}/apps?applicationTags={quote(tag)}&deSelects={_LEFT_OUT}"
        applications = self._rest.get(path, list[_Application], "apps", "app")
        all_figures = [_figures(found) for found in applications if _APPLICATION_ID.fullmatch(found.id)]
        all_figures.sort(key=lambda figures: (figures.has_ended, -figures.started_ms, figures.id))
        kinds = {application.id: application.application_type for application in applications}
        return [
            self._map_reduce.add_details(figures) if kinds[figures.id] == "MAPREDUCE" and has_time() else figures
            for figures in all_figures[:MOST_APPLICATIONS]
        ]

    def kill(self, application_id: str) -> None:
        """Kill an application. Raises RestError if the ResourceManager does not respond, or has no such application."""
        self._rest.put(f"{_CLUSTER}/apps/{quote(application_id)}/state?user.name=hadoop", b'{"state":"KILLED"}')

    def _active(self) -> dict[str, NodeManager]:
        nodes = self._rest.get(f"{_CLUSTER}/nodes?states={_ACTIVE}", list[_Node], "nodes", "node")
        hosts = ((host_of(node.node_host_name, self._domain), node) for node in nodes)
        return {host: _node_manager(node, node.node_host_name) for host, node in hosts if host is not None}

    def _ended(self, name: str) -> NodeManager | None:
        """Return the state of a NodeManager that has ended; None if the ResourceManager does not know it."""
        try:
            return _node_manager(self._rest.get(f"{_CLUSTER}/nodes/{name}:{self._port}", _Node, "node"), name)
        except RestError as error:
            if error.status == _NOT_FOUND:
                return None
            raise


def _node_manager(node: "_Node", name: str) -> NodeManager:
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
    return text if _WORD.fullmatch(text) else "UNKNOWN"


class _ClusterInfo(msgspec.Struct, rename="camel"):
    started_on: int


class _ClusterMetrics(msgspec.Struct, rename="camel"):
    apps_pending: int
    apps_running: int
    containers_pending: int


class _Node(msgspec.Struct, rename="camel"):
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
