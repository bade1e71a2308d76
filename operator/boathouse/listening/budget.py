"""Budgets of those who connect: how much in a time, and how many at a time, for each party and in all. Pure."""

import collections
import contextlib
from collections.abc import Callable, Hashable, Iterator

MAX_KEYS = 10_000
"""Parties that are remembered; the one that was not heard of for the longest is forgotten first."""


class Bucket:
    """A token bucket.

    Args:
        rate: Tokens that come back each second.
        burst: Tokens that it holds at most, and at first.
        clock: Seconds that only grow.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._level = burst
        self._filled_s = clock()

    @property
    def level(self) -> float:
        """The tokens in it; below 0 after a cost that was known too late."""
        now_s = self._clock()
        self._level = min(self._burst, self._level + (now_s - self._filled_s) * self._rate)
        self._filled_s = now_s
        return self._level

    def take(self) -> bool:
        """Take one token; False if there is none."""
        if self.level < 1:
            return False
        self._level -= 1
        return True

    def charge(self, cost: float) -> None:
        """Take tokens for work that is done, also those that are not there yet."""
        self._level = self.level - cost


class Buckets:
    """One bucket for each key, all alike."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._by_key: collections.OrderedDict[Hashable, Bucket] = collections.OrderedDict()

    def of(self, key: Hashable) -> Bucket:
        """Return the bucket of a key."""
        bucket = self._by_key.get(key)
        if bucket is None:
            bucket = self._by_key[key] = Bucket(self._rate, self._burst, self._clock)
            if len(self._by_key) > MAX_KEYS:
                self._by_key.popitem(last=False)
        self._by_key.move_to_end(key)
        return bucket


class Places:
    """Places for work that is under way.

    Args:
        in_all: How many there are.
        each: How many one key may hold.
    """

    def __init__(self, *, in_all: int, each: int) -> None:
        self._in_all = in_all
        self._each = each
        self._held: collections.Counter[Hashable] = collections.Counter()

    @property
    def held(self) -> int:
        """How many are taken."""
        return self._held.total()

    @contextlib.contextmanager
    def place(self, key: Hashable) -> Iterator[bool]:
        """Hold a place for the time of the block; gives False if there is none."""
        if self._held[key] >= self._each or self.held >= self._in_all:
            yield False
            return
        self._held[key] += 1
        try:
            yield True
        finally:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]
