"""The desired state of a job, from its pods and its last state."""

import dataclasses

import pytest
from hypothesis import given, settings, strategies as st

from boathouse.resources.names import ConditionType
from boathouse.services.frame.kind import Refusal
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob import job_state, settle
from boathouse.services.mrjob.planning import planner
from boathouse_task.contract import TaskType
from tests.builders import mrjobs
from tests.builders.frame import condition_of

# --- a job without failures


def test_a_new_job_starts_with_its_setup():
    desired = mrjobs.desired(mrjobs.job())
    assert mrjobs.pending_attempts(desired) == ["setup-a1"]
    assert desired.state.phase == "Pending"
    assert condition_of(desired.state, ConditionType.ADMITTED) == ("True", "Admitted")


def test_a_setup_that_runs_is_the_phase_setup():
    desired = mrjobs.desired(mrjobs.job(), mrjobs.attempt_pod("setup"))
    assert (desired.state.phase, desired.waiting) == ("Setup", [])


def test_a_finished_setup_has_its_posted_plan_written_first():
    desired = mrjobs.desired(mrjobs.job(), mrjobs.succeeded_pod("setup", digest="d1"), posted=mrjobs.plan_status())
    assert desired.write_plan
    assert desired.state.plan is None
    assert mrjobs.pending_attempts(desired) == []


def test_a_plan_in_config_maps_starts_the_maps():
    desired = mrjobs.desired(
        mrjobs.job(), mrjobs.succeeded_pod("setup", digest="d1"), stored=mrjobs.plan_status(splits=3)
    )
    assert mrjobs.pending_attempts(desired) == ["m-0-a1", "m-1-a1", "m-2-a1"]
    assert desired.state.phase == "Map"
    assert desired.state.plan.splits == 3


def test_reduces_wait_until_the_last_map_is_counted():
    job = mrjobs.job(numReduceTasks=2)
    mapping = mrjobs.mapping(job, splits=2)
    first = mrjobs.desired(job, mrjobs.succeeded_pod("m-0"), mrjobs.attempt_pod("m-1"), state=mapping)
    assert mrjobs.pending_attempts(first) == []
    both = mrjobs.desired(job, mrjobs.succeeded_pod("m-0"), mrjobs.succeeded_pod("m-1"), state=first.state)
    assert (mrjobs.pending_attempts(both), both.state.phase) == (["r-0-a1", "r-1-a1"], "Reduce")
    assert mrjobs.pending_attempts(mrjobs.desired(job, state=both.state)) == ["r-0-a1", "r-1-a1"]


def test_the_commit_ends_the_job():
    job = mrjobs.job()
    committing = mrjobs.desired(job, mrjobs.succeeded_pod("r-0"), state=mrjobs.reducing(job)).state
    assert committing.phase == "Commit"
    assert mrjobs.pending_attempts(mrjobs.desired(job, state=committing)) == ["commit-a1"]
    done = mrjobs.desired(job, mrjobs.succeeded_pod("commit"), state=committing)
    assert done.state.phase == "Succeeded"
    assert condition_of(done.state, ConditionType.SUCCEEDED) == ("True", "Succeeded")
    assert done.state.completion_s == mrjobs.CREATED_S + 1000


def test_a_map_only_job_has_no_reduce_phase():
    job = mrjobs.job(reducer=None)
    desired = mrjobs.desired(job, mrjobs.succeeded_pod("m-0"), state=mrjobs.mapping(job, splits=1))
    assert desired.state.phase == "Commit"


def test_an_input_without_any_split_still_reduces():
    job = mrjobs.job()
    assert mrjobs.desired(job, stored=mrjobs.plan_status(splits=0)).state.phase == "Reduce"


# --- every result counts once


def test_counters_of_a_pod_that_stays_visible_are_added_once():
    job = mrjobs.job()
    pods = [mrjobs.succeeded_pod("m-0", counters={"g": {"n": 5}}), mrjobs.attempt_pod("m-1")]
    once = mrjobs.desired(job, *pods, state=mrjobs.mapping(job)).state
    twice = mrjobs.desired(job, *pods, state=once).state
    assert once.counters == twice.counters == {"g": {"n": 5}}


@pytest.mark.parametrize(
    ("reported", "counters"),
    [
        pytest.param({"g": {"n": 5}}, {"g": {"n": 5}}, id="whole"),
        pytest.param({"g": {"n": 5}, "Boathouse": {"Counters dropped": 1}}, {"g": {"n": 7}}, id="cut"),
    ],
)
def test_the_commits_sums_are_not_added_to_those_of_the_tasks(reported, counters):
    limits = settle.Limits(max_attempts=1, start_timeout_s=10, image_pull_timeout_s=10)
    commit = mrjobs.succeeded_pod("commit", counters=reported)
    stage, sums = job_state.StageState.empty(1), {"g": {"n": 7}}
    settler = settle.Settler(
        type=TaskType.COMMIT,
        outcome=settle.Settlement(counters=sums),
        stage=stage,
        limits=limits,
        now_s=0,
        stop=settle.RUN,
    )
    settled = settler.settle([commit])
    assert settled.counters == counters


def test_two_attempts_that_both_succeed_count_as_one_and_the_commits_winner_is_kept():
    job = mrjobs.job()
    pods = [mrjobs.succeeded_pod("m-0", 2, winner_attempt=1), mrjobs.succeeded_pod("m-0", 1)]
    stage = mrjobs.desired(job, *pods, state=mrjobs.mapping(job)).state.stages[TaskType.MAP]
    assert (stage.succeeded, stage.winner[0]) == (1, 1)


def test_a_counted_success_survives_its_pods_deletion():
    job = mrjobs.job()
    counted = mrjobs.desired(job, mrjobs.succeeded_pod("m-0"), state=mrjobs.mapping(job)).state
    assert mrjobs.pending_attempts(mrjobs.desired(job, state=counted)) == ["m-1-a1", "m-2-a1"]


def test_another_attempt_of_a_finished_task_is_deleted():
    job = mrjobs.job()
    desired = mrjobs.desired(job, mrjobs.succeeded_pod("m-0"), mrjobs.attempt_pod("m-0", 2), state=mrjobs.mapping(job))
    assert mrjobs.deleted_pods(desired) == ["m-0-a2"]


@settings(max_examples=30)
@given(st.data())
def test_whatever_order_pods_end_in_the_final_status_is_the_same(data):
    job = mrjobs.job()
    pods = [mrjobs.succeeded_pod(f"m-{i}", attempt=1 + i % 2, counters={"g": {"n": i}}) for i in range(5)]
    pods += [mrjobs.failed_pod(f"m-{i}") for i in (1, 3)]
    observed, state = [], mrjobs.mapping(job, splits=5)
    for pod in data.draw(st.permutations(pods)):
        observed.append(pod)
        state = mrjobs.desired(job, *observed, state=job_state.from_status(job_state.to_status(state), reduces=1)).state
    stage = state.stages[TaskType.MAP]
    assert (stage.done, stage.winner, state.counters) == (True, [1, 2, 1, 2, 1], {"g": {"n": 10}})


# --- failures


def test_a_failed_task_is_retried_under_the_next_number_after_a_backoff():
    job = mrjobs.job()
    pod = mrjobs.failed_pod("m-0", time_s=mrjobs.CREATED_S + 999.5)
    backing_off = mrjobs.desired(
        job, pod, mrjobs.attempt_pod("m-1"), mrjobs.attempt_pod("m-2"), state=mrjobs.mapping(job)
    )
    assert (mrjobs.pending_attempts(backing_off), backing_off.recheck_at_s) == ([], mrjobs.CREATED_S + 1000.5)
    later = mrjobs.desired(
        job, pod, mrjobs.attempt_pod("m-1"), mrjobs.attempt_pod("m-2"), state=backing_off.state, after_s=1001
    )
    assert mrjobs.pending_attempts(later) == ["m-0-a2"]


def test_a_failure_is_counted_once_however_often_it_is_observed():
    job = mrjobs.job()
    first = mrjobs.desired(job, mrjobs.failed_pod("m-0"), state=mrjobs.mapping(job))
    second = mrjobs.desired(job, mrjobs.failed_pod("m-0"), state=first.state)
    assert first.state.stages[TaskType.MAP].user_failures[0] == 1
    assert second.state.stages[TaskType.MAP].user_failures[0] == 1
    assert (len(first.settlement.failures), len(second.settlement.failures)) == (1, 0)


def test_max_attempts_failures_by_the_users_fault_fail_the_job():
    job = mrjobs.job(mapper={"command": ["false"], "maxAttempts": 2})
    desired = mrjobs.desired(
        job,
        mrjobs.failed_pod("m-0", 1),
        mrjobs.failed_pod("m-0", 2, message="exit code 1; boom"),
        mrjobs.attempt_pod("m-1"),
        state=mrjobs.mapping(job),
    )
    assert desired.state.phase == "Failed"
    assert condition_of(desired.state, ConditionType.FAILED) == ("True", "TaskFailed")
    message = desired.state.condition(ConditionType.FAILED).message
    assert all(part in message for part in ("m-00000", "attempt 2", "node n1", "2 times", "boom"))


def test_a_failed_job_deletes_running_pods_and_keeps_ended_ones_for_their_logs():
    job = mrjobs.job(mapper={"command": ["false"], "maxAttempts": 1})
    desired = mrjobs.desired(
        job, mrjobs.failed_pod("m-0"), mrjobs.attempt_pod("m-1"), mrjobs.succeeded_pod("m-2"), state=mrjobs.mapping(job)
    )
    assert mrjobs.deleted_pods(desired) == ["m-1-a1"]
    assert mrjobs.pending_attempts(desired) == []


def test_infrastructure_failures_do_not_count_as_the_users():
    job = mrjobs.job(mapper={"command": ["cat"], "maxAttempts": 1})
    pods = [mrjobs.failed_pod("m-0", n, user=False, reason="OutOfcpu") for n in range(1, 9)]
    desired = mrjobs.desired(
        job, *pods, mrjobs.attempt_pod("m-1"), mrjobs.attempt_pod("m-2"), state=mrjobs.mapping(job)
    )
    assert desired.state.phase == "Map"
    assert mrjobs.pending_attempts(desired) == ["m-0-a9"]
    assert desired.state.stages[TaskType.MAP].infrastructure_failures[0] == 8


def test_a_pod_that_vanished_is_the_infrastructures_failure_and_its_number_is_not_used_again():
    job = mrjobs.job()
    begun = mrjobs.desired(job, mrjobs.attempt_pod("m-0"), state=mrjobs.mapping(job, splits=1)).state
    restored = job_state.from_status(job_state.to_status(begun), reduces=1)
    lost = mrjobs.desired(job, state=restored)
    assert (mrjobs.pending_attempts(lost), lost.recheck_at_s) == ([], mrjobs.CREATED_S + 1001)
    assert lost.state.stages[TaskType.MAP].infrastructure_failures == [1]
    assert [failure.attempt for failure in lost.state.last_failures] == [1]
    assert mrjobs.pending_attempts(mrjobs.desired(job, state=lost.state, after_s=1001)) == ["m-0-a2"]


def test_a_task_whose_pod_was_deleted_backs_off_as_one_that_failed():
    job = mrjobs.job()
    begun = mrjobs.desired(job, mrjobs.attempt_pod("m-0"), state=mrjobs.mapping(job, splits=1)).state
    lost = mrjobs.desired(job, state=begun).state
    failed_s = {"m-00000": mrjobs.CREATED_S + 1000}
    early = mrjobs.desired(job, state=lost, failed_s=failed_s, after_s=1000.5)
    assert (mrjobs.pending_attempts(early), early.recheck_at_s) == ([], mrjobs.CREATED_S + 1001)


def test_a_pod_on_a_node_that_does_not_respond_is_given_up_after_a_time():
    job = mrjobs.job()
    pod = mrjobs.attempt_pod("m-0", deleting_since_s=mrjobs.CREATED_S + 950)
    mapping = mrjobs.mapping(job, splits=1)
    early = mrjobs.desired(job, pod, state=mapping)
    assert (mrjobs.pending_attempts(early), early.recheck_at_s) == ([], mrjobs.CREATED_S + 1010)
    late = mrjobs.desired(job, pod, state=mapping, after_s=1011)
    assert (mrjobs.pending_attempts(late), list(late.delete)) == (["m-0-a2"], [])


def test_the_lost_pods_success_still_counts():
    job = mrjobs.job()
    mapping = mrjobs.mapping(job, splits=1)
    lost = mrjobs.desired(job, mrjobs.attempt_pod("m-0", deleting_since_s=mrjobs.CREATED_S), state=mapping).state
    desired = mrjobs.desired(job, mrjobs.succeeded_pod("m-0", 1), mrjobs.attempt_pod("m-0", 2), state=lost)
    assert desired.state.stages[TaskType.MAP].winner == [1]
    assert mrjobs.deleted_pods(desired) == ["m-0-a2"]


@pytest.mark.parametrize("reason", ["InputNotFound", "OutputExists", "AccessDenied"])
def test_an_error_that_setup_finds_fails_the_job_at_once(reason):
    desired = mrjobs.desired(mrjobs.job(), mrjobs.failed_pod("setup", reason=reason))
    assert condition_of(desired.state, ConditionType.FAILED) == ("True", reason)
    assert desired.state.reason == reason


def test_a_command_that_is_not_found_is_not_retried():
    job = mrjobs.job()
    desired = mrjobs.desired(job, mrjobs.failed_pod("m-0", reason="CommandNotFound"), state=mrjobs.mapping(job))
    assert condition_of(desired.state, ConditionType.FAILED) == ("True", "CommandNotFound")


def test_a_storage_error_of_setup_is_retried():
    desired = mrjobs.desired(mrjobs.job(), mrjobs.failed_pod("setup", user=False, reason="StorageError"))
    assert mrjobs.pending_attempts(desired) == ["setup-a2"]


# --- the plan


def test_a_plan_that_was_lost_needs_another_setup():
    job = mrjobs.job()
    lost = mrjobs.desired(job, mrjobs.succeeded_pod("setup", digest="d1"))
    assert mrjobs.pending_attempts(lost) == ["setup-a2"]
    assert lost.state.stages[TaskType.SETUP].infrastructure_failures == [1]
    again = mrjobs.desired(
        job, mrjobs.succeeded_pod("setup", digest="d1"), mrjobs.attempt_pod("setup", 2), state=lost.state
    )
    assert (mrjobs.pending_attempts(again), list(again.delete)) == ([], [])
    second = mrjobs.desired(
        job,
        mrjobs.succeeded_pod("setup"),
        mrjobs.succeeded_pod("setup", 2, digest="d2"),
        state=again.state,
        posted=mrjobs.plan_status(digest="d2"),
    )
    assert second.write_plan


def test_a_posted_plan_with_another_digest_than_the_result_is_not_written():
    desired = mrjobs.desired(
        mrjobs.job(), mrjobs.succeeded_pod("setup", digest="d1"), posted=mrjobs.plan_status(digest="forged")
    )
    assert not desired.write_plan
    assert mrjobs.pending_attempts(desired) == ["setup-a2"]


def test_too_many_splits_fail_the_job_and_say_what_to_raise():
    desired = mrjobs.desired(
        mrjobs.job(), mrjobs.succeeded_pod("setup", digest="d1"), posted=mrjobs.plan_status(splits=40_001)
    )
    assert condition_of(desired.state, ConditionType.FAILED) == ("True", "TooManySplits")
    assert "splitMaxSize" in desired.state.condition(ConditionType.FAILED).message


# --- pending


def test_the_schedulers_reason_is_in_the_conditions_while_tasks_are_pending():
    desired = mrjobs.desired(mrjobs.job(), diagnosis=mrjobs.diagnosis("NeverFits", "no node has 900 CPUs"))
    assert condition_of(desired.state, ConditionType.SCHEDULED) == ("False", "NeverFits")
    assert (desired.state.reason, desired.state.phase) == ("NeverFits", "Pending")


def test_no_task_is_pending_when_each_has_a_pod():
    desired = mrjobs.desired(mrjobs.job(), mrjobs.attempt_pod("setup"))
    assert condition_of(desired.state, ConditionType.SCHEDULED) == ("True", "AllTasksPlaced")
    assert condition_of(desired.state, ConditionType.RUNNING) == ("True", "TasksRunning")


def test_a_pod_without_a_node_is_pending_under_its_own_uid():
    desired = mrjobs.desired(mrjobs.job(), mrjobs.attempt_pod("setup", state=PodLife.UNPLACED, node=None))
    assert [(a.number, a.pod_uid) for a in desired.waiting] == [(1, "uid-setup-a1")]


def test_a_missing_config_map_is_named_and_the_job_is_pending():
    missing = ["ConfigMap wc has no key mapper.py"]
    desired = mrjobs.desired(mrjobs.job(), missing=missing)
    assert condition_of(desired.state, ConditionType.ADMITTED) == ("False", "ConfigMapNotFound")
    assert (desired.state.phase, mrjobs.pending_attempts(desired)) == ("Pending", [])
    assert mrjobs.pending_attempts(mrjobs.desired(mrjobs.job(), state=desired.state)) == ["setup-a1"]


def test_a_config_map_that_is_never_created_fails_the_job():
    desired = mrjobs.desired(
        mrjobs.job(),
        missing=["ConfigMap wc does not exist"],
        limits=settle.Limits(start_timeout_s=600, image_pull_timeout_s=300),
    )
    assert condition_of(desired.state, ConditionType.FAILED) == ("True", "ConfigMapNotFound")


def test_a_missing_secret_is_named_at_once_and_fails_the_job_after_the_timeout():
    pod = mrjobs.stuck_pod("setup", "SecretNotFound")
    desired = mrjobs.desired(mrjobs.job(), pod, after_s=119)
    assert condition_of(desired.state, ConditionType.RUNNING) == ("False", "SecretNotFound")
    assert desired.state.phase == "Setup"
    late = mrjobs.desired(mrjobs.job(), pod, state=desired.state, after_s=120)
    assert condition_of(late.state, ConditionType.FAILED) == ("True", "SecretNotFound")
    assert mrjobs.deleted_pods(late) == ["setup-a1"]


def test_a_pod_that_does_not_start_without_saying_why_is_replaced():
    pod = mrjobs.attempt_pod("setup", state=PodLife.STARTING)
    desired = mrjobs.desired(mrjobs.job(), pod, limits=settle.Limits(start_timeout_s=600, image_pull_timeout_s=300))
    assert mrjobs.deleted_pods(desired) == ["setup-a1"]
    assert desired.state.stages[TaskType.SETUP].infrastructure_failures == [1]


def test_a_refused_resource_is_pending_with_the_reason():
    refusal = Refusal(reason="QueueNotFound", message="the queue x does not exist")
    refused = planner.refuse(job_state.JobState(), refusal, 1, 0.0)
    assert (refused.phase, refused.reason) == ("Pending", "QueueNotFound")


def test_a_finished_job_only_deletes_its_running_pods():
    job = mrjobs.job()
    finished = dataclasses.replace(mrjobs.mapping(job), phase="Failed")
    desired = mrjobs.desired(job, mrjobs.attempt_pod("m-0"), state=finished)
    assert (desired.state, mrjobs.pending_attempts(desired)) == (finished, [])
    assert mrjobs.deleted_pods(desired) == ["m-0-a1"]


def test_a_winner_that_never_existed_is_the_attempt_that_says_so():
    job = mrjobs.job()
    pods = [
        mrjobs.succeeded_pod("m-0", 1, winner_attempt=9),
        mrjobs.succeeded_pod("m-1", 2, winner_attempt=1),
        mrjobs.succeeded_pod("m-2", winner_attempt=0),
    ]
    state = mrjobs.desired(job, *pods, state=mrjobs.mapping(job, 3)).state
    assert state.stages[TaskType.MAP].winner == [1, 1, 1]


def test_an_attempts_number_far_beyond_the_last_reports_a_bounded_number_of_lost_attempts():
    job = mrjobs.job()
    done = mrjobs.desired(job, mrjobs.attempt_pod("m-0", 60_000), state=mrjobs.mapping(job, 3))
    assert len(done.settlement.failures) <= settle.MAX_LOST_AT_ONCE
    assert done.state.stages[TaskType.MAP].infrastructure_failures[0] == 59_999


def test_sums_of_counters_stay_within_64_bits():
    job, most = mrjobs.job(), 2**63 - 1
    pods = [mrjobs.succeeded_pod(f"m-{index}", counters={"g": {"n": most}}) for index in range(3)]
    assert mrjobs.desired(job, *pods, state=mrjobs.mapping(job, 3)).state.counters == {"g": {"n": most}}
