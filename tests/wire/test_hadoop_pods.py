"""The model of Hadoop plays the pods of a cluster on the fake API server, and reports to a real endpoint."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from boathouse.resources import names
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrcluster import files, model, pods as cluster_pods
from boathouse.services.mrcluster.planning.observation import NodePod
from boathouse.services.progress import limits
from boathouse_e2e import hadoop_pods
from tests.builders.mrclusters import cluster
from tests.builders.operators.agents import AUTHORITY, UID, Pods, leading

CLUSTER = cluster(uid=UID)
READY = {"ready": True, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}


class World:
    """The pods of a cluster, their kubelets, and the model in them."""

    def __init__(self, api, pods, model):
        self.api, self.pods, self.model = api, pods, model

    def add(self, host, *, may_format=True):
        """A pod of a host starts."""
        rendered, role = files.render(CLUSTER), model.role_of(host)
        manifest = cluster_pods.of(CLUSTER, host, rendered, may_format=may_format)
        made = self.api.add(manifest)
        name = made["metadata"]["name"]
        statuses = [{"name": container["name"], **READY} for container in manifest["spec"]["containers"]]
        self.api.set_phase(f"demo/{name}", "Running", containerStatuses=statuses)
        self.pods.known[name] = NodePod(
            name=name, uid=made["metadata"]["uid"], host=host, role=role, node="n1", life=PodLife.RUNNING
        )
        return f"demo/{name}"

    def remove(self, key):
        self.api.remove("pods", key)
        del self.pods.known[key.partition("/")[2]]

    @property
    def hadoop(self):
        return self.model.hadoops[UID]


@pytest.fixture
async def leader(client, pods):
    async with leading(client, pods) as serving:
        yield serving


@pytest.fixture
def pods(api):
    return Pods(api)


@pytest.fixture
async def world(api, client, pods, leader, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "REPORT_DISTANCE_S", 0.0)
    monkeypatch.setattr(hadoop_pods, "_REPORT_S", 0.01)
    monkeypatch.setattr(hadoop_pods, "_STEP_S", 0.01)
    metadata = {"name": names.PROGRESS_CA_CONFIG_MAP, "namespace": "demo"}
    api.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ca.crt": AUTHORITY.pem}})

    async def token_of(pod):
        return api.issue_token(f"demo/{pod['metadata']['name']}")

    model = hadoop_pods.HadoopPods(client, tmp_path, token_of=token_of, ports=lambda: [leader.port], namespace="demo")
    running = asyncio.create_task(model.run())
    yield World(api, pods, model)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def test_the_agent_of_a_modelled_cluster_reports_its_nodes(world, leader, eventually):
    for host in ("master", "c0", "c1", "t7"):
        world.add(host)
    await eventually(lambda: (report := leader.reports.last(UID)) and len(report.nodes) == 3)
    report = leader.reports.last(UID)
    assert report.hdfs.cluster_id == f"CID-{UID}"
    assert [node.host for node in report.nodes if node.dfs == "L"] == ["c0", "c1"]
    assert world.model.violations == []


async def test_orders_reach_a_modelled_cluster(world, leader, eventually):
    for host in ("master", "c0", "c1"):
        world.add(host)
    leader.publish(17, "c1")
    await eventually(lambda: UID in world.model.hadoops and world.hadoop.hdfs.excluded == {"c1"})


async def test_the_data_of_claims_outlive_their_pods(world, leader, eventually):
    keys = {host: world.add(host) for host in ("master", "c0")}
    await eventually(lambda: leader.reports.last(UID) and world.hadoop.hdfs.disks)
    world.hadoop.hdfs.write({"c0"})
    for host, key in keys.items():
        world.remove(key)
        await eventually(lambda host=host: host not in world.model._clusters[UID].pods)
        world.add(host, may_format=False)
    leader.reports.forget(UID)
    await eventually(lambda: leader.reports.last(UID))
    assert world.hadoop.hdfs.missing({"c0"}) == []
    assert len(world.hadoop.formats) == 1
    assert world.model.violations == []


async def test_a_name_node_with_an_empty_volume_ends(world, eventually):
    key = world.add("master", may_format=False)

    def ended():
        statuses = {status["name"]: status for status in world.api.get("pods", key)["status"]["containerStatuses"]}
        return statuses["namenode"]["state"].get("terminated", {}).get("exitCode") == 78

    await eventually(ended)


def test_two_pods_of_a_host_are_a_violation(tmp_path):
    async def token_of(_pod):
        return ""

    model = hadoop_pods.HadoopPods(None, tmp_path, token_of=token_of, ports=list, namespace="demo")
    pod = cluster_pods.of(CLUSTER, "c0", files.render(CLUSTER))
    model.look([{**pod, "metadata": {**pod["metadata"], "uid": uid}} for uid in ("1", "2")])
    assert [violation.invariant for violation in model.violations] == ["I15"]


async def test_the_loss_of_the_last_replica_is_a_violation(tmp_path):
    async def token_of(_pod):
        return ""

    model = hadoop_pods.HadoopPods(None, tmp_path, token_of=token_of, ports=list, namespace="demo")
    fleeting = cluster(uid=UID, core={"volume": {"emptyDir": True}}, dataPolicy="Delete")
    pod = cluster_pods.of(fleeting, "c0", files.render(fleeting))
    for uid in ("1", "2"):
        model.look([{**pod, "metadata": {**pod["metadata"], "uid": uid}, "status": {}}])
        await model._round(model._clusters[UID])
        model.hadoops[UID].hdfs.write({"c0"})
    assert [violation.invariant for violation in model.violations] == ["I16"]
