"""Whole MRJobs on the fake API server."""

from __future__ import annotations

import base64
import time

import pytest

from boathouse import failpoints
from boathouse.services.mrjob import splits
from boathouse_task import contract
from tests.builders import manifests
from tests.builders.operators.mrjobs import KEY, Killed, RunningMRJob, Why, ended, failing, final, mrjob, split_plan

SPLITS = 3
DIGEST = contract.plan_digest(split_plan(SPLITS))


@pytest.fixture
async def cluster(api, client):
    return RunningMRJob(api, client, SPLITS)


async def test_a_job_runs_from_setup_to_its_commit_and_every_task_counts_once(cluster, eventually):
    cluster.api.add(mrjob(numReduceTasks=2))
    async with cluster.running():
        await eventually(ended(cluster))
    assert cluster.status["phase"] == "Succeeded"
    assert cluster.status["progress"] == "maps 3/3, reduces 2/2"
    assert cluster.status["counters"]["g"] == {"map": 3, "reduce": 2}
    assert cluster.pods() == [
        "commit-a1",
        "m-00000-a1",
        "m-00001-a1",
        "m-00002-a1",
        "r-00000-a1",
        "r-00001-a1",
        "setup-a1",
    ]
    assert cluster.condition("Succeeded") == ("True", "Succeeded")


async def test_a_map_only_job_commits_after_its_maps(cluster, eventually):
    job = mrjob()
    del job["spec"]["reducer"]
    cluster.api.add(job)
    async with cluster.running():
        await eventually(ended(cluster))
    assert (cluster.status["phase"], cluster.status["progress"]) == ("Succeeded", "maps 3/3")


async def test_the_plan_lies_in_a_config_map_that_the_job_owns(cluster, eventually):
    cluster.api.add(mrjob())
    async with cluster.running():
        await eventually(ended(cluster))
    (shard,) = cluster.api.objects("configmaps").values()
    assert shard["metadata"]["name"] == f"wordcount-{cluster.uid[:8]}-s0-plan-000"
    assert shard["metadata"]["ownerReferences"][0]["uid"] == cluster.uid
    assert shard["immutable"]
    content = base64.b64decode(shard["binaryData"][splits.KEY])
    assert len(splits.read_stored([content], splits.digest_of(shard)).plan.splits) == SPLITS


async def test_a_new_leader_publishes_its_authority_to_the_tasks_that_run(cluster, eventually):
    cluster.api.add(mrjob())
    cluster.kubelet.script["setup", 1] = None
    async with cluster.running():
        await eventually(cluster.pods)
    async with cluster.running():
        await eventually(lambda: (next_one := cluster.kubelet.operator) and next_one.bundle.namespaces == {"demo"})


async def test_a_task_that_failed_once_is_tried_again(cluster, eventually):
    cluster.api.add(mrjob())
    cluster.kubelet.script["m-00001", 1] = failing()
    async with cluster.running():
        await eventually(ended(cluster))
    assert cluster.status["phase"] == "Succeeded"
    assert cluster.status["failures"] == {"user": 1, "infrastructure": 0}
    assert "m-00001-a2" in cluster.pods()
    assert cluster.status["lastFailures"][0]["task"] == "m-00001"


async def test_a_task_that_fails_again_and_again_fails_the_job_and_stops_the_others(cluster, eventually):
    cluster.api.add(mrjob())
    cluster.kubelet.script |= {("m-00001", 1): failing(), ("m-00001", 2): failing(message="boom"), ("m-00002", 1): None}
    async with cluster.running():
        await eventually(ended(cluster))
        await eventually(lambda: "m-00002-a1" not in undeleted_pods(cluster))
    assert cluster.condition("Failed") == ("True", "TaskFailed")
    assert "boom" in next(c["message"] for c in cluster.status["conditions"] if c["type"] == "Failed")
    assert "m-00000-a1" in cluster.pods()


def undeleted_pods(cluster):
    """Pods that nobody has asked to go."""
    return [
        key.rpartition("-s0-")[2]
        for key, pod in cluster.api.objects("pods").items()
        if not pod["metadata"].get("deletionTimestamp") and pod["status"]["phase"] == "Pending"
    ]


@pytest.mark.parametrize("reason", ["InputNotFound", "OutputExists"])
async def test_a_common_mistake_is_named_and_not_tried_again(cluster, eventually, reason):
    cluster.api.add(mrjob())
    cluster.kubelet.script["setup", 1] = failing(reason, message="no object matches s3://b/in")
    async with cluster.running():
        await eventually(ended(cluster))
    assert cluster.condition("Failed") == ("True", reason)
    assert cluster.pods() == ["setup-a1"]


async def test_infrastructure_failures_are_tried_again_and_not_held_against_the_job(cluster, eventually):
    cluster.api.add(mrjob())
    cluster.kubelet.script |= {("m-00000", n): failing("StorageError", user=False) for n in (1, 2, 3)}
    async with cluster.running():
        await eventually(ended(cluster))
    assert cluster.status["phase"] == "Succeeded"
    assert cluster.status["failures"] == {"user": 0, "infrastructure": 3}


async def test_a_pod_that_is_deleted_while_it_runs_is_replaced_under_another_number(cluster, eventually):
    cluster.api.add(mrjob())
    cluster.kubelet.script["m-00002", 1] = None
    async with cluster.running():
        await eventually(
            lambda: "m-00002-a1" in cluster.pods() and cluster.status.get("maps", {}).get("succeeded") == 2
        )
        cluster.api.remove("pods", cluster.pod("m-00002-a1"))
        await eventually(ended(cluster))
    assert cluster.status["phase"] == "Succeeded"
    assert cluster.kubelet.winners["m-00002"] == 2


async def test_why_a_job_waits_is_in_its_status(cluster, eventually):
    cluster.api.add(mrjob())
    async with cluster.running():
        await eventually(lambda: cluster.kubelet.operator is not None)
        cluster.operator.scheduler.why = Why("NeverFits", "no node has 900 CPUs")
        await eventually(lambda: cluster.condition("Scheduled") == ("False", "NeverFits"))
    assert cluster.status["reason"] == "NeverFits"


async def test_a_missing_config_map_is_named_and_the_job_runs_once_it_exists(cluster, eventually):
    cluster.api.add(mrjob(files=[{"name": "m.py", "configMapKeyRef": {"name": "wc", "key": "m.py"}}]))
    async with cluster.running():
        await eventually(lambda: cluster.condition("Admitted") == ("False", "ConfigMapNotFound"))
        cluster.api.add(manifests.config_map("wc", **{"m.py": "print()"}))
        await eventually(ended(cluster))
    assert cluster.status["phase"] == "Succeeded"


async def test_an_unknown_queue_is_refused_by_name(cluster, eventually):
    cluster.api.add(mrjob(queue="nowhere"))
    async with cluster.running():
        await eventually(lambda: cluster.condition("Admitted") == ("False", "QueueNotFound"))
    assert cluster.pods() == []


async def test_a_deleted_job_is_forgotten(cluster, eventually):
    cluster.api.add(mrjob())
    cluster.kubelet.script["setup", 1] = None
    async with cluster.running():
        await eventually(lambda: cluster.pods() == ["setup-a1"])
        uid = cluster.uid
        cluster.api.remove("mrjobs", KEY)
        await eventually(lambda: not cluster.operator.orders.knows(uid, "demo"))
        await eventually(lambda: cluster.operator.scheduler.waiting == {})


async def test_a_conflicting_write_by_somebody_else_is_read_and_counted_in(cluster, eventually):
    cluster.api.add(mrjob())
    cluster.api.fail_next("patch mrjobs/status", status=409, times=3)
    async with cluster.running():
        await eventually(ended(cluster))
    assert cluster.status["phase"] == "Succeeded"


async def test_answers_that_are_lost_after_the_write_do_no_harm(cluster, eventually):
    cluster.api.add(mrjob())
    for call in ("create pods", "patch mrjobs/status", "create configmaps"):
        cluster.api.fail_next(call, status=504, after_commit=True, times=2)
    async with cluster.running():
        await eventually(ended(cluster))
    assert cluster.status["counters"]["g"] == {"map": 3, "reduce": 1}


async def test_figures_are_written_at_most_once_a_second(api, client, eventually):
    cluster, began_s = RunningMRJob(api, client, 40), time.monotonic()
    api.add(mrjob())
    async with cluster.running():
        await eventually(ended(cluster))
    assert len(api.called("patch mrjobs/status")) < 13 + (time.monotonic() - began_s)


KILLS = [
    (name, count)
    for name in failpoints.NAMES
    for count in (1, 3)
    if name.partition("-")[2] in {"plan.shard", "mrjob.status", "mrjob.submit"} and (count == 1 or "plan" not in name)
]


@pytest.mark.parametrize(("name", "count"), KILLS)
async def test_an_operator_killed_anywhere_leaves_the_same_end(api, client, eventually, monkeypatch, name, count):
    passages = 0

    def hit(place):
        nonlocal passages
        passages += place == name
        if place == name and passages == count:
            raise Killed

    monkeypatch.setattr(failpoints, "hit", hit)
    cluster = RunningMRJob(api, client, SPLITS)
    api.add(mrjob(numReduceTasks=2))
    async with cluster.running():
        await eventually(ended(cluster))
    assert cluster.lives == 2
    assert final(cluster.status) == {
        "phase": "Succeeded",
        "progress": "maps 3/3, reduces 2/2",
        "counters": {"g": {"map": 3, "reduce": 2}},
        "succeededMaps": "Bw==",
        "succeededReduces": "Aw==",
        "plan": {"splits": 3, "digest": DIGEST, "bytes": 3, "shards": 1},
    }
