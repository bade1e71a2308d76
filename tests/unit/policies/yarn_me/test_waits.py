"""When a kept node has room for the task that it is kept for."""

import math
from types import SimpleNamespace

import pytest

from boathouse_policies.yarn_me.reserve import until_s
from tests.builders.core import GIB
from tests.builders.core_yarn_me import Future

GIB_FREE, CPU_FREE = 1, 5000


def waits_until_s(future, cpu_free, gib_free):
    """The owner of the only node waits, with so much free there."""
    view = SimpleNamespace(layout=SimpleNamespace(names=[future.nodes[0].name]))
    owner = future.classes["owner"][0].id
    state = SimpleNamespace(reserved={0: owner}, free_on=[[cpu_free, gib_free * GIB]].__getitem__, view=view)
    return until_s(future.outlook, state, 0)


def owner_waits_until_s(gib, cpu_free=CPU_FREE, gib_free=GIB_FREE):
    """Three tasks of 3 GiB and a CPU end after 10, 20 and 30 s."""
    future = Future()
    for name, seconds in (("c", 30.0), ("a", 10.0), ("b", 20.0)):
        future.submit(name, (1, 3, seconds))
        future.start(name, 0)
    future.submit("owner", (1, gib, 10.0))
    return waits_until_s(future, cpu_free, gib_free)


@pytest.mark.parametrize(
    ("gib", "until_s"), [(1, -math.inf), (4, 10.0), (5, 20.0), (7, 20.0), (10, 30.0), (11, -math.inf)]
)
def test_the_owner_waits_for_as_many_ends_as_it_needs_in_their_order(gib, until_s):
    assert owner_waits_until_s(gib) == until_s


def test_the_owner_waits_for_cpu_too():
    assert owner_waits_until_s(1, cpu_free=-1500) == 30.0


def test_the_owner_waits_no_longer_once_there_is_room_and_longer_once_more_runs():
    future = Future()
    future.submit("running", (2, 3, 10.0))
    future.start("running", 0)
    future.submit("owner", (1, 9, 10.0))
    assert waits_until_s(future, CPU_FREE, 7) == 10.0
    assert waits_until_s(future, CPU_FREE, 9) == -math.inf
    future.start("running", 0, now_s=5.0)
    assert waits_until_s(future, CPU_FREE, 4) == 15.0


def test_a_second_task_of_the_same_cycle_is_seen_too():
    future = Future()
    future.submit("running", (2, 3, 10.0))
    future.start("running", 0)
    future.submit("owner", (1, 9, 10.0))
    assert [waits_until_s(future, CPU_FREE, gib) for gib in (9, 7, 5)] == [-math.inf, 10.0, -math.inf]
