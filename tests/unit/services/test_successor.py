"""A job is deleted, or created again under its name, while it is reconciled."""

import pytest

from boathouse.cluster import errors
from tests.builders import mrjobs
from tests.builders.frame import CONFLICT, NOT_FOUND
from tests.builders.mrjob_reconciler import KEY, JobReconciler

FILE = {"name": "stage.py", "configMapKeyRef": {"name": "code", "key": "stage.py"}}
"""Makes the first reconcile of a job read a ConfigMap."""


@pytest.fixture
def jobs():
    return JobReconciler(mrjobs.mrjob())


async def test_a_jobs_status_is_not_written_to_its_successor(jobs):
    jobs.store(mrjobs.mrjob(revision=2, files=[FILE]))
    jobs.on_request = lambda: jobs.store(mrjobs.mrjob(uid="u2", revision=5))
    assert await jobs.reconcile() == 0
    assert jobs.statuses == []


async def test_the_reconcile_of_a_job_that_is_deleted_meanwhile_ends_without_an_error(jobs):
    jobs.store(mrjobs.mrjob(revision=2, files=[FILE]))
    jobs.on_request = lambda: jobs.store(None)
    assert await jobs.reconcile() is None
    assert jobs.statuses == []


async def test_pending_tasks_of_a_job_are_withdrawn_when_its_successor_is_found_by_a_conflict(jobs):
    await jobs.reconcile()
    jobs.stored, jobs.status_error = mrjobs.mrjob(uid="u2", revision=5), CONFLICT
    jobs.now_s += 100
    jobs.objects.on_object(mrjobs.mrjob(revision=4, suspend=True))  # a change to be written
    await jobs.reconcile()
    jobs.status_error = None
    await jobs.reconcile()
    assert jobs.withdrawn == [mrjobs.UID]
    assert jobs.statuses[-1][0] == "u2"


async def test_a_successor_that_is_created_before_the_server_responds_not_found_is_kept(jobs):
    jobs.store(mrjobs.mrjob(revision=2, files=[FILE]))
    jobs.on_request = lambda: jobs.store(mrjobs.mrjob(uid="u2", revision=5))
    jobs.status_error = NOT_FOUND
    assert await jobs.reconcile() == 0
    assert jobs.objects.key("u2") == KEY


async def test_a_job_is_not_forgotten_because_another_object_was_not_found(jobs):
    async def no_bundle(_namespace):
        raise NOT_FOUND

    jobs.ensure = no_bundle
    with pytest.raises(errors.NotFound):
        await jobs.reconcile()
    assert jobs.objects.key(mrjobs.UID) == KEY
    assert jobs.withdrawn == []


async def test_a_job_that_is_gone_is_forgotten(jobs):
    await jobs.reconcile()
    jobs.stored, jobs.status_error = None, NOT_FOUND
    jobs.objects.on_object(mrjobs.mrjob(revision=4, suspend=True))
    assert await jobs.reconcile() is None
    assert (jobs.withdrawn, jobs.objects.key(mrjobs.UID)) == ([mrjobs.UID], None)


async def test_a_refusal_whose_cause_was_corrected_does_not_stay_in_the_status(jobs):
    await jobs.reconcile()
    admitted = jobs.last_status["conditions"]
    jobs.namespace_queue = "no-such-queue"
    await jobs.reconcile()
    assert jobs.last_status["reason"] == "QueueNotFound"
    jobs.namespace_queue = None
    await jobs.reconcile()
    assert jobs.last_status["conditions"] == admitted
