"""MRClusters from their creation to their end: they come up, grow, shrink, roll and expire."""

import pytest

from boathouse.services.mrcluster import wiring
from boathouse.services.mrjob import wiring as mrjobs
from boathouse.services.sparkapp import wiring as sparkapps
from boathouse_policies import model
from tests.builders.operators import leaders
from tests.builders.operators.mrclusters import CONFIG, KEY, RunningMRCluster, mrcluster

DYNAMIC = {"resizing": {"policy": "GSP"}, "transient": {"maximum": 3}}


@pytest.fixture
async def world(api):
    async with RunningMRCluster(api).running() as made:
        yield made


@pytest.fixture
def ready(api, world):
    """Return a function that creates a cluster and waits until it is ready."""

    async def create(**spec):
        api.add(mrcluster(**spec))
        await world.until(lambda: world.phase() == "Ready")

    return create


async def test_a_cluster_comes_up_with_all_that_its_nodes_need(api, world, ready):
    await ready(transient={"minimum": 1, "maximum": 3})
    assert world.hosts() == ["c0", "c1", "master", "t0"]
    assert world.status()["clusterID"] == f"CID-{world.uid()}"
    assert set(world.nodes.created.values()) == {1}
    assert [len(api.objects(each)) for each in ("services", "configmaps", "networkpolicies")] == [1, 1, 2]
    assert len(api.objects("persistentvolumeclaims")) == 3


async def test_core_nodes_are_on_different_nodes(world, ready):
    await ready(core={"count": 4})
    placed = [pod["spec"]["nodeName"] for host, pod in world.nodes.pods().items() if host.startswith("c")]
    assert len({*placed}) == 4


async def test_other_kinds_find_the_cluster_and_the_nodes_of_its_hosts(world, ready):
    await ready()
    facts = world.leader.clusters.find("demo", "etl")
    assert (facts.is_ready, facts.image, facts.has_compute) == (True, "hadoop:dev", True)
    assert facts.hosts == {host: pod["spec"]["nodeName"] for host, pod in world.nodes.pods().items()}
    assert facts.settings.rpartition("-")[2] == world.status()["settings"][:8]


async def test_a_cluster_grows_as_its_policy_decides_and_uses_each_decision_once(world, ready):
    await ready(**DYNAMIC)
    await world.until(lambda: world.decide(4) == "")
    await world.until(lambda: world.hosts() == ["c0", "c1", "master", "t0", "t1"])
    assert world.status()["size"]["reason"] == "by the test"
    await world.until(lambda: world.status()["transient"]["ready"] == 2)
    assert world.kind.scaling.target(world.uid()) is None


async def test_the_policies_know_the_cluster_and_its_load(world, ready):
    await ready(**DYNAMIC | {"resizing": {"policy": "GSP", "periodSeconds": 5}})
    world.nodes.yarn.pending = 40
    await world.until(lambda: world.status()["transient"]["ready"] == 3)
    assert "F = " in world.status()["size"]["reason"]


async def test_nodes_that_are_given_back_are_drained_first(world, ready):
    await ready(**DYNAMIC)
    await world.until(lambda: world.decide(5) == "")
    await world.until(lambda: world.status()["transient"]["ready"] == 3)
    world.nodes.yarn.pending = 0
    await world.until(lambda: world.decide(2) == "")
    await world.until(lambda: world.hosts() == ["c0", "c1", "master"])
    await world.until(lambda: "leaving" not in world.status())
    assert world.status()["nextTransient"] == 3
    await world.until(lambda: world.events("Shrank"))


async def test_core_nodes_follow_the_spec_and_leave_without_a_loss(world, ready):
    await ready()
    world.change(core={"count": 3})
    await world.until(lambda: world.status()["core"]["ready"] == 3)
    for _ in range(6):
        world.nodes.hdfs.write({"c0", "c1", "c2"})
    world.change(core={"count": 2})
    await world.until(lambda: world.hosts() == ["c0", "c1", "master"])
    assert not world.nodes.hdfs.missing({"c0", "c1"})
    claims = world.api.objects("persistentvolumeclaims")
    assert f"demo/{world.names().claim('c2')}" in claims


async def test_a_lost_transient_node_is_replaced_by_another(api, world, ready):
    await ready(transient={"minimum": 1, "maximum": 3})
    api.remove("pods", world.pod("t0"))
    await world.until(lambda: "t1" in world.hosts())
    assert world.hosts() == ["c0", "c1", "master", "t1"]


@pytest.mark.parametrize("host", ["master", "c1"])
async def test_a_lost_master_or_core_node_comes_again_under_its_name(api, world, ready, host):
    await ready()
    former = api.get("pods", world.pod(host))["metadata"]
    api.remove("pods", world.pod(host))
    await world.until(lambda: world.nodes.created[former["name"]] == 2 and world.phase() == "Ready")
    assert host in world.hosts()
    assert world.nodes.formatted == [None]


async def test_a_pod_whose_kubernetes_node_is_gone_is_deleted_and_comes_again(api, world, ready):
    await ready()
    pod = api.get("pods", world.pod("c1"))
    world.nodes.lost.add(pod["spec"]["nodeName"])
    api.remove("nodes", pod["spec"]["nodeName"])
    await world.until(lambda: "deletionTimestamp" in api.get("pods", world.pod("c1"))["metadata"])
    api.remove("pods", world.pod("c1"))
    await world.until(lambda: world.status()["core"]["ready"] == 2 and len(world.hosts()) == 3)
    assert api.get("pods", world.pod("c1"))["spec"]["nodeName"] != pod["spec"]["nodeName"]


async def test_an_emptied_name_volume_is_not_formatted_again(api, world, ready):
    await ready()
    world.nodes.volumes.clear()
    api.remove("pods", world.pod("master"))
    await world.until(lambda: world.condition("Degraded") == ("True", "NameVolumeEmpty"))
    assert world.nodes.formatted == [None]
    assert world.phase() == "Degraded"


async def test_other_settings_roll_all_nodes_and_replace_the_config_map(api, world, ready):
    await ready(transient={"minimum": 1, "maximum": 3})
    former = set(api.objects("configmaps"))
    world.change(hdfs={"settings": {"dfs.namenode.handler.count": "20"}})
    await world.until(lambda: world.condition("RolledOut")[0] == "False")
    await world.until(
        lambda: world.condition("RolledOut")[0] == "True" and world.hosts() == ["c0", "c1", "master", "t1"]
    )
    assert not former & set(api.objects("configmaps"))
    assert len(api.objects("configmaps")) == 1


async def test_settings_that_are_taken_back_leave_no_config_map(api, world, ready):
    await ready()
    world.change(hdfs={"settings": {"dfs.namenode.handler.count": "20"}})
    await world.until(lambda: len(api.objects("configmaps")) == 2)
    world.change(hdfs={"settings": None})
    await world.until(lambda: len(api.objects("configmaps")) == 1)
    await world.until(lambda: world.condition("RolledOut")[0] == "True")


async def test_closed_settings_are_ignored_and_named(world, ready):
    await ready(hadoopSettings={"fs.defaultFS": "hdfs://elsewhere:8020"})
    assert world.condition("SettingsOverridden")[0] == "True"
    await world.until(lambda: world.events("SettingsOverridden"))


async def test_a_cluster_whose_daemons_do_not_fit_is_refused(api, world, eventually):
    api.add(mrcluster(master={"resources": {"memory": "1Gi"}}))
    await eventually(lambda: world.condition("Admitted") == ("False", "InvalidSpec"))
    assert world.hosts() == []
    world.change(master={"resources": {"memory": "2Gi"}})
    await world.until(lambda: world.phase() == "Ready")


async def test_a_cluster_that_nobody_uses_expires_and_is_deleted(api, world, ready):
    await ready(ttlSecondsAfterIdle=60)
    await world.until(lambda: not api.objects("mrclusters"), step_s=20)
    await world.until(lambda: not world.hosts() and world.leader.clusters.find("demo", "etl") is None)
    await world.until(lambda: world.events("Expired"))


async def test_a_cluster_that_a_job_uses_does_not_expire(api, world, ready, eventually):
    await ready(ttlSecondsAfterIdle=60)
    world.leader.clusters.use("job", [world.uid()])
    for _ in range(5):
        world.later(100)
        await eventually(lambda: world.condition("Idle") == ("False", "InUse"))
    world.leader.clusters.use("job", [])
    await world.until(lambda: not api.objects("mrclusters"), step_s=20)


@pytest.mark.parametrize(("policy", "claims"), [("Retain", 3), ("Delete", 0)])
async def test_claims_outlive_a_cluster_if_its_spec_says_so(api, world, ready, policy, claims):
    await ready(dataPolicy=policy)
    assert len(api.objects("persistentvolumeclaims")) == 3
    api.remove("mrclusters", KEY)
    await world.until(lambda: not world.hosts() and len(api.objects("persistentvolumeclaims")) == claims)
    assert not api.objects("services")


async def test_another_network_policy_is_applied_without_a_restart(api, world, ready):
    await ready()
    key = f"demo/{world.names().network_policy('clients')}"
    assert api.get("networkpolicies", key)["spec"]["ingress"][0]["from"] == [{"podSelector": {}}]
    world.change(networkPolicy="Cluster")
    await world.until(
        lambda: "matchExpressions" in api.get("networkpolicies", key)["spec"]["ingress"][0]["from"][0]["podSelector"]
    )
    world.change(networkPolicy="None")
    await world.until(lambda: not api.objects("networkpolicies"))
    assert set(world.nodes.created.values()) == {1}


async def test_objects_that_a_user_deleted_are_created_again(api, world, ready):
    await ready()
    for plural in ("services", "configmaps", "networkpolicies"):
        for key in list(api.objects(plural)):
            api.remove(plural, key)
    await world.until(lambda: len(api.objects("services")) == 1 and len(api.objects("networkpolicies")) == 2, step_s=20)
    name = world.names().pod("c1")
    api.remove("pods", f"demo/{name}")
    await world.until(lambda: world.nodes.created[name] == 2 and len(world.nodes.up("c")) == 2)
    assert len(api.objects("configmaps")) == 1


async def test_a_deleted_cluster_takes_its_pending_nodes_from_the_scheduler(api, world, eventually):
    world.nodes.is_slow = True
    api.add(mrcluster(core={"count": 12}))
    await eventually(lambda: len(world.hosts()) >= 7)
    uid = world.uid()
    api.remove("mrclusters", KEY)
    await eventually(lambda: world.leader.scheduling.scheduler.state.jobs.entry(model.JobId(uid)) is None)


async def test_the_kind_runs_beside_the_others(api, eventually):
    kinds = (mrjobs.MRJOBS, sparkapps.SPARKAPPS, wiring.MRCLUSTERS)
    async with leaders.leading(api, kinds, CONFIG) as leader:
        api.add(mrcluster(core={"count": 1}))
        await eventually(lambda: leader.clusters.find("demo", "etl") is not None)
        assert {*leader.controllers.stores} == {"MRJob", "SparkApp", "MRCluster"}


async def test_a_pod_that_does_not_start_is_named_in_the_conditions(api, world, eventually):
    world.nodes.is_slow = True
    api.add(mrcluster())
    await eventually(lambda: "master" in world.hosts() and api.get("pods", world.pod("master"))["spec"].get("nodeName"))
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
    statuses = [{"name": "namenode", "state": waiting, "ready": False}]
    api.set_phase(world.pod("master"), "Pending", containerStatuses=statuses)

    def told():
        found = [each for each in world.status().get("conditions", ()) if each["type"] == "Ready"]
        return bool(found) and "no such image" in found[0]["message"]

    await world.until(told)
