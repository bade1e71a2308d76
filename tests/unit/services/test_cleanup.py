"""What cleaning up after a job needs next."""

import pytest

from boathouse.resources.names import ConditionType
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob.planning import cleanup
from boathouse_task.contract import TaskType

DELETED = "2026-01-01T00:15:00Z"


def cleaned(desired):
    found = desired.state.condition(ConditionType.CLEANED_UP)
    return (found.status, found.reason) if found else None


def failed_job(build, *pods, **spec):
    """A job that fails while its maps run."""
    job = build.job(activeDeadlineSeconds=1, **spec)
    return job, build.look(job, *pods, state=build.mapping(job), now_s=build.CREATED_S + 9000)


def deleted(build, **spec):
    body = build.body(cleanUp="OnDelete", **spec)
    body["metadata"] |= {"deletionTimestamp": DELETED, "finalizers": ["boathouse.dev/clean-up"]}
    return build.of(body)


def waiting(desired):
    return [(each.task_type, each.number, each.step) for each in desired.waiting]


def test_a_job_that_failed_is_cleaned_up_by_a_task(build):
    job, failed = failed_job(build, build.pod("m-0"))
    assert (failed.state.phase, cleaned(failed)) == ("Failed", ("False", "CleaningUp"))
    first = build.look(job, state=failed.state)
    assert (first.cleaning, waiting(first)) == (True, [(TaskType.CLEANUP, 1, 0)])
    done = build.look(job, build.won("cleanup"), state=first.state)
    assert (done.cleaning, cleaned(done), done.state.phase) == (False, ("True", "CleanedUp"), "Failed")
    assert done.waiting == ()


def test_the_task_waits_until_no_other_writes(build):
    job, failed = failed_job(build)
    now_s = build.CREATED_S + 9100
    running = build.look(job, build.pod("m-0"), state=failed.state, now_s=now_s)
    assert ([pod.name for pod in running.delete], waiting(running), running.cleaning) == (["m-0-a1"], [], True)
    leaving = build.look(job, build.pod("m-0", deleting_since_s=now_s), state=failed.state, now_s=now_s + 59)
    assert (leaving.delete, waiting(leaving), leaving.cleaning) == ([], [], True)
    lost = build.look(job, build.pod("m-0", deleting_since_s=now_s), state=failed.state, now_s=now_s + 61)
    assert waiting(lost) == [(TaskType.CLEANUP, 1, 0)]


def test_cleaning_is_given_up_after_some_attempts(build):
    job, failed = failed_job(build)
    pods = [build.failed("cleanup", n, user=False, reason="StorageError") for n in range(1, cleanup.MAX_ATTEMPTS + 1)]
    some = build.look(job, *pods[:-1], state=failed.state, now_s=build.CREATED_S + 9100)
    assert some.cleaning
    last = build.look(job, *pods, state=failed.state, now_s=build.CREATED_S + 9100)
    assert (last.cleaning, cleaned(last)) == (False, ("False", "CleanUpFailed"))
    message = last.state.condition(ConditionType.CLEANED_UP).message
    assert message.endswith(f"; remove s3://b/out/_temporary/boathouse-{build.UID} manually")


def test_cleaning_is_given_up_after_ten_minutes(build):
    job, failed = failed_job(build)
    pod = build.pod("cleanup", state=PodLife.UNPLACED, node=None)
    late = build.look(job, pod, state=failed.state, now_s=build.CREATED_S + 9000 + cleanup.GIVE_UP_S)
    assert (late.cleaning, cleaned(late)) == (False, ("False", "CleanUpFailed"))
    assert late.delete == [pod]


def test_a_job_that_setup_refused_left_nothing(build):
    job = build.job()
    refused = build.look(job, build.failed("setup", reason="InputNotFound"))
    assert (refused.state.phase, cleaned(refused)) == ("Failed", None)


def test_a_job_whose_setup_was_killed_may_have_left_its_mark(build):
    job = build.job(activeDeadlineSeconds=1)
    begun = build.look(job, build.pod("setup"))
    late = build.look(job, build.pod("setup"), state=begun.state, now_s=build.CREATED_S + 9000)
    assert cleaned(late) == ("False", "CleaningUp")


@pytest.mark.parametrize("mode", ["Never", "OnDelete"])
def test_a_job_that_failed_keeps_its_folder_if_it_says_so(build, mode):
    job, failed = failed_job(build, cleanUp=mode)
    assert cleaned(failed) is None
    assert not build.look(job, state=failed.state).cleaning


def test_a_job_that_failed_under_an_older_version_is_cleaned_up_before_it_expires(build):
    _, failed = failed_job(build, cleanUp="Never")
    old = build.job(activeDeadlineSeconds=1, ttlSecondsAfterFinished=100)
    assert not build.look(old, state=failed.state, now_s=build.CREATED_S + 9099).cleaning
    assert build.look(old, state=failed.state, now_s=build.CREATED_S + 9100).cleaning


def test_a_job_that_succeeded_left_nothing(build):
    job = build.job()
    done = build.look(job, build.won("r-0"), build.won("commit"), state=build.reducing(job))
    done = build.look(job, build.won("commit"), state=done.state)
    assert (done.state.phase, cleaned(done), done.cleaning) == ("Succeeded", None, False)
    assert not build.look(deleted(build), state=done.state).cleaning


def test_a_job_that_is_deleted_is_cleaned_up_when_its_pods_have_gone(build):
    job = deleted(build)
    before = build.mapping(build.job(cleanUp="OnDelete"))
    first = build.look(job, build.pod("m-0"), state=before)
    assert ([pod.name for pod in first.delete], first.cleaning, cleaned(first)) == (
        ["m-0-a1"],
        True,
        ("False", "CleaningUp"),
    )
    assert first.state.phase == "Map"
    second = build.look(job, state=first.state)
    assert waiting(second) == [(TaskType.CLEANUP, 1, 0)]
    assert not build.look(job, build.won("cleanup"), state=second.state).cleaning


def test_a_deleted_job_that_never_began_goes_at_once(build):
    assert not build.look(deleted(build)).cleaning


def test_where_the_namespace_terminates_cleaning_is_given_up_at_once(build):
    before = build.mapping(build.job(cleanUp="OnDelete"))
    given_up = build.look(deleted(build), state=before, namespace_terminating=True)
    assert (given_up.cleaning, cleaned(given_up)) == (False, ("False", "CleanUpFailed"))


def test_a_later_steps_cleanup_is_of_that_step(build):
    job = build.job(
        steps=[{"mapper": {"command": ["cat"]}}, {"mapper": {"command": ["cat"]}}], mapper=None, reducer=None
    )
    state = build.replace(build.mapping(job), step=1, phase="Failed")
    begun = cleanup.begin(job, state, build.CREATED_S)
    assert waiting(build.look(job, state=begun, now_s=build.CREATED_S + 1)) == [(TaskType.CLEANUP, 1, 1)]


def test_what_a_cleanup_counts_is_not_the_jobs(build):
    job, failed = failed_job(build)
    done = build.look(job, build.won("cleanup", counters={"g": {"c": 1}}), state=failed.state)
    assert done.state.counters == failed.state.counters
