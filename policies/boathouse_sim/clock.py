"""The heap of events: what happens at which millisecond, in an order that does not depend on chance."""

import enum
import functools
import heapq
import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

Happening: TypeAlias = Callable[[], None]

_MOST_IDLE = 1000  # background events that may happen alone however long they take: a policy may look again after hours


class Priority(enum.IntEnum):
    """Of what happens at the same millisecond, the least goes first."""

    END = 0
    ARRIVAL = 1
    MASTER_HEARTBEAT = 2
    NODE_HEARTBEAT = 3


class Clock:
    """Virtual time. Events at the same time go by priority, then in the order in which they were made.

    Heartbeats, reports and outages repeat for ever, so they are background events. Once nothing but background events
    happened for a long time, the clock takes no more of them, and the simulation ends.
    """

    def __init__(self) -> None:
        self.now_ms = 0  # the time of the last event; never runs backwards
        self.events = 0
        self.patience_ms = 3_600_000  # how long background events go on without any other event
        self._active_ms = 0  # when the last event happened that was not in the background
        self._background = 0  # events in the background that are still to come
        self._idle = 0  # and those that happened since then
        self._heap: list[tuple[int, int, int, Happening, bool]] = []
        self._made = itertools.count()

    @property
    def now_s(self) -> float:
        """The time as policies know it."""
        return self.now_ms / 1000

    def at(self, time_ms: int, priority: Priority, happening: Happening, *, background: bool = False) -> None:
        """Make an event. A time in the past is a fault of the caller, and a ValueError.

        One in the background alone does not keep the simulation going, and is left out if nothing else is expected.
        """
        if time_ms < self.now_ms:
            raise ValueError(f"an event for {time_ms} ms was made at {self.now_ms} ms")
        if background:
            if self._idle >= _MOST_IDLE and not self.can_progress:  # the first nearly always settles it
                return
            self._background += 1
        heapq.heappush(self._heap, (time_ms, priority, next(self._made), happening, background))

    def after(self, delay_ms: int, callback: Callable[..., None], *of: Any, background: bool = False) -> None:
        """Make an event that calls with these arguments after a delay, as `at` with the priority of arrivals."""
        happening = functools.partial(callback, *of)
        self.at(self.now_ms + delay_ms, Priority.ARRIVAL, happening, background=background)

    def progress(self) -> None:
        """Say that a background event changed more than the time: background events go on."""
        self._active_ms, self._idle = self.now_ms, 0

    @property
    def can_progress(self) -> bool:
        """Whether anything but background events is still to come, or was not long ago."""
        if len(self._heap) > self._background or self._idle < _MOST_IDLE:
            return True
        return self.now_ms - self._active_ms < self.patience_ms

    def next_ms(self) -> int | None:
        """Return when the next event is; None if there is none."""
        return self._heap[0][0] if self._heap else None

    def step(self) -> bool:
        """Let the next event happen; False if there is none."""
        if not self._heap:
            return False
        self.now_ms, _, _, happening, is_background = heapq.heappop(self._heap)
        self.events += 1
        if is_background:
            self._background -= 1
            self._idle += 1
        else:
            self._active_ms, self._idle = self.now_ms, 0
        happening()
        return True


class Beat:
    """A heartbeat at a phase of each period, on the heap only while something waits for it.

    What happens at it first sets `awake` to False: whether the next one is on the heap.
    """

    __slots__ = ("_clock", "_happening", "_period_ms", "_priority", "awake", "phase_ms")

    def __init__(self, clock: Clock, period_ms: int, phase_ms: int, priority: Priority, happening: Happening) -> None:
        self._clock, self._period_ms, self.phase_ms, self.awake = clock, period_ms, phase_ms, False
        self._priority, self._happening = priority, happening

    def wake(self, at_ms: int | None = None) -> None:
        """Let the next heartbeat happen, if it is not on the heap: at this time, or else at the next of its phase."""
        if not self.awake:
            self.awake = True
            next_ms = next_beat_ms(self._clock.now_ms, self._period_ms, self.phase_ms) if at_ms is None else at_ms
            self._clock.at(next_ms, self._priority, self._happening, background=True)


def next_beat_ms(now_ms: int, period_ms: int, phase_ms: int) -> int:
    """Return the next moment after now at this phase of the period."""
    at_ms = now_ms // period_ms * period_ms + phase_ms
    return at_ms if at_ms > now_ms else at_ms + period_ms
