"""Nodes that a policy reserves and releases again, and the input that a node has."""

import dataclasses

import numpy as np
import pytest

from boathouse_policies import framework, model
from tests.unit.policies import builders as make


class Keeper(framework.Reserve):
    """Keeps the first node for whom finds none, until told to give it up."""

    def __init__(self) -> None:
        self.gives_up = False

    def mask(self, pending, state, where):
        own = pending.task_class.id
        return np.array([state.reserved.get(node, own) == own for node in range(state.free.shape[1])])[where]

    def reserve(self, pending, state):
        if self.gives_up:
            for node in list(state.reserved):
                state.release(node)
            return ()
        verdict = model.Verdict(code=model.Code.JOB_ORDER, message="kept")
        node = state.view.layout.names[0]
        return [model.Reservation(task_class=pending.task_class, job=pending.job, verdict=verdict, node=node)]


class GangKeeper(Keeper):
    """The same for what must start together."""

    reserves_for_gangs = True


def world(keeper, nodes=2):
    profile = framework.Profile(name="t", reserve=keeper)
    return make.World(make.nodes(nodes, make.amount(2000, 8)), profile=profile)


def waiting_for_a_kept_node(keeper):
    """A node that is half full and kept for a job ahead, and a job that would fit."""
    shell = world(keeper, nodes=1)
    shell.submit("filler", size=make.amount(1000, 1))
    shell.cycle()
    shell.submit("small", submitted_s=1.0, size=make.amount(500, 1))
    shell.submit("large", submitted_s=0.0, size=make.amount(2000, 1))
    assert make.where(shell.cycle()) == []
    return shell


def test_a_node_that_was_given_up_is_open_to_others_and_stays_so():
    keeper = Keeper()
    shell = waiting_for_a_kept_node(keeper)
    keeper.gives_up = True
    shell.room.nodes_changed()
    plan = shell.cycle()
    assert (list(plan.released), make.where(plan)) == (["n0"], [("small/map-0", "n0")])
    assert shell.room.reserved == {}


def test_who_waits_for_a_node_is_woken_when_it_is_given_up():
    keeper = Keeper()
    shell = waiting_for_a_kept_node(keeper)
    keeper.gives_up = True
    shell.submit("huge", submitted_s=2.0, size=make.amount(2000, 2))  # it alone is looked at, and gives the node up
    assert make.where(shell.cycle()) == []
    assert make.where(shell.cycle()) == [("small/map-0", "n0")]


@pytest.mark.parametrize(("keeper", "reserved"), [(Keeper(), []), (GangKeeper(), ["n0"])])
def test_only_a_reserve_that_says_so_keeps_nodes_for_gangs(keeper, reserved):
    shell = world(keeper)
    shell.submit(count=3, size=make.amount(2000, 8), gang_min=3)
    shell.cycle()
    assert list(shell.room.reserved) == reserved


def picker(locations, placed=()):
    one = make.task_class(make.job())
    tasks = [make.task(one, i, locations=tuple(map(model.NodeName, where))) for i, where in enumerate(locations)]
    room = framework.SchedulingQueue(model.Axis())
    room.submit(make.job(), [one], tasks, placed={tasks[i].id for i in placed})
    shell = make.World(make.nodes(2))
    waiting = room.classes_of(make.job().id)[0]
    state = framework.CycleState(shell.view())
    return framework.PendingClass(waiting, shell.profile, state).picker


def test_the_tasks_with_input_on_a_node_are_named_in_order():
    found = picker([["n0"], ["n1"], ["n0", "n1"], ["n0"]], placed=[0])
    assert [one.index for one in found.local(model.NodeName("n0"), 9)] == [2, 3]
    assert [one.index for one in found.local(model.NodeName("n0"))] == [2]


def test_tasks_that_the_cycle_took_are_not_named():
    found = picker([["n0"], ["n0"]])
    found.take(found.closest(make.node("n0")))
    assert [one.index for one in found.local(model.NodeName("n0"), 9)] == [1]


def test_tasks_without_input_anywhere_are_near_no_node():
    assert list(picker([[], []]).local(model.NodeName("n0"), 9)) == []


def test_an_expected_task_does_not_use_up_the_node_that_is_kept_for_its_class():
    shell = world(Keeper(), nodes=1)
    one = shell.submit("driver", size=make.amount(2000, 9))
    shell.cycle()
    assert list(shell.room.reserved) == []
    shell.submit("filler", size=make.amount(2000, 8))
    shell.cycle()
    job = make.job("driver")
    small = dataclasses.replace(one, resources=make.amount(1000, 1))
    shell.room.submit(job, [small], [make.task(small, expected=True)], placed=shell.ledger)
    shell.cycle()
    assert list(shell.room.reserved) == ["n0"]
    shell.end("ns/filler/map-0")
    shell.cycle()
    assert list(shell.room.reserved) == ["n0"]
