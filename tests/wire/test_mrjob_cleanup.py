"""Cleaning up after jobs on the fake API server: when it runs, when it is given up, and what a kill changes."""

from __future__ import annotations

import pytest

from boathouse import failpoints
from boathouse.resources import names
from boathouse.services.frame import writes
from boathouse.services.mrjob.model import MRJOBS
from boathouse_task import contract
from tests.builders.operators.mrjobs import KEY, Killed, RunningMRJob, failing, mrjob

SPLITS = 2
OUTSIDE = "example.org/another"


@pytest.fixture
async def cluster(api, client):
    made = RunningMRJob(api, client, SPLITS)
    made.delete = lambda: client.delete(MRJOBS, "wordcount", "demo")
    return made


def failing_job(cluster, **spec):
    cluster.kubelet.script |= {("m-00001", attempt): failing() for attempt in (1, 2)}
    cluster.api.add(mrjob(**spec))


def gone(cluster):
    return lambda: cluster.api.get("mrjobs", KEY) is None


def finalizers(cluster):
    return (cluster.api.get("mrjobs", KEY) or {"metadata": {}})["metadata"].get("finalizers") or []


async def test_a_failed_jobs_folder_is_removed_by_a_task_and_the_job_stays_failed(cluster, eventually):
    failing_job(cluster)
    async with cluster.running():
        await eventually(lambda: cluster.condition("CleanedUp") == ("True", "CleanedUp"))
    assert cluster.status["phase"] == "Failed"
    assert "cleanup-a1" in cluster.pods()
    assert "cleanup" not in cluster.status.get("counters", {}).get("g", {})


async def test_a_failed_job_does_not_expire_before_it_is_cleaned_up(cluster, eventually):
    cluster.kubelet.script["cleanup", 1] = None
    failing_job(cluster, ttlSecondsAfterFinished=0)
    async with cluster.running():
        await eventually(lambda: "cleanup-a1" in cluster.pods())
        assert cluster.api.get("mrjobs", KEY) is not None
        cluster.api.end_pod(cluster.pod("cleanup-a1"), **SUCCESS)
        await eventually(gone(cluster))


@pytest.fixture
def given_up(monkeypatch):
    """The jobs of which was announced that they are not cleaned up."""
    jobs = []
    monkeypatch.setattr(writes.ObjectEvents, "not_cleaned_up", lambda _, key, *__: jobs.append(key))
    return jobs


async def test_a_failed_job_expires_though_it_cannot_be_cleaned_up(cluster, eventually, given_up):
    cluster.kubelet.script |= {("cleanup", n): failing("AccessDenied") for n in range(1, 9)}
    failing_job(cluster, ttlSecondsAfterFinished=0)
    async with cluster.running():
        await eventually(gone(cluster))
    assert given_up == [KEY]


SUCCESS = {"message": '{"outcome":"succeeded"}'}


async def test_a_job_is_deleted_once_its_folder_is_removed(cluster, eventually):
    cluster.kubelet.script |= {("m-00001", 1): None, ("cleanup", 1): None}
    cluster.api.add(mrjob(cleanUp="OnDelete"))
    async with cluster.running():
        await eventually(lambda: "m-00001-a1" in cluster.pods())
        assert finalizers(cluster) == [names.FINALIZER]
        await cluster.delete()
        await eventually(lambda: "cleanup-a1" in cluster.pods() and "m-00001-a1" not in cluster.pods())
        assert cluster.api.get("mrjobs", KEY) is not None
        cluster.api.end_pod(cluster.pod("cleanup-a1"), **SUCCESS)
        await eventually(gone(cluster))


async def test_the_finalizer_is_there_before_the_first_task(cluster, eventually):
    cluster.api.add(mrjob(cleanUp="OnDelete"))
    async with cluster.running():
        await eventually(lambda: cluster.api.called("create pods"))
    calls = [call.name for call in cluster.api.calls]
    assert calls.index("patch mrjobs") < calls.index("create pods")


async def test_a_job_that_succeeded_is_deleted_at_once(cluster, eventually):
    cluster.api.add(mrjob(cleanUp="OnDelete"))
    async with cluster.running():
        await eventually(lambda: cluster.status.get("phase") == "Succeeded")
        await cluster.delete()
        await eventually(gone(cluster))
    assert "cleanup-a1" not in cluster.pods()


async def test_another_finalizer_is_left_alone(cluster, eventually):
    job = mrjob(cleanUp="OnDelete")
    job["metadata"]["finalizers"] = [OUTSIDE]
    cluster.api.add(job)
    async with cluster.running():
        await eventually(lambda: cluster.status.get("phase") == "Succeeded")
        await cluster.delete()
        await eventually(lambda: finalizers(cluster) == [OUTSIDE])


async def test_a_job_that_is_not_to_be_cleaned_up_any_more_loses_the_finalizer(cluster, eventually):
    cluster.kubelet.script["m-00001", 1] = None
    cluster.api.add(mrjob(cleanUp="OnDelete"))
    async with cluster.running():
        await eventually(lambda: finalizers(cluster) == [names.FINALIZER])
        cluster.api.change("mrjobs", KEY, {"spec": {"cleanUp": "Never"}})
        await eventually(lambda: finalizers(cluster) == [])


async def test_in_a_terminating_namespace_a_job_is_deleted_at_once(cluster, eventually, given_up):
    space = {"name": "demo", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    cluster.kubelet.script["m-00001", 1] = None
    cluster.api.add(mrjob(cleanUp="OnDelete"))
    async with cluster.running():
        await eventually(lambda: "m-00001-a1" in cluster.pods())
        cluster.api.add({"apiVersion": "v1", "kind": "Namespace", "metadata": space})
        await cluster.delete()
        await eventually(gone(cluster))
    assert "cleanup-a1" not in cluster.pods()
    assert given_up == [KEY]


async def test_a_job_that_has_become_invalid_is_deleted(cluster, eventually):
    cluster.kubelet.script["m-00001", 1] = None
    cluster.api.add(mrjob(cleanUp="OnDelete"))
    async with cluster.running():
        await eventually(lambda: "m-00001-a1" in cluster.pods())
        cluster.api.change("mrjobs", KEY, {"spec": {"queue": "nowhere"}})
        await cluster.delete()
        await eventually(gone(cluster))


KILLS = [
    (f"{moment}-{write}", count)
    for write in ("mrjob.finalizer", "mrjob.status", "mrjob.delete-pod", "mrjob.submit")
    for moment in ("before", "after")
    for count in (1, 2)
]


@pytest.mark.parametrize(("name", "count"), KILLS)
async def test_an_operator_killed_anywhere_in_a_deletion_ends_it_all_the_same(
    cluster, eventually, monkeypatch, name, count
):
    passages, armed = 0, False

    def hit(place):
        nonlocal passages
        passages += armed and place == name
        if armed and place == name and passages == count:
            raise Killed

    monkeypatch.setattr(failpoints, "hit", hit)
    cluster.kubelet.script["m-00001", 1] = None
    cluster.api.add(mrjob(cleanUp="OnDelete"))
    async with cluster.running():
        await eventually(lambda: "m-00001-a1" in cluster.pods() and finalizers(cluster))
        armed = True
        await cluster.delete()
        await eventually(lambda: gone(cluster)() and (cluster.lives == 2 or passages < count))
        await eventually(lambda: cluster.kubelet.operator)
    assert cluster.kubelet.ran["cleanup"] == 1
    assert contract.task_name(contract.TaskType.COMMIT, 0) not in cluster.kubelet.ran
