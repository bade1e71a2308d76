"""The effects of the profile's parts are gauges."""

import pytest

from boathouse.scheduling import gauges
from boathouse_policies.profiles import Switches, guard
from tests.builders.operators.applications import DriverDesk


def effects(profile="boathouse", **switches):
    world = DriverDesk(profile=profile, switches=Switches(**switches))
    found = guard.guard_of(world.scheduler.state.profile)
    if found is not None:
        found.effects[guard.Part.MEMORY] = guard.Effect(3, 20.0, 12.0)
    return gauges.SchedulerGauges(world.scheduler)._part_effects()


def test_what_decisions_were_to_save_and_what_they_saved_are_told_apart():
    found = effects()
    assert (found["memory", "predicted"], found["memory", "realised"]) == (20.0, 12.0)


@pytest.mark.parametrize(("block_s", "parts"), [(0.0, set()), (600.0, {"memory", "refusal", "suspension"})])
def test_with_a_switchback_each_part_has_the_effect_of_its_blocks(block_s, parts):
    assert {part for part, name in effects(switchback_s=block_s) if name == "switchback"} == parts


def test_a_profile_without_a_guard_has_no_effects():
    assert effects("fair") == {}
