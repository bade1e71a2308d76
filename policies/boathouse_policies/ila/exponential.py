"""The interference model (4.1, eqs 1-3): a frozen value which predicts.

A prediction splits into what depends on the system alone, worked out once for all nodes, and what a task adds to it:

    S(task, node) = constant(task) + sum over k of factor_k(task) * min(part_k(node), cap_k(task))

So all classes of tasks are predicted for all nodes at the price of a few additions each.
"""

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from boathouse_policies.ila import profiling
from boathouse_policies.model import FloatVector


class Weights(NamedTuple):
    """What a task makes of the system's parts."""

    constant: float  # added to all
    factors: tuple[float, ...]  # of each part, length K
    caps: tuple[float, ...]  # the most that counts of each part, length K; infinity for all of it

    def predict(self, parts: FloatVector) -> FloatVector:
        """Predict the slowdown on each node from `Exponential.parts`, shape [N], at least 1."""
        total: FloatVector | float = self.constant
        for part, factor, cap in zip(parts, self.factors, self.caps, strict=True):
            term: FloatVector = np.minimum(part, cap)
            term *= factor
            term += total
            total = term
        slowdown: FloatVector = np.maximum(total, 1.0)
        return slowdown

    def at(self, parts: list[float]) -> float:
        """Predict the slowdown on one node from its parts, length K."""
        total = self.constant
        for part, factor, cap in zip(parts, self.factors, self.caps, strict=True):
            total += min(part, cap) * factor
        return max(total, 1.0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Term:
    """scale * exp(gamma . (x - mean)), the exponent clipped to `most`: eq. 1 or 2 without its constant."""

    scale: float  # alpha_cpu or beta_io (and alpha or beta of eq. 3, which are not told apart from them)
    gamma: FloatVector  # of each metric, 0 for those that were not selected, shape [11]
    mean: FloatVector  # of each metric, shape [11]
    most: float  # the largest exponent

    def of(self, rows: FloatVector) -> FloatVector:
        """Return the term of samples, shape [11, n] to [n]."""
        exponent: FloatVector = self.gamma @ (rows - self.mean[:, None])
        return self.scale * np.exp(np.minimum(exponent, self.most))

    def of_task(self, task: profiling.Demand) -> float:
        """Return the part of the exponent that depends on a task's own demand."""
        own = zip(self.gamma[profiling.SYSTEM :].tolist(), task, self.mean[profiling.SYSTEM :].tolist(), strict=True)
        return float(sum(gamma * (x - mean) for gamma, x, mean in own))

    def dump(self) -> Mapping[str, Any]:
        """Return the state as JSON values."""
        return {"scale": self.scale, "gamma": _rounded(self.gamma), "mean": _rounded(self.mean), "most": self.most}

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> "Term":
        """Restore a term from `dump`."""
        rows = {name: np.array(state[name], np.float64) for name in ("gamma", "mean")}
        return cls(scale=float(state["scale"]), most=float(state["most"]), **rows)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Exponential:
    """Eqs 1 to 3: S = cpu term + io term + constant."""

    cpu: Term
    io: Term
    constant: float

    @property
    def terms(self) -> tuple[Term, Term]:
        """The terms of CPU and of I/O."""
        return self.cpu, self.io

    def parts(self, system: FloatVector) -> FloatVector:
        """Return the exponentials of each term without the task's part, shape [2, N]."""
        gammas, moved = self._of_system
        exponents: FloatVector = gammas @ system - moved
        np.minimum(exponents, _STEEP, out=exponents)
        return np.exp(exponents, out=exponents)

    @functools.cached_property
    def _of_system(self) -> tuple[FloatVector, FloatVector]:
        """The gammas of the system's metrics, shape [2, 8], and the exponents at the means, shape [2, 1]."""
        of_terms = [(term.gamma[: profiling.SYSTEM], term.mean[: profiling.SYSTEM]) for term in self.terms]
        moved = np.array([float(gamma @ mean) for gamma, mean in of_terms])
        return np.array([gamma for gamma, _ in of_terms]), moved[:, None]

    def weights(self, task: profiling.Demand) -> Weights:
        """Return the exponentials of the task's part, and the rest of the largest exponent."""
        own = [(term, min(max(term.of_task(task), -_STEEP), _STEEP)) for term in self.terms]
        factors = tuple(term.scale * math.exp(by) for term, by in own)
        caps = tuple(math.exp(min(term.most - by, _STEEP)) for term, by in own)
        return Weights(self.constant, factors, caps)

    def predict(self, rows: FloatVector) -> FloatVector:
        """Predict at once for samples."""
        return np.asarray(np.maximum(self.constant + self.cpu.of(rows) + self.io.of(rows), 1.0), np.float64)

    def dump(self) -> Mapping[str, Any]:
        """Return the state as JSON values."""
        return {"family": FAMILY, "cpu": self.cpu.dump(), "io": self.io.dump(), "constant": self.constant}

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> "Exponential":
        """Restore the model from `dump`."""
        return cls(cpu=Term.load(state["cpu"]), io=Term.load(state["io"]), constant=float(state["constant"]))


def _rounded(vector: FloatVector) -> list[float]:
    return [round(value, 6) for value in vector.tolist()]


FAMILY = "exponential"
_STEEP = 300.0  # beyond it exp is of no use
