"""One simulation of the board, and what is looked at of it."""

from __future__ import annotations

import dataclasses
import statistics
import time
from typing import TYPE_CHECKING, Final

import numpy as np

from boathouse_lab.board import columns, demand, knowing, rows
from boathouse_sim.live import Live

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boathouse_sim.workload import Workload

_PERCENTILE: Final = 95
_WORLDS: Final = 1000
"""Worlds of a seed have seeds of their own, so many apart."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A workload, who schedules it, and a world: luck of tasks, places of blocks."""

    row: str
    column: str
    seed: int
    world: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What is looked at, s.

    Attributes:
        mean_s: Mean time of a job from submission to end.
        p95_s: 95th percentile.
        mapreduce_s: Mean time of MapReduce jobs; None without such.
        spark_s: Mean time of Spark applications; None without such.
        waited_s: Mean time above that of each job alone.
        least_s: No schedule has a lower mean (`knowing.least_mean_s`).
        suspensions: Times that a task was suspended.
        elastic_tasks: Tasks that got less than their memory.
        cpu_s: CPU time of the simulation.
    """

    mean_s: float
    p95_s: float
    mapreduce_s: float | None
    spark_s: float | None
    waited_s: float
    least_s: float
    suspensions: int
    elastic_tasks: int
    cpu_s: float


def cases(
    chosen_rows: Sequence[str], chosen_columns: Sequence[str], seeds: Iterable[int], worlds: int
) -> tuple[Case, ...]:
    """Return all cases: whole seeds after one another, so that what was stopped can be read."""
    return tuple(
        Case(row=row, column=column, seed=seed, world=world)
        for seed in seeds
        for world in range(worlds)
        for row in chosen_rows
        for column in chosen_columns
    )


def carry_out(case: Case) -> Result:
    """Simulate."""
    return simulate(case.column, rows.BY_NAME[case.row].draw, case.seed, case.world)


def simulate(column_name: str, draw: rows.Draw, seed: int, world: int = 0) -> Result:
    """Simulate a column on any workload."""
    began_s = time.process_time()
    column = columns.BY_NAME[column_name]
    workload = draw.workload(seed, column.style)
    profile = column.build(workload, seed)
    driver = Live(workload, profile, seed=seed + _WORLDS * world)
    while driver.advance():
        pass
    found = driver.world.finished()
    return _result(
        workload,
        found.job_times_s,
        suspensions=found.suspensions,
        elastic_tasks=found.elastic_tasks,
        cpu_s=time.process_time() - began_s,
    )


def _result(
    workload: Workload, times_s: Sequence[float], *, suspensions: int, elastic_tasks: int, cpu_s: float
) -> Result:
    demands = demand.of(workload)
    by_kind = {
        is_spark: [time_s for one, time_s in zip(demands, times_s, strict=True) if one.is_spark is is_spark]
        for is_spark in (False, True)
    }
    mapreduce_s, spark_s = (statistics.fmean(found) if found else None for found in by_kind.values())
    return Result(
        mean_s=statistics.fmean(times_s),
        p95_s=float(np.percentile(times_s, _PERCENTILE, method="higher")),
        mapreduce_s=mapreduce_s,
        spark_s=spark_s,
        waited_s=statistics.fmean(times_s) - statistics.fmean(one.alone_s for one in demands),
        least_s=knowing.least_mean_s(workload),
        suspensions=suspensions,
        elastic_tasks=elastic_tasks,
        cpu_s=cpu_s,
    )
