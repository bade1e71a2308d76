"""Models of a reducer's run time from two runs of it (2.3, 2.4, 2.7): one with the ideal memory, one with less.

Spark holds its input deserialised: it fills the buffer `expansion` times as fast (2.4). Tez leaves the map output of
its own node out of the buffer: `local_bytes`. Spark's model has two unknowns and needs the under-sized run's own report
of what it spilled. Prior runs of a recurring job serve as well as profiling runs. Where the under-sized run was not
slower, spills cost no time: the disk rate is infinite, and elasticity is free.
"""

import dataclasses
import math

import numpy as np
from typing_extensions import override

from boathouse_policies.yarn_me import penalty


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run of a task."""

    memory_bytes: int
    duration_s: float
    input_bytes: int  # what it took in by the shuffle
    spilled_bytes: int | None = None  # what it reported as written to disk, serialised; None if it did not
    spilled_memory_bytes: int | None = None  # the same as it lay in memory (Spark's "spill (memory)")
    local_bytes: int = 0  # input from its own node that Tez keeps out of the buffer


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reducer(penalty.Reducer):
    """The sawtooth (2.3, 2.4); its input is what fills the buffer."""

    expansion: float = 1.0  # bytes in the buffer for each byte of input: 1 but for Spark

    @override
    def spilled_bytes(self, memory_bytes: penalty.Bytes) -> penalty.Bytes:
        """Return bytes on disk: what left the buffer, serialised again."""
        return penalty.Reducer.spilled_bytes(self, memory_bytes) / self.expansion


def fit_reducer(ideal: Run, undersized: Run, *, buffer_share: float = penalty.BUFFER_SHARE) -> Reducer:
    """Fit the disk rate to the slowdown: spills as reported, else computed from input and buffer.

    A ValueError says that the under-sized run spilled nothing, so that no rate can be had.
    """
    in_memory, reported = undersized.spilled_memory_bytes, undersized.spilled_bytes
    expansion = in_memory / reported if in_memory and reported else 1.0
    model_of_free_spills = Reducer(
        ideal_s=ideal.duration_s,
        input_bytes=(undersized.input_bytes - undersized.local_bytes) * expansion,
        disk_bytes_per_s=math.inf,
        buffer_share=buffer_share,
        expansion=expansion,
    )
    memory = np.array(float(undersized.memory_bytes))
    on_disk = float(model_of_free_spills.spilled_bytes(memory) if reported is None else reported)
    if on_disk <= 0:
        raise ValueError(f"the run with {undersized.memory_bytes} bytes spilled nothing: profile one with less memory")
    slower_s = undersized.duration_s - ideal.duration_s
    rate = on_disk / slower_s if slower_s > 0 else math.inf
    return dataclasses.replace(model_of_free_spills, disk_bytes_per_s=rate)
