"""What a job needs next, from what can be seen of it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.resources.names import ConditionType
from boathouse.services.frame.kind import Refusal
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob.attempts import settle
from boathouse.services.mrjob.planning import planner
from boathouse.services.mrjob.state import job_state
from boathouse_task.contract import TaskType


def names(desired):
    """`["m-0a1", ...]` of what waits."""
    letter = {TaskType.MAP: "m-", TaskType.REDUCE: "r-"}
    return [
        f"{letter[a.task_type]}{a.index}a{a.number}" if a.task_type in letter else f"{a.task_type}a{a.number}"
        for a in desired.waiting
    ]


def status(desired, condition_type):
    condition = desired.state.condition(condition_type)
    return (condition.status, condition.reason)


# --- the good path


def test_a_new_job_wants_its_setup(build):
    desired = build.look(build.job())
    assert names(desired) == ["setupa1"]
    assert desired.state.phase == "Pending"
    assert status(desired, ConditionType.ADMITTED) == ("True", "Admitted")


def test_a_setup_that_runs_is_the_phase_setup(build):
    desired = build.look(build.job(), build.pod("setup"))
    assert (desired.state.phase, desired.waiting) == ("Setup", [])


def test_a_finished_setup_has_its_posted_plan_written_first(build):
    desired = build.look(build.job(), build.won("setup", digest="d1"), posted=build.plan())
    assert desired.write_plan
    assert desired.state.plan is None
    assert names(desired) == []


def test_a_plan_in_config_maps_starts_the_maps(build):
    desired = build.look(build.job(), build.won("setup", digest="d1"), stored=build.plan(splits=3))
    assert names(desired) == ["m-0a1", "m-1a1", "m-2a1"]
    assert desired.state.phase == "Map"
    assert desired.state.plan.splits == 3


def test_reduces_wait_until_the_last_map_is_counted(build):
    job = build.job(numReduceTasks=2)
    mapping = build.mapping(job, splits=2)
    first = build.look(job, build.won("m-0"), build.pod("m-1"), state=mapping)
    assert names(first) == []
    both = build.look(job, build.won("m-0"), build.won("m-1"), state=first.state)
    assert (names(both), both.state.phase) == (["r-0a1", "r-1a1"], "Reduce")
    assert names(build.look(job, state=both.state)) == ["r-0a1", "r-1a1"]


def test_the_commit_ends_the_job(build):
    job = build.job()
    committing = build.look(job, build.won("r-0"), state=build.reducing(job)).state
    assert committing.phase == "Commit"
    assert names(build.look(job, state=committing)) == ["commita1"]
    done = build.look(job, build.won("commit"), state=committing)
    assert done.state.phase == "Succeeded"
    assert status(done, ConditionType.SUCCEEDED) == ("True", "Succeeded")
    assert done.state.completion_s == build.CREATED_S + 1000


def test_a_map_only_job_has_no_reduce_phase(build):
    job = build.job(reducer=None)
    desired = build.look(job, build.won("m-0"), state=build.mapping(job, splits=1))
    assert desired.state.phase == "Commit"


def test_an_input_without_any_split_still_reduces(build):
    job = build.job()
    assert build.look(job, stored=build.plan(splits=0)).state.phase == "Reduce"


# --- every result counts once


def test_counters_of_a_pod_that_stays_visible_are_added_once(build):
    job = build.job()
    pods = [build.won("m-0", counters={"g": {"n": 5}}), build.pod("m-1")]
    once = build.look(job, *pods, state=build.mapping(job)).state
    twice = build.look(job, *pods, state=once).state
    assert once.counters == twice.counters == {"g": {"n": 5}}


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        pytest.param({"g": {"n": 5}}, {"g": {"n": 5}}, id="whole"),
        pytest.param({"g": {"n": 5}, "Boathouse": {"Counters dropped": 1}}, {"g": {"n": 7}}, id="cut"),
    ],
)
def test_the_commits_sums_are_not_added_to_those_of_the_tasks(build, told, kept):
    limits = settle.Limits(max_attempts=1, start_timeout_s=10, image_pull_timeout_s=10)
    won = build.won("commit", counters=told)
    settled = settle.settle(TaskType.COMMIT, job_state.StageState.empty(1), [won], {"g": {"n": 7}}, limits, 0)
    assert settled.counters == kept


def test_two_attempts_that_both_succeed_count_as_one_and_the_commits_winner_is_kept(build):
    job = build.job()
    pods = [build.won("m-0", 2, winner_attempt=1), build.won("m-0", 1)]
    stage = build.look(job, *pods, state=build.mapping(job)).state.stages[TaskType.MAP]
    assert (stage.succeeded, stage.winner[0]) == (1, 1)


def test_a_counted_success_survives_its_pods_deletion(build):
    job = build.job()
    counted = build.look(job, build.won("m-0"), state=build.mapping(job)).state
    assert names(build.look(job, state=counted)) == ["m-1a1", "m-2a1"]


def test_another_attempt_of_a_finished_task_is_deleted(build):
    job = build.job()
    desired = build.look(job, build.won("m-0"), build.pod("m-0", 2), state=build.mapping(job))
    assert [pod.name for pod in desired.delete] == ["m-0-a2"]


@settings(deadline=None)
@given(st.data())
def test_whatever_order_pods_end_in_the_final_status_is_the_same(build, data):
    job = build.job()
    pods = [build.won(f"m-{i}", attempt=1 + i % 2, counters={"g": {"n": i}}) for i in range(5)]
    pods += [build.failed(f"m-{i}") for i in (1, 3)]
    seen, state = [], build.mapping(job, splits=5)
    for pod in data.draw(st.permutations(pods)):
        seen.append(pod)
        state = build.look(job, *seen, state=job_state.from_status(job_state.to_status(state), reduces=1)).state
    stage = state.stages[TaskType.MAP]
    assert (stage.done, stage.winner, state.counters) == (True, [1, 2, 1, 2, 1], {"g": {"n": 10}})


# --- failures


def test_a_failed_task_is_tried_again_under_the_next_number_after_a_pause(build):
    job = build.job()
    pod = build.failed("m-0", time_s=build.CREATED_S + 999.5)
    paused = build.look(job, pod, build.pod("m-1"), build.pod("m-2"), state=build.mapping(job))
    assert (names(paused), paused.recheck_at_s) == ([], build.CREATED_S + 1000.5)
    later = build.look(job, pod, build.pod("m-1"), build.pod("m-2"), state=paused.state, now_s=build.CREATED_S + 1001)
    assert names(later) == ["m-0a2"]


def test_a_failure_is_counted_once_however_often_it_is_seen(build):
    job = build.job()
    first = build.look(job, build.failed("m-0"), state=build.mapping(job))
    second = build.look(job, build.failed("m-0"), state=first.state)
    assert first.state.stages[TaskType.MAP].user_failures[0] == 1
    assert second.state.stages[TaskType.MAP].user_failures[0] == 1
    assert (len(first.failures), len(second.failures)) == (1, 0)


def test_max_attempts_failures_by_the_users_fault_fail_the_job(build):
    job = build.job(mapper={"command": ["false"], "maxAttempts": 2})
    desired = build.look(
        job,
        build.failed("m-0", 1),
        build.failed("m-0", 2, message="exit code 1; boom"),
        build.pod("m-1"),
        state=build.mapping(job),
    )
    assert desired.state.phase == "Failed"
    assert status(desired, ConditionType.FAILED) == ("True", "TaskFailed")
    message = desired.state.condition(ConditionType.FAILED).message
    assert all(part in message for part in ("m-00000", "attempt 2", "node n1", "2 times", "boom"))


def test_a_failed_job_deletes_what_runs_and_keeps_what_ended_for_its_logs(build):
    job = build.job(mapper={"command": ["false"], "maxAttempts": 1})
    desired = build.look(job, build.failed("m-0"), build.pod("m-1"), build.won("m-2"), state=build.mapping(job))
    assert [pod.name for pod in desired.delete] == ["m-1-a1"]
    assert names(desired) == []


def test_infrastructure_failures_are_not_held_against_the_users_attempts(build):
    job = build.job(mapper={"command": ["cat"], "maxAttempts": 1})
    pods = [build.failed("m-0", n, user=False, reason="OutOfcpu") for n in range(1, 9)]
    desired = build.look(job, *pods, build.pod("m-1"), build.pod("m-2"), state=build.mapping(job))
    assert desired.state.phase == "Map"
    assert names(desired) == ["m-0a9"]
    assert desired.state.stages[TaskType.MAP].infrastructure_failures[0] == 8


def test_a_pod_that_vanished_is_the_infrastructures_failure_and_its_number_is_not_used_again(build):
    job = build.job()
    seen = build.look(job, build.pod("m-0"), state=build.mapping(job, splits=1)).state
    known = job_state.from_status(job_state.to_status(seen), reduces=1)
    lost = build.look(job, state=known)
    assert (names(lost), lost.recheck_at_s) == ([], build.CREATED_S + 1001)
    assert lost.state.stages[TaskType.MAP].infrastructure_failures == [1]
    assert names(build.look(job, state=lost.state, now_s=build.CREATED_S + 1001)) == ["m-0a2"]


def test_a_task_whose_pod_was_deleted_backs_off_as_one_that_failed(build):
    job = build.job()
    seen = build.look(job, build.pod("m-0"), state=build.mapping(job, splits=1)).state
    lost = build.look(job, state=seen).state
    failed_s = {"m-00000": build.CREATED_S + 1000}
    early = build.look(job, state=lost, failed_s=failed_s, now_s=build.CREATED_S + 1000.5)
    assert (names(early), early.recheck_at_s) == ([], build.CREATED_S + 1001)


def test_a_pod_on_a_node_that_does_not_answer_is_given_up_after_a_while(build):
    job = build.job()
    pod = build.pod("m-0", deleting_since_s=build.CREATED_S + 950)
    mapping = build.mapping(job, splits=1)
    early = build.look(job, pod, state=mapping)
    assert (names(early), early.recheck_at_s) == ([], build.CREATED_S + 1010)
    late = build.look(job, pod, state=mapping, now_s=build.CREATED_S + 1011)
    assert (names(late), list(late.delete)) == (["m-0a2"], [])


def test_the_lost_pods_success_still_counts(build):
    job = build.job()
    mapping = build.mapping(job, splits=1)
    lost = build.look(job, build.pod("m-0", deleting_since_s=build.CREATED_S), state=mapping).state
    desired = build.look(job, build.won("m-0", 1), build.pod("m-0", 2), state=lost)
    assert desired.state.stages[TaskType.MAP].winner == [1]
    assert [pod.name for pod in desired.delete] == ["m-0-a2"]


@pytest.mark.parametrize("reason", ["InputNotFound", "OutputExists", "AccessDenied"])
def test_what_setup_finds_wrong_fails_the_job_at_once(build, reason):
    desired = build.look(build.job(), build.failed("setup", reason=reason))
    assert status(desired, ConditionType.FAILED) == ("True", reason)
    assert desired.state.reason == reason


def test_a_command_that_is_not_found_is_not_tried_again(build):
    job = build.job()
    desired = build.look(job, build.failed("m-0", reason="CommandNotFound"), state=build.mapping(job))
    assert status(desired, ConditionType.FAILED) == ("True", "CommandNotFound")


def test_a_storage_error_of_setup_is_tried_again(build):
    desired = build.look(build.job(), build.failed("setup", user=False, reason="StorageError"))
    assert names(desired) == ["setupa2"]


# --- the plan


def test_a_plan_that_no_one_remembers_means_another_setup(build):
    job = build.job()
    lost = build.look(job, build.won("setup", digest="d1"))
    assert names(lost) == ["setupa2"]
    assert lost.state.stages[TaskType.SETUP].infrastructure_failures == [1]
    again = build.look(job, build.won("setup", digest="d1"), build.pod("setup", 2), state=lost.state)
    assert (names(again), list(again.delete)) == ([], [])
    second = build.look(
        job, build.won("setup"), build.won("setup", 2, digest="d2"), state=again.state, posted=build.plan(digest="d2")
    )
    assert second.write_plan


def test_a_posted_plan_with_another_digest_than_the_result_is_not_written(build):
    desired = build.look(build.job(), build.won("setup", digest="d1"), posted=build.plan(digest="forged"))
    assert not desired.write_plan
    assert names(desired) == ["setupa2"]


def test_too_many_splits_fail_the_job_and_say_what_to_raise(build):
    desired = build.look(build.job(), build.won("setup", digest="d1"), posted=build.plan(splits=40_001))
    assert status(desired, ConditionType.FAILED) == ("True", "TooManySplits")
    assert "splitMaxSize" in desired.state.condition(ConditionType.FAILED).message


# --- waiting


def test_the_schedulers_reason_is_shown_while_tasks_wait(build):
    desired = build.look(build.job(), diagnosis=build.diagnosis("NeverFits", "no node has 900 CPUs"))
    assert status(desired, ConditionType.SCHEDULED) == ("False", "NeverFits")
    assert (desired.state.reason, desired.state.phase) == ("NeverFits", "Pending")


def test_nothing_waits_when_every_task_has_a_pod(build):
    desired = build.look(build.job(), build.pod("setup"))
    assert status(desired, ConditionType.SCHEDULED) == ("True", "AllTasksPlaced")
    assert status(desired, ConditionType.RUNNING) == ("True", "TasksRunning")


def test_a_pod_without_a_node_waits_under_its_own_uid(build):
    desired = build.look(build.job(), build.pod("setup", state=PodLife.UNPLACED, node=None))
    assert [(a.number, a.pod_uid) for a in desired.waiting] == [(1, "uid-setup-a1")]


def test_a_missing_config_map_is_named_and_the_job_waits_for_it(build):
    missing = ["ConfigMap wc has no key mapper.py"]
    desired = build.look(build.job(), missing=missing)
    assert status(desired, ConditionType.ADMITTED) == ("False", "ConfigMapNotFound")
    assert (desired.state.phase, names(desired)) == ("Pending", [])
    assert names(build.look(build.job(), state=desired.state)) == ["setupa1"]


def test_a_config_map_that_never_comes_fails_the_job(build):
    desired = build.look(
        build.job(),
        missing=["ConfigMap wc does not exist"],
        limits=settle.Limits(start_timeout_s=600, image_pull_timeout_s=300),
    )
    assert status(desired, ConditionType.FAILED) == ("True", "ConfigMapNotFound")


def test_a_missing_secret_is_named_at_once_and_fails_the_job_after_the_timeout(build):
    pod = build.stuck("setup", "SecretNotFound")
    desired = build.look(build.job(), pod, now_s=build.CREATED_S + 119)
    assert status(desired, ConditionType.RUNNING) == ("False", "SecretNotFound")
    assert desired.state.phase == "Setup"
    late = build.look(build.job(), pod, state=desired.state, now_s=build.CREATED_S + 120)
    assert status(late, ConditionType.FAILED) == ("True", "SecretNotFound")
    assert [pod.name for pod in late.delete] == ["setup-a1"]


def test_a_pod_that_does_not_start_without_saying_why_is_replaced(build):
    pod = build.pod("setup", state=PodLife.STARTING)
    desired = build.look(build.job(), pod, limits=settle.Limits(start_timeout_s=600, image_pull_timeout_s=300))
    assert [each.name for each in desired.delete] == ["setup-a1"]
    assert desired.state.stages[TaskType.SETUP].infrastructure_failures == [1]


def test_a_refused_resource_waits_with_the_reason():
    refusal = Refusal(reason="QueueNotFound", message="the queue x does not exist")
    refused = planner.refuse(job_state.JobState(), refusal, 1, 0.0)
    assert (refused.phase, refused.reason) == ("Pending", "QueueNotFound")


def test_a_finished_job_wants_nothing_more(build):
    job = build.job()
    finished = build.replace(build.mapping(job), phase="Failed")
    desired = build.look(job, build.pod("m-0"), state=finished)
    assert (desired.state, names(desired)) == (finished, [])
    assert [pod.name for pod in desired.delete] == ["m-0-a1"]


def test_a_winner_that_never_existed_is_the_attempt_that_says_so(build):
    job = build.job()
    said = [
        build.won("m-0", 1, winner_attempt=9),
        build.won("m-1", 2, winner_attempt=1),
        build.won("m-2", winner_attempt=0),
    ]
    state = build.look(job, *said, state=build.mapping(job, 3)).state
    assert state.stages[TaskType.MAP].winner == [1, 1, 1]


def test_an_attempts_number_far_beyond_the_last_costs_no_account_of_each_that_went_unseen(build):
    job = build.job()
    done = build.look(job, build.pod("m-0", 60_000), state=build.mapping(job, 3))
    assert len(done.failures) <= settle.MAX_LOST_AT_ONCE
    assert done.state.stages[TaskType.MAP].infrastructure_failures[0] == 59_999


def test_sums_of_counters_stay_within_64_bits(build):
    job, most = build.job(), 2**63 - 1
    pods = [build.won(f"m-{index}", counters={"g": {"n": most}}) for index in range(3)]
    assert build.look(job, *pods, state=build.mapping(job, 3)).state.counters == {"g": {"n": most}}
