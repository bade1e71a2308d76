"""The statuses that a namespace may write in a second."""

import collections
import heapq

import pytest

from boathouse.services.frame.status_writer import StatusShare


@pytest.fixture
def statuses():
    return StatusShare(50.0, lambda: 0.0)


def test_jobs_whose_statuses_wait_ask_about_as_often_as_they_may_write():
    now_s, asked = 0.0, collections.Counter()
    statuses = StatusShare(50.0, lambda: now_s)
    due = [(0.0, f"demo/j{i}") for i in range(5000)]
    while due[0][0] < 100.0:
        now_s, key = heapq.heappop(due)
        wait_s = statuses.take(key, is_urgent=True)
        asked[wait_s > 0] += 1
        heapq.heappush(due, (now_s + (wait_s or 10.0), key))
    assert asked[False] > 2500 + 0.9 * 5000
    assert asked[True] < 2 * asked[False]


def test_figures_leave_half_of_the_share_to_phases(statuses):
    figures = [statuses.take("demo/figures", is_urgent=False) for _ in range(2000)]
    assert figures.count(0.0) == 1250
    assert statuses.take("demo/phase", is_urgent=True) == 0.0


def test_jobs_that_are_gone_have_no_turn(statuses):
    while not statuses.take("demo/j", is_urgent=True):
        pass
    for i in range(5000):
        statuses.take(f"demo/j{i}", is_urgent=True)
        statuses.forget(f"demo/j{i}")
    statuses.forget("demo/j")
    assert statuses.take("demo/next", is_urgent=True) < 0.1
