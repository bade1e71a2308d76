"""What a reducer may have copied: map output appears as maps end, and the last of it with the last map."""

from __future__ import annotations

import bisect

import numpy as np


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
