"""SparkApps on a cluster that scales: a pending application shows itself whole, and its placeholders go in time."""

import pytest

from boathouse.resources import names
from boathouse.scheduling.showing import AT_ONCE
from boathouse_e2e.autoscaling import says_unschedulable
from tests.builders import manifests
from tests.builders.operators.provisioners import provisioning
from tests.builders.operators.sparkapps import CONFIG, KEY, RunningSparkApp, account, sparkapp
from tests.wire.fake_api.world import Refused

LARGE = {"executor": {"instances": 5}}  # with the driver it needs six CPUs: two nodes


def of_kind(api, task_type):
    pods = api.objects("pods").values()
    return [pod for pod in pods if pod["metadata"]["labels"].get("boathouse.dev/task-type") == task_type]


def shown(api):
    return of_kind(api, names.TASK_TYPE_PLACEHOLDER)


@pytest.fixture
async def spark(api):
    """A leader of SparkApps in a cluster without a node."""
    api.add(account())
    running = RunningSparkApp(api)
    running.starts_without_nodes = True
    async with running.running():
        yield running


def reason_of(pod):
    """Return why a pod has no node."""
    return next(one["reason"] for one in pod["status"]["conditions"] if one["type"] == "PodScheduled")


def gang_is_shown(spark, executors):
    """Say whether the driver and its executors wait where an autoscaler sees them."""
    pods = [*of_kind(spark.api, "driver"), *shown(spark.api)]
    return len(pods) == 1 + executors and all(map(says_unschedulable, pods))


async def test_from_no_node_to_a_finished_application_and_back(api, spark, eventually):
    spark.nodes.scripts[0].executors = 5
    async with provisioning(api) as provisioner:
        api.add(sparkapp(**LARGE))
        await eventually(lambda: spark.phase() == "Succeeded")
        assert provisioner.added == 2
        await eventually(lambda: not shown(api) and not spark.executors())
    provisioner.remove_empty()
    assert not api.objects("nodes")


async def test_placeholders_have_what_decides_about_nodes_and_no_more(api, spark, eventually):
    api.add(sparkapp(nodeSelector={"pool": "spark"}, tolerations=[{"key": "spot", "operator": "Exists"}], **LARGE))
    await eventually(lambda: gang_is_shown(spark, 5))
    pod = shown(api)[0]
    assert pod["metadata"]["ownerReferences"][0]["uid"] == spark.uid()
    assert pod["spec"]["nodeSelector"] == {"pool": "spark"}
    assert pod["spec"]["tolerations"][0] == {"key": "spot", "operator": "Exists"}
    assert pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1"
    assert spark.status()["reason"] in {"Unschedulable", "Gang"}


async def test_placeholders_stay_until_the_driver_has_created_its_executors(api, spark, eventually):
    spark.nodes.scripts[0].executors, spark.nodes.scripts[0].runs = 5, False
    api.add(sparkapp(**LARGE))
    await eventually(lambda: gang_is_shown(spark, 5))
    async with provisioning(api) as provisioner:
        await eventually(lambda: spark.phase() == "Starting")
        assert len(shown(api)) == 5
        assert provisioner.simulate() == ({"p1", "p2"}, [])  # nobody takes the nodes away
        spark.nodes.scripts[0].ends, spark.nodes.scripts[0].runs = False, True
        await eventually(lambda: spark.status()["executors"]["running"] == 5 and not shown(api))


@pytest.mark.parametrize("change", [{"suspend": True}, {"activeDeadlineSeconds": 1}], ids=["suspended", "failed"])
async def test_placeholders_go_with_the_attempt(api, spark, eventually, change):
    api.add(sparkapp(**LARGE))
    await eventually(lambda: gang_is_shown(spark, 5))
    api.change("sparkapps", KEY, {"spec": change})
    spark.later(10)
    await eventually(lambda: not api.objects("pods"))


async def test_the_next_leader_keeps_the_placeholders_of_the_last_one(api, spark, eventually):
    api.add(sparkapp(**LARGE))
    await eventually(lambda: gang_is_shown(spark, 5))
    before = {pod["metadata"]["uid"] for pod in shown(api)}
    await spark.restart()
    await eventually(lambda: spark.kind._scheduler.state.jobs.entry(spark.uid()) is not None)
    rounds = spark.leader.scheduling.showing
    for _ in range(3):
        await rounds.show()
    assert {pod["metadata"]["uid"] for pod in shown(api)} == before


async def test_what_a_crash_leaves_half_done_is_completed(api, spark, eventually, monkeypatch):
    spark.kill_at(monkeypatch, "after-scheduler.create", count=3)
    api.add(sparkapp(**LARGE))
    await eventually(lambda: spark.lives == 2 and gang_is_shown(spark, 5))


async def test_placeholders_of_an_application_that_nobody_knows_are_deleted(api, spark, eventually):
    owner = {"apiVersion": "boathouse.dev/v1alpha1", "kind": "MRJob", "name": "gone", "uid": "gone", "controller": True}
    labels = {"boathouse.dev/job-uid": "gone", "boathouse.dev/task-type": names.TASK_TYPE_PLACEHOLDER}
    api.add(manifests.pod("gone-placeholder-0", labels=labels, owner=owner))
    await eventually(lambda: spark.leader.scheduling.scheduler.state.placeholders.of("gone"))
    showing = spark.leader.scheduling.showing
    await showing.show()
    assert len(shown(api)) == 1  # its job may be submitted later
    showing._began_s -= 60
    await eventually(lambda: not shown(api))


async def test_a_gang_that_waits_for_a_quota_hides_itself_and_its_driver_says_so(api, spark, eventually):
    api.add(sparkapp(**LARGE))
    await eventually(lambda: gang_is_shown(spark, 5))
    metadata = {"name": "small", "namespace": "demo"}
    api.add({"kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"pods": "3"}}})
    await eventually(lambda: not shown(api))
    (driver,) = of_kind(api, "driver")
    await eventually(lambda: reason_of(api.get("pods", spark.driver())) == "ExceedsQuota")
    assert api.get("pods", spark.driver())["metadata"]["uid"] == driver["metadata"]["uid"]


async def test_placeholders_that_are_refused_are_tried_again_after_a_while(api, spark, eventually):
    def refuse(call, manifest):
        if "-placeholder-" in manifest["metadata"].get("name", "") and call.name == "create pods":
            raise Refused(403, "Forbidden", "exceeded quota: small")

    api.refuse = refuse
    api.add(sparkapp(executor={"instances": 30}))
    await eventually(lambda: of_kind(api, "driver"))
    showing = spark.leader.scheduling.showing
    await eventually(lambda: spark.uid() in showing._tried)  # one of its pods was refused
    for _ in range(3):
        await showing.show()
    tried = [call for call in api.called("create pods") if "-placeholder-" in call.body["metadata"]["name"]]
    assert len(tried) <= AT_ONCE
    api.refuse = lambda *_: None
    showing._tried.clear()
    await eventually(lambda: gang_is_shown(spark, 30))


async def test_a_cluster_of_fixed_size_shows_no_gang(api, eventually):
    api.add(account())
    api.add(manifests.node("n1", cpu="2"))
    fixed = CONFIG.model_copy(update={"autoscaling": CONFIG.autoscaling.model_copy(update={"enabled": False})})
    spark = RunningSparkApp(api, fixed)
    async with spark.running():
        api.add(sparkapp(**LARGE))
        await eventually(lambda: spark.status().get("reason") == "NeverFits")
        await spark.leader.scheduling.showing.show()
    assert not api.objects("pods")
