"""Of a job that does nothing, finished or suspended, the process keeps no state of its tasks."""

import dataclasses

import pytest

from boathouse.resources import names
from boathouse.services.frame import reconciler
from boathouse.services.frame.status_codec import stripped
from boathouse.services.mrjob import job_state
from tests.builders import mrjobs
from tests.builders.mrjob_reconciler import KEY, JobReconciler


def finished_job():
    state = mrjobs.mapping(mrjobs.job(), splits=40_000)
    state = dataclasses.replace(state, phase="Failed", completion_s=mrjobs.CREATED_S)
    return mrjobs.mrjob(status=stripped(job_state.to_status(state)))


async def test_no_state_of_a_finished_job_is_kept_and_its_status_is_written_once():
    jobs = JobReconciler(finished_job())
    for _ in range(4):
        await jobs.reconcile()
        jobs.now_s += 1000
        jobs.objects.on_object(jobs.stored)
    assert KEY not in jobs.reconciler._memories
    assert len(jobs.statuses) <= 1


async def test_the_scheduler_and_the_endpoint_forget_a_finished_job_when_it_is_deleted():
    jobs = JobReconciler(finished_job())
    await jobs.reconcile()
    jobs.withdrawn.clear()
    jobs.store(None)
    await jobs.reconcile()
    assert jobs.withdrawn == [mrjobs.UID]
    assert jobs.reconciler._uids == {}


ON_CLUSTER = {
    "clusterRef": {"name": "lake"},
    "input": ["/in"],
    "output": "/out",
    "metadata": {"finalizers": [names.FINALIZER]},
}


@pytest.mark.parametrize("more", [{}, ON_CLUSTER], ids=["own pods", "on a cluster"])
async def test_of_a_job_that_is_suspended_before_its_start_nothing_is_kept_but_its_resource(more):
    jobs = JobReconciler(mrjobs.mrjob(suspend=True, **more))
    await jobs.reconcile()
    assert jobs.last_status["phase"] == "Suspended"
    for _ in range(3):
        assert await jobs.reconcile() == reconciler.RESYNC_S
    assert (
        jobs.reconciler._memories,
        [job.memory for job in jobs.reconciler._kind.hadoop._jobs.values() if job.memory],
    ) == ({}, [])
    assert (jobs.submitted, len(jobs.statuses)) == ([], 1)
    assert set(jobs.withdrawn) == {mrjobs.UID}


async def test_a_resumed_job_runs_with_its_new_spec():
    jobs = JobReconciler(mrjobs.mrjob(suspend=True))
    await jobs.reconcile()
    changed = mrjobs.mrjob(revision=10, suspend=False, output="s3://b/other", status=jobs.last_status)
    jobs.store(changed)
    await jobs.reconcile()
    assert (jobs.last_status["phase"], len(jobs.submitted[-1])) == ("Pending", 1)
    assert jobs.reconciler._memories[KEY].submitted.job.spec.output == "s3://b/other"
