"""When the scheduler need not be told again what waits of a job."""

import pytest

from boathouse.services.mrjob.attempts.settle import Attempt
from boathouse.services.mrjob.kind import Submitted
from boathouse_task.contract import TaskType


def waits(index, number=1):
    return Attempt(task_type=TaskType.MAP, index=index, number=number)


@pytest.fixture
def told(build):
    def make(*waiting, at_s=0.0, unplaced=()):
        return Submitted(
            job=build.job(), classes=(), waiting=frozenset(waiting), unplaced=frozenset(unplaced), at_s=at_s
        )

    return make


def test_tasks_that_were_placed_are_no_news(told, build):
    assert told(waits(0), waits(1)).covers(told(waits(1)), [build.pod("m-0")])


def test_another_attempt_is_news(told, build):
    assert not told(waits(0), waits(1)).covers(told(waits(1), waits(0, 2)), [build.pod("m-0")])


def test_an_attempt_that_waits_no_more_without_having_been_placed_is_news(told, build):
    assert not told(waits(0, 2)).covers(told(), [build.won("m-0", 1)])


def test_a_pod_made_ahead_is_news_once_and_again_after_a_while(told, build):
    before, pods = told(waits(0), unplaced={"u"}), [build.pod("m-0", node=None)]
    assert not told(waits(0)).covers(before, pods)
    assert before.covers(told(waits(0), unplaced={"u"}, at_s=9), pods)
    assert not before.covers(told(waits(0), unplaced={"u"}, at_s=10), pods)
