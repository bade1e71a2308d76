"""Suspension, deadlines, expiry and slow start, on the fake API server."""

from __future__ import annotations

import pytest

from boathouse.services.mrjob import task_orders
from tests.builders.operators.mrjobs import KEY, RunningMRJob, ended, failing, mrjob

SPLITS = 4


@pytest.fixture
async def cluster(api, client):
    return RunningMRJob(api, client, SPLITS)


def phase(cluster, name):
    return lambda: cluster.status.get("phase") == name


def change(cluster, **spec):
    """What a user's `kubectl patch` does."""
    cluster.api.change("mrjobs", KEY, {"spec": spec})


def live(cluster):
    return sorted(
        key.rpartition("-s0-")[2]
        for key, pod in cluster.api.objects("pods").items()
        if not pod["metadata"].get("deletionTimestamp") and pod["status"]["phase"] in {"Pending", "Running"}
    )


async def test_a_job_that_is_created_suspended_starts_when_it_is_resumed(cluster, eventually):
    cluster.api.add(mrjob(suspend=True))
    async with cluster.running():
        await eventually(phase(cluster, "Suspended"))
        assert cluster.pods() == []
        assert cluster.condition("Suspended") == ("True", "Suspended")
        change(cluster, suspend=False)
        await eventually(ended(cluster))
    assert cluster.status["phase"] == "Succeeded"
    assert cluster.condition("Suspended") == ("False", "Resumed")


async def test_a_suspended_jobs_pods_go_and_its_finished_maps_are_not_run_again(cluster, eventually):
    cluster.kubelet.script |= {("m-00002", 1): None, ("m-00003", 1): None}
    cluster.api.add(mrjob())
    async with cluster.running():
        await eventually(lambda: cluster.status.get("maps", {}).get("succeeded") == 2)
        change(cluster, suspend=True)
        await eventually(lambda: phase(cluster, "Suspended")() and live(cluster) == [])
        await eventually(lambda: cluster.operator.scheduler.waiting[cluster.uid] == ())
        change(cluster, suspend=False)
        await eventually(ended(cluster))
    assert cluster.status["phase"] == "Succeeded"
    assert cluster.kubelet.ran["m-00000"] == cluster.kubelet.ran["m-00002"] == 1
    assert cluster.kubelet.winners["m-00002"] == 2
    assert cluster.status["failures"] == {"user": 0, "infrastructure": 0}
    assert cluster.status["maps"]["killedAttempts"] == 2


async def test_a_job_past_its_deadline_fails_and_nothing_of_it_runs(cluster, eventually):
    cluster.kubelet.script["m-00001", 1] = None
    cluster.api.add(mrjob(activeDeadlineSeconds=1))
    async with cluster.running():
        await eventually(ended(cluster))
        await eventually(lambda: live(cluster) == [])
    assert cluster.condition("Failed") == ("True", "DeadlineExceeded")


@pytest.mark.parametrize("script", [{}, {("setup", 1): failing("InputNotFound")}], ids=["succeeded", "failed"])
async def test_a_finished_job_expires(cluster, eventually, script):
    cluster.kubelet.script |= script
    cluster.api.add(mrjob(ttlSecondsAfterFinished=1))
    async with cluster.running():
        await eventually(ended(cluster))
        await eventually(lambda: cluster.api.get("mrjobs", KEY) is None)


async def test_a_running_job_does_not_expire(cluster, eventually):
    cluster.kubelet.script["m-00001", 1] = None
    cluster.api.add(mrjob(ttlSecondsAfterFinished=0))
    async with cluster.running():
        await eventually(lambda: cluster.status.get("maps", {}).get("succeeded") == SPLITS - 1)
        assert cluster.api.called("delete mrjobs") == []


async def test_reduces_start_before_the_last_map_and_learn_of_each_map_as_it_is_done(cluster, eventually):
    cluster.kubelet.overlap = True
    cluster.kubelet.script |= {("m-00003", 1): None, ("r-00000", 1): None}
    cluster.api.add(mrjob(slowStartCompletedMapsPercent=75))
    async with cluster.running():
        await eventually(lambda: "r-00000-a1" in live(cluster))
        assert cluster.status["phase"] == "Map"
        orders = await cluster.operator.orders.orders(task_orders.Poll(uid=cluster.uid, pod="r"), 0)
        assert orders.maps_done == "Bw=="
        cluster.kubelet.script.clear()
        await eventually(ended(cluster))
    assert cluster.status["phase"] == "Succeeded"


async def test_a_task_that_is_lost_again_and_again_fails_the_job_with_the_reason(cluster, eventually):
    cluster.config = cluster.config.model_copy(
        update={"task": cluster.config.task.model_copy(update={"max_infrastructure_failures": 2})}
    )
    cluster.kubelet.script |= {
        ("m-00001", n): failing("StorageError", user=False, message="S3 is away") for n in (1, 2)
    }
    cluster.api.add(mrjob())
    async with cluster.running():
        await eventually(ended(cluster))
    assert cluster.condition("Failed") == ("True", "StorageError")
    assert cluster.status["failures"] == {"user": 0, "infrastructure": 2}


@pytest.mark.parametrize("winner", [1, 2])
async def test_of_two_attempts_of_a_map_the_first_to_end_wins(cluster, eventually, winner):
    held = {("m-00000", 1): None, ("m-00000", 2): None}
    cluster.kubelet.script |= held
    cluster.api.add(mrjob())
    async with cluster.running():
        await eventually(lambda: cluster.status.get("maps", {}).get("succeeded") == SPLITS - 1)
        key = cluster.pod("m-00000-a1")
        cluster.api.set_phase(key, "Running", containerStatuses=[{"name": "task", "state": {"running": {}}}])
        await eventually(lambda: cluster.operator.seconds.request(cluster.uid, key))
        await eventually(lambda: {"m-00000-a1", "m-00000-a2"} <= set(live(cluster)))
        assert cluster.status["maps"]["running"] <= 1
        del cluster.kubelet.script["m-00000", winner]
        first_to_end = cluster.pod(f"m-00000-a{winner}")
        cluster.kubelet._step(first_to_end, cluster.api.get("pods", first_to_end))
        await eventually(ended(cluster))
        await eventually(lambda: f"m-00000-a{3 - winner}" not in live(cluster))
    assert cluster.status["phase"] == "Succeeded"
    assert cluster.status["counters"] == {"g": {"map": SPLITS, "reduce": 1}}
    assert cluster.status["failures"] == {"user": 0, "infrastructure": 0}
