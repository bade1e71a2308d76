"""What stands for the offline training (4.1), until tasks of this cluster were observed, and beside them.

The paper trained on its hosts with ten applications and two load generators before it scheduled. Here nobody trains:
samples are drawn from the curves of its Figures 1 and 2, as the text tells them, for tasks that compute or are at the
disk for different shares of their time. They stay in every fit, at little weight, so that a model which has seen few
situations says nothing wild about the others.

* CPU: 5 % slower where two thirds of a host's promised CPUs are asked for (800 % of 12), twice as slow where all are.
* I/O: an exponential rise with the traffic, 1.5 times as slow where the disks are asked for all that they carry,
  4 times where for twice of it.
* At most 7 times slower, and each only for the time that a task spends on it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies.ila import fitting, metrics
from boathouse_policies.ila.config import Family
from boathouse_policies.ila.families import Exponential

if TYPE_CHECKING:
    from boathouse_policies.model import FloatVector

COUNTED = 0.1
"""How much each counts beside an observation: all together as much as some two dozen."""

_SAMPLES = 256
_STEEP_CPU, _LOW_CPU = 9.0, 1.24e-4
_STEEP_IO, _LOW_IO = 1.6, 0.126
_CEILING = 7.0
_CPUS = 12.0  # of the paper's hosts


@functools.cache
def samples() -> fitting.Samples:
    """The same at every call, spread evenly over loads and tasks."""
    chance = _spread(_SAMPLES, 9)
    computing = np.where(chance[0] < _HALF, 1.0 - 0.1 * chance[1], 0.05 + 0.3 * chance[1])
    at_disk = 1.0 - computing
    rate = (0.1 + 0.6 * chance[2]) * at_disk  # of a host's disks while at them
    reads = chance[3]
    host = np.array([1.1 * chance[4], 1.5 * chance[5] * chance[6], 1.5 * chance[5] * (1.0 - chance[6])])
    node = host * (0.4 * chance[7])
    system = metrics.system(node, host, np.zeros(_SAMPLES))
    task = np.array([computing, rate * reads, rate * (1.0 - reads)])
    cpu = 1.0 + _LOW_CPU * np.expm1(_STEEP_CPU * (host[0] + computing / _CPUS))
    disk = 1.0 + _LOW_IO * np.expm1(_STEEP_IO * (host[1] + host[2] + rate))
    slowdown = computing * np.minimum(cpu, _CEILING) + at_disk * np.minimum(disk, _CEILING)
    return fitting.Samples(np.concatenate([system, task]), slowdown, counted=np.full(_SAMPLES, COUNTED))


@functools.cache
def model() -> Exponential:
    """What is predicted before the first observations."""
    found = fitting.fit(Family.EXPONENTIAL, samples())
    assert isinstance(found, Exponential)
    return found


def _spread(count: int, dimensions: int) -> FloatVector:
    """Points that fill the unit cube evenly, without chance: a Kronecker sequence, shape [dimensions, count]."""
    steps = np.sqrt(np.array([2, 3, 5, 7, 11, 13, 17, 19, 23][:dimensions], np.float64))[:, None]
    points = (steps * np.arange(1, count + 1)) % 1.0
    return np.asarray(points, np.float64)


_HALF = 0.5
