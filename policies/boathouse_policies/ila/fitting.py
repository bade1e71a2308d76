"""Fits interference models to samples (4.1 "Model Training", 5.4).

Exponential: eq. 1 to the CPU-bound samples and eq. 2 to the I/O-bound ones, by Gauss-Newton with stepwise selection;
then alpha, beta and C_3 of eq. 3 to all, linearly. alpha_cpu, C_cpu and alpha multiply each other, and C_1, C_2 and C_3
add up: none is identifiable, so C_cpu = C_io = 0 and the rest is kept as one scale for each term and one constant.

Deviations:

* Last, both terms are fitted once more together, to all samples, from there. Eq. 3 has but one alpha and one beta for
  tasks of both kinds, and eq. 1 never saw a task that hardly computes: only together t_c, t_r and t_w come to say how
  much a task minds either kind of neighbour (`joint=False` leaves this out).
* What is least is the sum of squares of (y - predicted) / y, the prediction error of 5.4, for all three forms: a
  threshold near 1 is judged by the small slowdowns, which count for nothing in a plain sum beside sixfold ones
  (`Samples.relative=False` is the paper's sum).
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

    import numpy.typing as npt

    from boathouse_policies.model import BoolVector, FloatVector


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """What was observed of tasks that ended.

    Attributes:
        rows: Table 2's metrics, shape [11, n].
        slowdown: S, the run time over that without neighbours, shape [n].
        counted: How much each counts, shape [n]; None for 1.
        relative: Whether a fit is to make errors in relation to S small; if not, as they are.
    """

    rows: FloatVector
    slowdown: FloatVector
    counted: FloatVector | None = None
    relative: bool = True

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[float]]) -> Samples:
        """From lists of the eleven metrics and the slowdown."""
        table = np.array(rows, np.float64).reshape(len(rows), metrics.ALL + 1).T
        return cls(table[: metrics.ALL], table[metrics.ALL])

    def __len__(self) -> int:
        return len(self.slowdown)

    @property
    def weight(self) -> FloatVector:
        """What an error of each counts, shape [n]."""
        weight = 1.0 / self.slowdown if self.relative else np.ones(len(self))
        return weight if self.counted is None else weight * np.sqrt(self.counted)

    @property
    def io_bound(self) -> BoolVector:
        """Which of them are of I/O-bound tasks, shape [n]."""
        bound: BoolVector = self.rows[metrics.T_R] + self.rows[metrics.T_W] > self.rows[metrics.T_C]
        return bound

    def of(self, which: BoolVector | npt.NDArray[np.intp]) -> Samples:
        """Some of them."""
        counted = None if self.counted is None else self.counted[which]
        return Samples(self.rows[:, which], self.slowdown[which], counted, self.relative)

    def beside(self, others: Samples) -> Samples:
        """These and others."""
        counted = [np.ones(len(one)) if one.counted is None else one.counted for one in (self, others)]
        rows, slowdown = np.hstack([self.rows, others.rows]), np.concatenate([self.slowdown, others.slowdown])
        return Samples(rows, slowdown, np.concatenate(counted), self.relative)


def fit(
    family: Family,
    samples: Samples,
    *,
    before: Model | None = None,
    start: Exponential | None = None,
    joint: bool = True,
) -> Model | None:
    """Fit a model.

    Args:
        family: Its form.
        samples: Of both kinds, if it is to be good for both.
        before: A fitted exponential model whose variables are kept: quick. None selects the variables.
        start: The model from whose parameters such a fit begins, `before` by default: always from the same place, fits
            do not drift from one to the next.
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
                return _refitted(samples, before, start or before)
            return exponential(samples, joint=joint)


# Linear and quadratic


def linear(samples: Samples) -> Linear:
    """Least squares, variables chosen stepwise."""
    mean, scale = _standard(samples.rows)
    z = (samples.rows - mean[:, None]) / scale[:, None]
    choice = _selected(z, samples, most=metrics.ALL)
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
    choice = _selected(np.concatenate([z, products]), samples, most=_MOST_PRODUCTS)
    of, both = np.zeros(metrics.ALL), np.zeros((metrics.ALL, metrics.ALL))
    for place, weight in zip(choice.chosen, choice.parameters[1:].tolist(), strict=True):
        if place < metrics.ALL:
            of[place] = weight / scale[place]
        else:
            i, j = pairs[place - metrics.ALL]
            both[i, j] = weight / (scale[i] * scale[j])
    return Quadratic(constant=float(choice.parameters[0]), of=of, pairs=both)


def _selected(candidates: FloatVector, samples: Samples, *, most: int) -> stepwise.Choice:
    """Weighted least squares with a constant, of the variables that pay."""
    y = samples.slowdown * samples.weight
    columns = np.concatenate([np.ones((1, len(y))), candidates]) * samples.weight
    square, pull, whole = columns @ columns.T, columns @ y, float(y @ y)

    def with_(chosen: tuple[int, ...]) -> stepwise.Choice:
        places = [0, *(one + 1 for one in chosen)]
        within = square[np.ix_(places, places)] + _RIDGE * len(y) * np.eye(len(places))
        weights = np.asarray(np.linalg.solve(within, pull[places]), np.float64)
        explained = 2 * float(weights @ pull[places]) - float(weights @ square[np.ix_(places, places)] @ weights)
        sse = max(whole - explained, 0.0)
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
    return _together(samples, model) if joint else model


def one_term(samples: Samples, rows: Sequence[int]) -> Term:
    """Eq. 1 or 2 by Gauss-Newton, variables chosen stepwise; its constant is left to eq. 3."""
    mean, scale = _standard(samples.rows)
    z, y, weight = ((samples.rows - mean[:, None]) / scale[:, None]).T, samples.slowdown, samples.weight

    @functools.cache
    def with_(chosen: tuple[int, ...]) -> stepwise.Choice:
        inputs = z[:, list(chosen)]
        if not chosen:
            start = np.array([0.0, float(y.mean())])
            sse = float((((y - y.mean()) * weight) ** 2).sum())
            return stepwise.Choice(chosen, start, stepwise.cost(sse, len(y), 1))
        start = gauss_newton.begin(inputs, y)
        parameters, sse = gauss_newton.solve(gauss_newton.exponentials([inputs], weight), start, y * weight)
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
    grown = [np.exp(np.minimum(one.exponent(samples.rows), one.most)) for one in (cpu, io)]
    columns = np.column_stack([*(g * t.scale for g, t in zip(grown, (cpu, io), strict=True)), np.ones(len(samples))])
    weight = samples.weight
    found = np.linalg.lstsq(columns * weight[:, None], samples.slowdown * weight, rcond=None)[0]
    alpha, beta, constant = found.tolist()
    cpu, io = (dataclasses.replace(t, scale=t.scale * by) for t, by in ((cpu, alpha), (io, beta)))
    return Exponential(cpu=cpu, io=io, constant=constant)


def _together(samples: Samples, start: Exponential) -> Exponential:
    """Gauss-Newton over both terms at once with all variables, then without those that do not pay."""
    joint = _Joint(samples, start, steps=_STEPS)
    rows = [[one for one in term if float(samples.rows[one].std()) > _CONSTANT] for term in _TERMS]
    every = tuple(term * metrics.ALL + one for term, some in enumerate(rows) for one in some)
    return joint.model(stepwise.prune(joint.fit(every), joint.fit))


def _refitted(samples: Samples, before: Exponential, start: Exponential) -> Exponential:
    """The same with the variables of the model before."""
    joint = _Joint(samples, start, steps=_STEPS_ON)
    chosen = (term * metrics.ALL + int(one) for term, of in enumerate(before.terms) for one in np.flatnonzero(of.gamma))
    return joint.model(joint.fit(tuple(chosen)))


class _Joint:
    """Fits both terms together, from the parameters of a model; a variable is its term times 11 plus its row."""

    def __init__(self, samples: Samples, start: Exponential, *, steps: int) -> None:
        self._samples, self._steps = samples, steps
        self._mean, self._scale = _standard(samples.rows)
        self._z = ((samples.rows - self._mean[:, None]) / self._scale[:, None]).T
        self._gamma = np.concatenate([one.gamma * self._scale for one in start.terms])
        moved = [float(one.gamma @ (self._mean - one.mean)) for one in start.terms]  # the exponents at the new mean
        self._scales = [
            one.scale * float(np.exp(min(by, one.most))) or _FAINT for one, by in zip(start.terms, moved, strict=True)
        ]
        self._constant = start.constant
        self._known: dict[tuple[int, ...], stepwise.Choice] = {}

    def fit(self, chosen: tuple[int, ...]) -> stepwise.Choice:
        """With some variables."""
        known = self._known.get(chosen)
        if known is None:
            y, weight = self._samples.slowdown, self._samples.weight
            parts = [[one for one in chosen if one // metrics.ALL == term] for term in range(2)]
            start = [x for by, part in zip(self._scales, parts, strict=True) for x in (by, *self._gamma[part].tolist())]
            slopes = [one for part in parts for one in (False, *[True] * len(part))]
            curve = gauss_newton.damped(
                gauss_newton.exponentials([self._z[:, [one % metrics.ALL for one in part]] for part in parts], weight),
                np.array([*slopes, False]),
                _RIDGE_SLOPES,
            )
            goal = np.concatenate([y * weight, np.zeros(len(chosen))])
            found, sse = gauss_newton.solve(curve, np.array([*start, self._constant]), goal, steps=self._steps)
            known = stepwise.Choice(chosen, found, stepwise.cost(sse, len(y), len(found)))
            self._known[chosen] = known
        return known

    def model(self, choice: stepwise.Choice) -> Exponential:
        """What a fit found."""
        made, at = [], 0
        for term in range(2):
            rows = [one % metrics.ALL for one in choice.chosen if one // metrics.ALL == term]
            gamma = np.zeros(metrics.ALL)
            gamma[rows] = choice.parameters[at + 1 : at + 1 + len(rows)] / self._scale[rows]
            made.append(_term(float(choice.parameters[at]), gamma, self._mean, self._samples))
            at += 1 + len(rows)
        return Exponential(cpu=made[0], io=made[1], constant=float(choice.parameters[-1]))


_TERMS = (metrics.CPU_ROWS, metrics.IO_ROWS)
_STEPS, _STEPS_ON = 10, 10  # of Gauss-Newton, from afar and from the last fit
_FAINT = 1e-3  # a term that is 0 could not grow

BEYOND = 0.7
"""How far beyond the largest exponent seen a prediction may go: twice the largest slowdown of a term."""

_FEWEST = 24
_FLAT = 1e-3
_CONSTANT = 0.01
_RIDGE = 1e-6
_RIDGE_SLOPES = 0.1  # the weight of an observation that a standardised slope is 0
_MOST_PRODUCTS = 16
