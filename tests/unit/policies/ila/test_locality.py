"""Adaptive delay scheduling of ILA: equation 4 and Algorithm 2."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse_policies import ila, model
from boathouse_policies.framework import CycleState, PendingClass
from boathouse_policies.framework.cycle_state import Assignment
from boathouse_policies.ila.locality import AdaptiveDelay
from tests.unit.policies import builders as make
from tests.unit.policies.ila.shell import Shell, hosts, placed_on

MIB = 1 << 20
BLOCK = 128 * MIB


def reading(size):
    return make.task_class(make.job(), estimates=model.Fixed(read_bytes=size))


@pytest.mark.parametrize(
    ("size", "level", "found", "delay_s"),
    [
        (BLOCK, 0, 1, 0.5),
        (BLOCK, 0, 2, 5.5),
        (BLOCK, 0, 3, 10.5),
        (BLOCK, 1, 2, 5.0),
        (BLOCK, 2, 3, 5.0),
        (BLOCK // 2, 0, 2, 2.75),
        (4 * BLOCK, 0, 1, 0.5),
        (BLOCK // 100, 0, 3, 0.0),
        (BLOCK // 100 + MIB, 0, 3, 10.5 * (BLOCK // 100 + MIB) / BLOCK),
        (None, 0, 1, 0.5),
    ],
)
def test_the_delay_is_in_proportion_to_the_input_and_sums_the_levels_between(size, level, found, delay_s):
    assert AdaptiveDelay(ila.Config()).delay_s(reading(size), level, found) == pytest.approx(delay_s)


def test_what_a_finished_task_read_tells_the_input_of_the_others():
    delay, one = AdaptiveDelay(ila.Config()), reading(None)
    counters = {"read_bytes": float(BLOCK // 4), "remote_bytes": float(BLOCK // 4)}
    ids = {"task": model.TaskId("t"), "task_class": one.id, "job": one.job, "node": model.NodeName("n")}
    delay.observe(model.Finished(now_s=1.0, duration_s=1.0, counters=counters, **ids))
    assert delay.input_share(one) == 0.5


def shell(**fields):
    return Shell(hosts(4), ila.Config(threshold=None, **fields))


def far_from_all(world, name="job", count=1, **fields):
    """A job whose input is on a node that is cordoned."""
    world.ledger.set_node(make.node("h9v0", server="h9", rack="r9", unschedulable=True))
    return world.maps(name, count, locations=("h9v0",), **fields)


def test_a_job_takes_the_node_with_its_input_at_once():
    world = shell()
    world.maps("job", 1, locations=("h2v1",))
    assert placed_on(world.go()) == ["h2v1"]


def test_without_the_node_it_waits_half_a_second_for_the_host():
    world = shell()
    world.ledger.set_node(make.node("h2v1", server="h2", rack="r1", unschedulable=True))
    world.maps("job", 1, locations=("h2v1",))
    assert placed_on(world.go(0.0)) == []
    assert placed_on(world.go(0.5)) == ["h2v0"]


def test_far_from_all_nodes_it_waits_for_the_sum_of_all_levels():
    world = shell()
    far_from_all(world)
    assert placed_on(world.go(0.0)) == []
    assert placed_on(world.go(10.4)) == []
    assert len(placed_on(world.go(10.5))) == 1


def test_while_it_waits_it_says_until_when():
    world = shell()
    one = far_from_all(world)
    plan = world.go(3.0)
    assert [hold.until_s for hold in plan.decisions] == [13.5]
    assert world.room.unschedulable()[one.id].code is model.Code.PATIENCE


def test_after_a_distant_task_the_next_one_is_taken_at_once():
    world = shell()
    far_from_all(world, count=3)
    world.go(0.0)
    assert len(placed_on(world.go(10.5))) == 3


def offered(world, name, distance, now_s):
    """Until when a class waits rather than take a node at this distance."""
    delay = world.profile.patience
    pending = next(one for one in pendings(world, now_s) if one.job.id == name)
    hold = delay.wait(pending, pending.levels.tolist().index(distance), pending.state)
    if hold is not None:
        delay.waits(hold, pending.state)
        return hold.until_s
    pick = pending.picker.closest(world.view().layout.nodes[pending.levels.tolist().index(distance)])
    delay.placed(Assignment(pending, pick, 0, pending.task_class.resources, pending.least), pending.state)
    return None


def pendings(world, now_s):
    """The pending classes, as a cycle sees them."""
    world.now_s = now_s
    state = CycleState(world.view())
    return [PendingClass(queued, world.profile, state) for queued in world.room.sorted_classes().queued]


NODE, SERVER = model.Distance.NODE, model.Distance.SERVER


def test_after_a_close_task_a_distant_one_waits_again():
    world = shell()
    world.maps("job", 3, locations=("h0v0",))
    assert offered(world, "job", NODE, 11.0) is None
    assert offered(world, "job", SERVER, 12.0) == 12.5


@given(st.lists(st.tuples(st.sampled_from(list(model.Distance)), st.floats(0.01, 3.0)), min_size=1, max_size=40))
@settings(max_examples=40, deadline=None)
def test_no_task_waits_longer_than_all_levels_together(offers):
    world, now_s, since_s = shell(), 0.0, None
    world.maps("job", 1, locations=("h0v0",))
    for distance, pause_s in offers:
        now_s += pause_s
        until_s = offered(world, "job", distance, now_s)
        since_s = None if until_s is None else since_s if since_s is not None else now_s
        assert until_s is None or now_s < until_s <= since_s + 10.5


def test_the_delay_restarts_after_each_acceptance():
    world = shell()
    world.maps("job", 3, locations=("h0v0",))
    assert offered(world, "job", SERVER, 0.0) == 0.5
    assert offered(world, "job", NODE, 0.4) is None
    assert offered(world, "job", SERVER, 0.6) == 1.1


def test_asking_does_not_begin_the_wait():
    world = shell()
    world.maps("job", 1, locations=("h0v0",))
    for now_s in (0.0, 0.4):
        pending = pendings(world, now_s)[0]
        hold = world.profile.patience.wait(pending, pending.levels.tolist().index(SERVER), pending.state)
        assert hold.until_s == now_s + 0.5


def test_tiny_inputs_never_wait():
    world = shell()
    far_from_all(world, read=MIB)
    assert len(placed_on(world.go())) == 1


def test_tasks_without_input_never_wait():
    world = shell()
    world.maps("job", 2)
    assert len(placed_on(world.go())) == 2


def test_greedy_locality_takes_any_node():
    world = shell(locality=False)
    far_from_all(world)
    assert len(placed_on(world.go())) == 1
