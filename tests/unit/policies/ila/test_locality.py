"""Adaptive delay scheduling of ILA: equation 4 and Algorithm 2."""

import pytest
from hypothesis import given, settings, strategies as st

from boathouse_policies import ila, model
from boathouse_policies.framework import CycleState, PendingClass
from boathouse_policies.framework.cycle_state import Assignment
from boathouse_policies.ila.locality import AdaptiveDelay
from tests.builders import core
from tests.builders.core_ila import IlaShell, hosts

MIB = 1 << 20
BLOCK = 128 * MIB


def class_reading(size):
    return core.task_class(core.job(), estimates=model.Fixed(read_bytes=size))


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
    assert AdaptiveDelay(ila.Config()).delay_s(class_reading(size), level, found) == pytest.approx(delay_s)


def test_what_a_finished_task_read_tells_the_input_of_the_others():
    delay, task_class = AdaptiveDelay(ila.Config()), class_reading(None)
    counters = {"read_bytes": float(BLOCK // 4), "remote_bytes": float(BLOCK // 4)}
    delay.observe(core.task_event(model.Finished, core.task(task_class), counters=counters))
    assert delay.input_share(task_class) == 0.5


def delaying_shell(**fields):
    return IlaShell(hosts(4), ila.Config(threshold=None, **fields))


def submit_far_from_all(shell, count=1, **fields):
    """A job whose input is on a node that is cordoned."""
    shell.ledger.set_node(core.node("h9v0", server="h9", rack="r9", unschedulable=True))
    return shell.submit("job", count, locations=["h9v0"], **fields)


def test_a_job_takes_the_node_with_its_input_at_once():
    shell = delaying_shell()
    shell.submit("job", 1, locations=["h2v1"])
    assert core.nodes_of(shell.cycle()) == ["h2v1"]


def test_without_the_node_it_waits_half_a_second_for_the_host():
    shell = delaying_shell()
    shell.ledger.set_node(core.node("h2v1", server="h2", rack="r1", unschedulable=True))
    shell.submit("job", 1, locations=["h2v1"])
    assert core.nodes_of(shell.cycle(0.0)) == []
    assert core.nodes_of(shell.cycle(0.5)) == ["h2v0"]


def test_far_from_all_nodes_it_waits_for_the_sum_of_all_levels():
    shell = delaying_shell()
    submit_far_from_all(shell)
    assert core.nodes_of(shell.cycle(0.0)) == []
    assert core.nodes_of(shell.cycle(10.4)) == []
    assert len(core.nodes_of(shell.cycle(10.5))) == 1


def test_while_it_waits_it_says_until_when():
    shell = delaying_shell()
    task_class = submit_far_from_all(shell)
    plan = shell.cycle(3.0)
    assert [wait.until_s for wait in plan.decisions] == [13.5]
    assert shell.queue.unschedulable()[task_class.id].code is model.Code.PATIENCE


def test_after_a_distant_task_the_next_one_is_taken_at_once():
    shell = delaying_shell()
    submit_far_from_all(shell, count=3)
    shell.cycle(0.0)
    assert len(core.nodes_of(shell.cycle(10.5))) == 3


def pending_class(shell, now_s):
    """The pending class, as a cycle sees it."""
    shell.now_s = now_s
    (queued,) = shell.queue.sorted_classes().queued
    return PendingClass(queued, shell.profile, CycleState(shell.view()))


def offer(shell, distance, now_s):
    """Until when the class waits rather than take a node at this distance; None if it takes it."""
    delay, pending = shell.profile.patience, pending_class(shell, now_s)
    node = pending.levels.tolist().index(distance)
    wait = delay.wait(pending, node, pending.state)
    if wait is not None:
        delay.waits(wait, pending.state)
        return wait.until_s
    pick = pending.picker.closest(shell.view().layout.nodes[node])
    delay.placed(Assignment(pending, pick, 0, pending.task_class.resources, pending.least), pending.state)
    return None


NODE, SERVER = model.Distance.NODE, model.Distance.SERVER


def test_after_a_close_task_a_distant_one_waits_again():
    shell = delaying_shell()
    shell.submit("job", 3, locations=["h0v0"])
    assert offer(shell, NODE, 11.0) is None
    assert offer(shell, SERVER, 12.0) == 12.5


@given(st.lists(st.tuples(st.sampled_from(list(model.Distance)), st.floats(0.01, 3.0)), min_size=1, max_size=40))
@settings(max_examples=40, deadline=None)
def test_no_task_waits_longer_than_all_levels_together(offers):
    shell, now_s, since_s = delaying_shell(), 0.0, None
    shell.submit("job", 1, locations=["h0v0"])
    for distance, pause_s in offers:
        now_s += pause_s
        until_s = offer(shell, distance, now_s)
        since_s = None if until_s is None else since_s if since_s is not None else now_s
        assert until_s is None or now_s < until_s <= since_s + 10.5


def test_the_delay_restarts_after_each_acceptance():
    shell = delaying_shell()
    shell.submit("job", 3, locations=["h0v0"])
    assert offer(shell, SERVER, 0.0) == 0.5
    assert offer(shell, NODE, 0.4) is None
    assert offer(shell, SERVER, 0.6) == 1.1


def test_asking_does_not_begin_the_wait():
    shell = delaying_shell()
    shell.submit("job", 1, locations=["h0v0"])
    for now_s in (0.0, 0.4):
        pending = pending_class(shell, now_s)
        wait = shell.profile.patience.wait(pending, pending.levels.tolist().index(SERVER), pending.state)
        assert wait.until_s == now_s + 0.5


def test_tiny_inputs_never_wait():
    shell = delaying_shell()
    submit_far_from_all(shell, read_bytes=MIB)
    assert len(core.nodes_of(shell.cycle())) == 1


def test_tasks_without_input_never_wait():
    shell = delaying_shell()
    shell.submit("job", 2)
    assert len(core.nodes_of(shell.cycle())) == 2


def test_greedy_locality_takes_any_node():
    shell = delaying_shell(locality=False)
    submit_far_from_all(shell)
    assert len(core.nodes_of(shell.cycle())) == 1
