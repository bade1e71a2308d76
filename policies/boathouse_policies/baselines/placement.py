"""Which node: spread load, or fill nodes one after the other."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from boathouse_policies import model
from boathouse_policies.framework.extension import Score

if TYPE_CHECKING:
    from collections.abc import Hashable

    from boathouse_policies.framework import Scratch, Want, Where


class Placement(enum.StrEnum):
    """The choices by name."""

    LEAST_LOADED = "least-loaded"
    PACKED = "packed"


class LeastLoaded(Score):
    """The mean free share of CPU and memory after placement, as kube-scheduler's LeastAllocated."""

    def key(self, want: Want) -> Hashable:  # noqa: ARG002 - the protocol's
        """Nothing: the answer depends on the shape alone."""
        return None

    def score(self, want: Want, scratch: Scratch, where: Where) -> model.FloatVector:
        """0..1, higher is emptier."""
        return _free_share(want, scratch, where)


class Packed(Score):
    """The opposite: the fullest node that still fits, as kube-scheduler's MostAllocated."""

    def key(self, want: Want) -> Hashable:  # noqa: ARG002 - the protocol's
        """Nothing: the answer depends on the shape alone."""
        return None

    def score(self, want: Want, scratch: Scratch, where: Where) -> model.FloatVector:
        """-1..0, higher is fuller."""
        return -_free_share(want, scratch, where)


def _free_share(want: Want, scratch: Scratch, where: Where) -> model.FloatVector:
    free = scratch.free[:_CPU_AND_MEMORY, where] - want.least[:_CPU_AND_MEMORY, None]
    shares: model.FloatVector = (free * scratch.view.layout.inverse_allocatable[:_CPU_AND_MEMORY, where]).sum(axis=0)
    return shares * 0.5


_CPU, _MEMORY = model.CPU, model.MEMORY
_CPU_AND_MEMORY = _MEMORY + 1


def scorer(placement: Placement) -> Score:
    """The score of a choice."""
    match placement:
        case Placement.LEAST_LOADED:
            return LeastLoaded()
        case Placement.PACKED:
            return Packed()
