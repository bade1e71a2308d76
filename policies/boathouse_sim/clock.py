"""The heap of events: what happens at which millisecond, in an order that does not depend on chance."""

from __future__ import annotations

import enum
import heapq
import itertools
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

Happening: TypeAlias = "Callable[[], None]"


class Priority(enum.IntEnum):
    """Of what happens at the same millisecond, the least goes first."""

    END = 0
    ARRIVAL = 1
    MASTER_HEARTBEAT = 2
    NODE_HEARTBEAT = 3


class Clock:
    """Virtual time. Events at the same time go by priority, then in the order in which they were made.

    Attributes:
        now_ms: The time of the last event; never runs backwards.
        events: Events so far.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self.events = 0
        self._heap: list[tuple[int, int, int, Happening]] = []
        self._made = itertools.count()

    @property
    def now_s(self) -> float:
        """The time as policies know it."""
        return self.now_ms / 1000

    def at(self, time_ms: int, priority: Priority, happening: Happening) -> None:
        """Make an event.

        Raises:
            ValueError: It would be in the past: a fault of the caller.
        """
        if time_ms < self.now_ms:
            raise ValueError(f"an event for {time_ms} ms was made at {self.now_ms} ms")
        heapq.heappush(self._heap, (time_ms, int(priority), next(self._made), happening))

    @property
    def waiting(self) -> int:
        """Events that are still to come."""
        return len(self._heap)

    def next_ms(self) -> int | None:
        """When the next event is; None if there is none."""
        return self._heap[0][0] if self._heap else None

    def step(self) -> bool:
        """Let the next event happen; False if there is none."""
        if not self._heap:
            return False
        self.now_ms, _, _, happening = heapq.heappop(self._heap)
        self.events += 1
        happening()
        return True
