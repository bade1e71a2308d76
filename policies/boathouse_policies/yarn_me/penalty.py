"""Memory elasticity: how long a task runs with less memory than its shuffle would fill.

Iorgulescu et al., "Don't cry over spilled records: Memory elasticity of data-parallel applications and its application
to cluster scheduling", USENIX ATC 2017, section 2.

* A reducer fills a buffer of B bytes, spills it and fills it anew (2.3). Of an input of I bytes it spills
  (⌈I/B⌉ - 1)·B: the text gives no formula, this one gives its examples (2.01 GB of input: 2.0, 2.0 and 1.5 GB for
  buffers of 0.5, 2 and 1.5 GB). Then T(notId) = T + spilledBytes(notId)/diskRate.
* A map with less than its ideal memory pays one extra merge, whatever it lacks: a step (2.2).

Models of two runs, and those of Spark and Tez (2.4), are in `boathouse_lab.reproduce.yarn_me.fitted`.
"""

import bisect
import dataclasses
import functools
import math
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from boathouse_policies import model

BUFFER_SHARE = 0.70  # part of a Hadoop reducer's memory that holds map output (2: "70% by default in Hadoop")

Bytes: TypeAlias = npt.NDArray[np.float64]  # amounts of memory in bytes, any shape


class RunTime(Protocol):
    """Predicts a task's run time and spills from its memory. Arrays in, arrays of the same shape out."""

    def run_time_s(self, memory_bytes: Bytes) -> Bytes:
        """Return the run time in seconds with this memory."""
        ...

    def spilled_bytes(self, memory_bytes: Bytes) -> Bytes:
        """Return bytes that it writes to disk, and reads again, for want of memory."""
        ...

    def steps(self, memory_bytes: Bytes) -> list[Bytes]:
        """Return smaller amounts at which the run time may be least: what the closed form looks at."""
        ...


def spilled(input_bytes: float, buffer_bytes: Bytes) -> Bytes:
    """Compute (⌈I/B⌉ - 1)·B, 0 where the input fits the buffer."""
    rounds: Bytes = np.ceil(input_bytes / buffer_bytes * _SLACK) - 1.0
    return np.maximum(rounds, 0.0) * buffer_bytes


_EQUAL = 1e-12  # of run times that only rounding tells apart
_SLACK = 1.0 - 1e-12  # of a ratio before it is rounded up: I/(I/3) must be 3 and not the next number above it


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reducer:
    """The sawtooth (2.3, 2.4)."""

    ideal_s: float  # T, the run time when nothing is spilled
    input_bytes: float  # I, what goes through the buffer
    disk_bytes_per_s: float  # rate at which spills cost time; infinite where they cost none
    buffer_share: float = BUFFER_SHARE  # B over the task's memory
    fixed_bytes: float = 0.0  # memory that has no part in the buffer (ours)

    @property
    def ideal_bytes(self) -> float:
        """The least memory with which nothing is spilled."""
        return self.input_bytes / self.buffer_share + self.fixed_bytes

    def _shared_bytes(self, memory_bytes: Bytes) -> Bytes:
        return np.maximum(memory_bytes - self.fixed_bytes, 1.0)

    def spilled_bytes(self, memory_bytes: Bytes) -> Bytes:
        """Return bytes on disk: what left the buffer."""
        return spilled(self.input_bytes, self._shared_bytes(memory_bytes) * self.buffer_share)

    def run_time_s(self, memory_bytes: Bytes) -> Bytes:
        """Compute T + spilledBytes/diskRate."""
        return self.ideal_s + self.spilled_bytes(memory_bytes) / self.disk_bytes_per_s

    def steps(self, memory_bytes: Bytes) -> list[Bytes]:
        """Return the largest I/n: with ⌈I/B⌉ fixed, spills grow with B, so each tooth is least at its left edge."""
        most = self.input_bytes / self.buffer_share
        first = np.maximum(np.ceil(most / self._shared_bytes(memory_bytes) * _SLACK), 1.0)
        return [most / (first + more) + self.fixed_bytes for more in range(_TEETH)]


_TEETH = 4  # rounding up to the grid may leave the first of them; more never won in 20,000 random cases


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Mapper:
    """The step (2.2)."""

    ideal_s: float  # run time with at least `ideal_bytes`
    ideal_bytes: float  # the least memory with which the buffer never fills
    undersized_s: float  # run time with less, however much less
    output_bytes: float = 0.0  # what it writes once more for the extra merge

    def spilled_bytes(self, memory_bytes: Bytes) -> Bytes:
        """Return all of its output, or nothing."""
        return np.where(memory_bytes < self.ideal_bytes, self.output_bytes, 0.0)

    def run_time_s(self, memory_bytes: Bytes) -> Bytes:
        """Return one of two values."""
        return np.where(memory_bytes < self.ideal_bytes, self.undersized_s, self.ideal_s)

    def steps(self, memory_bytes: Bytes) -> list[Bytes]:
        """Return the ideal: only that is better than the least."""
        return [np.full_like(memory_bytes, self.ideal_bytes)]


class Levels:
    """The least memory with the lowest run time, and that run time, as step functions of free memory.

    Each level but the first holds from an edge on: amounts of free memory, ascending, shape [L - 1]. The memory and the
    run time of each level, infinite where the memory is too little, have the shape [L].
    """

    def __init__(self, edges: model.IntVector, memory: model.IntVector, seconds: model.FloatVector) -> None:
        self.memory, self.seconds, self._edges = memory, seconds, edges
        self._edges_listed: list[int] = edges.tolist()
        self._levels: list[tuple[int, float]] = list(zip(memory.tolist(), seconds.tolist(), strict=True))
        self.regular_s = self._levels[-1][1]  # the last of them: with the ideal memory
        # Those above the regular one, descending
        self.slow_s = sorted({slow_s for _, slow_s in self._levels if self.regular_s < slow_s < math.inf}, reverse=True)

    def on(self, free_bytes: int) -> tuple[int, float]:
        """Return the memory and the run time on a node with so much free memory."""
        return self._levels[bisect.bisect_right(self._edges_listed, free_bytes)]

    def seconds_on(self, free_bytes: model.IntVector) -> model.FloatVector:
        """Return the run times on several nodes."""
        seconds: model.FloatVector = self.seconds[self.places_on(free_bytes)]
        return seconds

    def places_on(self, free_bytes: model.IntVector) -> model.IntVector:
        """Return the level of several nodes."""
        return np.asarray(self._edges.searchsorted(free_bytes, "right"), np.int64)


class Elastic:
    """Estimates of a class whose tasks may run with less memory than they ask for, `ideal_bytes`.

    Sizes go in steps (the paper: 100 MB), from the least share of the ideal on (the paper: 10 %). `sigma_s` is the
    standard deviation of a run time; None for not known (ours).
    """

    def __init__(
        self,
        run_time: RunTime,
        *,
        ideal_bytes: int,
        step_bytes: int = 100 << 20,
        least_share: float = 0.1,
        sigma_s: float | None = None,
    ) -> None:
        self.run_time = run_time
        self._sigma_s = sigma_s
        self.ideal_bytes = ideal_bytes
        self.step_bytes = step_bytes
        least = math.ceil(ideal_bytes * least_share / step_bytes * _SLACK) * step_bytes
        self.least_bytes = min(max(step_bytes, least), ideal_bytes)
        self._runs: dict[int, tuple[float, float]] = {}  # a memo: sizes go in steps

    def duration_s(self, resources: model.Resources) -> float | None:
        """Return the run time with this memory."""
        return self.run(resources.memory_bytes)[0]

    def deviation_s(self) -> float | None:
        """Return the standard deviation of a run time."""
        return self._sigma_s

    def input_bytes(self) -> int | None:
        """Return what goes through the shuffle buffer, where the model knows it."""
        return int(self.run_time.input_bytes) if isinstance(self.run_time, Reducer) else None

    def spilled_bytes(self, resources: model.Resources) -> int | None:
        """Return the spills with this memory."""
        return int(self.run_time.spilled_bytes(np.array(min(resources.memory_bytes, self.ideal_bytes))))

    def disk_bytes_per_s(self, memory_bytes: int) -> float:
        """Return an elastic task's mean disk bandwidth, 2·spilled/T(notId), written and read; 0 for a regular one."""
        return self.run(memory_bytes)[1] if memory_bytes < self.ideal_bytes else 0.0

    def run(self, memory_bytes: int) -> tuple[float, float]:
        """Return the run time and the disk bandwidth with this memory; more than the ideal helps no further."""
        known = self._runs.get(memory_bytes)
        if known is None:
            memory = np.array(float(min(memory_bytes, self.ideal_bytes)))
            seconds = float(self.run_time.run_time_s(memory))
            disk = 2.0 * float(self.run_time.spilled_bytes(memory)) / seconds if seconds > 0 else 0.0
            known = self._runs[memory_bytes] = seconds, disk
        return known

    @functools.cached_property
    def levels(self) -> Levels:
        """`best` for each number of whole steps of free memory below the ideal, and the ideal itself."""
        free = np.arange(0, self.ideal_bytes, self.step_bytes, dtype=np.int64)
        memory, seconds = self.best(np.maximum(free, self.least_bytes))
        seconds[free < self.least_bytes] = np.inf
        return Levels(
            np.append(free, self.ideal_bytes)[1:],
            np.append(memory, self.ideal_bytes).astype(np.int64),
            np.append(seconds, self.run(self.ideal_bytes)[0]),
        )

    def best(self, free_bytes: Bytes | model.IntVector) -> tuple[Bytes, Bytes]:
        """Return the least memory with the lowest run time, and that, in closed form (Algorithm 1, lines 7 and 9).

        Sizes are on the grid from `least_bytes` up, or what is free itself (at least `least_bytes`), at most the ideal.
        """
        most = np.minimum(np.asarray(free_bytes, np.float64), self.ideal_bytes)
        best = np.full_like(most, self.least_bytes)
        best_s = self.run_time.run_time_s(best)
        for size in [*map(self._on_grid, self.run_time.steps(most)), most]:
            memory = np.where((size >= self.least_bytes) & (size <= most), size, self.least_bytes)
            seconds = self.run_time.run_time_s(memory)
            equal = np.abs(seconds - best_s) <= _EQUAL * best_s
            better = np.where(equal, memory < best, seconds < best_s)
            best, best_s = np.where(better, memory, best), np.where(better, seconds, best_s)
        return best, best_s

    def _on_grid(self, memory_bytes: Bytes) -> Bytes:
        steps: Bytes = np.ceil((memory_bytes - self.least_bytes) / self.step_bytes * _SLACK)
        return self.least_bytes + steps * self.step_bytes
