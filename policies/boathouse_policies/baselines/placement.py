"""Which node: spread load, or fill nodes one after the other."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from boathouse_policies import model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_policies.framework import Score, Scratch, Want, Where


class Placement(enum.StrEnum):
    """The choices by name."""

    LEAST_LOADED = "least-loaded"
    PACKED = "packed"


class LeastLoaded:
    """The mean free share of CPU and memory after placement, as kube-scheduler's LeastAllocated."""

    def score(self, want: Want, scratch: Scratch, where: Where) -> model.FloatVector:
        """0..1, higher is emptier."""
        return _free_share(want, scratch, where)

    def of_room(self, need: Sequence[int], room: Sequence[int], inverse: Sequence[float]) -> float:
        """The same for one node."""
        cpu, memory = room[_CPU] - need[_CPU], room[_MEMORY] - need[_MEMORY]
        return (cpu * inverse[_CPU] + memory * inverse[_MEMORY]) * 0.5


class Packed:
    """The opposite: the fullest node that still fits, as kube-scheduler's MostAllocated."""

    def score(self, want: Want, scratch: Scratch, where: Where) -> model.FloatVector:
        """-1..0, higher is fuller."""
        return -_free_share(want, scratch, where)

    def of_room(self, need: Sequence[int], room: Sequence[int], inverse: Sequence[float]) -> float:
        """The same for one node."""
        cpu, memory = room[_CPU] - need[_CPU], room[_MEMORY] - need[_MEMORY]
        return -(cpu * inverse[_CPU] + memory * inverse[_MEMORY]) * 0.5


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
