"""MRClusters from their creation to their end: they come up, grow, shrink, roll and expire."""

import pytest

from boathouse.services.mrcluster import kind as mrclusters
from boathouse.services.mrjob import routes as mrjobs
from boathouse.services.sparkapp import kind as sparkapps
from boathouse_policies import model
from tests.builders.operators import leaders
from tests.builders.operators.mrclusters import CONFIG, KEY, mrcluster

DYNAMIC = {"resizing": {"policy": "GSP"}, "transient": {"maximum": 3}}


@pytest.fixture
def ready(api, hadoop):
    """Return a function that creates a cluster and waits until it is ready."""

    async def create(**spec):
        api.add(mrcluster(**spec))
        await hadoop.until(lambda: hadoop.phase() == "Ready")

    return create


async def test_a_cluster_is_created_with_all_that_its_nodes_need(api, hadoop, ready):
    await ready(transient={"minimum": 1, "maximum": 3})
    assert hadoop.hosts() == ["c0", "c1", "master", "t0"]
    assert hadoop.status()["clusterID"] == f"CID-{hadoop.uid()}"
    assert set(hadoop.nodes.created.values()) == {1}
    assert [len(api.objects(plural)) for plural in ("services", "configmaps", "networkpolicies")] == [1, 1, 2]
    assert len(api.objects("persistentvolumeclaims")) == 3


async def test_core_nodes_are_on_different_nodes(hadoop, ready):
    await ready(core={"count": 4})
    placed = [pod["spec"]["nodeName"] for host, pod in hadoop.nodes.pods().items() if host.startswith("c")]
    assert len({*placed}) == 4


async def test_other_kinds_find_the_cluster_and_the_nodes_of_its_hosts(hadoop, ready):
    await ready()
    nodes = {host: pod["spec"]["nodeName"] for host, pod in hadoop.nodes.pods().items()}

    def facts():
        return hadoop.leader.clusters.find("demo", "etl")

    await hadoop.until(lambda: facts().is_ready and facts().hosts == nodes)
    assert (facts().image, facts().has_compute) == ("hadoop:dev", True)
    assert facts().settings.rpartition("-")[2] == hadoop.status()["settings"][:8]


async def test_a_cluster_grows_as_its_policy_decides_and_uses_each_decision_once(hadoop, ready):
    await ready(**DYNAMIC)
    await hadoop.until(lambda: hadoop.decide(4) == "")
    await hadoop.until(lambda: hadoop.hosts() == ["c0", "c1", "master", "t0", "t1"])
    assert hadoop.status()["size"]["reason"] == "by the test"
    await hadoop.until(lambda: hadoop.status()["transient"]["ready"] == 2)
    assert hadoop.kind.scaling.target(hadoop.uid()) is None


async def test_the_policies_know_the_cluster_and_its_load(hadoop, ready):
    await ready(**DYNAMIC | {"resizing": {"policy": "GSP", "periodSeconds": 5}})
    hadoop.nodes.yarn.pending = 40
    await hadoop.until(lambda: hadoop.status()["transient"]["ready"] == 3)
    assert "F = " in hadoop.status()["size"]["reason"]


async def test_nodes_that_are_given_back_are_drained_first(hadoop, ready):
    await ready(**DYNAMIC)
    await hadoop.until(lambda: hadoop.decide(5) == "")
    await hadoop.until(lambda: hadoop.status()["transient"]["ready"] == 3)
    hadoop.nodes.yarn.pending = 0
    await hadoop.until(lambda: hadoop.decide(2) == "")
    await hadoop.until(lambda: hadoop.hosts() == ["c0", "c1", "master"])
    await hadoop.until(lambda: "leaving" not in hadoop.status())
    assert hadoop.status()["nextTransient"] == 3
    await hadoop.until(lambda: hadoop.events("Shrank"))


async def test_core_nodes_follow_the_spec_and_leave_without_a_loss(hadoop, ready):
    await ready()
    hadoop.change(core={"count": 3})
    await hadoop.until(lambda: hadoop.status()["core"]["ready"] == 3)
    for _ in range(6):
        hadoop.nodes.hdfs.write({"c0", "c1", "c2"})
    hadoop.change(core={"count": 2})
    await hadoop.until(lambda: hadoop.hosts() == ["c0", "c1", "master"])
    assert not hadoop.nodes.hdfs.missing({"c0", "c1"})
    claims = hadoop.api.objects("persistentvolumeclaims")
    assert f"demo/{hadoop.names().named('c2')}" in claims


async def test_a_lost_transient_node_is_replaced_by_another(api, hadoop, ready):
    await ready(transient={"minimum": 1, "maximum": 3})
    api.remove("pods", hadoop.pod("t0"))
    await hadoop.until(lambda: "t1" in hadoop.hosts())
    assert hadoop.hosts() == ["c0", "c1", "master", "t1"]


@pytest.mark.parametrize("host", ["master", "c1"])
async def test_a_lost_master_or_core_node_is_created_again_under_its_name(api, hadoop, ready, host):
    await ready()
    former = api.get("pods", hadoop.pod(host))["metadata"]
    api.remove("pods", hadoop.pod(host))
    await hadoop.until(lambda: hadoop.nodes.created[former["name"]] == 2 and hadoop.phase() == "Ready")
    assert host in hadoop.hosts()
    assert hadoop.nodes.formatted == [None]


async def test_a_pod_whose_kubernetes_node_is_gone_is_deleted_and_created_again(api, hadoop, ready):
    await ready()
    pod = api.get("pods", hadoop.pod("c1"))
    hadoop.nodes.lost.add(pod["spec"]["nodeName"])
    api.remove("nodes", pod["spec"]["nodeName"])
    await hadoop.until(lambda: "deletionTimestamp" in api.get("pods", hadoop.pod("c1"))["metadata"])
    api.remove("pods", hadoop.pod("c1"))
    await hadoop.until(lambda: hadoop.status()["core"]["ready"] == 2 and len(hadoop.hosts()) == 3)
    assert api.get("pods", hadoop.pod("c1"))["spec"]["nodeName"] != pod["spec"]["nodeName"]


async def test_an_emptied_name_volume_is_not_formatted_again(api, hadoop, ready):
    await ready()
    hadoop.nodes.volumes.clear()
    api.remove("pods", hadoop.pod("master"))
    await hadoop.until(lambda: hadoop.condition("Degraded") == ("True", "NameVolumeEmpty"))
    assert hadoop.nodes.formatted == [None]
    assert hadoop.phase() == "Degraded"


async def test_other_settings_roll_all_nodes_and_replace_the_config_map(api, hadoop, ready):
    await ready(transient={"minimum": 1, "maximum": 3})
    former = set(api.objects("configmaps"))
    hadoop.change(hdfs={"settings": {"dfs.namenode.handler.count": "20"}})
    await hadoop.until(lambda: hadoop.condition("RolledOut")[0] == "False")
    await hadoop.until(
        lambda: hadoop.condition("RolledOut")[0] == "True" and hadoop.hosts() == ["c0", "c1", "master", "t1"]
    )
    assert not former & set(api.objects("configmaps"))
    assert len(api.objects("configmaps")) == 1


async def test_settings_that_are_taken_back_leave_no_config_map(api, hadoop, ready):
    await ready()
    hadoop.change(hdfs={"settings": {"dfs.namenode.handler.count": "20"}})
    await hadoop.until(lambda: len(api.objects("configmaps")) == 2)
    hadoop.change(hdfs={"settings": None})
    await hadoop.until(lambda: len(api.objects("configmaps")) == 1)
    await hadoop.until(lambda: hadoop.condition("RolledOut")[0] == "True")


async def test_closed_settings_are_ignored_and_named(hadoop, ready):
    await ready(hadoopSettings={"fs.defaultFS": "hdfs://elsewhere:8020"})
    assert hadoop.condition("SettingsOverridden")[0] == "True"
    await hadoop.until(lambda: hadoop.events("SettingsOverridden"))


async def test_a_cluster_whose_daemons_do_not_fit_is_refused(api, hadoop, eventually):
    api.add(mrcluster(master={"resources": {"memory": "1Gi"}}))
    await eventually(lambda: hadoop.condition("Admitted") == ("False", "InvalidSpec"))
    assert hadoop.hosts() == []
    hadoop.change(master={"resources": {"memory": "2Gi"}})
    await hadoop.until(lambda: hadoop.phase() == "Ready")


async def test_a_cluster_that_nobody_uses_expires_and_is_deleted(api, hadoop, ready):
    await ready(ttlSecondsAfterIdle=60)
    await hadoop.until(lambda: not api.objects("mrclusters"), step_s=20)
    await hadoop.until(lambda: not hadoop.hosts() and hadoop.leader.clusters.find("demo", "etl") is None)
    await hadoop.until(lambda: hadoop.events("Expired"))


async def test_a_cluster_that_a_job_uses_does_not_expire(api, hadoop, ready):
    await ready(ttlSecondsAfterIdle=60)
    hadoop.leader.clusters.use("job", [hadoop.uid()])
    end_s = hadoop.now() + 500
    await hadoop.until(lambda: hadoop.now() > end_s and hadoop.condition("Idle") == ("False", "InUse"), step_s=20)
    hadoop.leader.clusters.use("job", [])
    await hadoop.until(lambda: not api.objects("mrclusters"), step_s=20)


@pytest.mark.parametrize(("policy", "claims"), [("Retain", 3), ("Delete", 0)])
async def test_claims_outlive_a_cluster_if_its_spec_says_so(api, hadoop, ready, policy, claims):
    await ready(dataPolicy=policy)
    assert len(api.objects("persistentvolumeclaims")) == 3
    api.remove("mrclusters", KEY)
    await hadoop.until(lambda: not hadoop.hosts() and len(api.objects("persistentvolumeclaims")) == claims)
    assert not api.objects("services")


async def test_another_network_policy_is_applied_without_a_restart(api, hadoop, ready):
    await ready()
    key = f"demo/{hadoop.names().named('clients')}"
    assert api.get("networkpolicies", key)["spec"]["ingress"][0]["from"] == [{"podSelector": {}}]
    hadoop.change(networkPolicy="Cluster")
    await hadoop.until(
        lambda: "matchExpressions" in api.get("networkpolicies", key)["spec"]["ingress"][0]["from"][0]["podSelector"]
    )
    hadoop.change(networkPolicy="None")
    await hadoop.until(lambda: not api.objects("networkpolicies"))
    assert set(hadoop.nodes.created.values()) == {1}


async def test_objects_that_a_user_deleted_are_created_again(api, hadoop, ready):
    await ready()
    for plural in ("services", "configmaps", "networkpolicies"):
        for key in list(api.objects(plural)):
            api.remove(plural, key)
    await hadoop.until(
        lambda: len(api.objects("services")) == 1 and len(api.objects("networkpolicies")) == 2, step_s=20
    )
    name = hadoop.names().named("c1")
    api.remove("pods", f"demo/{name}")
    await hadoop.until(lambda: hadoop.nodes.created[name] == 2 and len(hadoop.nodes.up("c")) == 2)
    assert len(api.objects("configmaps")) == 1


async def test_a_deleted_cluster_takes_its_pending_nodes_from_the_scheduler(api, hadoop, eventually):
    hadoop.nodes.is_slow = True
    api.add(mrcluster(core={"count": 12}))
    await eventually(lambda: len(hadoop.hosts()) >= 7)
    uid = hadoop.uid()
    api.remove("mrclusters", KEY)
    await eventually(lambda: hadoop.leader.scheduling.scheduler.state.jobs.entry(model.JobId(uid)) is None)


async def test_the_kind_runs_beside_the_others(api, eventually):
    kinds = (mrjobs.ENTRY, sparkapps.ENTRY, mrclusters.ENTRY)
    async with leaders.leading(api, kinds, CONFIG) as leader:
        api.add(mrcluster(core={"count": 1}))
        await eventually(lambda: leader.clusters.find("demo", "etl") is not None)
        assert {*leader.controllers.stores} == {"MRJob", "SparkApp", "MRCluster"}


async def test_a_pod_that_does_not_start_is_named_in_the_conditions(api, hadoop, eventually):
    hadoop.nodes.is_slow = True
    api.add(mrcluster())
    await eventually(
        lambda: "master" in hadoop.hosts() and api.get("pods", hadoop.pod("master"))["spec"].get("nodeName")
    )
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
    statuses = [{"name": "namenode", "state": waiting, "ready": False}]
    api.set_phase(hadoop.pod("master"), "Pending", containerStatuses=statuses)

    def is_reported():
        found = [condition for condition in hadoop.status().get("conditions", ()) if condition["type"] == "Ready"]
        return bool(found) and "no such image" in found[0]["message"]

    await hadoop.until(is_reported)
