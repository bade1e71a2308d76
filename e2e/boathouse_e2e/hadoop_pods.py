"""Programs of Hadoop clusters where no kubelet runs: KWOK lets their pods start, and a model of Hadoop fills them.

The master of each cluster runs the agent's own code, with the token of its pod. Volumes are those of claims, or end
with their pods. So the model notices what no cluster survives: two pods of a host, a NameNode's volume that is
formatted twice, and the loss of the last replica of a block.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import math
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec
from typing_extensions import override

from boathouse.cluster import catalogue, client, errors
from boathouse.resources import names
from boathouse.resources.mrcluster.names import LABEL_HOST
from boathouse_e2e import played_pods
from boathouse_e2e.hadoop_master import Hadoop, Master
from boathouse_e2e.hadoop_model import stores
from boathouse_e2e.invariants import Violation
from boathouse_task.agent.agent import AgentClient
from boathouse_task.cluster_contract import AGENT_ENV, AgentOrders, AgentReport, AgentSpec, Version
from boathouse_task.environment import Environment
from boathouse_task.progress import Endpoint, Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from pathlib import Path

Pod = dict[str, Any]
MASTER: Final = "master"
_PODS: Final = catalogue.PODS.untyped()
_STEP_S: Final = 0.5
_REPORT_S: Final = 2.1
"""Time between reports: a little more than the endpoint demands."""
_REFUSED: Final = 78


@dataclasses.dataclass(slots=True)
class _Cluster:
    """A cluster that is played.

    Attributes:
        pods: The last known, by host.
        volumes: What each host's data are on: a claim, or a pod.
        master: The containers of the master's pod; None while they do not run.
        master_uid: UID of the pod whose containers were started last.
        due_s: When the agent reports next.
    """

    hadoop: Hadoop
    folder: Path
    pods: Mapping[str, Pod] = dataclasses.field(default_factory=dict)
    volumes: dict[str, str] = dataclasses.field(default_factory=dict)
    master: Master | None = None
    master_uid: str = ""
    due_s: float = 0.0
    round: asyncio.Task[None] | None = None


class HadoopPods:
    """Plays the clusters of a namespace.

    Args:
        api: Client of the API server.
        folder: For the volumes of masters.
        token_of: Returns a token that is bound to a pod.
        ports: Returns the ports of the operators' progress endpoints on localhost.
        namespace: The namespace.
        clock: Epoch seconds.
        look_s: Time between two lists of pods; many clusters have many.
        report_s: The longest time between two reports of an agent.

    Attributes:
        hadoops: The programs of each cluster, by UID.
        reports: How many reports agents have made.
        violations: What went wrong.
    """

    def __init__(
        self,
        api: client.ApiClient,
        folder: Path,
        *,
        token_of: Callable[[Pod], Awaitable[str]],
        ports: Callable[[], Sequence[int]],
        namespace: str,
        clock: Callable[[], float] = time.time,
        look_s: float = 0.0,
        report_s: float | None = None,
    ) -> None:
        self._api, self._folder, self._namespace = api, folder, namespace
        self._token_of, self._ports, self._clock = token_of, ports, clock
        self._look_s, self._report_s, self._looked_s = look_s, report_s, -math.inf
        self._clusters: dict[str, _Cluster] = {}
        self.reports = 0
        self.violations: list[Violation] = []

    @property
    def hadoops(self) -> Mapping[str, Hadoop]:
        """Return the programs of each cluster, by UID."""
        return {uid: cluster.hadoop for uid, cluster in self._clusters.items()}

    def version(self, uid: str) -> Version:
        """Return the version of the orders that the agent of a cluster holds."""
        cluster = self._clusters[uid]
        return cluster.master.version if cluster.master is not None else Version()

    async def run(self) -> None:
        """Play until cancelled."""
        try:
            while True:
                if time.monotonic() - self._looked_s >= self._look_s:
                    with contextlib.suppress(*played_pods.PASSING):
                        self.look((await self._api.list(_PODS, self._namespace, labels=LABEL_HOST)).items)
                    self._looked_s = time.monotonic()
                for cluster in self._clusters.values():
                    if cluster.round is None or cluster.round.done():
                        if cluster.round is not None:
                            cluster.round.result()
                        cluster.round = asyncio.create_task(self._round(cluster))
                await asyncio.sleep(_STEP_S)
        finally:
            rounds = [cluster.round for cluster in self._clusters.values() if cluster.round is not None]
            await asyncio.gather(*rounds, return_exceptions=True)

    def look(self, pods: Sequence[Pod]) -> None:
        """Take note of all pods of clusters."""
        by_cluster: dict[str, dict[str, Pod]] = {uid: {} for uid in self._clusters}
        for pod in pods:
            labels = pod["metadata"]["labels"]
            uid, host = labels[names.LABEL_JOB_UID], labels[LABEL_HOST]
            found = by_cluster.setdefault(uid, {})
            if host in found:
                self._violated("I15", f"two pods of host {host} of cluster {uid} exist at once")
            found[host] = pod
        for uid, hosts in by_cluster.items():
            if uid not in self._clusters:
                self._clusters[uid] = _Cluster(Hadoop(_domain(next(iter(hosts.values())))), self._folder / uid)
            self._clusters[uid].pods = hosts

    def _mount(self, cluster: _Cluster) -> None:
        """Give each new pod its volume; the data of a volume that ended with its pod are lost."""
        for host, pod in cluster.pods.items():
            volume = _volume(pod)
            if cluster.volumes.setdefault(host, volume) == volume:
                continue
            cluster.volumes[host] = volume
            if host == MASTER:
                cluster.hadoop.hdfs.cluster_id = ""
            elif stores(host):
                cluster.hadoop.hdfs.disks.pop(host, None)
                if missing := cluster.hadoop.hdfs.missing(set(cluster.hadoop.hdfs.disks)):
                    self._violated("I16", f"{len(missing)} blocks lost their last replica with the disk of {host}")

    async def _round(self, cluster: _Cluster) -> None:
        """Let time pass in a cluster, and let its agent report if it is due."""
        now_s = self._clock()
        self._mount(cluster)
        up = {host for host, pod in cluster.pods.items() if host != MASTER and _is_ready(pod)}
        cluster.hadoop.step(up, now_s)
        for job in cluster.hadoop.yarn.crowded_jobs():
            self._violated("I19", f"job {job} has several applications at once")
        pod = cluster.pods.get(MASTER)
        if pod is None or not _is_ready(pod):
            cluster.hadoop.stop()
            cluster.master = None
            return
        with contextlib.suppress(errors.NotFound, errors.Conflict, *played_pods.PASSING):
            if pod["metadata"]["uid"] != cluster.master_uid:
                await self._start(cluster, pod, now_s)
            if cluster.master is not None and now_s >= cluster.due_s:
                await self._trust(cluster)
                wait_s = await asyncio.to_thread(cluster.master.step)
                self.reports += 1
                cluster.due_s = self._clock() + min(wait_s, self._report_s or _REPORT_S)

    async def _start(self, cluster: _Cluster, pod: Pod, now_s: float) -> None:
        """Start the containers of a master's pod."""
        cluster.master, spec = None, _agent_spec(pod)
        may_format = _variable(pod, "BOATHOUSE_FORMAT") == "1"
        cluster_id = _variable(pod, "BOATHOUSE_CLUSTER_ID")
        cluster.folder.mkdir(parents=True, exist_ok=True)
        (cluster.folder / "token").write_text(await self._token_of(pod))
        if not cluster.hadoop.start(cluster_id, now_s, may_format=may_format):
            await self._refuse(pod)
            return
        if len(cluster.hadoop.formats) > 1:
            self._violated("I17", f"the HDFS of cluster {spec.cluster_uid} was formatted twice")
        reporter = _Client(self._ports, spec, cluster.folder, pod["metadata"]["name"])
        cluster.master, cluster.master_uid = (
            Master(cluster.hadoop, spec, cluster.folder, reporter),
            pod["metadata"]["uid"],
        )

    async def _trust(self, cluster: _Cluster) -> None:
        bundle = await self._api.get(catalogue.CONFIG_MAPS, names.PROGRESS_CA_CONFIG_MAP, self._namespace)
        (cluster.folder / "ca.crt").write_text(bundle["data"]["ca.crt"])

    async def _refuse(self, pod: Pod) -> None:
        """Let the NameNode end, as start.sh does for an empty volume."""
        metadata = pod["metadata"]
        ended = {"exitCode": _REFUSED, "message": "NameVolumeEmpty: the volume of the master is empty"}
        status = {"containerStatuses": [{"name": "namenode", "ready": False, "state": {"terminated": ended}}]}
        await played_pods.write(self._api, self._namespace, metadata["name"], metadata["uid"], status)

    def _violated(self, invariant: str, what: str) -> None:
        violation = Violation(invariant=invariant, what=what)
        if violation not in self.violations:
            self.violations.append(violation)


class _Client(AgentClient):
    """Reports to the first operator that answers; the Service does so in a cluster."""

    def __init__(self, ports: Callable[[], Sequence[int]], spec: AgentSpec, folder: Path, pod: str) -> None:
        self._ports, self._spec = ports, spec
        self._environment = Environment(pod_name=pod, token_path=folder / "token", ca_path=folder / "ca.crt")

    @override
    def report(self, report: AgentReport) -> AgentOrders:
        failure = Unavailable(0, "there is no operator")
        for reporter in self._reporters():
            try:
                return reporter.report(report)
            except Unavailable as error:
                failure = error
        raise failure

    def _reporters(self) -> Iterator[AgentClient]:
        for port in self._ports():
            url = f"https://localhost:{port}"
            endpoint = Endpoint(url, self._spec.namespace, self._spec.cluster_uid, self._environment)
            yield AgentClient(endpoint, self._environment)


def _is_ready(pod: Pod) -> bool:
    statuses = pod["status"].get("containerStatuses") or ()
    return played_pods.runs(pod) and bool(statuses) and all(status.get("ready") for status in statuses)


def _volume(pod: Pod) -> str:
    """Return what a pod's data are on: its claim, or the pod itself."""
    claims = (volume.get("persistentVolumeClaim", {}).get("claimName") for volume in pod["spec"].get("volumes", ()))
    return str(next(filter(None, claims), pod["metadata"]["uid"]))


def _domain(pod: Pod) -> str:
    return f"{pod['spec']['subdomain']}.{pod['metadata']['namespace']}.svc"


def _variable(pod: Pod, name: str) -> str:
    """Return a variable of a container of a pod, or ""."""
    variables = (variable for container in pod["spec"]["containers"] for variable in container.get("env", ()))
    return str(next((variable.get("value", "") for variable in variables if variable["name"] == name), ""))


def _agent_spec(pod: Pod) -> AgentSpec:
    return msgspec.json.decode(_variable(pod, AGENT_ENV), type=AgentSpec)
