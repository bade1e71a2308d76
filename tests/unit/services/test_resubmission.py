"""Changes of pending attempts after which a job must submit its tasks to the scheduler again."""

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


def test_placed_tasks_need_no_resubmission(told, build):
    assert told(waits(0), waits(1)).covers(told(waits(1)), [build.pod("m-0")])


def test_another_attempt_needs_a_resubmission(told, build):
    assert not told(waits(0), waits(1)).covers(told(waits(1), waits(0, 2)), [build.pod("m-0")])


def test_an_attempt_withdrawn_before_its_placement_needs_a_resubmission(told, build):
    assert not told(waits(0, 2)).covers(told(), [build.won("m-0", 1)])


def test_a_pod_created_ahead_needs_a_resubmission_once_and_again_later(told, build):
    before, pods = told(waits(0), unplaced={"u"}), [build.pod("m-0", node=None)]
    assert not told(waits(0)).covers(before, pods)
    assert before.covers(told(waits(0), unplaced={"u"}, at_s=9), pods)
    assert not before.covers(told(waits(0), unplaced={"u"}, at_s=10), pods)
