"""The linear and the quadratic model of interference (5.4), which the paper compares with the exponential one."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies.ila import fitting, profiling

if TYPE_CHECKING:
    from boathouse_policies.model import FloatVector


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Polynomial:
    """S = constant + w . x + x . W x, W upper triangular; the linear form is the one without W.

    Attributes:
        constant: The constant.
        of: w, shape [11].
        pairs: W, shape [11, 11].
    """

    constant: float
    of: FloatVector
    pairs: FloatVector

    def predict(self, rows: FloatVector) -> FloatVector:
        """Return the slowdown of samples of all metrics, shape [11, n] to [n]."""
        total = self.of @ rows + (rows * (self.pairs @ rows)).sum(axis=0) + self.constant
        return np.asarray(np.maximum(total, 1.0), np.float64)


def linear(samples: fitting.Samples) -> Polynomial:
    """Fit by least squares, variables chosen stepwise."""
    z, mean, scale = fitting.standardised(samples.rows)
    choice = _selected(z, samples, most=profiling.ALL)
    of = fitting.expanded(choice.chosen, choice.parameters[1:]) / scale
    constant = float(choice.parameters[0] - of @ mean)
    return Polynomial(constant=constant, of=of, pairs=np.zeros((profiling.ALL, profiling.ALL)))


def quadratic(samples: fitting.Samples) -> Polynomial:
    """Fit by least squares with squares and products, variables chosen stepwise."""
    _, _, scale = fitting.standardised(samples.rows)
    z = samples.rows / scale[:, None]
    first, second = np.triu_indices(profiling.ALL)
    choice = _selected(np.concatenate([z, z[first] * z[second]]), samples, most=_MOST_PRODUCTS)
    weights = np.zeros(profiling.ALL + len(first))
    weights[list(choice.chosen)] = choice.parameters[1:]
    pairs = np.zeros((profiling.ALL, profiling.ALL))
    pairs[first, second] = weights[profiling.ALL :] / (scale[first] * scale[second])
    of, constant = weights[: profiling.ALL] / scale, float(choice.parameters[0])
    return Polynomial(constant=constant, of=of, pairs=pairs)


def _selected(candidates: FloatVector, samples: fitting.Samples, *, most: int) -> fitting.Choice:
    """Fit by weighted least squares with a constant, of the variables that pay."""
    y = samples.slowdown * samples.weight
    columns = np.concatenate([np.ones((1, len(y))), candidates]) * samples.weight
    square, pull, whole = columns @ columns.T, columns @ y, float(y @ y)

    def with_(chosen: tuple[int, ...]) -> fitting.Choice:
        places = [0, *(variable + 1 for variable in chosen)]
        within, pulled = square[np.ix_(places, places)], pull[places]
        weights = np.asarray(np.linalg.solve(within + _RIDGE * len(y) * np.eye(len(places)), pulled), np.float64)
        explained = 2 * float(weights @ pulled) - float(weights @ within @ weights)
        return fitting.Choice.of_fit(chosen, weights, max(whole - explained, 0.0), len(y))

    return fitting.choose(fitting.varying(candidates), with_, most)


_RIDGE = 1e-6
_MOST_PRODUCTS = 16
