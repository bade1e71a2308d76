"""Cleaning up after a job: when its task runs, and when it is given up."""

import dataclasses

import pytest

from boathouse.resources import names
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob.planning import cleanup
from tests.builders import mrjobs
from tests.builders.frame import condition_of

DELETED = "2026-01-01T00:15:00Z"
CLEANED_UP = names.ConditionType.CLEANED_UP


def failed_job(*pods, **spec):
    """Return a job that exceeds its deadline while its maps run, and what is desired then."""
    job = mrjobs.job(activeDeadlineSeconds=1, **spec)
    return job, mrjobs.desired(job, *pods, state=mrjobs.mapping(job), after_s=9000)


def deleted_job():
    metadata = {"deletionTimestamp": DELETED, "finalizers": [names.FINALIZER]}
    return mrjobs.job(cleanUp="OnDelete", metadata=metadata)


def test_a_job_that_failed_is_cleaned_up_by_a_task():
    job, failed = failed_job(mrjobs.attempt_pod("m-0"))
    assert (failed.state.phase, condition_of(failed.state, CLEANED_UP)) == ("Failed", ("False", "CleaningUp"))
    first = mrjobs.desired(job, state=failed.state)
    assert (first.cleaning, mrjobs.pending_attempts(first)) == (True, ["cleanup-a1"])
    done = mrjobs.desired(job, mrjobs.succeeded_pod("cleanup"), state=first.state)
    assert (done.cleaning, condition_of(done.state, CLEANED_UP), done.state.phase) == (
        False,
        ("True", "CleanedUp"),
        "Failed",
    )
    assert done.waiting == ()


def test_the_task_waits_until_no_other_writes():
    job, failed = failed_job()
    now_s = mrjobs.CREATED_S + 9100
    running = mrjobs.desired(job, mrjobs.attempt_pod("m-0"), state=failed.state, now_s=now_s)
    assert (mrjobs.deleted_pods(running), mrjobs.pending_attempts(running), running.cleaning) == (["m-0-a1"], [], True)
    leaving = mrjobs.desired(
        job, mrjobs.attempt_pod("m-0", deleting_since_s=now_s), state=failed.state, now_s=now_s + 59
    )
    assert (leaving.delete, mrjobs.pending_attempts(leaving), leaving.cleaning) == ([], [], True)
    lost = mrjobs.desired(job, mrjobs.attempt_pod("m-0", deleting_since_s=now_s), state=failed.state, now_s=now_s + 61)
    assert mrjobs.pending_attempts(lost) == ["cleanup-a1"]


def test_cleaning_is_given_up_after_some_attempts():
    job, failed = failed_job()
    pods = [
        mrjobs.failed_pod("cleanup", n, user=False, reason="StorageError") for n in range(1, cleanup.MAX_ATTEMPTS + 1)
    ]
    some = mrjobs.desired(job, *pods[:-1], state=failed.state, after_s=9100)
    assert some.cleaning
    last = mrjobs.desired(job, *pods, state=failed.state, after_s=9100)
    assert (last.cleaning, condition_of(last.state, CLEANED_UP)) == (False, ("False", "CleanUpFailed"))
    message = last.state.condition(CLEANED_UP).message
    assert message.endswith(f"; remove s3://b/out/_temporary/boathouse-{mrjobs.UID} manually")


def test_cleaning_is_given_up_after_ten_minutes():
    job, failed = failed_job()
    pod = mrjobs.attempt_pod("cleanup", state=PodLife.UNPLACED, node=None)
    late = mrjobs.desired(job, pod, state=failed.state, now_s=mrjobs.CREATED_S + 9000 + cleanup.GIVE_UP_S)
    assert (late.cleaning, condition_of(late.state, CLEANED_UP)) == (False, ("False", "CleanUpFailed"))
    assert late.delete == [pod]


def test_a_job_that_setup_refused_left_nothing():
    job = mrjobs.job()
    refused = mrjobs.desired(job, mrjobs.failed_pod("setup", reason="InputNotFound"))
    assert (refused.state.phase, condition_of(refused.state, CLEANED_UP)) == ("Failed", None)


def test_a_job_whose_setup_was_killed_may_have_left_its_mark():
    job = mrjobs.job(activeDeadlineSeconds=1)
    begun = mrjobs.desired(job, mrjobs.attempt_pod("setup"))
    late = mrjobs.desired(job, mrjobs.attempt_pod("setup"), state=begun.state, after_s=9000)
    assert condition_of(late.state, CLEANED_UP) == ("False", "CleaningUp")


@pytest.mark.parametrize("mode", ["Never", "OnDelete"])
def test_a_job_that_failed_keeps_its_folder_if_it_says_so(mode):
    job, failed = failed_job(cleanUp=mode)
    assert condition_of(failed.state, CLEANED_UP) is None
    assert not mrjobs.desired(job, state=failed.state).cleaning


def test_a_job_that_failed_under_an_older_version_is_cleaned_up_before_it_expires():
    _, failed = failed_job(cleanUp="Never")
    old = mrjobs.job(activeDeadlineSeconds=1, ttlSecondsAfterFinished=100)
    assert not mrjobs.desired(old, state=failed.state, after_s=9099).cleaning
    assert mrjobs.desired(old, state=failed.state, after_s=9100).cleaning


def test_a_job_that_succeeded_left_nothing():
    job = mrjobs.job()
    done = mrjobs.desired(job, mrjobs.succeeded_pod("r-0"), mrjobs.succeeded_pod("commit"), state=mrjobs.reducing(job))
    done = mrjobs.desired(job, mrjobs.succeeded_pod("commit"), state=done.state)
    assert (done.state.phase, condition_of(done.state, CLEANED_UP), done.cleaning) == ("Succeeded", None, False)
    assert not mrjobs.desired(deleted_job(), state=done.state).cleaning


def test_a_job_that_is_deleted_is_cleaned_up_when_its_pods_are_gone():
    job = deleted_job()
    before = mrjobs.mapping(mrjobs.job(cleanUp="OnDelete"))
    first = mrjobs.desired(job, mrjobs.attempt_pod("m-0"), state=before)
    assert (mrjobs.deleted_pods(first), first.cleaning, condition_of(first.state, CLEANED_UP)) == (
        ["m-0-a1"],
        True,
        ("False", "CleaningUp"),
    )
    assert first.state.phase == "Map"
    second = mrjobs.desired(job, state=first.state)
    assert mrjobs.pending_attempts(second) == ["cleanup-a1"]
    assert not mrjobs.desired(job, mrjobs.succeeded_pod("cleanup"), state=second.state).cleaning


def test_a_deleted_job_that_never_began_is_released_at_once():
    assert not mrjobs.desired(deleted_job()).cleaning


def test_where_the_namespace_terminates_cleaning_is_given_up_at_once():
    before = mrjobs.mapping(mrjobs.job(cleanUp="OnDelete"))
    given_up = mrjobs.desired(deleted_job(), state=before, namespace_terminating=True)
    assert (given_up.cleaning, condition_of(given_up.state, CLEANED_UP)) == (False, ("False", "CleanUpFailed"))


def test_a_later_steps_cleanup_is_of_that_step():
    job = mrjobs.job(
        steps=[{"mapper": {"command": ["cat"]}}, {"mapper": {"command": ["cat"]}}], mapper=None, reducer=None
    )
    state = dataclasses.replace(mrjobs.mapping(job), step=1, phase="Failed")
    begun = cleanup.begin(job, state, mrjobs.CREATED_S)
    assert mrjobs.pending_attempts(mrjobs.desired(job, state=begun, after_s=1)) == ["1/cleanup-a1"]


def test_what_a_cleanup_counts_is_not_the_jobs():
    job, failed = failed_job()
    done = mrjobs.desired(job, mrjobs.succeeded_pod("cleanup", counters={"g": {"c": 1}}), state=failed.state)
    assert done.state.counters == failed.state.counters
