"""Token buckets by key, which limit the rate of work for a namespace or an address."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

BURST_S = 50.0
"""Burst of a namespace: the tokens of this many seconds."""
ALL = ""
"""Key of a bucket that all namespaces share."""
MAX_KEYS = 10_000
"""Maximum number of buckets; the least recently used are dropped first."""
_SWEEP_AT = 1024


class Buckets:
    """Holds a token bucket for each key. A bucket begins full; one that is full again is dropped.

    Args:
        rate_per_s: Tokens that a bucket gains per second.
        burst: Capacity of a bucket.
        clock: Returns monotonic seconds.

    Attributes:
        refused: Number of requests without enough tokens.
    """

    def __init__(self, *, rate_per_s: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._clock = clock
        self._levels: dict[str, tuple[float, float]] = {}
        self._sweep_at = _SWEEP_AT
        self.refused = 0

    def take(self, key: str, tokens: float = 1.0, *, leave: float = 0.0) -> bool:
        """Take tokens and return True; return False without taking any if fewer than `leave` would remain.

        A full bucket grants a request that exceeds its capacity, and then has a debt.
        """
        if self.level(key) < min(tokens + leave, self._burst):
            self.refused += 1
            return False
        self.charge(key, tokens)
        return True

    def charge(self, key: str, tokens: float) -> None:
        """Take tokens for finished work, even if the bucket then has a debt."""
        now_s = self._clock()
        level = self._level(key, now_s)
        self._levels.pop(key, None)
        self._levels[key] = (level - tokens, now_s)
        if len(self._levels) > self._sweep_at:
            self._sweep(now_s)

    def level(self, key: str) -> float:
        """Return the tokens in a bucket; negative if it has a debt."""
        return self._level(key, self._clock())

    def wait_s(self, key: str, *, leave: float = 0.0) -> float:
        """Return the seconds until the bucket has a token in addition to `leave`."""
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
