"""The limit of unfinished jobs of a namespace, and the backoff of a job whose every write conflicts."""

import pytest

from boathouse.cluster import errors
from tests.builders import mrjobs
from tests.builders.frame import CONFLICT
from tests.builders.mrjob_reconciler import KEY, JobReconciler


@pytest.fixture
def jobs():
    return JobReconciler(tenantLimits={"maxUnfinishedJobs": 1})


EARLIER = mrjobs.mrjob(name="earlier", uid="u0", metadata={"creationTimestamp": "2025-01-01T00:00:00Z"})


def admitted(jobs):
    """Return the status, the reason and the message of the condition."""
    (condition,) = [condition for condition in jobs.last_status["conditions"] if condition["type"] == "Admitted"]
    return condition["status"], condition["reason"], condition["message"]


async def test_a_job_beyond_the_limit_is_not_admitted_and_says_what_to_do(jobs):
    jobs.objects.on_object(EARLIER)
    jobs.store(mrjobs.mrjob())
    await jobs.reconcile()
    status, reason, message = admitted(jobs)
    assert (status, reason) == ("False", "TooManyJobs")
    assert "exceed 1 objects" in message
    assert "tenantLimits.maxUnfinishedJobs" in message
    assert "earlier" not in message
    assert jobs.submitted == []


async def test_the_status_of_a_job_that_is_not_admitted_is_written_once(jobs):
    jobs.objects.on_object(EARLIER)
    jobs.store(mrjobs.mrjob())
    for _ in range(3):
        await jobs.reconcile()
        jobs.now_s += 1000
    assert len(jobs.statuses) == 1


async def test_it_is_admitted_when_an_earlier_one_has_ended(jobs):
    jobs.objects.on_object(EARLIER)
    jobs.store(mrjobs.mrjob())
    await jobs.reconcile()
    jobs.objects.on_deleted(EARLIER)
    await jobs.reconcile()
    assert admitted(jobs)[:2] == ("True", "Admitted")
    assert len(jobs.submitted) == 1


async def test_a_conflict_that_persists_backs_off(jobs):
    jobs.store(mrjobs.mrjob())
    jobs.status_error = CONFLICT
    assert await jobs.reconcile() == 0.0
    for _ in range(3):
        with pytest.raises(errors.Conflict):
            await jobs.reconcile()
    jobs.status_error = None
    await jobs.reconcile()
    jobs.now_s, jobs.status_error = jobs.now_s + 100, CONFLICT
    jobs.objects.on_object(mrjobs.mrjob(revision=9, suspend=True))
    assert await jobs.reconcile() == 0.0
    assert jobs.objects.key(mrjobs.UID) == KEY


async def test_the_spec_of_a_job_is_read_when_it_is_admitted(jobs):
    jobs.objects.on_object(EARLIER)
    jobs.store(mrjobs.mrjob())
    await jobs.reconcile()
    assert "spec" not in jobs.objects.get(KEY)
    jobs.objects.on_deleted(EARLIER)
    await jobs.reconcile()
    assert jobs.objects.get(KEY)["spec"] == jobs.stored["spec"]
    assert len(jobs.submitted) == 1
