"""No amount overflows a column, and what saturated is right again when it goes."""

import numpy as np
import pytest

from boathouse_policies import framework, model
from tests.builders import core

NODE = model.NodeName("n0")
HUGE = model.Resources(cpu_milli=10**19, memory_bytes=2**63, ephemeral_storage_bytes=10**40)


def ledger() -> framework.Ledger:
    """A ledger with one node of 4 cores."""
    return core.Shell([core.node(allocatable=core.amount(4000))]).ledger


def test_what_saturates_fits_no_node():
    axis = model.Axis()
    assert (axis.vector(HUGE) > axis.capacity(HUGE, pods=110))[: model.PODS].all()


def test_less_than_nothing_is_nothing():
    assert model.Axis().amounts(model.Resources(cpu_milli=-5)) == (0, 0, 0, 1)


@pytest.mark.parametrize("count", [1, 5000])
def test_sums_with_huge_requests_do_not_overflow_and_are_exact_again_without_them(count):
    book = ledger()
    book.observe(core.account("small"))
    before = book.snapshot(0.0).requested.copy(), book.free(NODE)
    for i in range(count):
        book.observe(core.account(f"p{i}", "n0", HUGE))
    view = book.snapshot(0.0)
    assert (view.requested[: model.PODS] > view.layout.allocatable[: model.PODS]).all()
    assert (view.requested == book.recomputed()).all()
    assert (view.free()[: model.PODS] < 0).all()
    for i in range(count):
        book.gone(model.TaskId(f"ns/p{i}"))
    assert (book.snapshot(0.0).requested == before[0]).all()
    assert book.free(NODE) == before[1]


def test_names_that_pods_invent_share_a_row():
    axis = model.Axis()
    for i in range(1000):
        axis.vector(core.amount(**{str(i): 1}))
    assert axis.width < 20
    assert axis.names[-1] == model.OTHER


def test_a_resource_that_a_node_brings_later_is_counted_for_the_pods_that_are_there():
    book = ledger()
    for i in range(50):
        book.observe(core.account(f"p{i}", "n0", core.amount(**{str(i): 1})))
    book.observe(core.account("gpu", "n0", core.amount(gpu=3)))
    book.snapshot(0.0)
    book.set_node(core.node(allocatable=core.amount(4000, gpu=4)))
    free = book.free(NODE)
    row = book.snapshot(0.0).axis.row("example.com/gpu")
    assert free[row] == 1
    book.gone(model.TaskId("ns/gpu"))
    assert book.free(NODE)[row] == 4
    assert np.array_equal(book.snapshot(0.0).requested, book.recomputed())
