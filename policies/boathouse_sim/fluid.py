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

import enum
import heapq
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

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
    """Return the work of each job in seconds of the whole resource, shape [J]; raise ValueError if that cannot be."""
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
    """Return when each job ends, shape [J]: jobs arrive at ascending times, and their sizes are above 0."""
    match order:
        case Order.PS:
            return _processor_sharing(arrival_s, size_s)[0]
        case Order.FIFO:
            return _one_at_a_time(arrival_s, size_s, lambda job, _left_s: job)
        case Order.SRPT:
            return _one_at_a_time(arrival_s, size_s, lambda _job, left_s: left_s)
        case Order.FSP:
            _, tags = _processor_sharing(arrival_s, size_s)
            return _one_at_a_time(arrival_s, size_s, lambda job, _left_s: tags[job])
        case _:
            assert_never(order)


def _processor_sharing(arrival_s: FloatVector, size_s: FloatVector) -> tuple[FloatVector, list[float]]:
    """Return when each job ends, and its end in virtual time: fixed at arrival, so that it serves as a priority."""
    ends_s, tags, pending = np.zeros(len(arrival_s)), [], list[tuple[float, int]]()
    time_s = virtual_s = 0.0

    def run_until(until_s: float) -> None:
        nonlocal time_s, virtual_s
        while pending and (end_s := time_s + (pending[0][0] - virtual_s) * len(pending)) < until_s:
            virtual_s, ended = heapq.heappop(pending)
            ends_s[ended] = time_s = end_s

    for job, (arrives_s, size) in enumerate(zip(arrival_s.tolist(), size_s.tolist(), strict=True)):
        run_until(arrives_s)
        if pending:
            virtual_s += (arrives_s - time_s) / len(pending)
        time_s = arrives_s
        tags.append(virtual_s + size)
        heapq.heappush(pending, (virtual_s + size, job))
    run_until(math.inf)
    return ends_s, tags


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
