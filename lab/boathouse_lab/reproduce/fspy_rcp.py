"""Groups of workloads by resource competition pressure (FSPY, IV.C; eq. 11).

RCP = α·log(ΣS / (ΣI·CR)) + β, rounded. The paper does not state α and β; they are fitted so that the groups are as
Figure 5 and its text count them: 7 groups, the one of 5 the largest, 19 of 37 segments at 6 or above. Sizes are in
memory-seconds, the paper's order's unit.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

SEGMENT_JOBS = 200
SEGMENT_OVERLAP = 50
SEGMENTS = 37
"""There are 38 full segments of 5,894 jobs; the paper has 37 (readings: the first)."""


def segments(
    jobs: int, *, length: int = SEGMENT_JOBS, overlap: int = SEGMENT_OVERLAP, most: int = SEGMENTS
) -> list[range]:
    """Return places of the jobs of each full segment of a trace."""
    return [range(first, first + length) for first in range(0, jobs - length + 1, length - overlap)][:most]


def load(sizes: Sequence[float], intervals_s: Sequence[float], cluster: float) -> float:
    """Compute ΣS / (ΣI·CR): 1 where the work offered is just what the cluster does in the time.

    Args:
        sizes: S of each job, in resource-seconds.
        intervals_s: I: time since the submission before.
        cluster: CR, in the same resource.

    Raises:
        ValueError: The jobs come all at once, or there is no work or no cluster.
    """
    work, offered = math.fsum(sizes), math.fsum(intervals_s) * cluster
    if not (work > 0 and offered > 0):
        raise ValueError("RCP needs work, a cluster, and jobs that do not all come at once")
    return work / offered


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """α and β of eq. 11."""

    alpha: float
    beta: float

    def rcp(self, load: float) -> float:
        """Compute eq. 11."""
        return self.alpha * math.log(load) + self.beta

    def group(self, load: float) -> int:
        """Round an RCP to the nearest whole number, halves upwards."""
        return math.floor(self.rcp(load) + 0.5)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What Figure 5 and its text say of the groups."""

    groups: int = 7
    mode: int = 5
    from_group: int = 6
    at_or_above: int = 19


def fit_scale(loads: Sequence[float], figures: Figures = Figures()) -> Scale:
    """Fit α and β for which the groups are most like the paper's: a grid, the first of equals.

    `at_or_above` segments must come to `from_group` or above, so β follows from α and the border between the segment
    of that rank and the next.

    Raises:
        ValueError: There are not more segments than `at_or_above`.
    """
    logs = sorted((math.log(load) for load in loads), reverse=True)
    if len(logs) <= figures.at_or_above:
        raise ValueError(f"fitting needs more than {figures.at_or_above} segments, not {len(logs)}")
    above, below = logs[figures.at_or_above - 1], logs[figures.at_or_above]
    best: tuple[tuple[float, float, float], Scale] | None = None
    for alpha, part in itertools.product(np.linspace(0.2, 6.0, 291).tolist(), (0.5, 0.25, 0.75)):
        border = below + (above - below) * part
        scale = Scale(alpha=alpha, beta=figures.from_group - 0.5 - alpha * border)
        error = (*_unlike(loads, scale, figures), alpha)
        if best is None or error < best[0]:
            best = (error, scale)
    assert best is not None
    return best[1]


def _unlike(loads: Sequence[float], scale: Scale, figures: Figures) -> tuple[float, float]:
    counts = collections.Counter(scale.group(load) for load in loads)
    short_of_mode = max(counts.values()) - counts[figures.mode]
    return abs(len(counts) - figures.groups), short_of_mode
