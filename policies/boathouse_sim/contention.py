"""How tasks on one host slow each other down: the simulator's own truth, which no policy is told.

A policy may fit what model it likes to the run times that come of it (ILA fits an exponential of utilisations). So the
truth is deliberately of another family: saturation with thresholds, in numbers of streams and in load over capacity,
with a ceiling. It is built on facts the ILA paper measured: CPU is flat until 800 % of 10 cores are busy, input and
output slow down faster than linearly with the number of neighbours, and whole tasks by 1.5 to 7 times.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from boathouse_policies.model import FloatVector

CPU, DISK, NETWORK, POOL = range(4)
"""Columns of load, capacity and slowdown."""

KINDS = 4


class Contention(Protocol):
    """What sharing a host costs."""

    def slowdown(self, load: FloatVector, capacity: FloatVector, streams: FloatVector) -> FloatVector:
        """Return by what factor each kind of work is slower than alone.

        Args:
            load: What all tasks of a host use when nobody is in their way, shape [hosts, 4]: cores, MB/s of disks, MB/s
                of network, and MB/s of the pool (of which the last is the same for all who use it).
            capacity: What there is of it, same shape.
            streams: Tasks that use the disks, shape [hosts].

        Returns:
            Factors, at least 1, shape [hosts, 4].
        """
        ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """The default truth.

    * CPU: none until the load is `cpu_flat` of the cores, then (load / (flat · cores)) ** `cpu_power`: time is shared,
      and switching costs.
    * Disks: load / capacity, once above 1, where each stream beyond the first costs `seek` of the capacity.
    * Network and pools: load / capacity, once above 1.

    Attributes:
        cpu_flat: The paper's 800 % of 10 cores.
        cpu_power: Above 1: worse than sharing alone (ours).
        seek: Ours; 6 equal streams that fill a disk together are 1.75 times slower than in order.
        ceiling: The most of CPU and disks; the paper saw 7.
    """

    cpu_flat: float = 0.8
    cpu_power: float = 1.5
    seek: float = 0.15
    ceiling: float = 7.0

    def slowdown(self, load: FloatVector, capacity: FloatVector, streams: FloatVector) -> FloatVector:
        """Return the slowdown; see the class."""
        ratio = load / capacity
        ratio[:, CPU] = np.maximum(ratio[:, CPU] / self.cpu_flat, 1.0) ** self.cpu_power
        ratio[:, DISK] *= 1.0 + self.seek * np.maximum(streams - 1.0, 0.0)
        ratio[:, :NETWORK] = np.minimum(ratio[:, :NETWORK], self.ceiling)
        slow: FloatVector = np.maximum(ratio, 1.0)
        return slow
