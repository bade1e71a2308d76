"""Tolerations that compare numbers read them as kube-scheduler does: decimal integers of 64 bits, in one spelling."""

import pytest

from boathouse_policies import model
from boathouse_policies.framework import eligibility
from tests.builders import core

GREATER, LESS = model.TolerationOperator.GT, model.TolerationOperator.LT


def is_allowed(taint: str, operator: model.TolerationOperator, bound: str) -> bool:
    tolerations = (model.Toleration(key="k", operator=operator, value=bound),)
    tainted = core.node(taints=(model.Taint(key="k", value=taint),))
    return eligibility.refusal(model.Constraints(tolerations=tolerations), tainted) is None


@pytest.mark.parametrize(
    "number",
    ["007", "+7", "-0", "00", "-07", "7 ", "7.0", "0x7", "٧", "", "-", str(1 << 63), str((-1 << 63) - 1), "9" * 5000],
    ids=lambda number: number[:20] or "empty",
)
def test_a_number_in_another_spelling_is_tolerated_by_no_comparison_on_either_side(number):
    assert not is_allowed(number, GREATER, "-100")
    assert not is_allowed(number, LESS, "100")
    assert not is_allowed("100", GREATER, number)
    assert not is_allowed("-100", LESS, number)


@pytest.mark.parametrize("number", ["0", "7", "-7", "70", "99"])
def test_a_decimal_number_is_compared_by_its_value(number):
    assert is_allowed(number, GREATER, "-100")
    assert is_allowed(number, LESS, "100")
    assert is_allowed("100", GREATER, number)
    assert is_allowed("-100", LESS, number)


def test_the_numbers_of_64_bits_are_compared():
    assert is_allowed(str((1 << 63) - 1), GREATER, str(-1 << 63))
    assert is_allowed(str(-1 << 63), LESS, str((1 << 63) - 1))


@pytest.mark.parametrize("number", ["007", "+7"])
def test_labels_of_nodes_are_compared_in_these_spellings_as_before(number):
    greater = model.Expression(key="size", operator=model.Operator.GT, values=("6",))
    assert eligibility.holds(greater, number)
