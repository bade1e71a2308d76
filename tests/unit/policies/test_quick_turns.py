"""Turns of cycles on few nodes that ask no question: in one loop, they decide what turns of their own decide."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from hypothesis import given, settings, strategies as st

from boathouse_policies.framework.turn_order import TurnOrder
from tests.builders import core
from tests.builders.core_strategies import clusters, loaded_shell, loads

if TYPE_CHECKING:
    from boathouse_policies import framework, model

PROFILES = ["fair", "fifo", "late", "yarn-no-reservations"]
FEW = settings(max_examples=20, deadline=None)


def turn_by_turn():
    """Return a context in which each turn goes through `next_class` and `Attempt`."""
    return mock.patch.object(TurnOrder, "quick_turns", return_value=[])


def verdicts(plan: framework.Plan) -> dict[str, tuple[model.Verdict, int]]:
    return {class_id: (pending.verdict, pending.left) for class_id, pending in plan.left.items()}


@pytest.mark.parametrize("profile", PROFILES)
@FEW
@given(clusters(), loads(simple=True), st.data())
def test_quick_turns_decide_and_explain_what_single_turns_do(profile, nodes, load, data):
    quick, single = (
        loaded_shell(nodes, load, (profile, "least-loaded")),
        loaded_shell(nodes, load, (profile, "least-loaded")),
    )
    names = [node.name for node in nodes]
    for _ in range(4):
        offered = data.draw(st.lists(st.sampled_from(names), unique=True)) if names else []
        options = {"offered": offered, "max_per_node": data.draw(st.sampled_from([None, 1, 2]))}
        found = quick.cycle(**options)
        with turn_by_turn():
            expected = single.cycle(**options)
            assert verdicts(found) == verdicts(expected)
        assert found.decisions == expected.decisions
        assert found.diagnoses() == expected.diagnoses()
        for placement in core.placements(found)[:1]:
            quick.end(placement.task.id)
            single.end(placement.task.id)


@pytest.mark.parametrize("profile", PROFILES)
@FEW
@given(clusters(), loads(simple=True))
def test_a_node_that_no_pending_class_may_fit_on_gets_nothing(profile, nodes, load):
    shell = loaded_shell(nodes, load, (profile, "least-loaded"))
    shell.cycle()
    shell.queue.nodes_changed()
    for node in nodes:
        least = shell.queue.least(shell.profile.sizer)
        if any(map(operator.lt, shell.ledger.free(node.name), least)):
            assert not core.placements(shell.plan(offered=[node.name]))


def test_a_profile_with_an_order_and_a_score_of_shapes_alone_takes_quick_turns():
    shell = core.Shell(core.nodes(2), profile="fair")
    shell.submit("first", 2, size=core.amount(1000, 1))
    shell.submit("second", 2, size=core.amount(1000, 1))
    with mock.patch.object(TurnOrder, "next_class", return_value=None):
        plan = shell.plan(offered=["n0"])
    assert core.where(plan) == [
        ("first/map-0", "n0"),
        ("second/map-0", "n0"),
        ("first/map-1", "n0"),
        ("second/map-1", "n0"),
    ]
