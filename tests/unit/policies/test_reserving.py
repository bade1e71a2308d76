"""Nodes that a policy reserves and releases again, and the input that a node has."""

import dataclasses

import numpy as np
import pytest

from boathouse_policies import framework, model
from tests.builders import core


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


def reserving_shell(keeper, nodes=2):
    profile = framework.Profile(name="t", reserve=keeper)
    return core.Shell(core.nodes(nodes, core.amount(2000, 8)), profile=profile)


def waiting_for_a_kept_node(keeper):
    """A node that is half full and kept for a job ahead, and a job that would fit."""
    shell = reserving_shell(keeper, nodes=1)
    shell.submit("filler", size=core.amount(1000, 1))
    shell.cycle()
    shell.submit("small", submitted_s=1.0, size=core.amount(500, 1))
    shell.submit("large", submitted_s=0.0, size=core.amount(2000, 1))
    assert core.where(shell.cycle()) == []
    return shell


def test_a_node_that_was_given_up_is_open_to_others_and_stays_so():
    keeper = Keeper()
    shell = waiting_for_a_kept_node(keeper)
    keeper.gives_up = True
    shell.queue.nodes_changed()
    plan = shell.cycle()
    assert (list(plan.released), core.where(plan)) == (["n0"], [("small/map-0", "n0")])
    assert shell.queue.reserved == {}


def test_who_waits_for_a_node_is_woken_when_it_is_given_up():
    keeper = Keeper()
    shell = waiting_for_a_kept_node(keeper)
    keeper.gives_up = True
    shell.submit("huge", submitted_s=2.0, size=core.amount(2000, 2))  # it alone is looked at, and gives the node up
    assert core.where(shell.cycle()) == []
    assert core.where(shell.cycle()) == [("small/map-0", "n0")]


@pytest.mark.parametrize(("keeper", "reserved"), [(Keeper(), []), (GangKeeper(), ["n0"])])
def test_only_a_reserve_that_says_so_keeps_nodes_for_gangs(keeper, reserved):
    shell = reserving_shell(keeper)
    shell.submit(count=3, size=core.amount(2000, 8), gang_min=3)
    shell.cycle()
    assert list(shell.queue.reserved) == reserved


def picker(locations, placed=()):
    of = core.task_class(core.job())
    tasks = [core.task(of, i, nodes) for i, nodes in enumerate(locations)]
    shell = core.Shell(core.nodes(2))
    shell.queue.submit(core.job(), [of], tasks, placed={tasks[i].id for i in placed})
    (waiting,) = shell.queue.classes_of(core.job().id)
    return framework.PendingClass(waiting, shell.profile, framework.CycleState(shell.view())).picker


def test_the_tasks_with_input_on_a_node_are_named_in_order():
    found = picker([["n0"], ["n1"], ["n0", "n1"], ["n0"]], placed=[0])
    assert [task.index for task in found.local(model.NodeName("n0"), 9)] == [2, 3]
    assert [task.index for task in found.local(model.NodeName("n0"))] == [2]


def test_tasks_that_the_cycle_took_are_not_named():
    found = picker([["n0"], ["n0"]])
    found.take(found.closest(core.node("n0")))
    assert [task.index for task in found.local(model.NodeName("n0"), 9)] == [1]


def test_tasks_without_input_anywhere_are_near_no_node():
    assert list(picker([[], []]).local(model.NodeName("n0"), 9)) == []


def test_an_expected_task_does_not_use_up_the_node_that_is_kept_for_its_class():
    shell = reserving_shell(Keeper(), nodes=1)
    task_class = shell.submit("driver", size=core.amount(2000, 9))
    shell.cycle()
    assert list(shell.queue.reserved) == []
    shell.submit("filler", size=core.amount(2000, 8))
    shell.cycle()
    small = dataclasses.replace(task_class, resources=core.amount(1000, 1))
    shell.submit_job(core.job("driver"), [small], [core.task(small, expected=True)])
    shell.cycle()
    assert list(shell.queue.reserved) == ["n0"]
    shell.end("ns/filler/map-0")
    shell.cycle()
    assert list(shell.queue.reserved) == ["n0"]
