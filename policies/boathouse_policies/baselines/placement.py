"""Which node: spread load, or fill nodes one after the other."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from boathouse_policies import model
from boathouse_policies.framework.questions import ShapeScore

if TYPE_CHECKING:
    from boathouse_policies.framework import Score


class Placement(enum.StrEnum):
    """The choices by name."""

    LEAST_LOADED = "least-loaded"
    PACKED = "packed"


class LeastLoaded(ShapeScore):
    """The mean free share of CPU and memory after placement, as kube-scheduler's LeastAllocated: 0..1."""

    def of_shapes(self, sizes: Any, free: Any, inverse: Any) -> Any:
        """Higher is emptier."""
        return ((free[_CPU] - sizes[_CPU]) * inverse[_CPU] + (free[_MEMORY] - sizes[_MEMORY]) * inverse[_MEMORY]) * 0.5


class Packed(LeastLoaded):
    """The opposite: the fullest node that still fits, as kube-scheduler's MostAllocated: -1..0."""

    def of_shapes(self, sizes: Any, free: Any, inverse: Any) -> Any:
        """Higher is fuller."""
        return -super().of_shapes(sizes, free, inverse)


_CPU, _MEMORY = model.CPU, model.MEMORY


def scorer(placement: Placement) -> Score:
    """The score of a choice."""
    match placement:
        case Placement.LEAST_LOADED:
            return LeastLoaded()
        case Placement.PACKED:
            return Packed()
