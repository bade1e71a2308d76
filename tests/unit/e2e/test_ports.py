"""Ports for servers of tests."""

from __future__ import annotations

import itertools
import socket

from boathouse_e2e import lab


def test_one_operator_listens_on_distinct_ports_that_nobody_else_has(monkeypatch):
    taken, *others = lab.free(4)
    monkeypatch.setattr(lab, "_PORTS", itertools.cycle([taken, others[0], taken, *others[1:]]))
    with socket.create_server(("", taken)):
        assert lab.free(3) == others
