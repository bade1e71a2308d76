"""A simulated YARN and a simulated agent, which reports as a cluster's master would."""

import dataclasses

from boathouse.services.mrcluster import model
from boathouse_e2e.hadoop_model import Hdfs
from boathouse_task.cluster_contract import AgentReport, DfsState, NodeFigures, Version, YarnFigures, YarnState

MEMORY_MB = 1024


@dataclasses.dataclass
class Yarn:
    """Containers on nodes.

    Attributes:
        excluded: Hosts that take no more containers.
    """

    excluded: frozenset[str] = frozenset()
    containers: dict[str, int] = dataclasses.field(default_factory=dict)
    pending: int = 0

    def run(self, up: set[str], most: int = 2) -> None:
        """Start pending containers."""
        for host in sorted(up - self.excluded):
            while self.pending and self.containers.get(host, 0) < most:
                self.containers[host] = self.containers.get(host, 0) + 1
                self.pending -= 1

    def state(self, host: str, up: set[str]) -> YarnState:
        if host in self.excluded:
            return YarnState.DECOMMISSIONING if host in up and self.containers.get(host) else YarnState.DECOMMISSIONED
        return YarnState.RUNNING if host in up else YarnState.NONE


@dataclasses.dataclass
class Agent:
    """The agent and what it has stored on the master's claim: later orders win, from whichever leader.

    Attributes:
        version: Of the orders that it holds.
        leaving: The hosts of these orders.
        is_refreshed: Whether HDFS and YARN have read them.
    """

    hdfs: Hdfs
    yarn: Yarn
    version: Version = Version()  # noqa: RUF009 - frozen
    leaving: frozenset[str] = frozenset()
    is_refreshed: bool = True

    def take(self, version: Version, leaving: frozenset[str]) -> None:
        if version > self.version:
            self.is_refreshed = self.is_refreshed and leaving == self.leaving
            self.version, self.leaving = version, leaving

    def refresh(self) -> None:
        self.hdfs.excluded = frozenset(host for host in self.leaving if host.startswith("c"))
        self.yarn.excluded = self.leaving
        self.is_refreshed = True

    def report(self, up: set[str], now_s: float) -> AgentReport:
        """Return the report about hosts whose pods run."""
        live = {host for host in up if host.startswith("c")}
        known = sorted(up | self.yarn.excluded | set(self.hdfs.disks), key=model.number_of)
        nodes = [
            NodeFigures(
                host,
                self.hdfs.state(host, live) if host.startswith("c") else DfsState.NONE,
                self.yarn.state(host, up),
                self.yarn.containers.get(host, 0),
                MEMORY_MB if host in up else 0,
                self.hdfs.left(host, live) if host in live and host in self.hdfs.excluded else 0,
                1000,
                len(self.hdfs.disks.get(host, ())),
            )
            for host in known
        ]
        running = sum(count for host, count in self.yarn.containers.items() if host in up)
        yarn = YarnFigures(started_s=0, up_s=int(now_s), running=running, pending=self.yarn.pending)
        hdfs = self.hdfs.figures(live)
        return AgentReport(version=self.version, refreshed=self.is_refreshed, hdfs=hdfs, yarn=yarn, nodes=nodes)
