"""Queue that namespaces share by round robin, in which no namespace occupies all workers."""

from __future__ import annotations

import collections
import dataclasses
from typing import Generic, TypeVar

T = TypeVar("T")

SHARE = 0.75
"""Share of the workers that other namespaces leave free which one namespace may occupy."""


@dataclasses.dataclass(slots=True)
class _Lane(Generic[T]):
    """Items of one namespace.

    Attributes:
        window: Maximum number of its items in flight.
    """

    window: int
    waiting: collections.deque[T] = dataclasses.field(default_factory=collections.deque)
    in_flight: int = 0


class FairQueue(Generic[T]):
    """Items by namespace. Namespaces take turns; each keeps the order of its own items.

    With a slow start, a namespace begins with few items in flight. Each success allows one more. A refusal resets the
    number, so that a refusal that concerns all items is noticed after a few of them.

    Args:
        workers: Maximum number of items in flight.
        slow_start: Initial maximum of items in flight of a namespace; None: without limit.
    """

    def __init__(self, workers: int, *, slow_start: int | None = None) -> None:
        self._workers = workers
        self._first = workers if slow_start is None else slow_start
        self._lanes: dict[str, _Lane[T]] = {}
        self._turns: collections.OrderedDict[str, None] = collections.OrderedDict()
        self._waiting = 0
        self._in_flight = 0

    def __len__(self) -> int:
        """Return the number of queued items."""
        return self._waiting

    @property
    def in_flight(self) -> int:
        """Number of items that were taken and are not done."""
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
        """Return the next item that may start, and its namespace, or None."""
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
        """Mark an item as done.

        Args:
            namespace: Its namespace.
            succeeded: True allows one more item in flight, False restarts the slow start, None has no effect.
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
