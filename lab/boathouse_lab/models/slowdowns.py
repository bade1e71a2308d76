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
    from collections.abc import Mapping, Sequence

    from boathouse_lab.reproduce.ila.modelling import Case
    from boathouse_policies.ila.fitting import Samples
    from boathouse_policies.model import FloatVector

_ABOUT = """
The simulator's maps of ILA's ten programs on hosts of six virtual machines, from nearly idle to full, as the policy's
own profiler measures them. One run is learned from, another is held out. Errors are the mean of |S - predicted| / S,
and R².
"""


def compare(cases: Sequence[Case]) -> Comparison:
    """Return the errors of all models, a run for each case."""
    runs: dict[tuple[str, Origin], list[tuple[float, ...]]] = collections.defaultdict(list)
    for case in cases:
        train, held_out = (modelling.samples(case, part) for part in (0, 1))
        for key, predicted in predictions(train, held_out).items():
            runs[key].append(_errors(predicted, held_out))
    columns = ("error", "error, I/O-bound", "error, CPU-bound", "R²", "R², I/O-bound", "R², CPU-bound")
    return Comparison(title="Slowdown by neighbours (ILA)", about=_ABOUT.strip(), columns=columns, rows=runs)


def predictions(train: Samples, held_out: Samples) -> Mapping[tuple[str, Origin], FloatVector]:
    """Return what each model says of the samples that are held out, fitted to the others."""
    rows, plain = held_out.rows, dataclasses.replace(train, relative=False)
    means = [float(train.slowdown[kind].mean()) for kind in (~train.io_bound, train.io_bound)]
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
