"""Thresholds of slowdown (Algorithm 1): H for all hosts, and H_d for each that has had idle slots for a while.

Readings that the algorithm's listing needs: H_d, Z_R and Z_I are of a physical host. `H_d = min(H_d - 1, S)` would make
H_d 0 and divide by it: it falls by one at most, and never below S or H. Where nothing runs, everything is accepted. S
up to the threshold plus the model's own error is accepted: with H = 1 a model that errs at all would refuse nearly all.
What was accepted by that margin alone does not raise H_d. H_d changes when a task is placed, not when it is considered.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_policies.ila.book import Book
    from boathouse_policies.ila.config import Config
    from boathouse_policies.model import FloatVector, IntVector


class Thresholds:
    """H_d of each host, from one cycle to the next.

    Args:
        config: The constants.

    Attributes:
        error: The model's current error.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._first = config.threshold if config.threshold is not None else math.inf
        self._names: Sequence[str] = ()
        self.error = config.first_error
        self._now_s = -math.inf
        self._reached = np.zeros(0)
        self._idle_since_s = np.zeros(0)

    def begin(self, now_s: float, book: Book, idle: IntVector) -> InCycle:
        """What holds as a cycle begins.

        Args:
            now_s: The cycle's time.
            book: What runs, and when the last task of each host ended.
            idle: Z_I, idle slots of each host, shape [H].
        """
        if self._names is not book.hosts.names:
            self._rename(book.hosts.names)
        if now_s >= self._now_s:  # not for a look back at an earlier cycle
            self._now_s = now_s
            several = idle > 1
            self._reached[~several] = self._first
            self._idle_since_s[~several] = math.inf
            fresh = several & np.isinf(self._idle_since_s)
            # Only what ended can have made room since the last cycle.
            self._idle_since_s[fresh] = np.where(book.ended_s[fresh] > -math.inf, book.ended_s[fresh], now_s)
        due = (
            self._idle_since_s + self._config.idle_s <= now_s if self._config.dynamic else np.zeros(len(idle), np.bool_)
        )
        margin = min(self.error, self._config.largest_error)
        return InCycle(self._first, margin, due, self._reached, book.running, idle, self.ripe_s(now_s))

    def _rename(self, names: Sequence[str]) -> None:
        known = {name: i for i, name in enumerate(self._names)}
        reached, since_s = self._reached, self._idle_since_s
        self._reached, self._idle_since_s = np.full(len(names), self._first), np.full(len(names), math.inf)
        for i, name in enumerate(names):
            if name in known:
                self._reached[i], self._idle_since_s[i] = reached[known[name]], since_s[known[name]]
        self._names = names

    def placed(self, host: int, reached: float) -> None:
        """A task was placed on a host: H_d is what its acceptance made it."""
        self._reached[host] = reached

    def ripe_s(self, now_s: float) -> float:
        """When the next host will have had idle slots for long enough; infinity for never."""
        if not self._config.dynamic:
            return math.inf
        due_s = self._idle_since_s + self._config.idle_s
        return float(due_s[due_s > now_s].min(initial=math.inf))


@dataclasses.dataclass(slots=True)
class _Host:
    """One host in a cycle: whether H_d is used, Z_R, Z_I and H_d."""

    due: bool
    running: int
    idle: int
    reached: float


class InCycle:
    """Algorithm 1 for all hosts, as one cycle goes on.

    Args:
        first: H.
        margin: By how much more than the threshold is accepted.
        due: Hosts on which H_d is used, shape [H].
        reached: H_d of each host, shape [H].
        running: Z_R, shape [H].
        idle: Z_I, shape [H].
        ripe_s: When the next host will have had idle slots for long enough.

    Attributes:
        limits: The largest slowdown that is accepted on each host as the cycle begins, shape [H].
        ripe_s: As given.
    """

    def __init__(
        self,
        first: float,
        margin: float,
        due: np.ndarray,
        reached: FloatVector,
        running: IntVector,
        idle: IntVector,
        ripe_s: float = math.inf,
    ) -> None:
        self._first, self._margin = first, margin
        self.ripe_s = ripe_s
        limits = np.where(running == 0, math.inf, first + margin)
        some = (due & (running > 0)).nonzero()[0]
        if len(some):  # Line 9: (Z_R + 1) / S > Z_R / H_d, for S.
            tasks, levels = running[some], reached[some]
            pays = np.nextafter(levels * (tasks + 1) / tasks, 0.0)
            limits[some] = np.maximum(levels + margin, pays)
        self.limits: FloatVector = limits
        self._columns = due, running.copy(), idle, reached.copy()
        self._hosts: dict[int, _Host] = {}

    def limit(self, host: int) -> float:
        """The largest slowdown that is accepted on one host."""
        one = self._of(host)
        if one.running == 0:
            return math.inf
        if not one.due:
            return self._first + self._margin
        pays = math.nextafter(one.reached * (one.running + 1) / one.running, 0.0)
        return max(one.reached + self._margin, pays)

    def reached(self, host: int) -> float:
        """H_d of one host."""
        return self._of(host).reached

    def _of(self, host: int) -> _Host:
        """One host as plain numbers: few of them get tasks."""
        known = self._hosts.get(host)
        if known is None:
            due, running, idle, reached = self._columns
            known = _Host(bool(due[host]), int(running[host]), int(idle[host]), float(reached[host]))
            self._hosts[host] = known
        return known

    def accept(self, host: int, slowdown: float, slots: int) -> None:
        """A task is placed: Z_R, Z_I and H_d.

        Args:
            host: Its place.
            slowdown: S as predicted; not a number for a task that Algorithm 1 was not asked about.
            slots: Idle slots that it takes.
        """
        one = self._of(host)
        if not math.isnan(slowdown):
            one.reached = self._reached(slowdown, one.running, one.reached, due=one.due)
        one.running += 1
        one.idle -= slots
        if one.idle <= 1:
            one.due = False

    def _reached(self, slowdown: float, running: int, reached: float, *, due: bool) -> float:
        """Lines 9 to 13, and 19."""
        if not due or running == 0:  # who comes to an idle host meets nobody, whatever is predicted of him
            return self._first
        if slowdown > reached and (running + 1) / slowdown > running / reached:
            return slowdown
        return min(reached, max(self._first, reached - 1.0, slowdown))
