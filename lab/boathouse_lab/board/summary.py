"""The board's cells: means over seeds, and ratios to fair with their 95 % intervals.

A seed counts once: of its worlds the mean is taken first. Ratios are paired by seed: the mean of the logarithms of a
seed's ratios, with Student's t-interval.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from typing import TYPE_CHECKING, Final

from boathouse_lab.board import columns, rows
from boathouse_lab.reproduce import interval

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from boathouse_lab.board.cases import Case, Result

    _Runs = Mapping[tuple[int, int], Result]  # by seed and world

GAINS: Final = 0.9
"""Near-optimal schedulers are a yardstick where their mean is at most this of fair's."""
MEASURES: Final[Mapping[str, Callable[[Result], float | None]]] = {
    "mean": lambda one: one.mean_s,
    "p95": lambda one: one.p95_s,
    "MapReduce": lambda one: one.mapreduce_s,
    "Spark": lambda one: one.spark_s,
}
"""What is compared."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A geometric mean over seeds, with its 95 % interval; None for a single seed."""

    value: float
    interval: tuple[float, float] | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A row and a column.

    Attributes:
        mean_s: Mean job time.
        p95_s: 95th percentile of job times.
        waited_s: Mean time above that of each job alone.
        over_fair: By measure: over that of fair; measures without jobs are left out.
        of_boathouse: Mean job time of boathouse over that of this column; None without a common seed.
        seeds: How many.
    """

    row: str
    column: str
    mean_s: float
    p95_s: float
    waited_s: float
    over_fair: Mapping[str, Ratio]
    of_boathouse: Ratio | None
    seeds: int


def cells(found: Mapping[Case, Result]) -> tuple[Cell, ...]:
    """Return the cells of the rows that have results of fair, in the board's order, with the best that knows all."""
    by_cell: dict[tuple[str, str], dict[tuple[int, int], Result]] = {}
    for case, result in found.items():
        by_cell.setdefault((case.row, case.column), {})[case.seed, case.world] = result
    made = []
    for row in rows.ROWS:
        of_row: dict[str, _Runs] = {column.name: by_cell.get((row.name, column.name), {}) for column in columns.COLUMNS}
        of_row[columns.NEAR_OPTIMAL] = _best([of_row[one.name] for one in columns.COLUMNS if one.knows_all])
        fair, boathouse = of_row[columns.FAIR], of_row[columns.BOATHOUSE]
        made += [cell for name, runs in of_row.items() if (cell := _cell(row.name, name, runs, fair, boathouse))]
    return tuple(made)


def is_yardstick(cell: Cell) -> bool:
    """Return whether a cell of near-optimal schedulers gains so much that others are measured by it."""
    return cell.over_fair["mean"].value <= GAINS


def _best(runs: Sequence[_Runs]) -> _Runs:
    """Return the run with the least mean of each seed and world that all have."""
    common = set.intersection(*(set(one) for one in runs)) if runs else set()
    return {at: min((one[at] for one in runs), key=lambda result: result.mean_s) for at in sorted(common)}


def _cell(row: str, column: str, runs: _Runs, fair: _Runs, boathouse: _Runs) -> Cell | None:
    ours = [runs[at] for at in sorted(set(runs) & set(fair))]
    if not ours:
        return None
    seeds = {seed for seed, _ in set(runs) & set(fair)}
    ratios = {name: _ratio(runs, fair, measure) for name, measure in MEASURES.items()}
    return Cell(
        row=row,
        column=column,
        mean_s=statistics.fmean(one.mean_s for one in ours),
        p95_s=statistics.fmean(one.p95_s for one in ours),
        waited_s=statistics.fmean(one.waited_s for one in ours),
        over_fair={name: ratio for name, ratio in ratios.items() if ratio is not None},
        of_boathouse=_ratio(boathouse, runs, MEASURES["mean"]),
        seeds=len(seeds),
    )


def _ratio(ours: _Runs, theirs: _Runs, measure: Callable[[Result], float | None]) -> Ratio | None:
    by_seed: dict[int, list[tuple[float, float]]] = {}
    for at in sorted(set(ours) & set(theirs)):
        our, their = measure(ours[at]), measure(theirs[at])
        if our is None or their is None:
            return None
        by_seed.setdefault(at[0], []).append((our, their))
    if not by_seed:
        return None
    logs = [
        math.log(statistics.fmean(our for our, _ in pairs) / statistics.fmean(their for _, their in pairs))
        for pairs in by_seed.values()
    ]
    found = interval.mean(logs)
    ends = found.interval
    return Ratio(value=math.exp(found.value), interval=None if ends is None else (math.exp(ends[0]), math.exp(ends[1])))
