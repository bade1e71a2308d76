"""What stays of static masks that no class has."""

from __future__ import annotations

import gc
import weakref

from boathouse_policies import model
from boathouse_policies.framework import eligibility
from tests.builders import core


def constraints(number):
    return model.Constraints(node_selector=(("disk", str(number)),))


def test_masks_hold_no_layout():
    known, layout = eligibility.Eligibilities(), core.layout([core.node()])
    known.of(constraints(1), layout)
    former = weakref.ref(layout)
    del layout
    gc.collect()
    assert former() is None


def test_masks_of_many_nodes_are_few(monkeypatch):
    monkeypatch.setattr(eligibility, "_NODES_KEPT", 30)
    known, layout = eligibility.Eligibilities(), core.layout([core.node(f"n{number}") for number in range(10)])
    for number in range(20):
        known.of(constraints(number), layout)
    gc.collect()
    assert len(known._known) == 3
