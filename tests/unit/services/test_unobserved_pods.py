"""Pods that are created and deleted between two reconciles of their job, or while no watch is open."""

from boathouse.services.frame.kind import RESUBMIT_S
from tests.builders import mrjobs
from tests.builders.mrjob_reconciler import JobReconciler

SETUP = "wordcount-0a1b2c3d-s0-setup"


async def reconcile_for_minutes(jobs):
    for _ in range(5):
        await jobs.reconcile()
        jobs.now_s += RESUBMIT_S


async def test_a_task_whose_pod_was_never_observed_gets_another_attempt():
    jobs = JobReconciler(mrjobs.mrjob())
    jobs.ended = {f"demo/{SETUP}-a1"}
    await reconcile_for_minutes(jobs)
    assert jobs.submitted[-1] == (f"demo/{SETUP}-a2",)
    assert jobs.last_status["failures"] == {"user": 0, "infrastructure": 1}


async def test_a_long_pending_task_keeps_its_attempt():
    jobs = JobReconciler(mrjobs.mrjob())
    await reconcile_for_minutes(jobs)
    assert set(jobs.submitted) == {(f"demo/{SETUP}-a1",)}
