"""Jobs go on after etcd was restored from a backup: resource versions went back, and all that came after is undone."""

from __future__ import annotations

import pytest

from boathouse.services.frame.object_store import Resync
from tests.builders.operators.mrjobs import KEY, RunningMRJob, mrjob
from tests.wire import waiting

SPLITS = 4
HELD = {("m-00002", 1): None, ("m-00003", 1): None}


@pytest.fixture
async def cluster(api, client):
    made = RunningMRJob(api, client, SPLITS)
    made.kubelet.script |= HELD
    api.add(mrjob())
    return made


def maps_done(cluster, count):
    return lambda: cluster.status.get("maps", {}).get("succeeded") == count


def version(body):
    return body and body["metadata"]["resourceVersion"]


async def restored(cluster, client, backup):
    """Restore, and do what the operator does every two minutes."""
    # The answer to a write before the restore would count as newer than what the LIST shows, until the next LIST.
    await waiting.eventually(lambda: version(cluster.operator.jobs.get(KEY)) == version(cluster.api.get("mrjobs", KEY)))
    cluster.api.restore(backup)
    cluster.operator.scheduler._created.clear()
    await Resync(client, cluster.operator.jobs, ()).run_once()


async def test_a_job_that_had_succeeded_succeeds_again(cluster, client, eventually):
    async with cluster.running():
        await eventually(maps_done(cluster, 2))
        backup = cluster.api.world.backup()
        cluster.kubelet.script.clear()
        await eventually(lambda: cluster.status.get("phase") == "Succeeded")
        await restored(cluster, client, backup)
        assert cluster.status["phase"] == "Map"
        await eventually(lambda: cluster.status.get("phase") == "Succeeded")
    assert cluster.status["counters"] == {"g": {"map": SPLITS, "reduce": 1}}


async def test_a_job_restored_from_a_backup_is_finished_by_the_process_that_knows_more(cluster, client, eventually):
    async with cluster.running():
        await eventually(maps_done(cluster, 2))
        backup = cluster.api.world.backup()
        del cluster.kubelet.script["m-00002", 1]
        await eventually(maps_done(cluster, 3))
        await restored(cluster, client, backup)
        cluster.kubelet.script.clear()
        await eventually(lambda: cluster.status.get("phase") == "Succeeded")
    assert cluster.lives == 1
    assert cluster.status["maps"]["succeeded"] == SPLITS


async def test_a_job_that_had_been_deleted_runs_to_its_end(cluster, client, eventually):
    async with cluster.running():
        await eventually(maps_done(cluster, 2))
        backup = cluster.api.world.backup()
        cluster.api.remove("mrjobs", "demo/wordcount")
        await eventually(lambda: cluster.operator.jobs.keys() == [])
        await restored(cluster, client, backup)
        cluster.kubelet.script.clear()
        await eventually(lambda: cluster.status.get("phase") == "Succeeded")
