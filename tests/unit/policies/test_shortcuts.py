"""What is quick decides what is slow and plain would."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse_policies import profiles

from . import builders as make
from .test_properties import clusters, loads, world_of

if TYPE_CHECKING:
    import random

    from boathouse_policies import framework

FEW = settings(max_examples=40, deadline=None)
PROFILES = [("fifo", "packed"), ("fair", "least-loaded")]


class NeverWaits:
    """Patience in name only: a profile that has it goes through a turn step by step."""

    def wait(self, *_) -> None:
        return None


def slow_world(nodes, load, profile) -> make.World:
    world = world_of(nodes, load, profile)
    world.profile = dataclasses.replace(profiles.build(profile[0], placement=profile[1]), patience=NeverWaits())
    return world


def reasons(plan: framework.Plan) -> dict[str, tuple[str, int]]:
    return {class_id: (left.verdict.code, left.count) for class_id, left in plan.left.items()}


@pytest.mark.parametrize("profile", PROFILES)
@FEW
@given(clusters(), loads())
def test_a_turn_at_once_decides_what_a_turn_step_by_step_does(profile, nodes, load):
    quick, slow = world_of(nodes, load, profile).plan(), slow_world(nodes, load, profile).plan()
    assert quick.decisions == slow.decisions
    assert reasons(quick) == reasons(slow)


@pytest.mark.parametrize("profile", PROFILES)
@FEW
@given(clusters(), loads(), st.randoms(use_true_random=False))
def test_who_looks_only_where_room_came_free_goes_where_it_would_have_gone(profile, nodes, load, chance: random.Random):
    narrow, wide = world_of(nodes, load, profile), slow_world(nodes, load, profile)
    running = [one.task.id for one in make.placements(narrow.cycle())]
    wide.cycle()
    while running:
        for _ in range(min(len(running), chance.randint(1, 3))):
            over = running.pop(chance.randrange(len(running)))
            narrow.end(over)
            wide.end(over)
        wide.room.nodes_changed()  # all look at all nodes
        found, expected = narrow.cycle(), wide.cycle()
        assert found.decisions == expected.decisions
        running += [one.task.id for one in make.placements(found)]
        waits = {class_id: left.count for class_id, left in expected.left.items()}
        named = {class_id: left.count for class_id, left in found.left.items()}
        # Who waits for room and for its queue's limit may be parked for either, and is looked at accordingly.
        assert named.keys() <= waits.keys() | wide.room.parked().keys()
        assert all(waits.get(class_id, count) == count for class_id, count in named.items())


def test_a_class_that_did_not_fit_what_came_free_stays_parked_and_is_not_named():
    world = make.World(make.nodes(1), profile=profiles.build("fifo"))
    world.submit("small", 8, size=make.amount(1000, 1))
    world.submit("large", 1, size=make.amount(3000, 1), submitted_s=1.0)
    world.cycle()
    world.end("ns/small/map-0")
    assert set(world.cycle().left) == {"small/map"}
    assert set(world.room.parked()) == {"small/map", "large/map"}


def test_who_fitted_and_was_too_late_is_named_with_all_its_tasks():
    world = make.World(make.nodes(1), profile=profiles.build("fifo"))
    world.submit("first", 6, size=make.amount(1000, 1))
    world.submit("second", 3, size=make.amount(1000, 1), submitted_s=1.0)
    world.cycle()
    world.end("ns/first/map-0")
    assert reasons(world.cycle()) == {"first/map": ("Unschedulable", 1), "second/map": ("Unschedulable", 3)}
