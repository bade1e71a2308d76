"""A share of a stage may fail, as with mapreduce.map.failures.maxpercent: an attempt commits nothing for such tasks."""

import pytest

from boathouse.services.mrjob.pod_builder import PodBuilder
from boathouse_task.contract import TaskType
from tests.builders import mrjobs


def mapper(percent: int, **more):
    return {"mapper": {"command": ["false"], "maxAttempts": 2, "failuresMaxPercent": percent}} | more


def test_a_task_that_failed_too_often_is_given_up_in_its_next_attempt():
    job = mrjobs.job(**mapper(50))
    pods = [mrjobs.failed_pod("m-0", 1), mrjobs.failed_pod("m-0", 2), mrjobs.attempt_pod("m-1")]
    desired = mrjobs.desired(job, *pods, state=mrjobs.mapping(job, splits=2))
    assert desired.state.phase == "Map"
    assert [(attempt.number, attempt.is_given_up) for attempt in desired.waiting] == [(3, True)]


def test_an_earlier_attempt_runs_the_command():
    job = mrjobs.job(**mapper(50))
    desired = mrjobs.desired(
        job, mrjobs.failed_pod("m-0"), mrjobs.attempt_pod("m-1"), state=mrjobs.mapping(job, splits=2)
    )
    assert [(attempt.number, attempt.is_given_up) for attempt in desired.waiting] == [(2, False)]


def test_an_empty_result_is_that_of_the_task():
    job = mrjobs.job(**mapper(50))
    pods = [
        mrjobs.failed_pod("m-0", 1),
        mrjobs.failed_pod("m-0", 2),
        mrjobs.succeeded_pod("m-0", 3),
        mrjobs.succeeded_pod("m-1"),
    ]
    assert mrjobs.desired(job, *pods, state=mrjobs.mapping(job, splits=2)).state.phase == "Reduce"


@pytest.mark.parametrize(("percent", "phase"), [(50, "Map"), (49, "Failed"), (0, "Failed"), (100, "Map")])
def test_more_failed_tasks_than_the_share_fail_the_job(percent, phase):
    job = mrjobs.job(**mapper(percent))
    pods = [mrjobs.failed_pod("m-0", 1), mrjobs.failed_pod("m-0", 2), mrjobs.attempt_pod("m-1")]
    assert mrjobs.desired(job, *pods, state=mrjobs.mapping(job, splits=2)).state.phase == phase


def test_input_that_cannot_be_read_is_given_up_too():
    job = mrjobs.job(**mapper(50))
    pods = [mrjobs.failed_pod("m-0", number, reason="CorruptInput") for number in (1, 2)]
    desired = mrjobs.desired(job, *pods, mrjobs.attempt_pod("m-1"), state=mrjobs.mapping(job, splits=2))
    assert [attempt.is_given_up for attempt in desired.waiting] == [True]


def test_an_attempt_that_fails_although_it_runs_no_command_fails_the_job():
    job = mrjobs.job(**mapper(100))
    pods = [mrjobs.failed_pod("m-0", number) for number in (1, 2, 3)]
    assert (
        mrjobs.desired(job, *pods, mrjobs.attempt_pod("m-1"), state=mrjobs.mapping(job, splits=2)).state.phase
        == "Failed"
    )


def test_the_share_of_reduces_is_their_own():
    job = mrjobs.job(reducer={"command": ["false"], "maxAttempts": 1, "failuresMaxPercent": 50}, numReduceTasks=2)
    desired = mrjobs.desired(job, mrjobs.failed_pod("r-1"), mrjobs.attempt_pod("r-0"), state=mrjobs.reducing(job))
    assert [(attempt.index, attempt.is_given_up) for attempt in desired.waiting] == [(1, True)]


def test_setup_has_no_share():
    job = mrjobs.job(**mapper(100))
    assert mrjobs.desired(job, mrjobs.failed_pod("setup")).state.phase == "Failed"


def test_a_step_whose_tasks_may_fail_runs_in_pods_of_their_own():
    assert mrjobs.job(uber={}).is_uber(0, 1, 10)
    assert not mrjobs.job(uber={}, **mapper(1)).is_uber(0, 1, 10)


def test_the_task_spec_says_that_the_task_is_given_up():
    builder = PodBuilder(job=mrjobs.job(**mapper(50)), settings=mrjobs.SETTINGS)
    assert builder.task_spec(mrjobs.attempt(TaskType.REDUCE, number=3, is_given_up=True)).is_given_up
