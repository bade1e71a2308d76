"""Fits interference models to samples (4.1 "Model Training", 5.4).

Exponential: eq. 1 to the CPU-bound samples and eq. 2 to the I/O-bound ones, by Gauss-Newton with stepwise selection;
then alpha, beta and C_3 of eq. 3 to all, linearly. alpha_cpu, C_cpu and alpha multiply each other, and C_1, C_2 and C_3
add up: none is identifiable, so C_cpu = C_io = 0 and the rest is kept as one scale for each term and one constant.

Deviation: last, both terms are fitted once more together, to all samples, from there. Eq. 3 has but one alpha and one
beta for tasks of both kinds, and eq. 1 never saw a task that hardly computes: only together t_c, t_r and t_w come to
say how much a task minds either kind of neighbour (`joint=False` leaves this out).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies.ila import gauss_newton, metrics, stepwise
from boathouse_policies.ila.config import Family
from boathouse_policies.ila.families import Exponential, Linear, Model, Quadratic, Term

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_policies.model import BoolVector, FloatVector


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """What was observed of tasks that ended.

    Attributes:
        rows: Table 2's metrics, shape [11, n].
        slowdown: S, the run time over that without neighbours, shape [n].
    """

    rows: FloatVector
    slowdown: FloatVector

    def __len__(self) -> int:
        return len(self.slowdown)

    @property
    def io_bound(self) -> BoolVector:
        """Which of them are of I/O-bound tasks, shape [n]."""
        bound: BoolVector = self.rows[metrics.T_R] + self.rows[metrics.T_W] > self.rows[metrics.T_C]
        return bound

    def of(self, which: BoolVector) -> Samples:
        """Some of them."""
        return Samples(self.rows[:, which], self.slowdown[which])


def fit(family: Family, samples: Samples, *, before: Model | None = None, joint: bool = True) -> Model | None:
    """Fit a model.

    Args:
        family: Its form.
        samples: Of both kinds, if it is to be good for both.
        before: A fitted exponential model whose variables are kept and from which the fit goes on: quick. None selects
            the variables.
        joint: Whether the exponential model's terms are fitted once more together.

    Returns:
        The model; None where the samples are too few, or all the same.
    """
    if len(samples) < _FEWEST or float(np.ptp(samples.slowdown)) < _FLAT:
        return None
    match family:
        case Family.LINEAR:
            return linear(samples)
        case Family.QUADRATIC:
            return quadratic(samples)
        case Family.EXPONENTIAL:
            if isinstance(before, Exponential):
                return _refitted(samples, before)
            return exponential(samples, joint=joint)


# Linear and quadratic


def linear(samples: Samples) -> Linear:
    """Least squares, variables chosen stepwise."""
    mean, scale = _standard(samples.rows)
    z = (samples.rows - mean[:, None]) / scale[:, None]
    choice = _selected(z, samples.slowdown, most=metrics.ALL)
    of = np.zeros(metrics.ALL)
    of[list(choice.chosen)] = choice.parameters[1:]
    of /= scale
    return Linear(constant=float(choice.parameters[0] - of @ mean), of=of)


def quadratic(samples: Samples) -> Quadratic:
    """The same with squares and products."""
    _, scale = _standard(samples.rows)
    z = samples.rows / scale[:, None]
    pairs = list(itertools.combinations_with_replacement(range(metrics.ALL), 2))
    products = np.array([z[i] * z[j] for i, j in pairs])
    choice = _selected(np.concatenate([z, products]), samples.slowdown, most=_MOST_PRODUCTS)
    of, both = np.zeros(metrics.ALL), np.zeros((metrics.ALL, metrics.ALL))
    for place, weight in zip(choice.chosen, choice.parameters[1:].tolist(), strict=True):
        if place < metrics.ALL:
            of[place] = weight / scale[place]
        else:
            i, j = pairs[place - metrics.ALL]
            both[i, j] = weight / (scale[i] * scale[j])
    return Quadratic(constant=float(choice.parameters[0]), of=of, pairs=both)


def _selected(candidates: FloatVector, y: FloatVector, *, most: int) -> stepwise.Choice:
    """Ordinary least squares with a constant, of the variables that pay."""
    columns = np.concatenate([np.ones((1, len(y))), candidates])
    square, pull, whole = columns @ columns.T, columns @ y, float(y @ y)

    def with_(chosen: tuple[int, ...]) -> stepwise.Choice:
        places = [0, *(one + 1 for one in chosen)]
        within = square[np.ix_(places, places)] + _RIDGE * len(y) * np.eye(len(places))
        weights = np.linalg.solve(within, pull[places])
        sse = max(
            whole - 2 * float(weights @ pull[places]) + float(weights @ square[np.ix_(places, places)] @ weights), 0
        )
        return stepwise.Choice(chosen, weights, stepwise.cost(sse, len(y), len(places)))

    return stepwise.choose(_useful(candidates), with_, most)


def _standard(rows: FloatVector) -> tuple[FloatVector, FloatVector]:
    """Mean and deviation; 1 where a metric never changes."""
    scale = rows.std(axis=1)
    return rows.mean(axis=1), np.where(scale > _CONSTANT, scale, 1.0)


def _useful(rows: FloatVector) -> list[int]:
    """Metrics that change at all."""
    useful: list[int] = (rows.std(axis=1) > _CONSTANT).nonzero()[0].tolist()
    return useful


# Exponential


def exponential(samples: Samples, *, joint: bool = True) -> Exponential:
    """Eqs 1 to 3, see above. A kind without enough samples is fitted to all."""
    io_bound = samples.io_bound
    terms = []
    for rows, kind in ((metrics.CPU_ROWS, samples.of(~io_bound)), (metrics.IO_ROWS, samples.of(io_bound))):
        enough = len(kind) >= _FEWEST and float(np.ptp(kind.slowdown)) >= _FLAT
        terms.append(one_term(kind if enough else samples, rows))
    model = _combined(samples, *terms)
    return _refitted(samples, model) if joint else model


def one_term(samples: Samples, rows: Sequence[int]) -> Term:
    """Eq. 1 or 2 by Gauss-Newton, variables chosen stepwise; its constant is left to eq. 3."""
    mean, scale = _standard(samples.rows)
    z, y = ((samples.rows - mean[:, None]) / scale[:, None]).T, samples.slowdown

    @functools.cache
    def with_(chosen: tuple[int, ...]) -> stepwise.Choice:
        inputs = z[:, list(chosen)]
        if not chosen:
            start = np.array([0.0, float(y.mean())])
            return stepwise.Choice(chosen, start, stepwise.cost(float(((y - y.mean()) ** 2).sum()), len(y), 1))
        start = gauss_newton.begin(inputs, y)
        parameters, sse = gauss_newton.solve(gauss_newton.exponentials([inputs]), start, y)
        return stepwise.Choice(chosen, parameters, stepwise.cost(sse, len(y), len(parameters)))

    useful = [one for one in rows if float(samples.rows[one].std()) > _CONSTANT]
    choice = stepwise.choose(useful, with_, len(rows))
    gamma = np.zeros(metrics.ALL)
    gamma[list(choice.chosen)] = choice.parameters[1:-1]
    return _term(float(choice.parameters[0]), gamma / scale, mean, samples)


def _term(scale: float, gamma: FloatVector, mean: FloatVector, samples: Samples) -> Term:
    reached = gamma @ (samples.rows - mean[:, None])
    most = min(float(reached.max(initial=0.0)) + BEYOND, gauss_newton.CLIP)
    return Term(scale=scale, gamma=gamma, mean=mean, most=most)


def _combined(samples: Samples, cpu: Term, io: Term) -> Exponential:
    """Eq. 3: alpha, beta and C_3 by least squares."""
    grown = [np.exp(np.minimum(one.exponent(samples.rows, 0, metrics.ALL), one.most)) for one in (cpu, io)]
    columns = np.column_stack([*(g * t.scale for g, t in zip(grown, (cpu, io), strict=True)), np.ones(len(samples))])
    alpha, beta, constant = np.linalg.lstsq(columns, samples.slowdown, rcond=None)[0].tolist()
    cpu, io = (dataclasses.replace(t, scale=t.scale * by) for t, by in ((cpu, alpha), (io, beta)))
    return Exponential(cpu=cpu, io=io, constant=constant)


def _refitted(samples: Samples, before: Exponential) -> Exponential:
    """Gauss-Newton over both terms together, with the variables and from the parameters of before."""
    mean, scale = _standard(samples.rows)
    z = ((samples.rows - mean[:, None]) / scale[:, None]).T
    terms = (before.cpu, before.io)
    chosen = [
        np.array(
            [row for row in rows if one.gamma[row] or (row in _OWN and samples.rows[row].std() > _CONSTANT)], np.intp
        )
        for one, rows in zip(terms, (metrics.CPU_ROWS, metrics.IO_ROWS), strict=True)
    ]
    start = []
    for one, places in zip(terms, chosen, strict=True):
        moved = float(one.gamma @ (mean - one.mean))  # the exponent at the new mean
        start += [one.scale * np.exp(min(moved, one.most)), *(one.gamma * scale)[places].tolist()]
    curve = gauss_newton.exponentials([z[:, places] for places in chosen])
    found, _ = gauss_newton.solve(curve, np.array([*start, before.constant]), samples.slowdown)
    made, at = [], 0
    for places in chosen:
        gamma = np.zeros(metrics.ALL)
        gamma[places] = found[at + 1 : at + 1 + len(places)] / scale[places]
        made.append(_term(float(found[at]), gamma, mean, samples))
        at += 1 + len(places)
    return Exponential(cpu=made[0], io=made[1], constant=float(found[-1]))


BEYOND = 0.7
"""How far beyond the largest exponent seen a prediction may go: twice the largest slowdown of a term."""

_OWN = (metrics.T_C, metrics.T_R, metrics.T_W)
_FEWEST = 24
_FLAT = 1e-3
_CONSTANT = 1e-6
_RIDGE = 1e-6
_MOST_PRODUCTS = 16
