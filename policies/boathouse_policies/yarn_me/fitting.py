"""Penalty models from two runs (2.2-2.4, 2.7): one with the ideal memory, one with less.

Prior runs of a recurring job serve as well as profiling runs. Where the under-sized run was not slower, spills cost no
time: the disk rate is infinite, and elasticity is free.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from boathouse_policies.yarn_me.penalty import BUFFER_SHARE, Mapper, Reducer


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run of a task.

    Attributes:
        memory_bytes: What it was given.
        duration_s: How long it ran.
        input_bytes: What it took in by the shuffle.
        spilled_bytes: What it reported as written to disk, serialised; None if it did not.
        spilled_memory_bytes: The same as it lay in memory (Spark's "spill (memory)").
        local_bytes: Input from its own node that Tez keeps out of the buffer.
    """

    memory_bytes: int
    duration_s: float
    input_bytes: int
    spilled_bytes: int | None = None
    spilled_memory_bytes: int | None = None
    local_bytes: int = 0


def fit_mapper(ideal: Run, undersized: Run) -> Mapper:
    """A step from the run that spilled nothing to the one that did."""
    return Mapper(
        ideal_s=ideal.duration_s,
        ideal_bytes=ideal.memory_bytes,
        undersized_s=max(ideal.duration_s, undersized.duration_s),
        output_bytes=undersized.spilled_bytes or 0,
    )


def fit_reducer(ideal: Run, undersized: Run, *, buffer_share: float = BUFFER_SHARE) -> Reducer:
    """The disk rate from the slowdown: spills as reported, else worked out from input and buffer.

    Raises:
        ValueError: The under-sized run spilled nothing, so that no rate can be had.
    """
    expansion = _expansion(undersized)
    shape = Reducer(
        ideal_s=ideal.duration_s,
        input_bytes=undersized.input_bytes,
        disk_bytes_per_s=math.inf,
        buffer_share=buffer_share,
        expansion=expansion,
        local_bytes=undersized.local_bytes,
    )
    reported = undersized.spilled_bytes
    on_disk = (
        float(shape.spilled_bytes(np.array(float(undersized.memory_bytes)))) if reported is None else float(reported)
    )
    if on_disk <= 0:
        raise ValueError(f"the run with {undersized.memory_bytes} bytes spilled nothing: profile one with less memory")
    slower_s = undersized.duration_s - ideal.duration_s
    return dataclasses.replace(shape, disk_bytes_per_s=on_disk / slower_s if slower_s > 0 else math.inf)


def _expansion(run: Run) -> float:
    if not run.spilled_memory_bytes or not run.spilled_bytes:
        return 1.0
    return run.spilled_memory_bytes / run.spilled_bytes
