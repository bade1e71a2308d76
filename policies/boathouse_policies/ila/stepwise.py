"""Stepwise selection of variables (4.1; the paper's reference [12]): add or remove one at a time while that pays.

What pays is told by the Bayesian information criterion, n ln(SSE/n) + p ln n (ours: the paper does not say).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from boathouse_policies.model import FloatVector


class Choice(NamedTuple):
    """Variables, and what the fit with them gave.

    Attributes:
        chosen: Places of the variables, in order of their choice.
        parameters: Of the fit.
        cost: By the criterion.
    """

    chosen: tuple[int, ...]
    parameters: FloatVector
    cost: float


def cost(sse: float, count: int, parameters: int) -> float:
    """The Bayesian information criterion; less is better."""
    return count * math.log(max(sse / count, 1e-12)) + parameters * math.log(count)


def choose(candidates: Iterable[int], fit: Callable[[tuple[int, ...]], Choice], most: int) -> Choice:
    """Add the best variable, then remove the worst, until neither pays.

    Args:
        candidates: Places of variables; ties go to the first.
        fit: Fits with some of them.
        most: Variables at the most.
    """
    pool = tuple(candidates)
    best = fit(())
    while True:
        grown = [fit((*best.chosen, one)) for one in pool if one not in best.chosen] if len(best.chosen) < most else []
        better = min(grown, key=_cost, default=best)
        if better.cost >= best.cost:
            return best
        best = prune(better, fit, keep=better.chosen[-1:])


def prune(best: Choice, fit: Callable[[tuple[int, ...]], Choice], keep: tuple[int, ...] = ()) -> Choice:
    """Remove the worst variable until that does not pay.

    Args:
        best: What to begin with.
        fit: Fits with some of its variables.
        keep: What is not removed.
    """
    while len(best.chosen) > max(1, len(keep)):
        ones = [one for one in best.chosen if one not in keep]
        shrunk = [fit(tuple(kept for kept in best.chosen if kept != one)) for one in ones]
        better = min(shrunk, key=_cost)
        if better.cost >= best.cost:
            return best
        best = better
    return best


def _cost(choice: Choice) -> float:
    return choice.cost
