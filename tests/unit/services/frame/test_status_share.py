"""The statuses that a namespace may write in a second."""

import collections
import heapq

import pytest

from boathouse.services.frame.status_writer import StatusShare


@pytest.fixture
def share():
    return StatusShare(50.0, lambda: 0.0)


def test_jobs_with_delayed_statuses_retry_about_as_often_as_they_may_write():
    now_s, taken = 0.0, collections.Counter()
    share = StatusShare(50.0, lambda: now_s)
    due = [(0.0, f"demo/j{i}") for i in range(5000)]
    while due[0][0] < 100.0:
        now_s, key = heapq.heappop(due)
        wait_s = share.take(key, is_urgent=True)
        taken[wait_s > 0] += 1
        heapq.heappush(due, (now_s + (wait_s or 10.0), key))
    assert taken[False] > 2500 + 0.9 * 5000
    assert taken[True] < 2 * taken[False]


def test_figures_leave_half_of_the_share_to_phases(share):
    figures = [share.take("demo/figures", is_urgent=False) for _ in range(2000)]
    assert figures.count(0.0) == 1250
    assert share.take("demo/phase", is_urgent=True) == 0.0


def test_jobs_that_are_gone_have_no_turn(share):
    while not share.take("demo/j", is_urgent=True):
        pass
    for i in range(5000):
        share.take(f"demo/j{i}", is_urgent=True)
        share.forget(f"demo/j{i}")
    share.forget("demo/j")
    assert share.take("demo/next", is_urgent=True) < 0.1
