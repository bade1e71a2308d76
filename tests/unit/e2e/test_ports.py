"""Ports for servers of tests."""

from __future__ import annotations

import random

from boathouse_e2e import lab


def test_one_operator_listens_on_distinct_ports(monkeypatch):
    drawn = iter([20_011, 20_011, 20_012, 20_013])
    monkeypatch.setattr(random, "randrange", lambda *_: next(drawn))
    assert lab.free(3) == [20_011, 20_012, 20_013]
