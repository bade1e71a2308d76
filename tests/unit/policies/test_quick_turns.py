"""Turns of cycles on few nodes that ask no question: in one loop, they decide what turns of their own decide."""

from __future__ import annotations

import operator
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse_policies import framework, model, profiles
from boathouse_policies.framework.turn_order import TurnOrder
from tests.unit.policies import builders as make
from tests.unit.policies.test_properties import clusters, selectors, sizes

PROFILES = ["fair", "fifo", "koala", "late", "yarn-no-reservations"]
FEW = settings(max_examples=60, deadline=None)


@st.composite
def loads(draw: st.DrawFn) -> list[tuple[model.Job, model.TaskClass, list[model.Task]]]:
    """Jobs of one class each, which starts alone and takes no host ports."""
    found = []
    for j in range(draw(st.integers(1, 6))):
        job = make.job(
            f"j{j}",
            submitted_s=float(draw(st.integers(0, 2))),
            priority=draw(st.sampled_from([0, 0, 5])),
            weight=draw(st.sampled_from([1.0, 2.0])),
        )
        one = make.task_class(job, draw(sizes), constraints=model.Constraints(node_selector=draw(selectors)))
        where = draw(st.sampled_from([(), ("n0",), ("n1", "n2")]))
        found.append((job, one, make.tasks(one, draw(st.integers(0, 6)), locations=where)))
    return found


def world_of(nodes, load, profile: str) -> make.World:
    world = make.World(nodes, profile=profiles.build(profile))
    for job, one, tasks in load:
        world.room.submit(job, [one], tasks, placed=world.ledger)
    return world


def turn_by_turn():
    """Return a context in which each turn goes through `next_class` and `Attempt`."""
    return mock.patch.object(TurnOrder, "quick_turns", return_value=[])


def reasons(plan: framework.Plan) -> dict[str, tuple[model.Verdict, int]]:
    return {class_id: (left.verdict, left.count) for class_id, left in plan.left.items()}


@pytest.mark.parametrize("profile", PROFILES)
@FEW
@given(clusters(), loads(), st.data())
def test_quick_turns_decide_and_explain_what_single_turns_do(profile, nodes, load, data):
    quick, single = world_of(nodes, load, profile), world_of(nodes, load, profile)
    names = [node.name for node in nodes]
    for _ in range(4):
        offered = data.draw(st.lists(st.sampled_from(names), unique=True)) if names else []
        options = {"offered": offered, "max_per_node": data.draw(st.sampled_from([None, 1, 2]))}
        found = quick.cycle(**options)
        with turn_by_turn():
            expected = single.cycle(**options)
            assert reasons(found) == reasons(expected)
        assert found.decisions == expected.decisions
        assert found.diagnoses() == expected.diagnoses()
        for placement in make.placements(found)[:1]:
            quick.end(placement.task.id)
            single.end(placement.task.id)


@pytest.mark.parametrize("profile", PROFILES)
@FEW
@given(clusters(), loads())
def test_a_node_that_no_pending_class_may_fit_on_gets_nothing(profile, nodes, load):
    world = world_of(nodes, load, profile)
    world.cycle()
    world.room.nodes_changed()
    for node in nodes:
        least = world.room.least(world.profile.sizer)
        if any(map(operator.lt, world.ledger.free(node.name), least)):
            assert not make.placements(world.plan(offered=[node.name]))


def test_a_profile_with_an_order_and_a_score_of_shapes_alone_takes_quick_turns():
    world = make.World(make.nodes(2), profile=profiles.build("fair"))
    world.submit("first", 2, size=make.amount(1000, 1))
    world.submit("second", 2, size=make.amount(1000, 1))
    with mock.patch.object(TurnOrder, "next_class", return_value=None):
        plan = world.plan(offered=["n0"])
    assert make.where(plan) == [
        ("first/map-0", "n0"),
        ("second/map-0", "n0"),
        ("first/map-1", "n0"),
        ("second/map-1", "n0"),
    ]
