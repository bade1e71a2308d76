"""Which node: spread load, or fill nodes one after the other."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, TypeAlias

from boathouse_policies import model
from boathouse_policies.framework.extension import ShapeScore

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from boathouse_policies.framework import Score


class Placement(enum.StrEnum):
    """The choices by name."""

    LEAST_LOADED = "least-loaded"
    PACKED = "packed"


class LeastLoaded(ShapeScore):
    """The mean free share of CPU and memory after placement, as kube-scheduler's LeastAllocated."""

    def of_shapes(self, sizes: model.IntMatrix, free: model.IntMatrix, inverse: FloatMatrix) -> FloatMatrix:
        """0..1, higher is emptier."""
        return _free_share(sizes, free, inverse)


class Packed(ShapeScore):
    """The opposite: the fullest node that still fits, as kube-scheduler's MostAllocated."""

    def of_shapes(self, sizes: model.IntMatrix, free: model.IntMatrix, inverse: FloatMatrix) -> FloatMatrix:
        """-1..0, higher is fuller."""
        return -_free_share(sizes, free, inverse)


def _free_share(sizes: model.IntMatrix, free: model.IntMatrix, inverse: FloatMatrix) -> FloatMatrix:
    cpu, memory = ((free[row] - sizes[row][:, None]) * inverse[row] for row in (model.CPU, model.MEMORY))
    shares: FloatMatrix = (cpu + memory) * 0.5
    return shares


FloatMatrix: TypeAlias = "npt.NDArray[np.float64]"


def scorer(placement: Placement) -> Score:
    """The score of a choice."""
    match placement:
        case Placement.LEAST_LOADED:
            return LeastLoaded()
        case Placement.PACKED:
            return Packed()
