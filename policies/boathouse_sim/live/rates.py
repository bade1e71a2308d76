"""Work that progresses at rates that change: the end is made anew whenever something changes the rate.

An activity has some work left, in milliseconds of a task that is alone. It progresses at 1 / (sum of its stretches)
milliseconds of work a millisecond, or not at all while it is paused. `Rates` treats each alone;
`boathouse_sim.live.shared` couples those on one host.

A `Gate` is what a reducer may have copied: map output appears as maps end, and the last of it with the last map.
"""

from __future__ import annotations

import bisect
import math
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np

from boathouse_sim.clock import Priority

if TYPE_CHECKING:
    from collections.abc import Callable

    from boathouse_policies.model import Distance
    from boathouse_sim.clock import Clock
    from boathouse_sim.work import Segment


class Gate:
    """The part of a job's map output that exists, over time.

    A reducer copies at its rate while there is something that it has not copied, and waits else: so what it has copied
    at a time is the least of what it would have by its rate alone, and of what it would have had it been idle at some
    earlier moment with all that there was (the formula of a queue with a server of constant rate).

    Attributes:
        open: Whether all of it exists: the copy can end.
    """

    def __init__(self, maps: int) -> None:
        self._maps = max(1, maps)
        self._count = 0 if maps else 1
        self._times_ms: list[int] = []
        self._shares: list[float] = []  # what exists from that time on
        self.open = maps == 0

    @property
    def share(self) -> float:
        """What exists now, 0..1."""
        return self._count / self._maps

    def more(self, now_ms: int) -> bool:
        """Record the end of a map; return whether it was the last."""
        return self._change(+1, now_ms)

    def less(self, now_ms: int) -> None:
        """Record the loss of a map's output."""
        self._change(-1, now_ms)

    def _change(self, step: int, now_ms: int) -> bool:
        self._count += step
        if self._times_ms and self._times_ms[-1] == now_ms:
            self._shares[-1] = self.share
        else:
            self._times_ms.append(now_ms)
            self._shares.append(self.share)
        self.open = self._count == self._maps
        return self.open

    def done(self, done: float, from_ms: int, to_ms: int, rate: float) -> float:
        """Return the share that is copied.

        Args:
            done: At `from_ms`.
            from_ms: When.
            to_ms: Until when; what existed did not shrink in between.
            rate: Share of all a millisecond.
        """
        first, last = bisect.bisect_right(self._times_ms, from_ms), bisect.bisect_right(self._times_ms, to_ms)
        reached = done + rate * (to_ms - from_ms)
        if last > first:
            times = np.array(self._times_ms[first:last])
            before = np.array([self._shares[first - 1] if first else 0.0, *self._shares[first : last - 1]])
            reached = min(reached, float((before + rate * (to_ms - times)).min()))
        exists = self._shares[last - 1] if last else float(not self._times_ms and self.open)
        return max(done, min(reached, exists))


Four: TypeAlias = tuple[float, float, float, float]
"""One value for each kind of `boathouse_sim.conditions`: CPU, disk, network, pool."""


class RemoteRead(NamedTuple):
    """Reading from the disks of another host.

    Attributes:
        host: Whose disks; empty where their load does not count.
        stretch: The part of `Activity.stretch` that is this reading: it is in that of the network.
        mb_per_s: What it loads those disks and that host's network with, while nobody is in its way.
    """

    host: str = ""
    stretch: float = 0.0
    mb_per_s: float = 0.0


LOCAL_READ = RemoteRead()

NOTHING = 1e-6
"""Milliseconds of work that count as none: what rounding leaves."""


class Activity:
    """Work in progress.

    Args:
        host: Where it runs.
        work_ms: All of its work, alone.
        stretch: Milliseconds that a millisecond of its work takes where nobody is in its way, by kind: their sum is 1
            for a task with its ideal resources and local input.
        load: What it uses of its host and pool while nobody is in its way.
        ended: Called at its end.
        pool: Name of the pool that it uses, if any.
        far: What it reads from another host.
        gate: What keeps it from going on or ending; None for nothing.
    """

    __slots__ = (
        "distance",
        "ended",
        "far",
        "gate",
        "host",
        "left_ms",
        "load",
        "luck",
        "paused",
        "pool",
        "segment",
        "since_ms",
        "slot",
        "speed",
        "stretch",
        "version",
        "work_ms",
    )

    def __init__(
        self,
        host: str,
        work_ms: float,
        stretch: Four,
        load: Four,
        ended: Callable[[], None],
        *,
        pool: str = "",
        far: RemoteRead = LOCAL_READ,
        gate: Gate | None = None,
    ) -> None:
        self.host = host
        self.work_ms = self.left_ms = float(work_ms)
        self.stretch = stretch
        self.load = load
        self.ended = ended
        self.pool = pool
        self.far = far
        self.gate = gate
        self.paused = False
        self.speed = 0.0
        self.since_ms = 0
        self.version = 0
        self.slot = -1
        self.segment: Segment | None = None  # what it does, where it is part of a container
        self.distance: Distance | None = None
        self.luck = 1.0

    def advance(self, now_ms: int) -> None:
        """Bring `left_ms` up to date."""
        self.left_ms = self.left_at(now_ms)
        self.since_ms = now_ms

    def left_at(self, now_ms: int) -> float:
        """Work left at a time, at the rate since the last change."""
        if now_ms == self.since_ms:
            return self.left_ms
        if self.gate is not None:
            done = 1.0 - self.left_ms / self.work_ms
            return (1.0 - self.gate.done(done, self.since_ms, now_ms, self.speed / self.work_ms)) * self.work_ms
        return self.left_ms - self.speed * (now_ms - self.since_ms)

    @property
    def may_end(self) -> bool:
        """Whether nothing but time is between it and its end."""
        return not self.paused and (self.gate is None or self.gate.open)


class Progressing(Protocol):
    """Runs activities."""

    done_ms: float

    def start(self, activity: Activity) -> None:
        """Start the activity."""
        ...

    def stop(self, activity: Activity) -> None:
        """Stop the activity before its end."""
        ...

    def update(self, activity: Activity) -> None:
        """Update its stretch, its gate or whether it is paused: after `advance` under the old values."""
        ...

    def left_ms(self, activity: Activity) -> float:
        """Work that is left now."""
        ...

    def used(self, activity: Activity) -> Four:
        """Return the use at the current rate: cores, MB/s of disks, network and pool."""
        ...

    def settle(self) -> None:
        """Compute, after all that happens at once, what depends on neighbours."""
        ...


class Rates:
    """Activities that do not know of each other.

    Attributes:
        done_ms: Work of all activities that came to their end.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.done_ms = 0.0

    def start(self, activity: Activity) -> None:
        """Start the activity."""
        activity.since_ms = self._clock.now_ms
        self._go_on(activity)

    def stop(self, activity: Activity) -> None:
        """Stop the activity before its end; a scheduled end becomes stale."""
        activity.version += 1

    def update(self, activity: Activity) -> None:
        """Update its stretch, its gate or whether it is paused."""
        activity.advance(self._clock.now_ms)
        self._go_on(activity)

    def left_ms(self, activity: Activity) -> float:
        """Work that is left now."""
        return activity.left_at(self._clock.now_ms)

    def used(self, activity: Activity) -> Four:
        """Return the use at the current rate: cores, MB/s of disks, network and pool."""
        waits = activity.paused or (activity.gate is not None and not activity.gate.open)
        return (0.0, 0.0, 0.0, 0.0) if waits else activity.load

    def settle(self) -> None:
        """Do nothing: nothing depends on neighbours."""

    def _go_on(self, activity: Activity) -> None:
        activity.version += 1
        activity.speed = 0.0 if activity.paused else 1.0 / sum(activity.stretch)
        if activity.may_end:
            end_ms = self._clock.now_ms + whole_ms(activity.left_ms / activity.speed)
            self._clock.at(end_ms, Priority.END, _End(self, activity))

    def end(self, activity: Activity) -> None:
        """End the activity."""
        activity.left_ms = 0.0
        activity.version += 1
        self.done_ms += activity.work_ms
        activity.ended()


class _End:
    """An end on the heap, stale once the activity has another version."""

    __slots__ = ("_activity", "_rates", "_version")

    def __init__(self, rates: Rates, activity: Activity) -> None:
        self._rates = rates
        self._activity = activity
        self._version = activity.version

    def __call__(self) -> None:
        """End it, unless its rate has changed since."""
        if self._activity.version == self._version:
            self._rates.end(self._activity)


def whole_ms(ms: float) -> int:
    """Round up to whole milliseconds, apart from rounding errors."""
    return max(0, math.ceil(ms - NOTHING))
