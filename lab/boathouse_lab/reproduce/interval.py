"""95 % intervals over seeds."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean over independent runs.

    Attributes:
        value: The mean.
        interval: Its 95 % interval; None for a single run.
        count: Runs.
    """

    value: float
    interval: tuple[float, float] | None
    count: int


def mean(samples: Sequence[float]) -> Estimate:
    """Return the mean of samples, one for each seed, with Student's t-interval.

    Args:
        samples: At least one.

    Raises:
        ValueError: There is none, or one is not finite.
    """
    drawn = np.asarray(samples, np.float64)
    if not drawn.size or not np.isfinite(drawn).all():
        raise ValueError(f"a mean needs finite samples, at least one: {list(samples)}")
    centre = float(drawn.mean())
    if drawn.size == 1:
        return Estimate(value=centre, interval=None, count=1)
    spread = float(drawn.std(ddof=1)) / drawn.size**0.5
    half = float(special.stdtrit(drawn.size - 1, (1 + CONFIDENCE) / 2)) * spread
    return Estimate(value=centre, interval=(centre - half, centre + half), count=drawn.size)


def ratio(ours: Sequence[float], baseline: Sequence[float]) -> Estimate:
    """Return the mean of ours over the baseline's, seed by seed: both in the same order, shape [S]."""
    return mean([a / b for a, b in zip(ours, baseline, strict=True)])


def gain(ours: Sequence[float], baseline: Sequence[float]) -> Estimate:
    """Return by how much ours is lower than the baseline's, as a share of it, seed by seed: 1 - ours/baseline."""
    return mean([1 - a / b for a, b in zip(ours, baseline, strict=True)])
