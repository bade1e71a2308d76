"""Work that progresses at rates that change: the end is made anew whenever something changes the rate.

An activity has some work left, in milliseconds of a task that is alone. It progresses at 1 / (sum of its stretches)
milliseconds of work a millisecond, or not at all while it is paused. `Rates` treats each alone;
`boathouse_sim.live.shared` couples those on one host.

A `Gate` is what a reducer may have copied: map output appears as maps end, and the last of it with the last map.
"""

import bisect
import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from boathouse_policies.model import Distance
from boathouse_sim.base_world import Call
from boathouse_sim.clock import Clock, Priority
from boathouse_sim.work import Segment


class Gate:
    """The part of a job's map output that exists, over time.

    A reducer copies at its rate while there is something that it has not copied, and waits else: so what it has copied
    at a time is the least of what it would have by its rate alone, and of what it would have had it been idle at some
    earlier moment with all that there was (the formula of a queue with a server of constant rate).
    """

    def __init__(self, maps: int) -> None:
        self._maps = max(1, maps)
        self._count = 0 if maps else 1
        self._times_ms: list[int] = []
        self._shares: list[float] = []  # what exists from that time on
        self.open = maps == 0  # whether all of it exists: the copy can end

    def more(self, now_ms: int, step: int = 1) -> bool:
        """Record the end of a map, or with -1 the loss of its output; return whether all of it exists now."""
        self._count += step
        share = self._count / self._maps
        if self._times_ms and self._times_ms[-1] == now_ms:
            self._shares[-1] = share
        else:
            self._times_ms.append(now_ms)
            self._shares.append(share)
        self.open = self._count == self._maps
        return self.open

    def done(self, done: float, from_ms: int, to_ms: int, rate: float) -> float:
        """Return the share that is copied at `to_ms`, by what is `done` at `from_ms` and a share of all a millisecond.

        What exists may not have shrunk in between.
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
    """Reading from the disks of another host."""

    host: str = ""  # whose disks; empty where their load does not count
    stretch: float = 0.0  # the part of `Activity.stretch` that is this reading: it is in that of the network
    mb_per_s: float = 0.0  # what it loads those disks and that host's network with, while nobody is in its way


LOCAL_READ = RemoteRead()

NOTHING = 1e-6  # milliseconds of work that count as none: what rounding leaves


@dataclasses.dataclass(slots=True, eq=False)
class Activity:
    """Work in progress.

    `stretch` is the milliseconds that a millisecond of its work takes where nobody is in its way, by kind: their sum is
    1 for a task with its ideal resources and local input. `load` is what it uses of its host and pool meanwhile, `far`
    what it reads from another host. A `gate` keeps it from going on or ending. `ended` is called at its end.
    """

    host: str
    work_ms: float
    stretch: Four
    load: Four
    ended: Callable[[], None]
    _: dataclasses.KW_ONLY
    pool: str = ""
    far: RemoteRead = LOCAL_READ
    gate: Gate | None = None
    segment: Segment | None = None  # what it does, where it is part of a container
    distance: Distance | None = None  # of its input
    luck: float = 1.0
    paused: bool = False
    left_ms: float = dataclasses.field(init=False)
    speed: float = dataclasses.field(default=0.0, init=False)
    since_ms: int = dataclasses.field(default=0, init=False)
    version: int = dataclasses.field(default=0, init=False)
    slot: int = dataclasses.field(default=-1, init=False)

    def __post_init__(self) -> None:
        self.work_ms = self.left_ms = float(self.work_ms)

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


class Rates:
    """Activities that do not know of each other."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.done_ms = 0.0  # work of all activities that came to their end

    def start(self, activity: Activity) -> None:
        """Start the activity."""
        activity.since_ms = self._clock.now_ms
        self._go_on(activity)

    def stop(self, activity: Activity) -> None:
        """Stop the activity before its end; a scheduled end becomes stale."""
        activity.version += 1

    def update(self, activity: Activity) -> None:
        """Update its stretch, its gate or whether it is paused: also called before the change, under the old values."""
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
        """Compute, after all that happens at once, what depends on neighbours: here nothing does."""

    def _go_on(self, activity: Activity) -> None:
        activity.version += 1
        activity.speed = 0.0 if activity.paused else 1.0 / sum(activity.stretch)
        if activity.may_end:
            end_ms = self._clock.now_ms + whole_ms(activity.left_ms / activity.speed)
            self._clock.at(end_ms, Priority.END, Call(self._end, activity, activity.version))

    def _end(self, activity: Activity, version: int) -> None:
        """End the activity, unless its rate has changed since."""
        if activity.version == version:
            activity.version += 1
            self._complete(activity)

    def _complete(self, activity: Activity) -> None:
        activity.left_ms = 0.0
        self.done_ms += activity.work_ms
        activity.ended()


def whole_ms(ms: float) -> int:
    """Round up to whole milliseconds, apart from rounding errors."""
    return max(0, math.ceil(ms - NOTHING))
