"""What is around the operator: kubelets that start pods, volumes, and the programs of all clusters as models.

The master of a cluster runs the agent's own code. Its reports go to the leader without HTTP.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec
from typing_extensions import override

from boathouse.resources import names
from boathouse.resources.mrcluster.names import LABEL_HOST
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.progress.limits import Rejected
from boathouse_e2e.hadoop_master import Hadoop, Master
from boathouse_e2e.hadoop_model import Hdfs, Yarn, stores
from boathouse_task.agent.agent import AgentClient
from boathouse_task.cluster_contract import AGENT_ENV, AgentOrders, AgentReport, AgentSpec
from boathouse_task.progress import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from boathouse.services.mrcluster.kind import MRClusterKind
    from tests.wire.fake_api import FakeApi

Pod = dict[str, Any]
MASTER: Final = "master"
SLOTS: Final = 8
STEP_S: Final = 0.25
LOOK_S: Final = 1.0
"""Between two looks at the pods, and two steps of HDFS."""
REPORT_S: Final = 5.0
_BOUND: Final = {
    "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
    "status": {"phase": "Bound"},
}


class CountingHdfs(Hdfs):
    """HDFS that counts the replicas that the NameNode has made.

    Attributes:
        copied: Their number.
    """

    copied = 0

    @override
    def copy(self, live: set[str], most: int = 1) -> None:
        before = sum(map(len, self.disks.values()))
        super().copy(live, most)
        self.copied += sum(map(len, self.disks.values())) - before


@dataclasses.dataclass(slots=True)
class Cluster:
    """A cluster.

    Attributes:
        first: The core nodes that it started with.
        pods: By host.
        master: The containers of the master; None before they run.
        due_s: When the agent reports next.
        busy: Whether `extra_node_s` counts.
        extra_node_s: Seconds of nodes beyond the first ones, from the binding of a pod to its end.
        most: The most nodes that it had.
        size: Its nodes.
        changed_s: When the number of its nodes changed last.
        lost: Blocks that lost their last replica.
    """

    hadoop: Hadoop
    folder: Path
    first: int = 0
    pods: dict[str, Pod] = dataclasses.field(default_factory=dict)
    master: Master | None = None
    due_s: float = 0.0
    busy: bool = False
    extra_node_s: float = 0.0
    most: int = 0
    size: int = 0
    changed_s: float = 0.0
    lost: int = 0

    @property
    def up(self) -> set[str]:
        """Return the hosts whose programs run, without the master."""
        return {host for host, pod in self.pods.items() if host != MASTER and is_ready(pod)}

    @property
    def workers(self) -> list[str]:
        """Return the hosts whose pods have a node, without the master."""
        return sorted(host for host, pod in self.pods.items() if host != MASTER and pod["spec"].get("nodeName"))


class Reporter(AgentClient):
    """Gives reports to the kind, as its route does."""

    def __init__(self, kind: Callable[[], MRClusterKind], uid: ObjectUid) -> None:
        self._kind, self._uid = kind, uid

    @override
    def report(self, report: AgentReport) -> AgentOrders:
        kind = self._kind()
        try:
            kind.reports.take(self._uid, report, kind.reports.arrive())
        except Rejected as error:
            raise Unavailable(0, str(error)) from None
        number = kind.reports.number(self._uid)
        return kind.orders.answer(self._uid, report.version, number=number, next_s=REPORT_S)


class ModelledClusters:
    """Kubelets, volumes and programs.

    Args:
        api: The fake API server.
        kind: Returns the leader's kind.
        folder: For the volumes of masters.
        boot_s: From the binding of a pod until its programs run.

    Attributes:
        clusters: By UID.
    """

    def __init__(self, api: FakeApi, kind: Callable[[], MRClusterKind], folder: Path, boot_s: float) -> None:
        self._api, self._kind, self._folder, self._boot_s = api, kind, folder, boot_s
        self._bound_s: dict[str, float] = {}
        self.clusters: dict[str, Cluster] = {}

    async def run(self) -> None:
        """Let time pass until cancelled."""
        looked_s = -LOOK_S
        while True:
            now_s = time.monotonic()
            if now_s - looked_s >= LOOK_S - STEP_S / 2:
                looked_s = now_s
                self._look(now_s)
            for cluster in self.clusters.values():
                cluster.hadoop.yarn.step(cluster.up, now_s, manages=cluster.master is not None)
            await asyncio.sleep(STEP_S)

    # Pods and volumes

    def _look(self, now_s: float) -> None:
        self._api.world.date = dt.datetime.fromtimestamp(time.time(), dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._provision()
        for cluster in self.clusters.values():
            cluster.pods = {}
        for key, pod in list(self._api.objects("pods").items()):
            if host := pod["metadata"].get("labels", {}).get(LABEL_HOST):
                self._play(key, host, pod, now_s)
        for uid, cluster in self.clusters.items():
            self._step(uid, cluster, now_s)

    def _provision(self) -> None:
        for key, claim in list(self._api.objects("persistentvolumeclaims").items()):
            if "volumeName" not in claim["spec"]:
                volume = {"metadata": {"name": "pv-" + claim["metadata"]["uid"]}, "spec": {}}
                self._api.add({"apiVersion": "v1", "kind": "PersistentVolume", **volume})
                spec = {"spec": {"volumeName": volume["metadata"]["name"]}}
                self._api.change("persistentvolumeclaims", key, _BOUND | spec)

    def _play(self, key: str, host: str, pod: Pod, now_s: float) -> None:
        """Do a kubelet's part for a pod."""
        uid = pod["metadata"]["labels"][names.LABEL_JOB_UID]
        if uid not in self.clusters:
            domain = f"{pod['spec']['subdomain']}.{pod['metadata']['namespace']}.svc"
            hadoop = Hadoop(domain)
            hadoop.yarn, hadoop.hdfs = Yarn(slots=SLOTS), CountingHdfs()
            self.clusters[uid] = Cluster(hadoop, self._folder / uid)
        if not pod["spec"].get("nodeName"):
            self.clusters[uid].pods[host] = pod
        elif pod["metadata"].get("deletionTimestamp"):
            self._api.remove("pods", key)
        else:
            bound_s = self._bound_s.setdefault(pod["metadata"]["uid"], now_s)
            if not is_ready(pod) and now_s - bound_s >= self._boot_s:
                state = {"running": {"startedAt": self._api.world.date}}
                ready = [
                    {"name": container["name"], "state": state, "ready": True}
                    for container in pod["spec"]["containers"]
                ]
                pod = self._api.set_phase(key, "Running", podIP="10.0.0.1", containerStatuses=ready)
            self.clusters[uid].pods[host] = pod

    # Programs

    def _step(self, uid: str, cluster: Cluster, now_s: float) -> None:
        self._start(uid, cluster, now_s)
        hadoop, workers = cluster.hadoop, cluster.workers
        for host in [host for host in hadoop.hdfs.disks if host not in cluster.pods]:
            del hadoop.hdfs.disks[host]  # its claim may remain: nothing relies on that
            cluster.lost += len(hadoop.hdfs.missing(set(hadoop.hdfs.disks)))
        hadoop.step(cluster.up, now_s)
        if cluster.size != len(workers):
            cluster.size, cluster.changed_s = len(workers), now_s
        cluster.most = max(cluster.most, len(workers))
        if cluster.busy:
            cluster.extra_node_s += max(0, len(workers) - cluster.first) * LOOK_S
        if cluster.master is not None and now_s >= cluster.due_s:
            cluster.due_s = now_s + cluster.master.step()

    def _start(self, uid: str, cluster: Cluster, now_s: float) -> None:
        """Start the programs of the master when its pod runs."""
        pod = cluster.pods.get(MASTER)
        if cluster.master is not None or pod is None or not is_ready(pod):
            return
        cluster.folder.mkdir(parents=True, exist_ok=True)
        cluster.hadoop.start(_variable(pod, "BOATHOUSE_CLUSTER_ID"), now_s, may_format=True)
        spec = msgspec.json.decode(_variable(pod, AGENT_ENV), type=AgentSpec)
        cluster.master = Master(cluster.hadoop, spec, cluster.folder, Reporter(self._kind, ObjectUid(uid)))
        cluster.first = len(list(filter(stores, cluster.workers)))


def is_ready(pod: Pod) -> bool:
    """Return whether the containers of a pod run."""
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    return bool(statuses) and all(status["ready"] for status in statuses)


def _variable(pod: Pod, name: str) -> str:
    """Return a variable of a container of a pod, or ""."""
    variables = (variable for container in pod["spec"]["containers"] for variable in container.get("env", ()))
    return str(next((variable.get("value", "") for variable in variables if variable["name"] == name), ""))
