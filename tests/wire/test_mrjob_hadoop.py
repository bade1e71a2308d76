"""Jobs on a Hadoop cluster: their lives, and the operator's death beside each of its writes."""

from __future__ import annotations

import msgspec
import pytest

from boathouse import failpoints
from boathouse.services.mrjob.hadoop import plan
from boathouse_task import contract
from tests.builders.operators.hadoop_jobs import CLUSTER, RunningHadoopJob, mrjob

OF_A_LIFE = ("mrjob.status", "mrjob.tags", "mrjob.submit", "mrjob.leave")
OF_A_STOP = ("mrjob.status", "mrjob.tags", "mrjob.kill-application", "mrjob.delete-pod")
MOMENTS = ("before", "after")


@pytest.fixture
def world(api):
    return RunningHadoopJob(api)


def ended(world):
    return lambda: world.phase() in {"Succeeded", "Failed"}


def is_running(world):
    return lambda: world.phase() == "Map"


async def test_a_job_runs_as_one_application_with_its_tag(world, eventually):
    world.api.add(mrjob())
    async with world.running():
        await eventually(ended(world))
    status = world.status()
    assert (status["phase"], status["progress"]) == ("Succeeded", "maps 2/2, reduces 1/1")
    assert status["counters"]["org.apache.hadoop.mapreduce.TaskCounter"] == {"MAP_INPUT_RECORDS": 7}
    assert status["hadoop"]["tag"] == f"{world.uid()}-1"
    assert [application["finalStatus"] for application in status["hadoop"]["applications"]] == ["SUCCEEDED"]
    assert world.clients() == ["a1"]


async def test_a_job_waits_for_a_cluster_of_its_name(world, eventually):
    world.nodes.has_cluster = False
    world.api.add(mrjob())
    async with world.running():
        await eventually(lambda: world.condition("Admitted") == ("False", "ClusterNotFound"))
        world.nodes.has_cluster = True
        await eventually(ended(world))
    assert world.phase() == "Succeeded"


async def test_a_job_whose_cluster_was_deleted_runs_on_the_next_one_of_its_name(world, eventually):
    world.nodes.is_held = True
    world.api.add(mrjob())
    async with world.running():
        await eventually(is_running(world))
        assert world.status()["hadoop"]["clusterUID"] == CLUSTER.uid
        world.nodes.delete_cluster()
        await eventually(lambda: world.condition("Admitted") == ("False", "ClusterNotFound"))
        assert (world.phase(), world.condition("Running")) == ("Pending", ("False", "ClusterNotFound"))
        world.nodes.is_held = False
        world.nodes.create_cluster("c-2")
        await eventually(ended(world))
    assert (world.phase(), world.status()["failures"]) == ("Succeeded", {"user": 0, "infrastructure": 1})


async def test_a_job_is_deleted_with_its_deleted_cluster(world, eventually):
    world.nodes.is_held = True
    world.api.add(mrjob())
    async with world.running():
        await eventually(is_running(world))
        world.nodes.delete_cluster()
        deleted_s = world.delete()
        await eventually(lambda: world.api.get("mrjobs", world.key) is None)
    assert world.now() < deleted_s + plan.GIVE_UP_S


async def test_a_new_leader_does_not_say_that_a_cluster_is_absent_before_it_reconciled_it(world, eventually):
    world.nodes.has_cluster = False
    metadata = {"name": "lake", "namespace": "demo", "uid": CLUSTER.uid}
    world.api.add({"apiVersion": "boathouse.dev/v1alpha1", "kind": "MRCluster", "metadata": metadata, "spec": {}})
    world.api.add(mrjob())
    async with world.running():
        await eventually(lambda: world.condition("Scheduled") == ("False", "ClusterNotReady"))
        assert world.condition("Admitted") == ("True", "Admitted")


FILES = [{"name": "a", "configMapKeyRef": {"name": "scripts", "key": "a"}}]


async def test_a_job_waits_for_the_config_map_of_its_files(world, eventually):
    world.api.add(mrjob(files=FILES))
    async with world.running():
        await eventually(lambda: world.condition("Admitted") == ("False", "ConfigMapNotFound"))
        metadata = {"name": "scripts", "namespace": "demo"}
        world.api.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": ""}})
        await eventually(ended(world))
    assert world.phase() == "Succeeded"


async def test_a_client_without_the_config_map_that_it_mounts_says_so(world, eventually):
    metadata = {"name": "scripts", "namespace": "demo"}
    world.api.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": ""}})
    world.nodes.lacks = 'MountVolume.SetUp failed for volume "files" : configmap "scripts" not found'
    world.api.add(mrjob(files=FILES))
    async with world.running():
        await eventually(lambda: world.condition("Running") == ("False", "ConfigMapNotFound"))


async def test_a_client_that_is_lost_before_it_submits_is_replaced(world, eventually):
    world.nodes.loses = {1, 2}
    world.api.add(mrjob())
    async with world.running():
        await eventually(ended(world))
    assert world.phase() == "Succeeded"
    assert world.status()["failures"] == {"user": 0, "infrastructure": 2}
    assert world.finals() == ["SUCCEEDED"]


async def test_the_next_leader_follows_the_application_of_the_last_one(world, eventually):
    world.nodes.is_held = True
    world.api.add(mrjob())
    async with world.running():
        await eventually(is_running(world))
        await world.restart()
        world.nodes.is_held = False
        await eventually(ended(world))
    assert (world.phase(), world.finals()) == ("Succeeded", ["SUCCEEDED"])


async def test_a_suspended_jobs_application_is_killed_and_another_one_follows(world, eventually):
    world.nodes.is_held = True
    world.api.add(mrjob())
    async with world.running():
        await eventually(is_running(world))
        world.patch(suspend=True)
        await eventually(lambda: world.status()["hadoop"].get("ended") is not None)
        assert (world.phase(), world.finals(), world.clients()) == ("Suspended", ["KILLED"], [])
        world.nodes.is_held = False
        world.patch(suspend=False)
        await eventually(ended(world))
    assert (world.phase(), world.finals(), world.nodes.most_running) == ("Succeeded", ["KILLED", "SUCCEEDED"], 1)


async def test_a_job_is_deleted_once_its_application_has_ended(world, eventually):
    world.nodes.is_held = True
    world.api.add(mrjob())
    async with world.running():
        await eventually(is_running(world))
        world.delete()
        await eventually(lambda: world.api.get("mrjobs", world.key) is None)
    assert world.finals() == ["KILLED"]


async def test_a_job_in_use_keeps_its_cluster_from_being_idle(world, eventually):
    world.nodes.is_held = True
    world.api.add(mrjob())
    async with world.running():
        await eventually(lambda: world.leader.clusters.users(CLUSTER.uid) == 1)
        world.nodes.is_held = False
        await eventually(ended(world))
        await eventually(lambda: world.leader.clusters.users(CLUSTER.uid) == 0)


async def test_a_client_of_a_stopping_attempt_gets_no_leave(world, eventually):
    world.nodes.is_held = True
    world.api.add(mrjob())
    async with world.running():
        await eventually(is_running(world))
        world.patch(suspend=True)
        jobs, pod = world.kind.hadoop, next(iter(world.kind.hadoop.clients.of(world.uid())))
        await eventually(lambda: world.status()["hadoop"].get("stopping"))
        assert world.status()["hadoop"].get("ended") is None
        assert not jobs.may_submit(world.uid(), pod)


NATIVE = {"clusterRef": None, "input": ["hdfs://lake/in"], "output": "hdfs://lake/out"}


def addresses(world):
    """The addresses of clusters that the pods of tasks have."""
    containers = [container for pod in world.api.objects("pods").values() for container in pod["spec"]["containers"]]
    orders = [
        variable["value"]
        for container in containers
        for variable in container["env"]
        if variable["name"] == contract.TASK_ENV
    ]
    return [msgspec.json.decode(order, type=contract.TaskSpec).hdfs for order in orders]


async def test_a_new_leader_submits_no_task_before_it_knows_the_cluster_of_its_urls(world, eventually):
    world.nodes.has_cluster = False
    metadata = {"name": "lake", "namespace": "demo"}
    world.api.add({"apiVersion": "boathouse.dev/v1alpha1", "kind": "MRCluster", "metadata": metadata, "spec": {}})
    world.api.add(mrjob(**NATIVE))
    async with world.running():
        await eventually(lambda: world.api.called("get mrclusters"))
        assert world.api.objects("pods") == {}
        world.nodes.has_cluster = True
        await eventually(lambda: world.api.objects("pods"))
    assert [found["lake"].name_node for found in addresses(world)] == [CLUSTER.name_node]


async def test_a_job_whose_urls_name_no_cluster_starts_a_task_without_addresses(world, eventually):
    world.nodes.has_cluster = False
    world.api.add(mrjob(**NATIVE))
    async with world.running():
        await eventually(lambda: world.api.objects("pods"))
    assert addresses(world) == [{}]


def at_failpoints(names):
    return [f"{moment}-{name}" for name in names for moment in MOMENTS]


@pytest.mark.parametrize("name", at_failpoints(OF_A_LIFE))
async def test_a_job_survives_the_operators_death(world, eventually, monkeypatch, name):
    assert name in failpoints.NAMES
    world.kill_at(monkeypatch, name)
    world.api.add(mrjob())
    async with world.running():
        await eventually(ended(world))
    assert world.lives > 1
    assert (world.phase(), world.finals()) == ("Succeeded", ["SUCCEEDED"])


@pytest.mark.parametrize("name", at_failpoints(OF_A_STOP))
async def test_a_suspension_survives_the_operators_death(world, eventually, monkeypatch, name):
    world.nodes.is_held = True
    world.api.add(mrjob())
    async with world.running():
        await eventually(is_running(world))
        world.kill_at(monkeypatch, name)
        world.patch(suspend=True)
        await eventually(lambda: world.status()["hadoop"].get("ended") is not None)
        world.nodes.is_held = False
        world.patch(suspend=False)
        await eventually(ended(world))
    assert world.lives > 1
    assert (world.phase(), world.nodes.most_running) == ("Succeeded", 1)
    assert world.finals().count("SUCCEEDED") == 1
