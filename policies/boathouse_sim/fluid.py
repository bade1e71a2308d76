"""One fluid resource and exact sizes: where size-based orders can be compared with theory, and with another simulator.

| order | who is served |
|---|---|
| fifo | the first that came |
| ps | all at once, each an equal part (processor sharing): fair sharing without a scheduler's grain |
| srpt | the one with the shortest remaining processing time (Schrage, 1968): the least mean sojourn that there is |
| fsp | the one that processor sharing would finish first (Friedman and Henderson, SIGMETRICS 2003) |

Job sizes are those of schedsim: input + (1 + d/n)·shuffle + output bytes with d/n = 4, scaled so that the
total is `load` of the time until the last submission. A job of size 0 is given one byte.
"""

from __future__ import annotations

import enum
import heapq
import math
from typing import TYPE_CHECKING, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boathouse_sim.swim import SwimJob

FloatVector: TypeAlias = npt.NDArray[np.float64]

SHUFFLE_WEIGHT = 5  # 1 + d/n, schedsim's default d/n = 4


class Order(enum.StrEnum):
    """Who is served."""

    FIFO = "fifo"
    PS = "ps"
    SRPT = "srpt"
    FSP = "fsp"


def sizes_s(jobs: Sequence[SwimJob], load: float) -> FloatVector:
    """Return the work of each job in seconds of the whole resource, shape [J].

    Raises:
        ValueError: `load` is not positive, or all jobs came at the start, so that no load can be had.
    """
    if not load > 0:
        raise ValueError(f"load must be above 0, not {load}")
    size_bytes = np.array(
        [max(1, j.map_input_bytes + SHUFFLE_WEIGHT * j.shuffle_bytes + j.reduce_output_bytes) for j in jobs], np.float64
    )
    span_s = jobs[-1].submit_s
    if span_s <= 0:
        raise ValueError("all jobs were submitted at 0 s: there is no time to spread the load over")
    return size_bytes * (load * span_s / float(size_bytes.sum()))


def finish_s(order: Order, arrival_s: FloatVector, size_s: FloatVector) -> FloatVector:
    """Return when each job ends.

    Args:
        order: Who is served.
        arrival_s: Shape [J], ascending.
        size_s: Work of each job, shape [J], above 0.

    Returns:
        Shape [J].
    """
    match order:
        case Order.PS:
            return _processor_sharing(arrival_s, size_s)
        case Order.FIFO:
            return _one_at_a_time(arrival_s, size_s, lambda job, _left_s: job)
        case Order.SRPT:
            return _one_at_a_time(arrival_s, size_s, lambda _job, left_s: left_s)
        case Order.FSP:
            tags = _virtual_finish(arrival_s, size_s)
            return _one_at_a_time(arrival_s, size_s, lambda job, _left_s: tags[job])
        case _:
            assert_never(order)


class _Virtual:
    """Processor sharing in its virtual time, in which each job's end is known when it comes."""

    def __init__(self) -> None:
        self._time_s = 0.0
        self._virtual_s = 0.0
        self._ends: list[tuple[float, int]] = []

    def next_end_s(self) -> float:
        return self._time_s + (self._ends[0][0] - self._virtual_s) * len(self._ends) if self._ends else math.inf

    def end(self) -> tuple[float, int]:
        time_s = self.next_end_s()
        self._virtual_s, job = heapq.heappop(self._ends)
        self._time_s = time_s
        return time_s, job

    def arrive(self, job: int, time_s: float, size_s: float) -> float:
        if self._ends:
            self._virtual_s += (time_s - self._time_s) / len(self._ends)
        self._time_s = time_s
        heapq.heappush(self._ends, (self._virtual_s + size_s, job))
        return self._virtual_s + size_s


def _processor_sharing(arrival_s: FloatVector, size_s: FloatVector) -> FloatVector:
    virtual, ends = _Virtual(), np.zeros(len(arrival_s))
    for job, (time_s, size) in enumerate(zip(arrival_s.tolist(), size_s.tolist(), strict=True)):
        while virtual.next_end_s() < time_s:
            end_s, ended = virtual.end()
            ends[ended] = end_s
        virtual.arrive(job, time_s, size)
    while virtual.next_end_s() < math.inf:
        end_s, ended = virtual.end()
        ends[ended] = end_s
    return ends


def _virtual_finish(arrival_s: FloatVector, size_s: FloatVector) -> list[float]:
    """Return each job's end in the virtual time of processor sharing: fixed at arrival, so it serves as a priority."""
    virtual, tags = _Virtual(), []
    for job, (time_s, size) in enumerate(zip(arrival_s.tolist(), size_s.tolist(), strict=True)):
        while virtual.next_end_s() < time_s:
            virtual.end()
        tags.append(virtual.arrive(job, time_s, size))
    return tags


def _one_at_a_time(arrival_s: FloatVector, size_s: FloatVector, priority: Callable[[int, float], float]) -> FloatVector:
    """Serve the job of least priority value, pre-empting; ties go to the job that came first."""
    arrivals, left_s, ends = arrival_s.tolist(), size_s.tolist(), np.zeros(len(arrival_s))
    waiting: list[tuple[float, int]] = []
    time_s, job = 0.0, 0
    while job < len(arrivals) or waiting:
        if not waiting:
            time_s = arrivals[job]
        while job < len(arrivals) and arrivals[job] <= time_s:
            heapq.heappush(waiting, (priority(job, left_s[job]), job))
            job += 1
        served = waiting[0][1]
        until_s = arrivals[job] if job < len(arrivals) else math.inf
        if time_s + left_s[served] <= until_s:
            time_s += left_s[served]
            ends[served] = time_s
            heapq.heappop(waiting)
        else:
            left_s[served] -= until_s - time_s
            time_s = until_s
            heapq.heapreplace(waiting, (priority(served, left_s[served]), served))
    return ends
