"""Suspension, deadlines, and reduces that start before the last map."""

import pytest

from boathouse.resources.names import ConditionType
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob.attempts import settle
from boathouse_task.contract import TaskType


def asked(desired):
    return [f"{a.task_type[0]}-{a.index}a{a.number}" for a in desired.waiting]


def deleted(desired):
    return [pod.name for pod in desired.delete]


def told(desired, condition_type):
    condition = desired.state.condition(condition_type)
    return (condition.status, condition.reason)


@pytest.fixture
def job(build):
    return build.job()


@pytest.fixture
def paused(build):
    return build.job(suspend=True)


# --- suspension


def test_a_job_that_is_created_suspended_starts_nothing_and_its_clock_stands_still(build, paused):
    desired = build.look(paused)
    assert (asked(desired), desired.state.phase, desired.state.start_s) == ([], "Suspended", None)
    assert told(desired, ConditionType.SUSPENDED) == ("True", "Suspended")


def test_suspending_deletes_what_runs_and_keeps_what_has_finished(build, job, paused):
    running = build.look(job, build.won("m-0"), build.pod("m-1"), build.pod("m-2"), state=build.mapping(job)).state
    desired = build.look(paused, build.won("m-0"), build.pod("m-1"), build.pod("m-2"), state=running)
    assert (deleted(desired), asked(desired)) == (["m-1-a1", "m-2-a1"], [])
    assert desired.state.stages[TaskType.MAP].winner == [1, 0, 0]
    assert desired.state.phase == "Suspended"


def test_attempts_that_a_suspension_ends_are_nobodys_failures_and_wait_for_nothing_afterwards(build, job, paused):
    pods = [build.pod(f"m-{index}") for index in range(3)]
    running = build.look(job, *pods, state=build.mapping(job)).state
    held = build.look(paused, *pods, state=running).state
    resumed = build.look(job, state=build.look(paused, state=held).state)
    stage = resumed.state.stages[TaskType.MAP]
    assert (stage.killed, stage.failed_attempts) == ([1, 1, 1], 0)
    assert asked(resumed) == ["m-0a2", "m-1a2", "m-2a2"]
    assert told(resumed, ConditionType.SUSPENDED) == ("False", "Resumed")
    assert (resumed.state.phase, resumed.state.start_s) == ("Map", build.CREATED_S + 1000)


def test_a_task_that_succeeds_while_its_job_is_being_suspended_counts(build, job, paused):
    mapping = build.look(job, build.pod("m-0"), state=build.mapping(job, splits=1)).state
    held = build.look(paused, build.pod("m-0"), state=mapping).state
    assert build.look(paused, build.won("m-0"), state=held).state.stages[TaskType.MAP].winner == [1]


def test_a_plan_that_is_posted_while_its_job_is_suspended_is_kept(build, paused):
    desired = build.look(paused, build.won("setup", digest="d1"), posted=build.plan())
    assert (desired.write_plan, asked(desired)) == (True, [])
    lost = build.look(paused, build.won("setup", digest="d1"))
    assert (lost.write_plan, asked(lost)) == (False, [])


# --- the deadline


def test_a_job_that_is_active_for_too_long_fails_and_its_pods_go(build):
    job = build.job(activeDeadlineSeconds=500)
    mapping = build.mapping(job)
    early = build.look(job, build.pod("m-0"), state=mapping, now_s=build.CREATED_S + 1499)
    assert (early.state.phase, early.recheck_at_s) == ("Map", build.CREATED_S + 1500)
    late = build.look(job, build.pod("m-0"), state=mapping, now_s=build.CREATED_S + 1500)
    assert told(late, ConditionType.FAILED) == ("True", "DeadlineExceeded")
    assert deleted(late) == ["m-0-a1"]


def test_the_deadline_counts_from_the_resume(build, job):
    running = build.mapping(job)
    held = build.look(build.job(suspend=True), state=running).state
    resumed = build.look(build.job(activeDeadlineSeconds=10), state=held, now_s=build.CREATED_S + 9000)
    assert resumed.state.phase == "Map"


def test_a_commit_that_ends_in_the_last_moment_has_succeeded(build):
    job = build.job(activeDeadlineSeconds=1)
    committing = build.look(job, build.won("r-0"), state=build.reducing(job)).state
    done = build.look(job, build.won("commit"), state=committing, now_s=build.CREATED_S + 9000)
    assert done.state.phase == "Succeeded"


def test_a_job_that_failed_names_what_it_left_in_the_storage_if_it_stays_there(build):
    job = build.job(activeDeadlineSeconds=1, cleanUp="Never")
    late = build.look(job, state=build.mapping(job), now_s=build.CREATED_S + 9000)
    assert f"s3://b/out/_temporary/boathouse-{build.UID}" in late.state.condition(ConditionType.FAILED).message


# --- slow start


def slow(build, percent, **spec):
    return build.job(numReduceTasks=2, slowStartCompletedMapsPercent=percent, **spec)


@pytest.mark.parametrize(("done", "reduces"), [(1, []), (2, ["r-0a1", "r-1a1"])])
def test_reduces_start_when_the_stated_part_of_the_maps_is_done(build, done, reduces):
    job = slow(build, 50)
    pods = [build.won(f"m-{index}") for index in range(done)] + [build.pod(f"m-{n}") for n in range(done, 4)]
    desired = build.look(job, *pods, state=build.mapping(job, splits=4))
    assert (asked(desired), desired.state.phase) == (reduces, "Map")


def test_maps_come_before_the_reduces_that_start_early(build):
    job = slow(build, 0)
    assert asked(build.look(job, state=build.mapping(job, splits=2))) == ["m-0a1", "m-1a1", "r-0a1", "r-1a1"]


def test_reduces_that_started_early_go_on_when_the_maps_are_done(build):
    job = slow(build, 50)
    pods = [build.won("m-0"), build.pod("m-1"), build.pod("r-0"), build.pod("r-1")]
    early = build.look(job, *pods, state=build.mapping(job, splits=2)).state
    desired = build.look(job, build.won("m-0"), build.won("m-1"), *pods[2:], state=early)
    assert (desired.state.phase, asked(desired), deleted(desired)) == ("Reduce", [], [])
    assert desired.state.active[TaskType.REDUCE] == (0, 2)


def test_a_reduce_makes_way_for_a_map_of_its_job_that_has_waited_for_room(build):
    job = slow(build, 0)
    pods = [build.pod("m-0"), build.pod("r-0"), build.pod("r-1")]
    why = build.diagnosis(reason="Unschedulable", message="memory is scarce")
    waiting = build.look(job, *pods, state=build.mapping(job, splits=2), diagnosis=why)
    assert (asked(waiting), deleted(waiting)) == (["m-1a1"], [])
    later = build.look(job, *pods, state=waiting.state, diagnosis=why, now_s=build.CREATED_S + 1011)
    assert (asked(later), deleted(later)) == (["m-1a1"], ["r-1-a1"])
    assert later.state.stages[TaskType.REDUCE].killed == [0, 1]


@pytest.mark.parametrize(("scarce", "later_s"), [("memory", 11), ("cpu", 61)])
def test_a_reduce_makes_way_later_for_a_map_that_lacks_cpu_if_policies_suspend_reduces(build, scarce, later_s):
    job = slow(build, 0)
    pods = [build.pod("m-0"), build.pod("r-0"), build.pod("r-1")]
    why = build.diagnosis("Unschedulable", "a resource is scarce", scarce=scarce)
    state = build.look(job, *pods, state=build.mapping(job, splits=2), diagnosis=why, lends_cpu=True).state
    before, after = (
        build.look(job, *pods, state=state, diagnosis=why, lends_cpu=True, now_s=build.CREATED_S + 1000 + moment_s)
        for moment_s in (later_s - 2, later_s)
    )
    assert (deleted(before), deleted(after)) == ([], ["r-1-a1"])


def test_no_second_reduce_makes_way_while_the_first_is_on_its_way_out(build):
    job = slow(build, 0)
    pods = [build.pod("m-0"), build.pod("r-0"), build.pod("r-1", deleting_since_s=build.CREATED_S + 1000)]
    why = build.diagnosis(reason="Unschedulable", message="memory is scarce")
    first = build.look(job, *pods, state=build.mapping(job, splits=2), diagnosis=why)
    later = build.look(job, *pods, state=first.state, diagnosis=why, now_s=build.CREATED_S + 1011)
    assert deleted(later) == []


def test_no_reduce_makes_way_for_a_map_that_fits_no_node(build):
    job = slow(build, 0)
    pods = [build.pod("m-0"), build.pod("r-0")]
    why = build.diagnosis(reason="NeverFits", message="no node is so large")
    first = build.look(job, *pods, state=build.mapping(job, splits=2), diagnosis=why)
    later = build.look(job, *pods, state=first.state, diagnosis=why, now_s=build.CREATED_S + 9000)
    assert deleted(later) == []


# --- the infrastructure's own bound


def test_a_task_that_is_lost_again_and_again_fails_the_job_in_the_end(build, job):
    lost = [build.failed("m-0", n, user=False, reason="OutOfcpu", message="no CPU") for n in range(1, 4)]
    limits = settle.Limits(start_timeout_s=600, image_pull_timeout_s=300, max_infrastructure=3)
    desired = build.look(job, *lost, build.pod("m-1"), state=build.mapping(job), limits=limits)
    assert told(desired, ConditionType.FAILED) == ("True", "OutOfcpu")
    assert "3 times with infrastructure errors" in desired.state.condition(ConditionType.FAILED).message


def test_a_pod_that_waits_unplaced_goes_when_its_job_is_suspended(build, paused):
    desired = build.look(paused, build.pod("setup", state=PodLife.UNPLACED, node=None))
    assert (deleted(desired), asked(desired)) == (["setup-a1"], [])
