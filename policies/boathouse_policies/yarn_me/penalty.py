"""Memory elasticity: how long a task runs with less memory than its shuffle would fill.

Iorgulescu et al., "Don't cry over spilled records: Memory elasticity of data-parallel applications and its application
to cluster scheduling", USENIX ATC 2017, section 2.

* A reducer fills a buffer of B bytes, spills it and fills it anew (2.3). Of an input of I bytes it spills
  (⌈I/B⌉ - 1)·B: the text gives no formula, this one gives its examples (2.01 GB of input: 2.0, 2.0 and 1.5 GB for
  buffers of 0.5, 2 and 1.5 GB). Then T(notId) = T + spilledBytes(notId)/diskRate.
* A map with less than its ideal memory pays one extra merge, whatever it lacks: a step (2.2).
* Spark holds its input deserialised: it fills the buffer `expansion` times as fast (2.4). Tez leaves the map output of
  its own node out of the buffer: `local_bytes`.

Two runs are enough to fit a model: one with the ideal memory, one with less. Spark's has two unknowns and needs the
under-sized run's own report of what it spilled.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Protocol, TypeAlias, overload

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_policies import model

BUFFER_SHARE = 0.70
"""Part of a Hadoop reducer's memory that holds map output (2: "70% by default in Hadoop")."""

Bytes: TypeAlias = npt.NDArray[np.float64]
"""Amounts of memory in bytes, any shape."""


class RunTime(Protocol):
    """Predicts a task's run time and spills from its memory. Arrays in, arrays of the same shape out."""

    def run_time_s(self, memory_bytes: Bytes) -> Bytes:
        """Seconds with so much memory."""
        ...

    def spilled_bytes(self, memory_bytes: Bytes) -> Bytes:
        """Bytes that it writes to disk, and reads again, for want of memory."""
        ...

    def steps(self, memory_bytes: Bytes) -> list[Bytes]:
        """Smaller amounts at which the run time may be least: what the closed form looks at."""
        ...


def spilled(input_bytes: float, buffer_bytes: Bytes) -> Bytes:
    """(⌈I/B⌉ - 1)·B, 0 where the input fits the buffer."""
    rounds: Bytes = np.ceil(input_bytes / buffer_bytes * _SLACK) - 1.0
    return np.maximum(rounds, 0.0) * buffer_bytes


_EQUAL = 1e-12  # of run times that only rounding tells apart
_SLACK = 1.0 - 1e-12  # of a ratio before it is rounded up: I/(I/3) must be 3 and not the next number above it


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reducer:
    """The sawtooth (2.3, 2.4).

    Attributes:
        ideal_s: T, the run time when nothing is spilled.
        input_bytes: I, what goes through the buffer.
        disk_bytes_per_s: Rate at which spills cost time; infinite where they cost none.
        buffer_share: B over the task's memory.
        expansion: Bytes in the buffer for each byte of input: 1 but for Spark.
        local_bytes: Part of the input that never enters the buffer (Tez).
    """

    ideal_s: float
    input_bytes: float
    disk_bytes_per_s: float
    buffer_share: float = BUFFER_SHARE
    expansion: float = 1.0
    local_bytes: float = 0.0

    @property
    def buffered_bytes(self) -> float:
        """What fills the buffer in the course of the task."""
        return (self.input_bytes - self.local_bytes) * self.expansion

    @property
    def ideal_bytes(self) -> float:
        """The least memory with which nothing is spilled."""
        return self.buffered_bytes / self.buffer_share

    def spilled_bytes(self, memory_bytes: Bytes) -> Bytes:
        """Bytes on disk: what left the buffer, serialised again."""
        return spilled(self.buffered_bytes, memory_bytes * self.buffer_share) / self.expansion

    def run_time_s(self, memory_bytes: Bytes) -> Bytes:
        """T + spilledBytes/diskRate."""
        return self.ideal_s + self.spilled_bytes(memory_bytes) / self.disk_bytes_per_s

    def steps(self, memory_bytes: Bytes) -> list[Bytes]:
        """Where the buffer holds the input an n-th time exactly, for the four largest such amounts.

        With ⌈I/B⌉ fixed, spills grow with B: so each tooth is least at its left edge, B = I/n.
        """
        first = np.maximum(np.ceil(self.ideal_bytes / memory_bytes * _SLACK), 1.0)
        return [self.ideal_bytes / (first + more) for more in range(_TEETH)]


_TEETH = 4  # rounding up to the grid may leave the first of them; more never won in 20,000 random cases


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Mapper:
    """The step (2.2).

    Attributes:
        ideal_s: Run time with at least `ideal_bytes`.
        ideal_bytes: The least memory with which the buffer never fills.
        undersized_s: Run time with less, however much less.
        output_bytes: What it writes once more for the extra merge.
    """

    ideal_s: float
    ideal_bytes: float
    undersized_s: float
    output_bytes: float = 0.0

    def spilled_bytes(self, memory_bytes: Bytes) -> Bytes:
        """All of its output, or nothing."""
        return np.where(memory_bytes < self.ideal_bytes, self.output_bytes, 0.0)

    def run_time_s(self, memory_bytes: Bytes) -> Bytes:
        """One of two values."""
        return np.where(memory_bytes < self.ideal_bytes, self.undersized_s, self.ideal_s)

    def steps(self, memory_bytes: Bytes) -> list[Bytes]:
        """Only the ideal is better than the least."""
        return [np.full_like(memory_bytes, self.ideal_bytes)]


class Levels:
    """The lowest run time as a step function of free memory: for one amount as plain numbers, for many as columns.

    Args:
        amounts: Free memory in bytes from which on each run time holds, ascending, the first 0, shape [L].
        seconds: The run times, infinite where the memory is too little, shape [L].

    Attributes:
        regular_s: The run time with the ideal memory.
    """

    def __init__(self, amounts: npt.NDArray[np.int64], seconds: npt.NDArray[np.float64]) -> None:
        falls = np.append(True, seconds[1:] != seconds[:-1])
        self._amounts, self._seconds = amounts[falls][1:], seconds[falls]
        self._amounts_listed: list[int] = self._amounts.tolist()
        self._seconds_listed: list[float] = self._seconds.tolist()
        self.regular_s: float = self._seconds_listed[-1]

    @overload
    def seconds(self, free_bytes: int) -> float: ...

    @overload
    def seconds(self, free_bytes: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]: ...

    def seconds(self, free_bytes: int | npt.NDArray[np.int64]) -> float | npt.NDArray[np.float64]:
        """Return the lowest run time with so much free memory."""
        if isinstance(free_bytes, int):
            return self._seconds_listed[bisect.bisect_right(self._amounts_listed, free_bytes)]
        seconds: npt.NDArray[np.float64] = self._seconds[self._amounts.searchsorted(free_bytes, "right")]
        return seconds

    def slow(self, free_bytes: int | npt.NDArray[np.int64]) -> Sequence[float]:
        """Return the run times above the regular one that so much free memory gives, the longest first."""
        if isinstance(free_bytes, int):
            found = [self.seconds(free_bytes)]
        else:
            given = np.zeros(len(self._seconds), np.bool_)
            given[self._amounts.searchsorted(free_bytes, "right")] = True
            found = sorted(self._seconds[given].tolist(), reverse=True)
        return [seconds for seconds in found if self.regular_s < seconds < math.inf]


class Elastic:
    """Estimates of a class whose tasks may run with less memory than they ask for.

    Args:
        run_time: The model.
        ideal_bytes: What the class asks for.
        step_bytes: Granularity of sizes (the paper: 100 MB).
        least_share: Smallest part of the ideal that a task is given (the paper: 10 %).
    """

    def __init__(
        self, run_time: RunTime, *, ideal_bytes: int, step_bytes: int = 100 << 20, least_share: float = 0.1
    ) -> None:
        self.run_time = run_time
        self.ideal_bytes = ideal_bytes
        self.step_bytes = step_bytes
        least = math.ceil(ideal_bytes * least_share / step_bytes * _SLACK) * step_bytes
        self.least_bytes = min(max(step_bytes, least), ideal_bytes)
        self._seconds: dict[int, float] = {}  # memos, as those that follow: sizes go in steps
        self._disk: dict[int, float] = {}
        self._best: tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]] | None = None

    def duration_s(self, resources: model.Resources) -> float | None:
        """Run time with this memory."""
        return self.seconds(resources.memory_bytes)

    def seconds(self, memory_bytes: int) -> float:
        """Run time with this memory; more than the ideal helps no further."""
        known = self._seconds.get(memory_bytes)
        if known is None:
            known = float(self.run_time.run_time_s(np.array(float(min(memory_bytes, self.ideal_bytes)))))
            self._seconds[memory_bytes] = known
        return known

    @functools.cached_property
    def levels(self) -> Levels:
        """The lowest run time by free memory."""
        _, seconds = self.table()
        amounts = np.arange(len(seconds), dtype=np.int64) * self.step_bytes
        if amounts[-1] < self.ideal_bytes:
            amounts, seconds = np.append(amounts, self.ideal_bytes), np.append(seconds, 0.0)
        else:
            seconds = seconds.copy()
        seconds[-1] = self.seconds(self.ideal_bytes)
        return Levels(amounts, seconds)

    def input_bytes(self) -> int | None:
        """What goes through the shuffle buffer, where the model knows it."""
        return int(self.run_time.input_bytes) if isinstance(self.run_time, Reducer) else None

    def spilled_bytes(self, resources: model.Resources) -> int | None:
        """Spills with this memory."""
        memory = np.array(min(resources.memory_bytes, self.ideal_bytes))
        return int(self.run_time.spilled_bytes(memory))

    def disk_bytes_per_s(self, memory_bytes: int) -> float:
        """Disk bandwidth that a task takes on average: spills are written and read, 2·spilled/T(notId)."""
        known = self._disk.get(memory_bytes)
        if known is None:
            memory = np.array(min(memory_bytes, self.ideal_bytes))
            seconds = float(self.run_time.run_time_s(memory))
            known = 2.0 * float(self.run_time.spilled_bytes(memory)) / seconds if seconds > 0 else 0.0
            self._disk[memory_bytes] = known
        return known

    def best(self, free_bytes: Bytes) -> tuple[Bytes, Bytes]:
        """Algorithm 1, lines 7 and 9: the least memory with the lowest run time, in closed form.

        Args:
            free_bytes: At least `least_bytes` each.

        Returns:
            Memory in bytes and run time in seconds; of the sizes on the grid from `least_bytes` up and `free_bytes`
            itself, at most the ideal.
        """
        most = np.minimum(np.asarray(free_bytes, np.float64), self.ideal_bytes)
        best = np.full_like(most, self.least_bytes)
        best_s = self.run_time.run_time_s(best)
        for one in [*self.run_time.steps(most), most]:
            memory = one if one is most else self._on_grid(one)
            memory = np.where((memory >= self.least_bytes) & (memory <= most), memory, self.least_bytes)
            seconds = self.run_time.run_time_s(memory)
            equal = np.abs(seconds - best_s) <= _EQUAL * best_s
            better = np.where(equal, memory < best, seconds < best_s)
            best, best_s = np.where(better, memory, best), np.where(better, seconds, best_s)
        return best, best_s

    def _on_grid(self, memory_bytes: Bytes) -> Bytes:
        steps: Bytes = np.ceil((memory_bytes - self.least_bytes) / self.step_bytes * _SLACK)
        return self.least_bytes + steps * self.step_bytes

    def table(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """`best` for each number of whole steps of free memory: (bytes, seconds); infinite where it is too little.

        Shape [steps of the ideal + 1]: look up `min(free, ideal) // step_bytes`.
        """
        if self._best is None:
            free = np.arange(self.ideal_bytes // self.step_bytes + 1, dtype=np.float64) * self.step_bytes
            memory, seconds = self.best(np.maximum(free, self.least_bytes))
            seconds[free < self.least_bytes] = np.inf
            self._best = memory.astype(np.int64), seconds
        return self._best
