"""Run times of maps: the operator's line of input beside others, on maps of the board's workloads."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from typing_extensions import override

from boathouse_lab.board import draws, rows
from boathouse_lab.models.comparison import Comparison, Origin, nrmse, relative_error
from boathouse_policies import model, profiles
from boathouse_policies.framework import Observer
from boathouse_policies.run_times import Runs
from boathouse_sim.live import Live, MapReduce

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from boathouse_policies.model import FloatVector
    from boathouse_sim.workload import Workload

    Known = Sequence["Run"]

_ABOUT = """
The simulator's maps of workloads of [the board](board.md), in the order of their ends. Each is predicted from the
earlier ones of its program before it is learned from. Errors are the mean of |y - ŷ| / y, and the root mean square
error over the mean. All profiles are told what the line says. The level of the newest runs would predict better, but it
holds what neighbours cost at present, and ILA takes what is left for the run time without neighbours.
"""

_ABOUT_RECORDED = """
The recorded tasks, those that ran alone too, in the order of their ends, predicted in the same way.
"""


class Run(NamedTuple):
    """A map that ended.

    Attributes:
        program: Its job's.
        input_bytes: What it read.
        seconds: Its run time.
    """

    program: str
    input_bytes: float
    seconds: float


class _Recorder(Observer):
    """Writes down maps that ended.

    Args:
        workload: Its jobs have the input of their maps.
    """

    def __init__(self, workload: Workload) -> None:
        self._inputs = {app.id: app.map.input_mb * 1e6 for app in workload.apps if isinstance(app, MapReduce)}
        self._known: dict[model.ClassId, tuple[str, float]] = {}
        self.runs: list[Run] = []

    @override
    def observe(self, event: model.Event) -> None:
        """Write down."""
        if isinstance(event, model.Submitted):
            maps = (one.id for one in event.classes if one.stage is model.Stage.MAP)
            known = event.job.kind or event.job.id, self._inputs.get(event.job.name, 0.0)
            self._known.update(dict.fromkeys(maps, known))
        elif isinstance(event, model.Finished) and event.task_class in self._known:
            self.runs.append(Run(*self._known[event.task_class], event.duration_s))


def compare(names: Sequence[str], seeds: int) -> Comparison:
    """Return the errors of all predictors at each workload, a run for each seed."""
    errors: dict[tuple[str, Origin], list[tuple[float, ...]]] = collections.defaultdict(list)
    for seed in range(seeds):
        recorded = [record(name, seed) for name in names]
        for key, predict in PREDICTORS.items():
            pairs = [prequential(runs, predict) for runs in recorded]
            found = ((relative_error(*pair), nrmse(*pair)) for pair in pairs)
            errors[key].append(tuple(itertools.chain.from_iterable(found)))
    columns = tuple(f"`{name}`: {measure}" for name in names for measure in ("error", "error / mean"))
    return Comparison(title="Run times of maps", about=_ABOUT.strip(), columns=columns, rows=errors)


def compare_recorded(runs: Sequence[Run]) -> Comparison:
    """Return the errors of all predictors on recorded tasks."""
    pairs = {key: prequential(runs, predict) for key, predict in PREDICTORS.items()}
    return Comparison(
        title="Run times of recorded tasks",
        about=_ABOUT_RECORDED.strip(),
        columns=("error", "error / mean"),
        rows={key: [(relative_error(*pair), nrmse(*pair))] for key, pair in pairs.items()},
    )


def record(name: str, seed: int) -> Sequence[Run]:
    """Simulate a workload of the board under fair sharing; return its maps in the order of their ends."""
    workload = rows.BY_NAME[name].draw.workload(seed, draws.Style())
    recorder, profile = _Recorder(workload), profiles.build("fair")
    profile = dataclasses.replace(profile, observers=(*profile.observers, recorder))
    driver = Live(workload, profile, seed=seed)
    while driver.advance():
        pass
    return recorder.runs


def prequential(runs: Sequence[Run], predict: Callable[[Known, float], float]) -> tuple[FloatVector, FloatVector]:
    """Return what is predicted of each run whose program is known, and what it took."""
    known: dict[str, list[Run]] = collections.defaultdict(list)
    predicted, actual = [], []
    for run in runs:
        earlier = known[run.program]
        if earlier:
            predicted.append(predict(earlier, run.input_bytes))
            actual.append(run.seconds)
        earlier.append(run)
        del earlier[:-_KEPT]
    return np.array(predicted), np.array(actual)


def _median(known: Known, _: float) -> float:
    return float(np.median([run.seconds for run in known]))


def _last(known: Known, _: float) -> float:
    return known[-1].seconds


def _proportional(known: Known, input_bytes: float) -> float:
    total = sum(run.input_bytes for run in known)
    return sum(run.seconds for run in known) * (input_bytes / total if total and input_bytes else 1.0 / len(known))


def _line(known: Known, input_bytes: float) -> float:
    sums = Runs.first(known[0].seconds, known[0].input_bytes)
    for run in known[1:]:
        sums = sums.after(run.seconds, run.input_bytes)
    return sums.estimate(input_bytes).mean_s


def _levelled(known: Known, input_bytes: float) -> float:
    """The line, times how much longer than by it the newest runs took: neighbours come and go."""
    sums, level = Runs.first(known[0].seconds, known[0].input_bytes), 1.0
    for run in known[1:]:
        ratio = run.seconds / sums.estimate(run.input_bytes).mean_s
        level *= min(max(ratio / level, 1 / _MOST_TIMES), _MOST_TIMES) ** _NEW
        sums = sums.after(run.seconds, run.input_bytes)
    return level * sums.estimate(input_bytes).mean_s


def _kernel(known: Known, input_bytes: float) -> float:
    """Weighted mean of the logarithms of run times, those of a similar amount of input weighing most."""
    sizes = np.log1p([run.input_bytes for run in known]) - math.log1p(input_bytes)
    weights = np.exp(-0.5 * (sizes / _WIDTH) ** 2) + _TINY
    return float(np.exp(weights @ np.log([run.seconds for run in known]) / weights.sum()))


_KEPT = 64
_WIDTH, _TINY = 0.3, 1e-6
_NEW, _MOST_TIMES = 0.2, 4.0  # the weight of the newest run in the level, and what it counts at most

PREDICTORS: Mapping[tuple[str, Origin], Callable[[Known, float], float]] = {
    ("last value", Origin.TRIVIAL): _last,
    ("median of the program", Origin.TRIVIAL): _median,
    ("in proportion to the input, as Boathouse did before", Origin.TRIVIAL): _proportional,
    ("line with an intercept, ridge, outliers bounded", Origin.BEST): _line,
    ("kernel regression of logarithms", Origin.MODERN): _kernel,
    ("the line times the level of the newest runs", Origin.MODERN): _levelled,
}
