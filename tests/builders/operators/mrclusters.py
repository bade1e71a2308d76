"""Whole MRClusters on the fake API server: a leader that can be killed, kubelets, and Hadoop in miniature."""

from __future__ import annotations

import asyncio
import collections
import contextlib

from boathouse.resources import names
from boathouse.resources.config import OperatorConfig
from boathouse.services.mrcluster import kind
from boathouse.services.mrcluster.model import MASTER
from boathouse.services.progress.limits import Rejected
from boathouse_policies import model
from tests.builders import manifests, mrclusters
from tests.builders.operators import leaders
from tests.builders.simulated_hadoop import Agent, Hdfs, Yarn

KEY = "demo/etl"
CONFIG = OperatorConfig.model_validate({"task": {"image": "task:dev"}})
STEP_S = 0.005
STEPS = 1500
"""Steps in which what a test waits for happens: the operator's time passes in them, whatever the machine does."""
_STARTED = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
_OWNED = ("pods", "services", "configmaps", "networkpolicies", "persistentvolumeclaims")
_BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def mrcluster(name="etl", **spec):
    """Return an MRCluster with two core nodes."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": "MRCluster",
        "metadata": {"name": name, "namespace": "demo", "generation": 1},
        "spec": {"image": "hadoop:dev", "core": {"count": 2}} | spec,
    }


class Nodes:
    """Kubelets, the garbage collector, a provisioner of volumes, and the programs in the pods of one cluster.

    Attributes:
        created: How often each pod was created, by name.
        formatted: The IDs in the status whenever a NameNode formatted its volume.
        volumes: Names of claims with a file system of HDFS.
        lost: Kubernetes nodes that do not exist.
        reports: Whether the agent's reports arrive.
        is_slow: Whether containers do not become ready.
    """

    def __init__(self, api, world):
        self._api, self._world = api, world
        self.hdfs, self.yarn = Hdfs(), Yarn()
        self.agent = Agent(self.hdfs, self.yarn)
        self.created = collections.Counter()
        self._seen = set()
        self.formatted = []
        self.volumes = set()
        self.lost = set()
        self.reports, self.is_slow = True, False

    async def run(self):
        while True:
            self.step()
            await asyncio.sleep(STEP_S)

    def step(self):
        """Do what happens around the operator."""
        self._collect()
        self._provision()
        for key, pod in list(self._api.objects("pods").items()):
            if host_of(pod) is not None:
                self._step(key, pod)
        self.hdfs.copy(self.up("c"))
        self.yarn.run(self.up("c") | self.up("t"))
        self._report()

    def up(self, letter):
        """Return the hosts of a role whose programs run."""
        return {host for host, pod in self.pods().items() if host.startswith(letter) and is_ready(pod)}

    def pods(self):
        """Return the pods of the cluster by host."""
        found = ((host_of(pod), pod) for pod in self._api.objects("pods").values())
        return {host: pod for host, pod in found if host is not None}

    def _collect(self):
        """Delete what belongs to clusters that do not exist."""
        alive = {cluster["metadata"]["uid"] for cluster in self._api.objects("mrclusters").values()}
        for plural in _OWNED:
            for key, manifest in list(self._api.objects(plural).items()):
                owners = manifest["metadata"].get("ownerReferences") or ()
                if any(owner["kind"] == "MRCluster" and owner["uid"] not in alive for owner in owners):
                    self._api.remove(plural, key)

    def _provision(self):
        for key, claim in list(self._api.objects("persistentvolumeclaims").items()):
            if "volumeName" not in claim["spec"]:
                volume = "pv-" + claim["metadata"]["uid"]
                self._api.add(
                    {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume}, "spec": {}}
                )
                bound = {
                    "metadata": {"annotations": _BOUND},
                    "spec": {"volumeName": volume},
                    "status": {"phase": "Bound"},
                }
                self._api.change("persistentvolumeclaims", key, bound)

    def _step(self, key, pod):
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        if uid not in self._seen:
            self._seen.add(uid)
            self.created[pod["metadata"]["name"]] += 1
        if node is None or node in self.lost:
            return
        if pod["metadata"].get("deletionTimestamp"):
            self._api.remove("pods", key)
        elif not self.is_slow and not is_ready(pod):
            self._start(key, pod)

    def _start(self, key, pod):
        """Start the containers of a pod; the settings, and the volume of the NameNode, must be there."""
        volumes = pod["spec"]["volumes"]
        config_map = next(volume["configMap"]["name"] for volume in volumes if volume["name"] == "conf")
        assert self._api.get("configmaps", f"demo/{config_map}"), "a pod without its settings"
        claims = [
            volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume
        ]
        host = host_of(pod)
        if host == MASTER and not self._mount(pod, (claims or [pod["metadata"]["uid"]])[0]):
            ended = {"terminated": {"exitCode": 78, "message": "NameVolumeEmpty: it is empty"}}
            self._api.set_phase(
                key, "Running", containerStatuses=[{"name": "namenode", "state": ended, "ready": False}]
            )
            return
        statuses = [
            {"name": container["name"], "state": _STARTED, "ready": True} for container in pod["spec"]["containers"]
        ]
        self._api.set_phase(key, "Running", podIP="10.0.0.1", containerStatuses=statuses)
        if host.startswith("c"):
            self.hdfs.disks.setdefault(host, set())

    def _mount(self, pod, volume):
        """Return whether the NameNode can use its volume, which it formats if it may."""
        name_node = next(container for container in pod["spec"]["containers"] if container["name"] == "namenode")
        if volume not in self.volumes:
            if not any(variable["name"] == "BOATHOUSE_FORMAT" for variable in name_node["env"]):
                return False
            self.formatted.append(self._world.status().get("clusterID"))
            self.volumes.add(volume)
        self.hdfs.cluster_id = f"CID-{self._world.uid()}"
        self.hdfs.started_s = self._world.now()
        return True

    def _report(self):
        """Exchange a report for orders with the leader, if there is one."""
        master, leader = self.pods().get(MASTER), self._world.leader
        self.agent.refresh()
        if master is None or not is_ready(master) or leader is None or not self.reports:
            return
        kind, uid = self._world.kind, self._world.uid()
        if kind.pods.find(uid, master["metadata"]["name"]) is None:
            return
        report = self.agent.report(self.up("c") | self.up("t"), self._world.now())
        with contextlib.suppress(Rejected):
            kind.reports.take(uid, report, kind.reports.arrive())
            orders = kind.orders.answer(uid, report.version, number=kind.reports.number(uid), next_s=5.0)
            if orders.version is not None:
                self.agent.take(orders.version, frozenset(node.host for node in orders.leaving))


def host_of(pod):
    """Return the host of a pod; None for another pod."""
    return pod["metadata"].get("labels", {}).get("boathouse.dev/host")


def is_ready(pod):
    """Return whether the containers of a pod are ready."""
    statuses = pod["status"].get("containerStatuses") or ()
    return (
        bool(statuses) and all(status["ready"] for status in statuses) and not pod["metadata"].get("deletionTimestamp")
    )


class RunningMRCluster(leaders.RestartableLeader):
    """What a test acts on and asserts about."""

    kind_name, plural, key = "MRCluster", "mrclusters", KEY

    def __init__(self, api, config=CONFIG, profile="fair"):
        super().__init__(api, kind.ENTRY, config, profile)
        self.nodes = Nodes(api, self)
        for number in range(6):
            api.add(manifests.node(f"n{number}", cpu="8", memory="16Gi"))

    def hosts(self):
        """Return the hosts that have a pod, sorted."""
        return sorted(self.nodes.pods())

    def pod(self, host):
        """Return the key of a host's pod."""
        return f"demo/{self.nodes.pods()[host]['metadata']['name']}"

    def names(self):
        """Return the names of the cluster's objects."""
        return mrclusters.cluster(uid=self.uid())

    def expected_names(self):
        """Return the names of the objects of the cluster that is created next."""
        return mrclusters.cluster(uid=f"uid-{self.api.world._uids + 2:06}")

    def change(self, **spec):
        """Change the spec."""
        self.api.change("mrclusters", KEY, {"spec": spec})

    async def until(self, holds, step_s=2.0):
        """Let time pass until a condition holds."""
        for _ in range(STEPS):
            if holds():
                return
            if self.leader is not None and self.api.get("mrclusters", KEY):
                self.later(step_s)
            await asyncio.sleep(4 * STEP_S)
        raise AssertionError(f"in {STEPS} steps of {step_s:g} s not; the status is {self.status()}")

    def decide(self, nodes, *, stores=False):
        """Decide how many nodes the cluster keeps, as its policy would; returns why that is refused."""
        return self.kind.scaling.take(model.Scale(job=self.uid(), workers=nodes, stores=stores, reason="by the test"))

    def events(self, reason):
        return [event for event in self.api.objects("events").values() if event["reason"] == reason]
