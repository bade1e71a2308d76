"""When a kept node has room for the task that it is kept for."""

import math

import pytest

from boathouse_policies.yarn_me.reserve import Waits
from tests.unit.policies.yarn_me.test_timeline import GIB, Future

GIB_FREE, CPU_FREE = 1, 5000


def owner_waits_until_s(gib, cpu_free=CPU_FREE, gib_free=GIB_FREE):
    """Three tasks of 3 GiB and a CPU end after 10, 20 and 30 s."""
    future = Future()
    for name, seconds in (("c", 30.0), ("a", 10.0), ("b", 20.0)):
        future.job(name, (1, 3, seconds))
        future.runs(name, 0)
    future.job("owner", (1, gib, 10.0))
    node, owner = future.nodes[0].name, future.classes["owner"][0].id
    return Waits(future.book).until_s(node, owner, [cpu_free, gib_free * GIB])


@pytest.mark.parametrize(
    ("gib", "until_s"), [(1, -math.inf), (4, 10.0), (5, 20.0), (7, 20.0), (10, 30.0), (11, -math.inf)]
)
def test_the_owner_waits_for_as_many_ends_as_it_needs_in_their_order(gib, until_s):
    assert owner_waits_until_s(gib) == until_s


def test_the_owner_waits_for_cpu_too():
    assert owner_waits_until_s(1, cpu_free=-1500) == 30.0


def test_the_owner_waits_no_longer_once_there_is_room_and_longer_once_more_runs():
    future = Future()
    future.job("running", (2, 3, 10.0))
    future.runs("running", 0)
    future.job("owner", (1, 9, 10.0))
    node, owner, waits = future.nodes[0].name, future.classes["owner"][0].id, Waits(future.book)
    assert waits.until_s(node, owner, [CPU_FREE, 7 * GIB]) == 10.0
    assert waits.until_s(node, owner, [CPU_FREE, 9 * GIB]) == -math.inf
    future.runs("running", 0, now_s=5.0)
    assert waits.until_s(node, owner, [CPU_FREE, 4 * GIB]) == 15.0


def test_a_second_task_of_the_same_cycle_is_seen_too():
    future = Future()
    future.job("running", (2, 3, 10.0))
    future.runs("running", 0)
    future.job("owner", (1, 9, 10.0))
    node, owner, waits = future.nodes[0].name, future.classes["owner"][0].id, Waits(future.book)
    found = [waits.until_s(node, owner, [CPU_FREE, gib * GIB]) for gib in (9, 7, 5)]
    assert found == [-math.inf, 10.0, -math.inf]
