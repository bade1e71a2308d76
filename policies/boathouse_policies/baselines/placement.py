"""Which node: spread load, fill nodes one after the other, or the closest to the input first."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import CycleState, PendingClass, Score, Where
from boathouse_policies.framework.questions import ShapeScore

if TYPE_CHECKING:
    from collections.abc import Hashable


class LeastLoaded(ShapeScore):
    """The mean free share of CPU and memory after placement, as kube-scheduler's LeastAllocated: 0..1."""

    def of_shapes(self, sizes: Any, free: Any, inverse: Any) -> Any:
        """Return scores that are higher for emptier nodes."""
        return ((free[_CPU] - sizes[_CPU]) * inverse[_CPU] + (free[_MEMORY] - sizes[_MEMORY]) * inverse[_MEMORY]) * 0.5


class Packed(LeastLoaded):
    """The opposite: the fullest node that still fits, as kube-scheduler's MostAllocated: -1..0."""

    def of_shapes(self, sizes: Any, free: Any, inverse: Any) -> Any:
        """Return scores that are higher for fuller nodes."""
        return -super().of_shapes(sizes, free, inverse)


@dataclasses.dataclass(frozen=True, slots=True)
class Closest(Score):
    """The node that is closest to the input of a pending task; another score ranks nodes that are as close.

    Attributes:
        base: The other score.
        level: What a level of distance counts: more than the whole range of the other score.
    """

    base: Score
    level: float

    def key(self, pending: PendingClass) -> Hashable:
        """Return the class where its input is in blocks; else what the other score depends on."""
        return pending.task_class.id if pending.queued.pool.located else self.base.key(pending)

    def score(self, pending: PendingClass, state: CycleState, where: Where) -> model.FloatVector:
        """Return the other score, less so much for each level of distance."""
        score = self.base.score(pending, state, where)
        return score - self.level * pending.levels[where] if pending.queued.pool.located else score

    def score_on(self, pending: PendingClass, state: CycleState, node: int) -> float:
        """Return the score of one node."""
        score = self.base.score_on(pending, state, node)
        return score - self.level * int(pending.levels[node]) if pending.queued.pool.located else score


def fitting(room: model.IntMatrix, need: model.IntVector) -> model.FloatVector:
    """Return how many of `need` would fit, not rounded, by the scarcest resource: shape [N] of [R, N] and [R]."""
    rows = need.nonzero()[0]
    ratios: model.FloatVector = (room[rows] / need[rows, None]).min(axis=0, initial=np.inf)
    return ratios


LEAST_LOADED, PACKED = LeastLoaded(), Packed()
_CPU, _MEMORY = model.CPU, model.MEMORY
