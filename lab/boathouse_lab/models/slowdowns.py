"""Slowdowns by neighbours: ILA's model beside others, on the samples of `reproduce.ila.modelling`."""

from __future__ import annotations

import collections
import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from boathouse_lab.models.comparison import Comparison, Origin, r2, relative_error
from boathouse_lab.reproduce.ila import modelling, polynomials
from boathouse_policies.ila import additive, fitting

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boathouse_lab.reproduce.ila.modelling import Case
    from boathouse_policies.ila.fitting import Samples
    from boathouse_policies.model import FloatVector

_ABOUT = """
The simulator's maps of ILA's ten programs on hosts of six virtual machines, from nearly idle to full, as the policy's
own profiler measures them. One run is learned from, another is held out. Errors are the mean of |S - predicted| / S,
and R².
"""

_ABOUT_RECORDED = """
Maps of ten mappers and tasks of three Spark programs on real kubelets, beside each other and beside pods that computed
or wrote to the disk (`python -m benchmarks.task_recordings`). The machine has two cores. The run time without
neighbours is the median of the tasks of the same program and input that ran alone. The recording has three parts in the
order of time; each is held out once, and the others are learned from. The network is not recorded: input and output are
on the same machine.
"""


def compare(cases: Sequence[Case]) -> Comparison:
    """Return the errors of all models, a run for each case."""
    columns = ("error", "error, I/O-bound", "error, CPU-bound", "R²", "R², I/O-bound", "R², CPU-bound")
    rows = _rows((modelling.samples(case, 0), modelling.samples(case, 1)) for case in cases)
    runs = {key: [_errors(*pair) for pair in pairs] for key, pairs in rows.items()}
    return Comparison(title="Slowdown by neighbours (ILA)", about=_ABOUT.strip(), columns=columns, rows=runs)


def compare_recorded(samples: Samples, parts: int = 3) -> Comparison:
    """Return the errors of all models on recorded tasks: each part of the recording is held out once."""
    part = np.arange(len(samples)) * parts // len(samples)
    rows = _rows((samples.of(part != held_out), samples.of(part == held_out)) for held_out in range(parts))
    runs = {
        key: [(relative_error(predicted, found.slowdown), r2(predicted, found.slowdown)) for predicted, found in pairs]
        for key, pairs in rows.items()
    }
    title = "Slowdown by neighbours, of recorded tasks"
    return Comparison(title=title, about=_ABOUT_RECORDED.strip(), columns=("error", "R²"), rows=runs)


def _rows(
    pairs: Iterable[tuple[Samples, Samples]],
) -> Mapping[tuple[str, Origin], Sequence[tuple[FloatVector, Samples]]]:
    """Return what each predictor says of the samples that are held out, with these, for pairs of samples."""
    rows: dict[tuple[str, Origin], list[tuple[FloatVector, Samples]]] = collections.defaultdict(list)
    for train, held_out in pairs:
        for key, predicted in predictions(train, held_out).items():
            rows[key].append((predicted, held_out))
    return rows


def predictions(train: Samples, held_out: Samples) -> Mapping[tuple[str, Origin], FloatVector]:
    """Return what each model says of the samples that are held out, fitted to the others."""
    rows, plain = held_out.rows, dataclasses.replace(train, relative=False)
    kinds = (~train.io_bound, train.io_bound)
    means = [float(train.slowdown[kind].mean()) if kind.any() else 1.0 for kind in kinds]
    return {
        ("nobody is slowed down", Origin.TRIVIAL): np.ones(len(held_out)),
        ("mean of the CPU- or I/O-bound tasks", Origin.TRIVIAL): np.array(means)[held_out.io_bound.astype(int)],
        ("linear", Origin.PAPER): polynomials.linear(plain).predict(rows),
        ("quadratic", Origin.PAPER): polynomials.quadratic(plain).predict(rows),
        ("exponential, eqs 1 to 3 in turn", Origin.PAPER): fitting.separate(plain).predict(rows),
        ("exponential, both terms together, relative errors", Origin.OURS): fitting.exponential(train).predict(rows),
        ("additive, with coefficients above 0", Origin.MODERN): additive.fit(train).predict(rows),
    }


def _errors(predicted: FloatVector, held_out: Samples) -> tuple[float, ...]:
    io_bound, actual = held_out.io_bound, held_out.slowdown
    kinds = (np.ones_like(io_bound), io_bound, ~io_bound)
    return tuple(of(predicted[kind], actual[kind]) for of in (relative_error, r2) for kind in kinds)
