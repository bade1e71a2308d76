"""Suspension, deadlines, and reduces that start before the last map."""

import pytest

from boathouse.resources.names import ConditionType
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob import settle
from boathouse_task.contract import TaskType
from tests.builders import mrjobs
from tests.builders.frame import condition_of


@pytest.fixture
def suspended():
    return mrjobs.job(suspend=True)


# --- suspension


def test_a_job_that_is_created_suspended_starts_nothing_and_its_deadline_does_not_count(suspended):
    desired = mrjobs.desired(suspended)
    assert (mrjobs.pending_attempts(desired), desired.state.phase, desired.state.start_s) == ([], "Suspended", None)
    assert condition_of(desired.state, ConditionType.SUSPENDED) == ("True", "Suspended")


def test_suspending_deletes_running_pods_and_keeps_results(job, suspended):
    running = mrjobs.desired(
        job,
        mrjobs.succeeded_pod("m-0"),
        mrjobs.attempt_pod("m-1"),
        mrjobs.attempt_pod("m-2"),
        state=mrjobs.mapping(job),
    ).state
    desired = mrjobs.desired(
        suspended, mrjobs.succeeded_pod("m-0"), mrjobs.attempt_pod("m-1"), mrjobs.attempt_pod("m-2"), state=running
    )
    assert (mrjobs.deleted_pods(desired), mrjobs.pending_attempts(desired)) == (["m-1-a1", "m-2-a1"], [])
    assert desired.state.stages[TaskType.MAP].winner == [1, 0, 0]
    assert desired.state.phase == "Suspended"


def test_attempts_that_a_suspension_ends_are_no_failures_and_are_retried_without_a_backoff(job, suspended):
    pods = [mrjobs.attempt_pod(f"m-{index}") for index in range(3)]
    running = mrjobs.desired(job, *pods, state=mrjobs.mapping(job)).state
    held = mrjobs.desired(suspended, *pods, state=running).state
    resumed = mrjobs.desired(job, state=mrjobs.desired(suspended, state=held).state)
    stage = resumed.state.stages[TaskType.MAP]
    assert (stage.killed, resumed.state.failures) == ([1, 1, 1], (0, 0))
    assert mrjobs.pending_attempts(resumed) == ["m-0-a2", "m-1-a2", "m-2-a2"]
    assert condition_of(resumed.state, ConditionType.SUSPENDED) == ("False", "Resumed")
    assert (resumed.state.phase, resumed.state.start_s) == ("Map", mrjobs.CREATED_S + 1000)


def test_a_task_that_succeeds_while_its_job_is_being_suspended_counts(job, suspended):
    mapping = mrjobs.desired(job, mrjobs.attempt_pod("m-0"), state=mrjobs.mapping(job, splits=1)).state
    held = mrjobs.desired(suspended, mrjobs.attempt_pod("m-0"), state=mapping).state
    assert mrjobs.desired(suspended, mrjobs.succeeded_pod("m-0"), state=held).state.stages[TaskType.MAP].winner == [1]


def test_a_plan_that_is_posted_while_its_job_is_suspended_is_kept(suspended):
    desired = mrjobs.desired(suspended, mrjobs.succeeded_pod("setup", digest="d1"), posted=mrjobs.plan_status())
    assert (desired.write_plan, mrjobs.pending_attempts(desired)) == (True, [])
    lost = mrjobs.desired(suspended, mrjobs.succeeded_pod("setup", digest="d1"))
    assert (lost.write_plan, mrjobs.pending_attempts(lost)) == (False, [])


# --- the deadline


def test_a_job_that_is_active_for_too_long_fails_and_its_pods_are_deleted():
    job = mrjobs.job(activeDeadlineSeconds=500)
    mapping = mrjobs.mapping(job)
    early = mrjobs.desired(job, mrjobs.attempt_pod("m-0"), state=mapping, after_s=1499)
    assert (early.state.phase, early.recheck_at_s) == ("Map", mrjobs.CREATED_S + 1500)
    late = mrjobs.desired(job, mrjobs.attempt_pod("m-0"), state=mapping, after_s=1500)
    assert condition_of(late.state, ConditionType.FAILED) == ("True", "DeadlineExceeded")
    assert mrjobs.deleted_pods(late) == ["m-0-a1"]


def test_the_deadline_counts_from_the_resume(job):
    running = mrjobs.mapping(job)
    held = mrjobs.desired(mrjobs.job(suspend=True), state=running).state
    resumed = mrjobs.desired(mrjobs.job(activeDeadlineSeconds=10), state=held, after_s=9000)
    assert resumed.state.phase == "Map"


def test_a_commit_that_ends_in_the_last_moment_has_succeeded():
    job = mrjobs.job(activeDeadlineSeconds=1)
    committing = mrjobs.desired(job, mrjobs.succeeded_pod("r-0"), state=mrjobs.reducing(job)).state
    done = mrjobs.desired(job, mrjobs.succeeded_pod("commit"), state=committing, after_s=9000)
    assert done.state.phase == "Succeeded"


def test_a_job_that_failed_names_what_it_left_in_the_storage_if_it_stays_there():
    job = mrjobs.job(activeDeadlineSeconds=1, cleanUp="Never")
    late = mrjobs.desired(job, state=mrjobs.mapping(job), after_s=9000)
    assert f"s3://b/out/_temporary/boathouse-{mrjobs.UID}" in late.state.condition(ConditionType.FAILED).message


# --- slow start


def slow_start_job(percent):
    return mrjobs.job(numReduceTasks=2, slowStartCompletedMapsPercent=percent)


@pytest.mark.parametrize(("done", "reduces"), [(1, []), (2, ["r-0-a1", "r-1-a1"])])
def test_reduces_start_when_the_stated_part_of_the_maps_is_done(done, reduces):
    job = slow_start_job(50)
    pods = [mrjobs.succeeded_pod(f"m-{index}") for index in range(done)] + [
        mrjobs.attempt_pod(f"m-{n}") for n in range(done, 4)
    ]
    desired = mrjobs.desired(job, *pods, state=mrjobs.mapping(job, splits=4))
    assert (mrjobs.pending_attempts(desired), desired.state.phase) == (reduces, "Map")


def test_maps_are_scheduled_before_the_reduces_that_start_early():
    job = slow_start_job(0)
    assert mrjobs.pending_attempts(mrjobs.desired(job, state=mrjobs.mapping(job, splits=2))) == [
        "m-0-a1",
        "m-1-a1",
        "r-0-a1",
        "r-1-a1",
    ]


def test_reduces_that_started_early_continue_when_the_maps_are_done():
    job = slow_start_job(50)
    pods = [
        mrjobs.succeeded_pod("m-0"),
        mrjobs.attempt_pod("m-1"),
        mrjobs.attempt_pod("r-0"),
        mrjobs.attempt_pod("r-1"),
    ]
    early = mrjobs.desired(job, *pods, state=mrjobs.mapping(job, splits=2)).state
    desired = mrjobs.desired(job, mrjobs.succeeded_pod("m-0"), mrjobs.succeeded_pod("m-1"), *pods[2:], state=early)
    assert (desired.state.phase, mrjobs.pending_attempts(desired), mrjobs.deleted_pods(desired)) == ("Reduce", [], [])
    assert desired.state.active[TaskType.REDUCE] == (0, 2)


def test_a_reduce_is_deleted_for_a_map_of_its_job_that_is_pending_for_some_time():
    job = slow_start_job(0)
    pods = [mrjobs.attempt_pod("m-0"), mrjobs.attempt_pod("r-0"), mrjobs.attempt_pod("r-1")]
    diagnosis = mrjobs.diagnosis(reason="Unschedulable", message="memory is scarce")
    pending = mrjobs.desired(job, *pods, state=mrjobs.mapping(job, splits=2), diagnosis=diagnosis)
    assert (mrjobs.pending_attempts(pending), mrjobs.deleted_pods(pending)) == (["m-1-a1"], [])
    later = mrjobs.desired(job, *pods, state=pending.state, diagnosis=diagnosis, after_s=1011)
    assert (mrjobs.pending_attempts(later), mrjobs.deleted_pods(later)) == (["m-1-a1"], ["r-1-a1"])
    assert later.state.stages[TaskType.REDUCE].killed == [0, 1]


@pytest.mark.parametrize(("scarce", "later_s"), [("memory", 11), ("cpu", 61)])
def test_a_reduce_is_deleted_later_for_a_map_that_lacks_cpu_if_policies_suspend_reduces(scarce, later_s):
    job = slow_start_job(0)
    pods = [mrjobs.attempt_pod("m-0"), mrjobs.attempt_pod("r-0"), mrjobs.attempt_pod("r-1")]
    diagnosis = mrjobs.diagnosis("Unschedulable", "a resource is scarce", scarce=scarce)
    state = mrjobs.desired(job, *pods, state=mrjobs.mapping(job, splits=2), diagnosis=diagnosis, lends_cpu=True).state
    before, after = (
        mrjobs.desired(
            job, *pods, state=state, diagnosis=diagnosis, lends_cpu=True, now_s=mrjobs.CREATED_S + 1000 + moment_s
        )
        for moment_s in (later_s - 2, later_s)
    )
    assert (mrjobs.deleted_pods(before), mrjobs.deleted_pods(after)) == ([], ["r-1-a1"])


def test_no_second_reduce_is_deleted_while_the_first_is_terminating():
    job = slow_start_job(0)
    pods = [
        mrjobs.attempt_pod("m-0"),
        mrjobs.attempt_pod("r-0"),
        mrjobs.attempt_pod("r-1", deleting_since_s=mrjobs.CREATED_S + 1000),
    ]
    diagnosis = mrjobs.diagnosis(reason="Unschedulable", message="memory is scarce")
    first = mrjobs.desired(job, *pods, state=mrjobs.mapping(job, splits=2), diagnosis=diagnosis)
    later = mrjobs.desired(job, *pods, state=first.state, diagnosis=diagnosis, after_s=1011)
    assert mrjobs.deleted_pods(later) == []


def test_no_reduce_is_deleted_for_a_map_that_fits_no_node():
    job = slow_start_job(0)
    pods = [mrjobs.attempt_pod("m-0"), mrjobs.attempt_pod("r-0")]
    diagnosis = mrjobs.diagnosis(reason="NeverFits", message="no node is so large")
    first = mrjobs.desired(job, *pods, state=mrjobs.mapping(job, splits=2), diagnosis=diagnosis)
    later = mrjobs.desired(job, *pods, state=first.state, diagnosis=diagnosis, after_s=9000)
    assert mrjobs.deleted_pods(later) == []


# --- the limit of infrastructure failures


def test_too_many_infrastructure_failures_of_a_task_fail_the_job(job):
    lost = [mrjobs.failed_pod("m-0", n, user=False, reason="OutOfcpu", message="no CPU") for n in range(1, 4)]
    limits = settle.Limits(start_timeout_s=600, image_pull_timeout_s=300, max_infrastructure=3)
    desired = mrjobs.desired(job, *lost, mrjobs.attempt_pod("m-1"), state=mrjobs.mapping(job), limits=limits)
    assert condition_of(desired.state, ConditionType.FAILED) == ("True", "OutOfcpu")
    assert "3 times with infrastructure errors" in desired.state.condition(ConditionType.FAILED).message


def test_a_pod_without_a_node_is_deleted_when_its_job_is_suspended(suspended):
    desired = mrjobs.desired(suspended, mrjobs.attempt_pod("setup", state=PodLife.UNPLACED, node=None))
    assert (mrjobs.deleted_pods(desired), mrjobs.pending_attempts(desired)) == (["setup-a1"], [])
