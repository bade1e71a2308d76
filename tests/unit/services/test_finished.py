"""Of a finished job the process keeps no state of its tasks."""

import dataclasses

from boathouse.services.frame.status_writer import stripped
from boathouse.services.mrjob.state import job_state
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
