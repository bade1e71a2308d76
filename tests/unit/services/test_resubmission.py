"""Changes of pending attempts after which a job must submit its tasks to the scheduler again."""

from boathouse.services.frame.kind import PENDING_REQUEUE_S
from boathouse.services.mrjob.kind import Submitted
from tests.builders import mrjobs
from tests.builders.mrjob_reconciler import JobReconciler

FIRST, SECOND = mrjobs.attempt(), mrjobs.attempt(index=1)
RETRY = mrjobs.attempt(number=2)


def submitted(*pending, at_s=0.0, unplaced=()):
    """Return the last submission of a job with these pending attempts."""
    return Submitted(job=mrjobs.job(), classes=(), waiting=frozenset(pending), unplaced=frozenset(unplaced), at_s=at_s)


def test_placed_tasks_need_no_resubmission():
    assert submitted(FIRST, SECOND).covers(submitted(SECOND), [mrjobs.attempt_pod("m-0")])


def test_another_attempt_needs_a_resubmission():
    assert not submitted(FIRST, SECOND).covers(submitted(SECOND, RETRY), [mrjobs.attempt_pod("m-0")])


def test_an_attempt_withdrawn_before_its_placement_needs_a_resubmission():
    assert not submitted(RETRY).covers(submitted(), [mrjobs.succeeded_pod("m-0", 1)])


def test_a_pod_created_ahead_needs_a_resubmission_once_and_again_later():
    before, pods = submitted(FIRST, unplaced={"u"}), [mrjobs.attempt_pod("m-0", node=None)]
    assert not submitted(FIRST).covers(before, pods)
    assert before.covers(submitted(FIRST, unplaced={"u"}, at_s=9), pods)
    assert not before.covers(submitted(FIRST, unplaced={"u"}, at_s=10), pods)


async def test_a_job_with_a_pending_task_is_reconciled_again_soon():
    assert await JobReconciler(mrjobs.mrjob()).reconcile() == PENDING_REQUEUE_S
