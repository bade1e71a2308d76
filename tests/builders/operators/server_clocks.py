"""An API server whose clock differs from this machine's, for operators with the clocks that they use in production."""

from __future__ import annotations

import datetime as dt
import email.utils
import time

from boathouse.cluster import server_time
from boathouse.services.frame import reconciler
from tests.builders import clocks

HOUR_S, DAY_S = 3600.0, 86400.0
STEPS_S = (-DAY_S, -HOUR_S, HOUR_S, DAY_S)
OPERATOR_NOW = reconciler.Context.__dataclass_fields__["now"].default
"""The clock of reconcilers that are told no other."""


def forget_server_time(monkeypatch, monotonic=time.monotonic):
    """Let the operator know its machine's clocks only, as when it starts, until the end of the test."""
    for name, value in vars(server_time.ServerTime(monotonic)).items():
        monkeypatch.setattr(server_time.SERVER_TIME, name, value)


def text(epoch_s):
    """Return a time as Kubernetes writes it."""
    return dt.datetime.fromtimestamp(epoch_s, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class ServerClock:
    """The clock of a fake API server, which dates its responses and objects.

    Args:
        api: The fake API server.
        ahead_s: How far its clock is ahead of this machine's.
    """

    def __init__(self, api, ahead_s):
        self._api, self._ahead_s = api, ahead_s
        api.clock, api.world.date = self, text(self())

    def __call__(self):
        return time.time() + self._ahead_s

    def advance(self, seconds):
        """Let time pass, for the operator by a response of the server."""
        self._ahead_s += seconds
        self._api.world.date = text(self())
        tell_date(self())


def known_server(monkeypatch, ahead_s):
    """Let the operator know an API server whose clock is ahead of this machine's.

    Returns:
        The monotonic clock, which the test moves.
    """
    monotonic = clocks.Clock(1_000.0)
    forget_server_time(monkeypatch, monotonic)
    tell_date(time.time() + ahead_s)
    return monotonic


def tell_date(epoch_s):
    """Let the operator get a response of the API server with this date."""
    monotonic_s = server_time.SERVER_TIME.monotonic()
    date = email.utils.formatdate(epoch_s, usegmt=True)
    server_time.SERVER_TIME.observe(date, sent_s=monotonic_s, received_s=monotonic_s)
