"""The master's pod of a modelled cluster: the agent's own code, between daemons that are models and an operator.

The master's volume is a folder. It, the blocks and the applications outlive the pod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from msgspec import structs
from typing_extensions import override

from boathouse_e2e.hadoop_model import SLOT_MB, Hdfs, Yarn, stores
from boathouse_task.agent.agent import Agent
from boathouse_task.agent.daemons import DataNode, NameNode, NodeManager, ResourceManager
from boathouse_task.agent.host_files import HostFiles
from boathouse_task.cluster_contract import (
    HDFS_EXCLUDE,
    YARN_EXCLUDE,
    DfsState,
    HdfsFigures,
    Request,
    Version,
    YarnState,
)
from boathouse_task.rest import RestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from boathouse_task.agent.agent import AgentClient
    from boathouse_task.cluster_contract import AgentSpec, ApplicationFigures, YarnFigures

KUBERNETES_DOMAIN: Final = "cluster.local"
DEAD_S: Final = 5.0
"""How long a NameNode does not notice that a DataNode is gone."""
SAFE_S: Final = 1.0
"""How long a NameNode is in safe mode at least."""
COPIES_PER_S: Final = 10.0


class Hadoop:
    """The programs of a cluster.

    Args:
        domain: Domain of the nodes, SERVICE.NAMESPACE.svc.

    Attributes:
        hdfs: Blocks, and the volume of the NameNode.
        yarn: Containers.
        formats: The IDs that the NameNode's volume was formatted with.
        now_s: The time of the last step.
    """

    def __init__(self, domain: str) -> None:
        self._domain = domain
        self.hdfs, self.yarn = Hdfs(), Yarn()
        self.formats: list[str] = []
        self.now_s = 0.0
        self._up: set[str] = set()
        self._last_up_s: dict[str, float] = {}
        self._copies = 0.0
        self._runs = self._is_safe = False

    def start(self, cluster_id: str, now_s: float, *, may_format: bool) -> bool:
        """Start the master's daemons; return whether the NameNode accepts its volume."""
        if not self.hdfs.cluster_id:
            if not may_format:
                return False
            self.formats.append(cluster_id)
            self.hdfs.cluster_id = cluster_id
        self.hdfs.started_s = self.yarn.started_s = now_s
        self._runs = self._is_safe = True
        return True

    def stop(self) -> None:
        """Stop the daemons of the master. Containers go on, and blocks stay on their DataNodes."""
        self._runs = False

    def step(self, up: set[str], now_s: float) -> None:
        """Let time pass.

        Args:
            up: Hosts whose DataNodes and NodeManagers run, without the master.
            now_s: The time.
        """
        passed_s, self.now_s, self._up = now_s - self.now_s, now_s, set(up)
        self._last_up_s |= dict.fromkeys(up, now_s)
        for host in filter(stores, up):
            self.hdfs.disks.setdefault(host, set())
        self.yarn.step(self._up, now_s, manages=self._runs)
        if not self._runs:
            return
        if now_s >= self.hdfs.started_s + SAFE_S and not self.hdfs.missing(self._live):
            self._is_safe = False
        if not self._is_safe:
            self._copies = min(self._copies + passed_s * COPIES_PER_S, float(max(1, self.hdfs.blocks)))
            self.hdfs.copy(set(filter(stores, self._up)), int(self._copies))
            self._copies -= int(self._copies)

    @property
    def _live(self) -> set[str]:
        """Return the hosts with a DataNode that the NameNode takes for live."""
        since_s = self.now_s - DEAD_S
        return {host for host, last_s in self._last_up_s.items() if stores(host) and last_s > since_s}

    # What the agent asks

    def name(self, host: str) -> str:
        """Return the name that a host registers."""
        return f"{host}.{self._domain}.{KUBERNETES_DOMAIN}"

    def name_node(self) -> tuple[HdfsFigures, Mapping[str, DataNode]]:
        """Return the state of HDFS.

        Raises:
            RestError: The NameNode does not run.
        """
        if not self._runs:
            raise RestError("NameNode: ConnectionRefusedError")
        live = self._live
        nodes = {host: self._data_node(host, live) for host in self.hdfs.disks if host in self._last_up_s}
        return structs.replace(self.hdfs.figures(live), safe_mode=self._is_safe), nodes

    def _data_node(self, host: str, live: set[str]) -> DataNode:
        state = self.hdfs.state(host, live)
        left = self.hdfs.left(host, live) if state is DfsState.DECOMMISSIONING else 0
        used = len(self.hdfs.disks[host])
        return DataNode(state=state, name=self.name(host), blocks_left=left, free_bytes=1000, used_bytes=used)

    def resource_manager(self, leaving: Iterable[str]) -> tuple[YarnFigures, Mapping[str, NodeManager]]:
        """Return the state of YARN, with those of the leaving hosts that have ended.

        Raises:
            RestError: The ResourceManager does not run.
        """
        if not self._runs:
            raise RestError("ResourceManager: ConnectionRefusedError")
        hosts = self._up | (set(leaving) & self.yarn.excluded.keys())
        return self.yarn.figures(self._up, self.now_s), {host: self._manager(host) for host in sorted(hosts)}

    def _manager(self, host: str) -> NodeManager:
        state, count = self.yarn.state(host, self._up, self.now_s), self.yarn.containers(host)
        offered = (self.yarn.slots if state is YarnState.RUNNING else count) * SLOT_MB
        return NodeManager(
            state=state, name=self.name(host), containers=count, memory_mb=offered, used_mb=count * SLOT_MB
        )

    # What the container `refresh` asks

    def refresh(self, kind: Request, text: str) -> bool:
        """Read the hosts to exclude, but for names that no daemon has registered; return whether the daemon runs."""
        if not self._runs:
            return False
        by_name = {self.name(host): host for host in self._last_up_s}
        if kind is Request.HDFS:
            self.hdfs.excluded = frozenset(by_name[name] for name in text.split() if name in by_name)
            return True
        found = ET.fromstring(text).findall("host")  # noqa: S314 - of our agent
        timeouts_s = {
            host_element.findtext("name", ""): float(host_element.findtext("timeout", "-1")) for host_element in found
        }
        known = {by_name[name]: timeout_s for name, timeout_s in timeouts_s.items() if name in by_name}
        self.yarn.exclude(known, self.now_s)
        return True


class _NameNode(NameNode):
    """The agent's client of a modelled NameNode."""

    def __init__(self, hadoop: Hadoop) -> None:
        self._hadoop = hadoop

    @override
    def state(self) -> tuple[HdfsFigures, Mapping[str, DataNode]]:
        return self._hadoop.name_node()

    @override
    def make_folders(self, permissions: Mapping[str, str]) -> None:
        """Make nothing."""


class _ResourceManager(ResourceManager):
    """The agent's client of a modelled ResourceManager."""

    def __init__(self, hadoop: Hadoop) -> None:
        self._hadoop = hadoop

    @override
    def state(self, leaving: Mapping[str, str]) -> tuple[YarnFigures, Mapping[str, NodeManager]]:
        return self._hadoop.resource_manager(leaving)

    @override
    def applications(self, tag: str, has_time: Callable[[], bool]) -> list[ApplicationFigures]:
        return list(self._hadoop.yarn.tagged(tag, self._hadoop.now_s))

    @override
    def kill(self, application_id: str) -> None:
        if not self._hadoop.yarn.kill(application_id, self._hadoop.now_s):
            raise RestError("ResourceManager: status 404", 404)


class Master:
    """The containers of one master's pod.

    Args:
        hadoop: The cluster's programs, which run.
        spec: Parameters of the agent.
        folder: The master's volume.
        client: Sends reports.
    """

    def __init__(self, hadoop: Hadoop, spec: AgentSpec, folder: Path, client: AgentClient) -> None:
        self._hadoop = hadoop
        self._files, self._shared = folder / "files", folder / "refresh"
        for path in (self._files, self._shared):
            path.mkdir(parents=True, exist_ok=True)
        here = structs.replace(spec, files_path=str(self._files), refresh_path=str(self._shared))
        self._stored = HostFiles(here)
        self._agent = Agent(
            here,
            _NameNode(hadoop),
            _ResourceManager(hadoop) if spec.has_compute else None,
            client,
            resolve=lambda name: [name],
            canary=lambda: True,
            monotonic=lambda: hadoop.now_s,
        )
        for kind in Request:  # as daemons do when they start
            self._read(kind)

    @property
    def version(self) -> Version:
        """Return the version of the orders that the agent holds."""
        return self._stored.read().version

    def step(self) -> float:
        """Run a round of the agent, and carry out its requests; return the seconds until the next."""
        wait_s = self._agent.step()
        for kind in Request:
            want = self._shared / f"{kind.value}.want"
            done = want.with_suffix(".done")
            number = want.read_text().strip() if want.exists() else ""
            if number and not (done.exists() and done.read_text().split()[0] == number):
                done.write_text(f"{number} {0 if self._read(kind) else 255}\n")
        return wait_s

    def _read(self, kind: Request) -> bool:
        """Let a daemon read its list; return whether it did."""
        name = HDFS_EXCLUDE if kind is Request.HDFS else YARN_EXCLUDE
        return self._hadoop.refresh(kind, (self._files / name).read_text())
