"""A status that the API server refuses as invalid does not stop a job."""

import pytest

from boathouse.cluster import errors
from tests.builders import mrjobs
from tests.builders.mrjob_reconciler import JobReconciler

INVALID = errors.Invalid(422, "Invalid", "status.counters.a.b: Invalid value")


@pytest.fixture
def jobs():
    return JobReconciler(mrjobs.mrjob(status={"phase": "Map", "counters": {"a": {"b": 1}}}))


def refuse_statuses(jobs, when):
    """Let the API server refuse a status that fulfils a condition."""
    whole = jobs.patch_status

    async def patch_status(resource, name, status, namespace, **more):
        if when(status):
            raise INVALID
        return await whole(resource, name, status, namespace, **more)

    jobs.patch_status = patch_status


async def test_a_status_that_is_refused_is_written_without_its_counters_and_failures(jobs):
    refuse_statuses(jobs, lambda status: status["counters"])
    await jobs.reconcile()
    ((_, status),) = jobs.statuses
    assert (status["counters"], status["lastFailures"], status["phase"]) == (None, None, "Pending")
    assert "StatusRefused" in jobs.events


async def test_dropped_counters_are_not_written_again_at_the_next_reconcile(jobs):
    refuse_statuses(jobs, lambda status: status["counters"])
    await jobs.reconcile()
    jobs.now_s += 100
    await jobs.reconcile()
    assert jobs.events.count("StatusRefused") == 1


async def test_a_status_that_is_refused_without_its_free_parts_too_is_an_error(jobs):
    refuse_statuses(jobs, lambda _: True)
    with pytest.raises(errors.Invalid):
        await jobs.reconcile()


@pytest.mark.parametrize(
    "status",
    [
        {"phase": "Rebalancing", "currentStep": 50, "conditions": ["x", {"type": "T"}]},
        {
            "currentStep": "two",
            "reduces": {"total": "x"},
            "plan": {"splits": 10**12, "digest": "d", "bytes": 0, "shards": 1},
        },
    ],
    ids=["of a newer version", "nonsense"],
)
async def test_a_job_with_a_status_that_cannot_be_read_is_reconciled(status):
    jobs = JobReconciler(mrjobs.mrjob(status=status))
    await jobs.reconcile()
    assert jobs.last_status["phase"] == "Pending"


async def test_a_quantity_with_a_huge_exponent_is_no_error():
    jobs = JobReconciler(mrjobs.mrjob(splitMaxSize="1e999999999999999999"))
    await jobs.reconcile()
    assert len(jobs.statuses) == 1


async def test_a_write_that_a_quota_refuses_is_reported_in_an_event():
    jobs = JobReconciler(mrjobs.mrjob())
    jobs.status_error = errors.Forbidden(403, "Forbidden", "exceeded quota")
    with pytest.raises(errors.Forbidden):
        await jobs.reconcile()
    assert jobs.events == ["WriteRefused"]
