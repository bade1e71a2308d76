"""The conditions of an object of any kind."""

import pytest

from boathouse.resources import base
from boathouse.services.frame import status_codec
from boathouse.services.frame.status_codec import ConditionTable

ORDER = ("Admitted", "Running")


def table(*before, generation=1, now_s=0.0):
    return ConditionTable(before, generation, now_s, order=ORDER)


@pytest.fixture
def running():
    made = table()
    made.set("Running", True, "Started", "")
    return made.conditions[0]


def test_the_transition_time_changes_only_with_the_status(running):
    later = table(running, generation=2, now_s=60.0)
    later.set("Running", True, "Started", "still")
    (same,) = later.conditions
    assert (same.last_transition_time, same.observed_generation) == (running.last_transition_time, 2)
    later.set("Running", False, "Stopped", "")
    assert later.conditions[0].last_transition_time == "1970-01-01T00:01:00Z"


def test_conditions_are_in_the_order_of_the_kind(running):
    both = table(running)
    both.set("Admitted", True, "Admitted", "")
    assert [condition.type for condition in both.conditions] == list(ORDER)


def test_conditions_of_unknown_types_are_kept_behind_up_to_a_number(running):
    others = [running.model_copy(update={"type": f"Other{number}"}) for number in range(20)]
    kept = table(*others, running).conditions
    assert kept[0].type == "Running"
    assert [condition.type for condition in kept[1:]] == [f"Other{number}" for number in range(15)]


def test_a_message_is_printable_and_has_a_limit():
    made = table()
    made.set("Running", False, "Failed", "\x1b[31m" + "x" * 10_000)
    (condition,) = made.conditions
    assert isinstance(condition, base.Condition)
    assert len(condition.message) == status_codec.MAX_MESSAGE
    assert "\x1b" not in condition.message
