"""The quick way through a plain cycle decides what the general way does."""

import dataclasses

import numpy as np
import pytest

from boathouse_policies import model, yarn_me
from boathouse_sim import table2
from boathouse_sim.heartbeat import Heartbeats
from boathouse_sim.instant import Instant
from tests.unit.policies import builders as make


def decisions(shell, workload, *, quick, **config):
    """Who got how much, where and when, in the course of a simulation."""
    profile = yarn_me.build(config=yarn_me.Config(**config))
    driver = shell(workload, profile if quick else dataclasses.replace(profile, express=None))
    made, place = [], driver.world.place

    def remember(decision):
        made.append((driver.world.clock.now_ms, decision.task.id, decision.node, decision.resources.memory_bytes))
        return place(decision)

    driver.world.place = remember
    while driver.advance():
        pass
    return made


@pytest.mark.parametrize("shell", [Instant, Heartbeats])
@pytest.mark.parametrize(("seed", "passing"), [(0, True), (1, False), (2, True)])
def test_whole_simulations_are_the_same_with_and_without_it(shell, seed, passing):
    random = np.random.default_rng(seed)
    workload = table2.Table2(tasks=(1, 25), penalty_factor=1.5 if seed else 3.0, arrival_s=300).draw(7, 3, random)
    ours = decisions(shell, workload, quick=True, passing=passing)
    assert ours == decisions(shell, workload, quick=False, passing=passing)


def planned_quickly(world):
    express = world.profile.express
    return express.plan(world.room, world.profile, world.view()) is not None


def world(**fields):
    return make.World(make.nodes(2), profile=yarn_me.build(), **fields)


def test_a_plain_cycle_is_planned_and_says_why_the_rest_waits():
    plain = world()
    plain.submit(count=20, size=make.amount(1000, 4))
    plan = plain.plan()
    assert (planned_quickly(plain), len(make.placements(plan))) == (True, 4)
    assert {one.count for one in plan.left.values()} == {16}


def test_cpu_bounds_what_the_only_node_takes_as_memory_does():
    one = make.World(make.nodes(1, make.amount(2000, 8)), profile=yarn_me.build())
    one.submit(count=5, size=make.amount(1000, 1))
    assert (planned_quickly(one), len(make.placements(one.plan()))) == (True, 2)


def limited(one):
    one.room.set_queues([model.Queue.of(model.QueueName("default"), limits={"cpu": 1000})])


def filtered(one):
    one.profile = dataclasses.replace(one.profile, filters=one.profile.filters[:-1])


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        (limited, {}),
        (filtered, {}),
        (None, {"locations": ("n1",)}),
        (None, {"gang_min": 2}),
        (None, {"queue": "unknown"}),
        (None, {"constraints": model.Constraints(node_selector=(("disk", "ssd"),))}),
    ],
)
def test_what_anything_else_may_decide_goes_the_general_way(change, fields):
    one = world()
    one.submit(count=2, **fields)
    if change is not None:
        change(one)
    assert not planned_quickly(one)
