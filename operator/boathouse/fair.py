"""A queue that is shared between namespaces: round robin, and no namespace occupies all workers."""

from __future__ import annotations

import collections
import dataclasses
from typing import Generic, TypeVar

T = TypeVar("T")

SHARE = 0.75
"""The part of the workers that others leave which one namespace may occupy."""


@dataclasses.dataclass(slots=True)
class _Lane(Generic[T]):
    """The items of one namespace.

    Attributes:
        window: How many of its items may be in flight.
    """

    window: int
    waiting: collections.deque[T] = dataclasses.field(default_factory=collections.deque)
    in_flight: int = 0


class FairQueue(Generic[T]):
    """Items by namespace. Namespaces take turns; each keeps the order of its own items.

    With a slow start, a namespace begins with few items in flight. Each success allows one more, a refusal begins anew:
    so what would be refused a thousand times is refused a few times before anybody hears of it.

    Args:
        workers: How many items may be in flight.
        slow_start: How many items of a namespace may be in flight at first; None for no such bound.
    """

    def __init__(self, workers: int, *, slow_start: int | None = None) -> None:
        self._workers = workers
        self._first = workers if slow_start is None else slow_start
        self._lanes: dict[str, _Lane[T]] = {}
        self._turns: collections.OrderedDict[str, None] = collections.OrderedDict()
        self._waiting = 0
        self._in_flight = 0

    def __len__(self) -> int:
        """Items that wait."""
        return self._waiting

    @property
    def in_flight(self) -> int:
        """Items that were taken and are not done."""
        return self._in_flight

    def put(self, namespace: str, item: T) -> None:
        """Add an item."""
        lane = self._lanes.get(namespace)
        if lane is None:
            lane = self._lanes[namespace] = _Lane(self._first)
        lane.waiting.append(item)
        self._waiting += 1
        self._turns.setdefault(namespace)

    def take(self) -> tuple[str, T] | None:
        """Return the next item that may start, and its namespace; None while there is none."""
        if self._in_flight >= self._workers:
            return None
        for namespace in self._turns:
            lane = self._lanes[namespace]
            if lane.in_flight < min(lane.window, self._most(lane)):
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
        """An item of a namespace that was taken is done.

        Args:
            namespace: Its namespace.
            succeeded: What it says of the next ones: True lets one more start, False begins anew, None is no news.
        """
        lane = self._lanes[namespace]
        lane.in_flight -= 1
        self._in_flight -= 1
        if succeeded is not None:
            lane.window = min(lane.window + 1, self._workers) if succeeded else self._first
        if not lane.in_flight and not lane.waiting:
            del self._lanes[namespace]

    def _most(self, lane: _Lane[T]) -> int:
        left_by_others = self._workers - (self._in_flight - lane.in_flight)
        return max(1, int(SHARE * left_by_others))
