"""Fairness between namespaces: a queue and places that they share by round robin, and token buckets by key."""

import asyncio
import collections
import contextlib
import dataclasses
import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
SHARE = 0.75
"""Share of the workers that other namespaces leave free which one namespace may occupy."""


def in_turns(items: Iterable[T], namespace_of: Callable[[T], str]) -> list[tuple[int, T]]:
    """Return items after their ranks within their namespaces, which so take turns; items of a rank keep their order."""
    counts: collections.defaultdict[str, Iterator[int]] = collections.defaultdict(itertools.count)
    ranked = [(next(counts[namespace_of(item)]), item) for item in items]
    return sorted(ranked, key=lambda pair: pair[0])


@dataclasses.dataclass(slots=True)
class _Lane(Generic[T]):
    """Items of one namespace, of which at most `window` are in flight."""

    window: int
    waiting: collections.deque[T] = dataclasses.field(default_factory=collections.deque)
    in_flight: int = 0


class FairQueue(Generic[T]):
    """Items by namespace. Namespaces take turns; each keeps the order of its own items.

    With a slow start, a namespace begins with few items in flight. Each success allows one more. A refusal resets the
    number, so that a refusal that concerns all items is noticed after a few of them.
    """

    def __init__(self, workers: int, *, slow_start: int | None = None) -> None:
        self._workers = workers
        self._first = workers if slow_start is None else slow_start
        self._lanes: dict[str, _Lane[T]] = {}
        self._turns: collections.OrderedDict[str, None] = collections.OrderedDict()
        self._waiting = self._in_flight = 0

    def __len__(self) -> int:
        return self._waiting

    @property
    def in_flight(self) -> int:
        """Number of items that were taken and are not done."""
        return self._in_flight

    def put(self, namespace: str, item: T) -> None:
        """Add an item."""
        if (lane := self._lanes.get(namespace)) is None:
            lane = self._lanes[namespace] = _Lane(self._first)
        lane.waiting.append(item)
        self._waiting += 1
        self._turns.setdefault(namespace)

    def take(self) -> tuple[str, T] | None:
        """Return the next item that may start, and its namespace, or None."""
        if self._in_flight >= self._workers:
            return None
        for namespace in self._turns:
            lane = self._lanes[namespace]
            most = max(1, int(SHARE * (self._workers - (self._in_flight - lane.in_flight))))  # of what others leave
            if lane.in_flight < min(lane.window, most):
                break
        else:
            return None
        item = lane.waiting.popleft()
        lane.in_flight += 1
        self._waiting -= 1
        self._in_flight += 1
        if lane.waiting:
            self._turns.move_to_end(namespace)
        else:
            del self._turns[namespace]
        return namespace, item

    def done(self, namespace: str, *, succeeded: bool | None = None) -> None:
        """Mark an item as done: a success allows one more item in flight, a failure restarts the slow start."""
        lane = self._lanes[namespace]
        lane.in_flight -= 1
        self._in_flight -= 1
        if succeeded is not None:
            lane.window = min(lane.window + 1, self._workers) if succeeded else self._first
        if not lane.in_flight and not lane.waiting:
            del self._lanes[namespace]


BURST_S = 50.0
"""Burst of a namespace: the tokens of this many seconds."""
ALL = ""
MAX_KEYS = 10_000
"""Maximum number of buckets; the least recently used are dropped first."""
_SWEEP_AT = 1024


class Buckets:
    """A token bucket for each key, which begins full; one that is full again is dropped. Counts what was `refused`."""

    def __init__(self, *, rate_per_s: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate_per_s, self._burst, self._clock = rate_per_s, burst, clock
        self._levels: dict[str, tuple[float, float]] = {}
        self._sweep_at, self.refused = _SWEEP_AT, 0

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


class Places:
    """Limits the writes in flight."""

    def __init__(self, most: int) -> None:
        self._waiting: FairQueue[asyncio.Future[None]] = FairQueue(most)

    @contextlib.asynccontextmanager
    async def take(self, namespace: str) -> AsyncIterator[None]:
        """Hold a place, once a namespace has its turn."""
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put(namespace, granted)
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():
                self._return(namespace)
            raise
        try:
            yield
        finally:
            self._return(namespace)

    def _return(self, namespace: str) -> None:
        self._waiting.done(namespace)
        self._grant()

    def _grant(self) -> None:
        while (taken := self._waiting.take()) is not None:
            namespace, granted = taken
            if granted.cancelled():
                self._waiting.done(namespace)
            else:
                granted.set_result(None)
