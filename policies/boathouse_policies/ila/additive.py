"""A model of interference that adds up what a host lacks: monotone, linear in what is learned, quick to fit.

    S(task, node) = 1 + sum over k of a_k t_c (c - c_k)+ + sum over k of (b_k (1 - t_c) + e_k (t_r + t_w)) (d - d_k)+

c is what others use of the host's CPUs, d of its disks (Table 2), and (x)+ is the larger of x and 0. No coefficient is
below 0: more of a neighbour makes nobody faster, and a task minds each resource for the part of its time that it
spends on it. Fitted by least squares of relative errors with non-negative coefficients. It is ours; the paper's is
`exponential`. Flat until a host is full and then steep, which no exponential is, is no special case for it.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from boathouse_policies.ila import profiling
from boathouse_policies.ila.exponential import Weights
from boathouse_policies.ila.fitting import Samples
from boathouse_policies.model import FloatVector


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Additive:
    """The fitted model."""

    computing: FloatVector  # a_k, shape [C]
    waiting: FloatVector  # b_k, shape [D]
    moving: FloatVector  # e_k, shape [D]

    def parts(self, system: FloatVector) -> FloatVector:
        """Return how far the use is above each knot, shape [8, N] to [C + D, N]."""
        return _above(system)

    def weights(self, task: profiling.Demand) -> Weights:
        """Return what a task makes of the parts."""
        computes = min(task.cpu, 1.0)
        disk = self.waiting * (1.0 - computes) + self.moving * (task.read + task.write)
        factors = (*(self.computing * computes).tolist(), *disk.tolist())
        return Weights(1.0, factors, (math.inf,) * len(factors))

    def predict(self, rows: FloatVector) -> FloatVector:
        """Predict at once for samples, shape [11, n] to [n]."""
        coefficients = np.concatenate([self.computing, self.waiting, self.moving])
        return np.asarray(1.0 + coefficients @ _columns(rows), np.float64)

    def dump(self) -> Mapping[str, Any]:
        """Return the state as JSON values."""
        return {name: [round(value, 4) for value in getattr(self, name).tolist()] for name in _SIZES}

    @classmethod
    def load(cls, state: Any) -> "Additive | None":
        """Restore the model from `dump`; None where it is none."""
        if not isinstance(state, dict) or not all(_are_coefficients(state.get(name), n) for name, n in _SIZES.items()):
            return None
        return cls(**{name: np.array(state[name], np.float64) for name in _SIZES})


def fit(samples: Samples) -> Additive:
    """Fit the model; to no samples, the one by which nobody is slowed down."""
    weighted = _columns(samples.rows) * samples.weight
    square, pull = weighted @ weighted.T, weighted @ ((samples.slowdown - 1.0) * samples.weight)
    square.flat[:: len(square) + 1] += _RIDGE * (1.0 + square.diagonal())
    found = _not_negative(square, pull)
    return Additive(
        computing=found[: len(_CPU_KNOTS)],
        waiting=found[len(_CPU_KNOTS) : -len(_DISK_KNOTS)],
        moving=found[-len(_DISK_KNOTS) :],
    )


def _not_negative(square: FloatVector, pull: FloatVector) -> FloatVector:
    """Minimize x . square x / 2 - pull . x with no x below 0, one coordinate after the other."""
    found, slope = np.zeros(len(pull)), -pull
    for _ in range(_SWEEPS):
        before = found.copy()
        for place in range(len(found)):
            step = max(-found[place], -slope[place] / square[place, place])
            if step:
                found[place] += step
                slope = slope + step * square[:, place]
        if np.abs(found - before).max() <= _SMALL:
            break
    return found


def _above(system: FloatVector) -> FloatVector:
    cpu = system[[profiling.C_U, profiling.C_A, profiling.C_0]].sum(axis=0)
    disk = system[[profiling.R_U, profiling.W_U, profiling.R_A, profiling.W_A]].sum(axis=0)
    above: FloatVector = np.concatenate([cpu - _CPU_KNOTS[:, None], disk - _DISK_KNOTS[:, None]])
    return np.maximum(above, 0.0, out=above)


def _columns(rows: FloatVector) -> FloatVector:
    """Return what each coefficient multiplies, shape [C + 2 D, n]."""
    cpu, disk = np.split(_above(rows[: profiling.SYSTEM]), [len(_CPU_KNOTS)])
    computes, moves = np.minimum(rows[profiling.T_C], 1.0), rows[profiling.T_R] + rows[profiling.T_W]
    return np.concatenate([cpu * computes, disk * (1.0 - computes), disk * moves])


def _are_coefficients(found: Any, count: int) -> bool:
    is_list = isinstance(found, list) and len(found) == count
    return is_list and all(isinstance(value, int | float) and 0 <= value < math.inf for value in found)


_CPU_KNOTS: FloatVector = np.array([0.3, 0.45, 0.6, 0.75, 0.9])  # arbitrary: of a host's CPUs
_DISK_KNOTS: FloatVector = np.array([0.0, 0.4, 0.8, 1.2, 1.6])  # arbitrary: of what its disks carry
_SIZES = {"computing": len(_CPU_KNOTS), "waiting": len(_DISK_KNOTS), "moving": len(_DISK_KNOTS)}
_RIDGE = 1e-3
_SWEEPS, _SMALL = 200, 1e-4

NOBODY = Additive(computing=np.zeros(5), waiting=np.zeros(5), moving=np.zeros(5))
"""What is trivial: nobody is slowed down."""
