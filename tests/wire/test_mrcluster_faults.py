"""MRClusters while the operator dies beside its writes, names are taken, and answers are lost: a successor goes on."""

import asyncio
import random

import pytest

from boathouse import failpoints
from tests.builders import manifests
from tests.builders.operators.mrclusters import STEP_S, RunningMRCluster, mrcluster

GROWING = {"resizing": {"policy": "GSP"}, "transient": {"minimum": 1, "maximum": 3}}
OF_THE_START = {
    "mrcluster.status": (1, 2),
    "mrcluster.service": (1,),
    "mrcluster.config-map": (1,),
    "mrcluster.network-policy": (1, 2),
    "mrcluster.claim": (1, 2, 3),
    "mrcluster.orders": (1, 2),
    "mrcluster.submit": (1, 2),
    "scheduler.create": (1, 2, 3),
}
STARTS = [
    (f"{moment}-{write}", count)
    for write, counts in OF_THE_START.items()
    for count in counts
    for moment in ("before", "after")
]
OF_THE_DRAIN = {"mrcluster.status": (1, 2), "mrcluster.orders": (1, 2), "mrcluster.delete-pod": (1,)}
DRAINS = [
    (f"{moment}-{write}", count)
    for write, counts in OF_THE_DRAIN.items()
    for count in counts
    for moment in ("before", "after")
]
MOMENTS = pytest.mark.parametrize("moment", ["before", "after"])


def of_role(hadoop, letter):
    return [host for host in hadoop.hosts() if host.startswith(letter)]


def is_whole(hadoop):
    return hadoop.phase() == "Ready" and len(of_role(hadoop, "c")) == 2 and len(of_role(hadoop, "t")) == 1


@pytest.mark.parametrize(("name", "count"), STARTS)
async def test_an_operator_killed_beside_a_write_brings_the_cluster_up_once(api, monkeypatch, name, count):
    hadoop = RunningMRCluster(api)
    hadoop.kill_at(monkeypatch, name, count)
    async with hadoop.running():
        api.add(mrcluster(transient={"minimum": 1, "maximum": 3}))
        await hadoop.until(lambda: hadoop.lives == 2 and is_whole(hadoop))
    assert set(hadoop.nodes.created.values()) == {1}
    assert hadoop.nodes.formatted == [None]
    assert [len(api.objects(plural)) for plural in ("services", "configmaps", "networkpolicies")] == [1, 1, 2]
    assert len(api.objects("persistentvolumeclaims")) == 3


@pytest.mark.parametrize(("name", "count"), DRAINS)
async def test_an_operator_killed_while_a_node_leaves_drains_it_and_no_other(api, monkeypatch, name, count):
    hadoop = RunningMRCluster(api)
    async with hadoop.running():
        api.add(mrcluster(**GROWING | {"transient": {"minimum": 2, "maximum": 3}}))
        await hadoop.until(lambda: hadoop.phase() == "Ready" and hadoop.status()["transient"]["ready"] == 2)
        hadoop.kill_at(monkeypatch, name, count)
        hadoop.change(transient={"minimum": 1}, resizing={"policy": "Static"})
        await hadoop.until(lambda: hadoop.lives == 2 and is_whole(hadoop) and "leaving" not in hadoop.status())
        assert hadoop.hosts() == ["c0", "c1", "master", "t0"]
    assert set(hadoop.nodes.created.values()) == {1}


@MOMENTS
async def test_an_operator_killed_while_it_removes_former_settings_removes_them(api, monkeypatch, moment):
    hadoop = RunningMRCluster(api)
    async with hadoop.running():
        api.add(mrcluster())
        await hadoop.until(lambda: hadoop.phase() == "Ready")
        hadoop.kill_at(monkeypatch, f"{moment}-mrcluster.config-map", 2)  # the first creates the new ones
        hadoop.change(hdfs={"settings": {"dfs.namenode.handler.count": "20"}})
        await hadoop.until(lambda: hadoop.lives == 2 and hadoop.condition("RolledOut")[0] == "True")
        await hadoop.until(lambda: len(api.objects("configmaps")) == 1)


@MOMENTS
async def test_an_operator_killed_while_a_cluster_expires_deletes_it(api, monkeypatch, moment):
    hadoop = RunningMRCluster(api)
    hadoop.kill_at(monkeypatch, f"{moment}-mrcluster.expire")
    async with hadoop.running():
        api.add(mrcluster(ttlSecondsAfterIdle=60))
        await hadoop.until(lambda: hadoop.phase() == "Ready")
        await hadoop.until(
            lambda: not api.objects("mrclusters") and not hadoop.hosts() and hadoop.lives == 2,
            step_s=20,
        )


def test_every_write_of_a_cluster_has_its_deaths():
    of_clusters = {write for write in failpoints.WRITES if write.startswith("mrcluster.")}
    assert of_clusters == {*OF_THE_START, *OF_THE_DRAIN, "mrcluster.expire"} - {"scheduler.create"}


async def test_a_successor_gives_orders_only_once_it_has_reconciled_the_cluster(api, hadoop):
    api.add(mrcluster())
    await hadoop.until(lambda: hadoop.phase() == "Ready")
    version = hadoop.nodes.agent.version
    go_on = api.hold_next("list mrclusters")
    await hadoop.restart()
    await hadoop.until(lambda: hadoop.kind.reports.last(hadoop.uid()))
    assert not hadoop.kind.orders._written
    go_on.set()
    await hadoop.until(lambda: hadoop.kind.orders._written)
    assert hadoop.nodes.agent.version.epoch == version.epoch  # orders without a status would raise it
    assert set(hadoop.nodes.created.values()) == {1}


async def test_answers_that_are_lost_after_the_write_make_nothing_twice(api, hadoop):
    for call in (
        "create pods",
        "patch mrclusters/status",
        "create configmaps",
        "create services",
        "create persistentvolumeclaims",
        "create networkpolicies",
    ):
        api.fail_next(call, status=504, after_commit=True, times=2)
    api.add(mrcluster())
    await hadoop.until(lambda: hadoop.phase() == "Ready")
    assert set(hadoop.nodes.created.values()) == {1}


@pytest.mark.parametrize(
    ("kind", "plural", "name"),
    [
        ("Service", "services", lambda names: names.service),
        ("NetworkPolicy", "networkpolicies", lambda names: names.named("cluster")),
        ("PersistentVolumeClaim", "persistentvolumeclaims", lambda names: names.named("master")),
    ],
)
async def test_an_object_of_others_with_a_name_of_the_cluster_holds_its_pods(api, hadoop, kind, plural, name):
    metadata = {"name": name(hadoop.expected_names()), "namespace": "demo"}
    api.add({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": {}})
    api.add(mrcluster())
    await hadoop.until(lambda: hadoop.condition("Scheduled") == ("False", "NameTaken"))
    assert "master" not in hadoop.hosts()
    api.remove(plural, f"demo/{metadata['name']}")
    await hadoop.until(lambda: hadoop.phase() == "Ready")


async def test_a_claim_of_others_holds_one_core_node_and_no_other(api, hadoop):
    metadata = {"name": hadoop.expected_names().named("c1"), "namespace": "demo"}
    api.add({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {}})
    api.add(mrcluster())
    await hadoop.until(lambda: hadoop.hosts() == ["c0", "master"])
    await hadoop.until(lambda: hadoop.condition("Scheduled") == ("False", "NameTaken"))


async def test_a_pod_of_others_with_the_masters_name_holds_the_master(api, hadoop):
    name = hadoop.expected_names().named("master")
    api.add(manifests.pod(name, scheduler="other"))
    api.add(mrcluster())
    await hadoop.until(lambda: hadoop.condition("Scheduled") == ("False", "NameTaken"))
    api.remove("pods", f"demo/{name}")
    await hadoop.until(lambda: hadoop.phase() == "Ready")


async def test_claims_that_a_quota_refuses_hold_the_nodes_until_they_are_allowed(api, hadoop):
    api.fail_next("create persistentvolumeclaims", status=403, times=10_000)
    api.add(mrcluster(transient={"minimum": 2, "maximum": 2}))
    await hadoop.until(lambda: hadoop.condition("Scheduled") == ("False", "WriteRefused"))
    numbers = hadoop.status()["wantedTransient"]
    for _ in range(5):
        hadoop.later(5)
        await hadoop.reconciled()
    assert hadoop.status()["wantedTransient"] == numbers
    api.heal()
    await hadoop.until(lambda: hadoop.phase() == "Ready")
    assert of_role(hadoop, "t") == ["t0", "t1"]


async def test_nodes_that_wait_for_settings_keep_their_names(api, hadoop):
    api.fail_next("create configmaps", status=403, times=10_000)
    api.add(mrcluster(transient={"minimum": 2, "maximum": 2}))
    await hadoop.until(lambda: hadoop.condition("Scheduled") == ("False", "WriteRefused"))
    for _ in range(5):
        hadoop.later(5)
        await hadoop.reconciled()
    assert hadoop.phase() == "Pending"
    api.heal()
    await hadoop.until(lambda: hadoop.phase() == "Ready")
    assert of_role(hadoop, "t") == ["t0", "t1"]


@pytest.mark.parametrize("seed", range(4))
async def test_operators_that_die_at_any_time_leave_a_cluster_as_its_spec_says(api, hadoop, seed):
    picks = random.Random(seed)
    api.add(mrcluster(resizing={"policy": "GSP"}, transient={"minimum": 1, "maximum": 4}))
    await hadoop.until(lambda: hadoop.phase() == "Ready")
    for _ in range(12):
        match picks.choice(["die", "decide", "lose", "settings", "wait"]):
            case "die":
                await hadoop.restart()
            case "decide":
                hadoop.decide(picks.randint(3, 6))
            case "lose" if hadoop.hosts():
                api.remove("pods", hadoop.pod(picks.choice(hadoop.hosts())))
            case "settings":
                hadoop.change(hdfs={"settings": {"dfs.namenode.handler.count": str(picks.randint(10, 12))}})
        for _ in range(picks.randint(0, 10)):
            hadoop.later(picks.random())
            await asyncio.sleep(STEP_S)
    hadoop.change(resizing={"policy": "Static"})
    await hadoop.until(lambda: is_whole(hadoop) and "leaving" not in hadoop.status())
    await hadoop.until(lambda: hadoop.condition("RolledOut")[0] == "True")
    transient = [count for name, count in hadoop.nodes.created.items() if "-t" in name]
    assert set(transient) == {1}, "a name of a transient node was used twice"
    assert hadoop.nodes.formatted == [None]
