"""A share of a stage may fail, as with mapreduce.map.failures.maxpercent: an attempt commits nothing for such tasks."""

import pytest

from boathouse_task.contract import TaskType


def mapper(percent: int, **more):
    return {"mapper": {"command": ["false"], "maxAttempts": 2, "failuresMaxPercent": percent}} | more


def test_a_task_that_failed_too_often_is_given_up_in_its_next_attempt(build):
    job = build.job(**mapper(50))
    pods = [build.failed("m-0", 1), build.failed("m-0", 2), build.pod("m-1")]
    desired = build.look(job, *pods, state=build.mapping(job, splits=2))
    assert desired.state.phase == "Map"
    assert [(each.number, each.is_given_up) for each in desired.waiting] == [(3, True)]


def test_an_earlier_attempt_runs_the_command(build):
    job = build.job(**mapper(50))
    desired = build.look(job, build.failed("m-0"), build.pod("m-1"), state=build.mapping(job, splits=2))
    assert [(each.number, each.is_given_up) for each in desired.waiting] == [(2, False)]


def test_an_empty_result_is_that_of_the_task(build):
    job = build.job(**mapper(50))
    pods = [build.failed("m-0", 1), build.failed("m-0", 2), build.won("m-0", 3), build.won("m-1")]
    assert build.look(job, *pods, state=build.mapping(job, splits=2)).state.phase == "Reduce"


@pytest.mark.parametrize(("percent", "phase"), [(50, "Map"), (49, "Failed"), (0, "Failed"), (100, "Map")])
def test_more_failed_tasks_than_the_share_fail_the_job(build, percent, phase):
    job = build.job(**mapper(percent))
    pods = [build.failed("m-0", 1), build.failed("m-0", 2), build.pod("m-1")]
    assert build.look(job, *pods, state=build.mapping(job, splits=2)).state.phase == phase


def test_input_that_cannot_be_read_is_given_up_too(build):
    job = build.job(**mapper(50))
    pods = [build.failed("m-0", number, reason="CorruptInput") for number in (1, 2)]
    desired = build.look(job, *pods, build.pod("m-1"), state=build.mapping(job, splits=2))
    assert [each.is_given_up for each in desired.waiting] == [True]


def test_an_attempt_that_fails_although_it_runs_no_command_fails_the_job(build):
    job = build.job(**mapper(100))
    pods = [build.failed("m-0", number) for number in (1, 2, 3)]
    assert build.look(job, *pods, build.pod("m-1"), state=build.mapping(job, splits=2)).state.phase == "Failed"


def test_the_share_of_reduces_is_their_own(build):
    job = build.job(reducer={"command": ["false"], "maxAttempts": 1, "failuresMaxPercent": 50}, numReduceTasks=2)
    desired = build.look(job, build.failed("r-1"), build.pod("r-0"), state=build.reducing(job))
    assert [(each.index, each.is_given_up) for each in desired.waiting] == [(1, True)]


def test_setup_has_no_share(build):
    job = build.job(**mapper(100))
    assert build.look(job, build.failed("setup")).state.phase == "Failed"


def test_a_step_whose_tasks_may_fail_runs_in_pods_of_their_own(build):
    assert build.job(uber={}).is_uber(0, 1, 10)
    assert not build.job(uber={}, **mapper(1)).is_uber(0, 1, 10)


def test_the_pod_is_told(build):
    from boathouse.services.mrjob.attempts.settle import Attempt
    from boathouse.services.mrjob.placement import pod_builder

    settings = pod_builder.PodSettings(progress_url="", scratch_bytes=0)
    builder = pod_builder.PodBuilder(job=build.job(**mapper(50)), settings=settings)
    attempt = Attempt(task_type=TaskType.REDUCE, index=0, number=3, is_given_up=True)
    assert builder.task_spec(attempt).is_given_up
