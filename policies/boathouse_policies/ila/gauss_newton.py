"""Gauss-Newton (4.1; the paper's reference [10]), damped as by Levenberg and Marquardt, for sums of exponentials.

The variables are standardised and exponents clipped, so that no step runs away (readings: "Standardise, damp
Gauss-Newton, clip the exponent").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boathouse_policies.model import BoolVector, FloatVector

    Curve: TypeAlias = Callable[[FloatVector], tuple[FloatVector, FloatVector]]
    """From parameters [p] to predictions [n] and their derivatives [n, p]."""


def solve(curve: Curve, start: FloatVector, y: FloatVector, *, steps: int = 25) -> tuple[FloatVector, float]:
    """The parameters with the least sum of squared errors that can be reached from `start`.

    Args:
        curve: The model.
        start: Where to begin, shape [p].
        y: What was observed, shape [n].
        steps: How many to try at most.

    Returns:
        The parameters, and the sum of squared errors, never more than at the start.
    """
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


def exponentials(inputs: Sequence[FloatVector], weight: FloatVector) -> Curve:
    """S = sum over terms of A exp(gamma . z) + C, times a weight.

    Args:
        inputs: The standardised variables z of each term, shape [n, v].
        weight: Of each observation, shape [n].

    Returns:
        The curve of parameters (A, gamma) of each term in turn, then C.
    """
    count = len(inputs[0])

    def curve(parameters: FloatVector) -> tuple[FloatVector, FloatVector]:
        slopes = np.empty((count, len(parameters)))
        slopes[:, -1] = 1.0
        total, at = np.full(count, parameters[-1]), 0
        for z in inputs:
            last = at + 1 + z.shape[1]
            grown = np.exp(np.minimum(np.maximum(z @ parameters[at + 1 : last], -CLIP), CLIP))
            risen = parameters[at] * grown
            slopes[:, at] = grown
            slopes[:, at + 1 : last] = risen[:, None] * z
            total += risen
            at = last
        slopes *= weight[:, None]
        return total * weight, slopes

    return curve


def damped(curve: Curve, which: BoolVector, by: float) -> Curve:
    """The curve with an observation more for each of some parameters: that it is 0. What nothing tells stays small.

    Args:
        curve: The curve.
        which: The parameters, shape [p].
        by: The weight of each.
    """
    rows = by * np.eye(len(which))[which]

    def also(parameters: FloatVector) -> tuple[FloatVector, FloatVector]:
        total, slopes = curve(parameters)
        return np.concatenate([total, rows @ parameters]), np.concatenate([slopes, rows])

    return also


def begin(z: FloatVector, y: FloatVector) -> FloatVector:
    """Where to begin with one exponential: the line through the logarithms of what is above a floor.

    Args:
        z: Standardised variables, shape [n, v].
        y: What was observed, shape [n].
    """
    spread = max(float(y.max() - y.min()), 1e-3)
    floor = float(y.min()) - 0.1 * spread
    ones = np.column_stack([np.ones(len(y)), z])
    line = np.linalg.lstsq(ones, np.log(y - floor), rcond=None)[0]
    return np.concatenate([[np.exp(line[0])], line[1:], [floor]])


CLIP = 30.0
_STUCK = 1e8
_ENOUGH = 1e-7
