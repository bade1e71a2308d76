"""Fits interference models to samples (4.1 "Model Training", 5.4).

Exponential: eq. 1 to the CPU-bound samples and eq. 2 to the I/O-bound ones, by Gauss-Newton with stepwise selection;
then alpha, beta and C_3 of eq. 3 to all, linearly. alpha_cpu, C_cpu and alpha multiply each other, and C_1, C_2 and C_3
add up: none is identifiable, so C_cpu = C_io = 0 and the rest is kept as one scale for each term and one constant.

Deviations:

* Last, both terms are fitted once more together, to all samples, from there. Eq. 3 has but one alpha and one beta for
  tasks of both kinds, and eq. 1 never saw a task that hardly computes: only together t_c, t_r and t_w come to say how
  much a task minds either kind of neighbour (`separate` is the paper's model, without that).
* Neighbours make nobody faster, so alpha and beta are above 0: their logarithms are fitted. With the sign free, two
  exponentials of opposite signs and a large constant follow the samples of a fit and nothing else.
* Stepwise selection (the paper's reference [12]) adds or removes one variable at a time while that pays. What pays is
  told by the Bayesian information criterion, n ln(SSE/n) + p ln n (the paper does not say).
* Gauss-Newton ([10]) is damped as by Levenberg and Marquardt, the variables are standardised and exponents clipped, so
  that no step runs away.
* What is least is the sum of squares of (y - predicted) / y, the prediction error of 5.4: a threshold near 1 is judged
  by the small slowdowns, which count for nothing in a plain sum beside sixfold ones (`Samples.relative=False` is the
  paper's sum).
"""

import dataclasses
import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from boathouse_policies.ila import profiling
from boathouse_policies.ila.exponential import Exponential, Term
from boathouse_policies.model import BoolVector, FloatVector

Curve: TypeAlias = Callable[[FloatVector], tuple[FloatVector, FloatVector]]
"""From parameters [p] to predictions [n] and their derivatives [n, p]."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """What was observed of tasks that ended."""

    rows: FloatVector  # table 2's metrics, shape [11, n]
    slowdown: FloatVector  # S, the run time over that without neighbours, shape [n]
    counted: FloatVector | None = None  # how much each counts, shape [n]; None for 1
    relative: bool = True  # whether a fit is to make errors in relation to S small; if not, as they are

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[float]]) -> "Samples":
        """Make samples from lists of the eleven metrics and the slowdown."""
        table = np.array(rows, np.float64).reshape(len(rows), profiling.ALL + 1).T
        return cls(table[: profiling.ALL], table[profiling.ALL])

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
        bound: BoolVector = self.rows[profiling.T_R] + self.rows[profiling.T_W] > self.rows[profiling.T_C]
        return bound

    @property
    def are_enough(self) -> bool:
        """Whether a model can be fitted to them: they are not too few, nor all the same."""
        return len(self) >= _FEWEST and float(np.ptp(self.slowdown)) >= _FLAT

    def of(self, which: BoolVector | npt.NDArray[np.intp] | slice) -> "Samples":
        """Select some of the samples."""
        counted = None if self.counted is None else self.counted[which]
        return Samples(self.rows[:, which], self.slowdown[which], counted, self.relative)

    def beside(self, others: "Samples") -> "Samples":
        """Join these samples with others."""
        counted = [np.ones(len(some)) if some.counted is None else some.counted for some in (self, others)]
        rows, slowdown = np.hstack([self.rows, others.rows]), np.concatenate([self.slowdown, others.slowdown])
        return Samples(rows, slowdown, np.concatenate(counted), self.relative)


def fit(samples: Samples, *, before: Exponential | None = None, start: Exponential | None = None) -> Exponential | None:
    """Fit a model to samples of both kinds; None where they are too few, or all the same.

    The variables of a model `before` are kept, which is quick (with None they are selected), and the better fit is
    taken of those from its parameters and from those of `start`.
    """
    if not samples.are_enough:
        return None
    if before is None:
        return exponential(samples)
    variables = ((term, row) for term, of in enumerate(before.terms) for row in np.flatnonzero(of.gamma).tolist())
    chosen = tuple(term * profiling.ALL + row for term, row in variables)
    fits = [(joint, joint.fit(chosen)) for joint in (_Joint(samples, of) for of in (before, start) if of is not None)]
    joint, best = min(fits, key=lambda fit: fit[1].cost)
    return joint.model(best)


def standardised(rows: FloatVector) -> tuple[FloatVector, FloatVector, FloatVector]:
    """Return metrics less their mean, over their deviation; the means; and the deviations, 1 for constant metrics."""
    mean, deviation = rows.mean(axis=1), rows.std(axis=1)
    scale = np.where(deviation > _CONSTANT, deviation, 1.0)
    return (rows - mean[:, None]) / scale[:, None], mean, scale


def varying(rows: FloatVector) -> list[int]:
    """Return metrics that change at all."""
    return [int(row) for row in np.flatnonzero(rows.std(axis=1) > _CONSTANT)]


def expanded(chosen: Sequence[int], values: FloatVector) -> FloatVector:
    """Return coefficients of all metrics from those of the chosen ones, shape [11]."""
    expanded = np.zeros(profiling.ALL)
    expanded[list(chosen)] = values
    return expanded


def exponential(samples: Samples) -> Exponential:
    """Fit eqs 1 to 3, see above. A kind without enough samples is fitted to all."""
    both, changing = _Joint(samples, separate(samples)), varying(samples.rows)
    of_terms = enumerate((profiling.CPU_ROWS, profiling.IO_ROWS))
    candidates = tuple(term * profiling.ALL + row for term, rows in of_terms for row in rows if row in changing)
    every = both.fit(candidates, _FIRST_STEPS)
    both = _Joint(samples, both.model(every))
    return both.model(prune(every, both.fit))  # with all variables, then without those that do not pay


def separate(samples: Samples) -> Exponential:
    """Fit eq. 1 and eq. 2 to the tasks of their kinds, and eq. 3 linearly, as the paper does."""
    io_bound = samples.io_bound
    kinds = ((profiling.CPU_ROWS, samples.of(~io_bound)), (profiling.IO_ROWS, samples.of(io_bound)))
    return _combined(samples, *(one_term(kind if kind.are_enough else samples, rows) for rows, kind in kinds))


def one_term(samples: Samples, rows: Iterable[int]) -> Term:
    """Fit eq. 1 or 2 by Gauss-Newton, variables chosen stepwise; its constant is left to eq. 3."""
    z, mean, scale = standardised(samples.rows)
    y, weight, changing = samples.slowdown, samples.weight, varying(samples.rows)

    @functools.cache
    def with_(chosen: tuple[int, ...]) -> Choice:
        if not chosen:
            sse = float((((y - y.mean()) * weight) ** 2).sum())
            return Choice.of_fit(chosen, np.array([_NOTHING, float(y.mean())]), sse, len(y))
        inputs = z.T[:, list(chosen)]
        parameters, sse = solve(exponentials([inputs], weight), first_guess(inputs, y), y * weight)
        return Choice.of_fit(chosen, parameters, sse, len(y))

    candidates = [row for row in rows if row in changing]
    choice = choose(candidates, with_, len(candidates))
    slopes = expanded(choice.chosen, choice.parameters[1:-1]) / scale
    return _term(math.exp(choice.parameters[0]), slopes, mean, samples)


def _term(scale: float, gamma: FloatVector, mean: FloatVector, samples: Samples) -> Term:
    reached = gamma @ (samples.rows - mean[:, None])
    most = min(float(reached.max(initial=0.0)) + BEYOND, _CLIP)
    return Term(scale=scale, gamma=gamma, mean=mean, most=most)


def _combined(samples: Samples, cpu: Term, io: Term) -> Exponential:
    """Fit eq. 3: alpha, beta and C_3 by least squares."""
    columns = np.column_stack([cpu.of(samples.rows), io.of(samples.rows), np.ones(len(samples))])
    weight = samples.weight
    found = np.linalg.lstsq(columns * weight[:, None], samples.slowdown * weight, rcond=None)[0]
    alpha, beta, constant = found.tolist()
    cpu, io = (dataclasses.replace(t, scale=t.scale * by) for t, by in ((cpu, alpha), (io, beta)))
    return Exponential(cpu=cpu, io=io, constant=constant)


_FIRST_STEPS, _STEPS = 60, 20  # of Gauss-Newton over both terms, from far away and from near a minimum


class _Joint:
    """Gauss-Newton over both terms at once, from a model; a variable is its term (0 or 1) times 11 plus its row."""

    def __init__(self, samples: Samples, start: Exponential) -> None:
        self._samples = samples
        z, self._mean, self._scale = standardised(samples.rows)
        self._z = z.T
        self._start = [(self._scale_of(term), term.gamma * self._scale) for term in start.terms]
        self._constant = start.constant

    def _scale_of(self, term: Term) -> float:
        """Return the logarithm of the scale of a term whose exponent is 0 at the mean of these samples."""
        moved = float(term.gamma @ (self._mean - term.mean))
        return math.log(max(term.scale * math.exp(min(moved, term.most)), _FAINT))

    @staticmethod
    def _rows(chosen: tuple[int, ...]) -> list[list[int]]:
        return [
            [variable - term * profiling.ALL for variable in chosen if variable // profiling.ALL == term]
            for term in (0, 1)
        ]

    def fit(self, chosen: tuple[int, ...], steps: int = _STEPS) -> "Choice":
        y, weight, rows = self._samples.slowdown, self._samples.weight, self._rows(chosen)
        terms = [[scale, *gamma[of].tolist()] for (scale, gamma), of in zip(self._start, rows, strict=True)]
        curve = exponentials([self._z[:, of] for of in rows], weight, ridge=_RIDGE_SLOPES)
        goal = np.concatenate([y * weight, np.zeros(len(chosen))])
        found, sse = solve(curve, np.array([*terms[0], *terms[1], self._constant]), goal, steps=steps)
        return Choice.of_fit(chosen, found, sse, len(y))

    def model(self, choice: "Choice") -> Exponential:
        rows = self._rows(choice.chosen)
        cpu, io, constant = np.split(choice.parameters, [1 + len(rows[0]), -1])
        terms = [
            _term(math.exp(of[0]), expanded(chosen, of[1:]) / self._scale, self._mean, self._samples)
            for of, chosen in zip((cpu, io), rows, strict=True)
        ]
        return Exponential(cpu=terms[0], io=terms[1], constant=float(constant[0]))


# Stepwise selection


class Choice(NamedTuple):
    """Variables, and what the fit with them gave."""

    chosen: tuple[int, ...]  # places of the variables, in order of their choice
    parameters: FloatVector
    cost: float  # by the criterion

    @classmethod
    def of_fit(cls, chosen: tuple[int, ...], parameters: FloatVector, sse: float, count: int) -> "Choice":
        """Return the outcome of a fit to this many observations; a constant where there is no variable."""
        size = len(parameters) if chosen else 1
        return cls(chosen, parameters, count * math.log(max(sse / count, 1e-12)) + size * math.log(count))


def choose(candidates: Iterable[int], fit: Callable[[tuple[int, ...]], Choice], most: int) -> Choice:
    """Add the best variable, then remove the worst, until neither pays."""
    pool = tuple(candidates)
    best = fit(())
    while True:
        unused = [variable for variable in pool if variable not in best.chosen] if len(best.chosen) < most else []
        better = min((fit((*best.chosen, variable)) for variable in unused), key=_COST, default=best)
        if better.cost >= best.cost:
            return best
        best = prune(better, fit, keep=better.chosen[-1:])


def prune(best: Choice, fit: Callable[[tuple[int, ...]], Choice], keep: tuple[int, ...] = ()) -> Choice:
    """Remove the worst variable until that does not pay."""
    while len(best.chosen) > max(1, len(keep)):
        without = [tuple(c for c in best.chosen if c != variable) for variable in best.chosen if variable not in keep]
        better = min(map(fit, without), key=_COST)
        if better.cost >= best.cost:
            return best
        best = better
    return best


# Gauss-Newton


def solve(curve: Curve, start: FloatVector, y: FloatVector, *, steps: int = 25) -> tuple[FloatVector, float]:
    """Return parameters, shape [p], of least squared errors to y, shape [n], and their sum, at most that of `start`."""
    best, damping = start.copy(), 1e-2
    predicted, slopes = curve(best)
    left = y - predicted
    least, square, pull = float(left @ left), slopes.T @ slopes, slopes.T @ left
    for _ in range(steps):
        damped = square.copy()
        damped.flat[:: len(best) + 1] += damping * (square.diagonal() + 1e-9 * (1.0 + float(square.trace())))
        step = np.linalg.solve(damped, pull)
        predicted, new_slopes = curve(best + step)
        new_left = y - predicted
        sse = float(new_left @ new_left)
        if sse >= least:  # also where it is not a number
            damping *= 10.0
            if damping > _STUCK:
                break
            continue
        gained, best, left, least = least - sse, best + step, new_left, sse
        damping = max(damping / 5.0, 1e-9)
        if gained <= _ENOUGH * (least + _ENOUGH):
            break
        square, pull = new_slopes.T @ new_slopes, new_slopes.T @ left
    return best, least


def exponentials(inputs: Sequence[FloatVector], weight: FloatVector, *, ridge: float = 0.0) -> Curve:
    """Compute S = sum over terms of exp(a + gamma . z) + C, times a weight of each observation, shape [n].

    The inputs are the standardised variables z of each term, shape [n, v]; the curve's parameters are (a, gamma) of
    each term in turn, then C. `ridge` is the weight of one more observation for each gamma, that it is 0: what nothing
    tells stays small.
    """
    is_gamma = [i > 0 for z in inputs for i in range(1 + z.shape[1])]
    count, extra = len(weight), ridge * np.eye(len(is_gamma) + 1)[[*is_gamma, False]] if ridge else _NO_ROWS

    def curve(parameters: FloatVector) -> tuple[FloatVector, FloatVector]:
        slopes = np.empty((count + len(extra), len(parameters)))
        observed = slopes[:count]
        observed[:, -1] = 1.0
        total, at = np.full(count, parameters[-1]), 0
        for z in inputs:
            last = at + 1 + z.shape[1]
            exponent = parameters[at] + z @ parameters[at + 1 : last]
            risen = np.exp(np.minimum(np.maximum(exponent, -_CLIP), _CLIP))
            observed[:, at] = risen
            np.multiply(risen[:, None], z, out=observed[:, at + 1 : last])
            total += risen
            at = last
        observed *= weight[:, None]
        total *= weight
        if not ridge:
            return total, slopes
        slopes[count:] = extra
        return np.concatenate([total, extra @ parameters]), slopes

    return curve


def first_guess(z: FloatVector, y: FloatVector) -> FloatVector:
    """Return the start with one exponential: the line through the logarithms of y, shape [n], above a floor."""
    floor = float(y.min()) - 0.1 * max(float(y.max() - y.min()), 1e-3)
    line = np.linalg.lstsq(np.column_stack([np.ones(len(y)), z]), np.log(y - floor), rcond=None)[0]
    return np.concatenate([line, [floor]])


_NO_ROWS = np.empty((0, 0))
_FAINT = 1e-3  # a term that is 0 could not grow

BEYOND = 0.7  # how far beyond the largest exponent seen a prediction may go: twice the largest slowdown of a term

_FEWEST = 24
_FLAT = 1e-3
_CONSTANT = 0.01
_RIDGE_SLOPES = 0.1  # the weight of an observation that a standardised slope is 0
_COST = operator.attrgetter("cost")
_CLIP = 30.0
_NOTHING = -_CLIP  # the logarithm of a scale of 0
_STUCK = 1e8
_ENOUGH = 1e-7
