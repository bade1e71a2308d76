"""Token buckets by key: bound how often something is done for a namespace or an address; normal work stays below."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

BURST_S = 50.0
"""A namespace that was quiet may use what flows in during so many seconds at once."""
ALL = ""
"""The key of what all share."""
MAX_KEYS = 10_000
"""Buckets that are kept; those whose tokens were not taken for the longest time are forgotten first."""
_SWEEP_AT = 1024


class Buckets:
    """One bucket for each key. A bucket begins full; one that is full again is forgotten.

    Args:
        rate_per_s: Tokens that flow into a bucket in a second.
        burst: The most that a bucket holds.
        clock: Seconds that only grow.

    Attributes:
        refused: How often there was no token.
    """

    def __init__(self, *, rate_per_s: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._clock = clock
        self._levels: dict[str, tuple[float, float]] = {}
        self._sweep_at = _SWEEP_AT
        self.refused = 0

    def take(self, key: str, tokens: float = 1.0, *, leave: float = 0.0) -> bool:
        """Take tokens; False, and nothing taken, when there are not so many, or fewer than `leave` would be left.

        What takes more than a bucket holds is let through by a full one, which then has a debt.
        """
        if self.level(key) < min(tokens + leave, self._burst):
            self.refused += 1
            return False
        self.charge(key, tokens)
        return True

    def charge(self, key: str, tokens: float) -> None:
        """Take tokens for work that is done, also those that are not there yet."""
        now_s = self._clock()
        level = self._level(key, now_s)
        self._levels.pop(key, None)
        self._levels[key] = (level - tokens, now_s)
        if len(self._levels) > self._sweep_at:
            self._sweep(now_s)

    def level(self, key: str) -> float:
        """Return the tokens in a bucket; below 0 after a cost that was known too late."""
        return self._level(key, self._clock())

    def wait_s(self, key: str, *, leave: float = 0.0) -> float:
        """Return in how many seconds there will be a token, with `leave` more."""
        return max(0.0, min(1.0 + leave, self._burst) - self.level(key)) / self._rate_per_s

    def _level(self, key: str, now_s: float) -> float:
        level, at_s = self._levels.get(key, (self._burst, now_s))
        return min(self._burst, level + self._rate_per_s * max(0.0, now_s - at_s))

    def _sweep(self, now_s: float) -> None:
        for key in [key for key in self._levels if self._level(key, now_s) >= self._burst]:
            del self._levels[key]
        for key in list(self._levels)[:-MAX_KEYS]:
            del self._levels[key]
        self._sweep_at = max(_SWEEP_AT, 2 * len(self._levels))
