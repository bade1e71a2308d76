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

    from boathouse_policies.ila.config import Config
    from boathouse_policies.ila.monitoring import Monitor
    from boathouse_policies.model import BoolVector, FloatVector, IntVector


class Thresholds:
    """H_d of each host, from one cycle to the next.

    Args:
        config: The constants.

    Attributes:
        error: The model's current error.
    """

    def __init__(self, config: Config) -> None:
        self._first = math.inf if config.threshold is None else config.threshold
        self._idle_s = config.idle_s if config.dynamic else math.inf
        self._largest_error = config.largest_error
        self.error = config.first_error
        self._names: Sequence[str] = ()
        self._reached = np.zeros(0)
        self._idle_since_s = np.zeros(0)

    def begin(self, now_s: float, monitor: Monitor, idle: IntVector) -> HostThresholds:
        """What holds as a cycle begins.

        Args:
            now_s: The cycle's time.
            monitor: What runs, and when the last task of each host ended.
            idle: Z_I, idle slots of each host, shape [H].
        """
        if self._names is not monitor.hosts.names:
            self._rename(monitor.hosts.names)
        several = idle > 1
        self._reached[~several] = self._first
        self._idle_since_s[~several] = math.inf
        fresh = several & np.isinf(self._idle_since_s)
        # Only what ended can have made room since the last cycle.
        ended_s = monitor.ended_s[fresh]
        self._idle_since_s[fresh] = np.where(ended_s > -math.inf, ended_s, now_s)
        return HostThresholds(
            first=self._first,
            margin=min(self.error, self._largest_error),
            is_due=self._idle_since_s + self._idle_s <= now_s,
            reached=self._reached.copy(),
            running=monitor.running.copy(),
            idle=idle,
            ripe_s=self.ripe_s(now_s),
        )

    def _rename(self, names: Sequence[str]) -> None:
        before = {name: (self._reached[i], self._idle_since_s[i]) for i, name in enumerate(self._names)}
        now = [before.get(name, (self._first, math.inf)) for name in names]
        self._reached, self._idle_since_s = np.array(now, np.float64).reshape(len(names), 2).T.copy()
        self._names = names

    def placed(self, host: int, reached: float) -> None:
        """A task was placed on a host: H_d is what its acceptance made it."""
        self._reached[host] = reached

    def ripe_s(self, now_s: float) -> float:
        """When the next host will have had idle slots for long enough; infinity for never."""
        due_s = self._idle_since_s + self._idle_s
        return float(due_s[due_s > now_s].min(initial=math.inf))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostThresholds:
    """Algorithm 1 for all hosts, as one cycle goes on: the columns change as tasks are placed.

    Attributes:
        first: H.
        margin: By how much more than the threshold is accepted.
        is_due: Hosts on which H_d is used, shape [H].
        reached: H_d of each host, shape [H].
        running: Z_R, shape [H].
        idle: Z_I, shape [H].
        ripe_s: When the next host will have had idle slots for long enough.
    """

    first: float
    margin: float
    is_due: BoolVector
    reached: FloatVector
    running: IntVector
    idle: IntVector
    ripe_s: float = math.inf

    def limits(self) -> FloatVector:
        """The largest slowdown that is accepted on each host, shape [H]."""
        limits = np.where(self.running == 0, math.inf, self.first + self.margin)
        due = (self.is_due & (self.running > 0)).nonzero()[0]
        if len(due):  # Line 9: (Z_R + 1) / S > Z_R / H_d, for S.
            running, reached = self.running[due], self.reached[due]
            limits[due] = np.maximum(reached + self.margin, np.nextafter(reached * (running + 1) / running, 0.0))
        return limits

    def limit(self, host: int) -> float:
        """The largest slowdown that is accepted on one host."""
        running, reached = int(self.running[host]), float(self.reached[host])
        if running == 0:
            return math.inf
        if not self.is_due[host]:
            return self.first + self.margin
        return max(reached + self.margin, math.nextafter(reached * (running + 1) / running, 0.0))

    def accept(self, host: int, slowdown: float | None, slots: int) -> None:
        """A task is placed: Z_R, Z_I and H_d.

        Args:
            host: Its place.
            slowdown: S as predicted; None for a task that Algorithm 1 was not asked about.
            slots: Idle slots that it takes.
        """
        if slowdown is not None:
            self.reached[host] = self._reached(slowdown, host)
        self.running[host] += 1
        self.idle[host] -= slots
        if self.idle[host] <= 1:
            self.is_due[host] = False

    def _reached(self, slowdown: float, host: int) -> float:
        """Lines 9 to 13, and 19."""
        running, reached = int(self.running[host]), float(self.reached[host])
        if not self.is_due[host] or running == 0:  # who comes to an idle host meets nobody, whatever is predicted
            return self.first
        if slowdown > reached and (running + 1) / slowdown > running / reached:
            return slowdown
        return min(reached, max(self.first, reached - 1.0, slowdown))
