"""Interference models that were fitted (4.1, eqs 1-3; 5.4): frozen values which predict.

A prediction splits into what depends on the system alone, worked out once for all nodes, and what a task adds to it:

    S(task, node) = constant(task) + sum over k of factor_k(task) * min(part_k(node), cap_k(task))

So all classes of tasks are predicted for all nodes at the price of a few additions each.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from boathouse_policies.ila import metrics
from boathouse_policies.ila.config import Family

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_policies.model import FloatVector


class Weights(NamedTuple):
    """What a task makes of the system's parts.

    Attributes:
        constant: Added to all.
        factors: Of each part, length K.
        caps: The most that counts of each part, length K; infinity for all of it.
    """

    constant: float
    factors: tuple[float, ...]
    caps: tuple[float, ...]

    def predict(self, parts: FloatVector) -> FloatVector:
        """The slowdown on each node, from `Model.parts`, shape [N]; 1 at least: nobody is faster than alone."""
        total: FloatVector | float = self.constant
        for part, factor, cap in zip(parts, self.factors, self.caps, strict=True):
            term: FloatVector = np.minimum(part, cap)
            term *= factor
            term += total
            total = term
        slowdown: FloatVector = np.maximum(total, 1.0)
        return slowdown

    def at(self, parts: list[float]) -> float:
        """The very same on one node, from its parts, length K."""
        total = self.constant
        for part, factor, cap in zip(parts, self.factors, self.caps, strict=True):
            total += min(part, cap) * factor
        return max(total, 1.0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Term:
    """scale * exp(gamma . (x - mean)), the exponent clipped to `most`: eq. 1 or 2 without its constant.

    Attributes:
        scale: alpha_cpu or beta_io (and alpha or beta of eq. 3, which are not told apart from them).
        gamma: Of each metric, 0 for those that were not selected, shape [11].
        mean: Of each metric, shape [11].
        most: The largest exponent.
    """

    scale: float
    gamma: FloatVector
    mean: FloatVector
    most: float

    def of(self, rows: FloatVector) -> FloatVector:
        """The term of samples, shape [11, n] to [n]."""
        exponent: FloatVector = self.gamma @ (rows - self.mean[:, None])
        return self.scale * np.exp(np.minimum(exponent, self.most))

    def of_task(self, task: metrics.Demand) -> float:
        """The part of the exponent that a task's own demand makes."""
        own = zip(self.gamma[metrics.SYSTEM :].tolist(), task, self.mean[metrics.SYSTEM :].tolist(), strict=True)
        return float(sum(gamma * (x - mean) for gamma, x, mean in own))

    def dump(self) -> Mapping[str, Any]:
        """As JSON values."""
        return {"scale": self.scale, "gamma": _rounded(self.gamma), "mean": _rounded(self.mean), "most": self.most}

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> Term:
        """The inverse of `dump`."""
        return cls(
            scale=float(state["scale"]),
            gamma=np.array(state["gamma"], np.float64),
            mean=np.array(state["mean"], np.float64),
            most=float(state["most"]),
        )


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
        """The exponentials of what each term has without the task's part, shape [2, N]."""
        exponents: FloatVector = self._gammas @ system
        exponents -= self._moved
        np.minimum(exponents, _STEEP, out=exponents)
        return np.exp(exponents, out=exponents)

    @functools.cached_property
    def _gammas(self) -> FloatVector:
        """Of the system, shape [2, 8]."""
        return np.array([term.gamma[: metrics.SYSTEM] for term in self.terms])

    @functools.cached_property
    def _moved(self) -> FloatVector:
        """The exponents at the means, shape [2, 1]."""
        means = [float(term.gamma[: metrics.SYSTEM] @ term.mean[: metrics.SYSTEM]) for term in self.terms]
        return np.array(means)[:, None]

    def weights(self, task: metrics.Demand) -> Weights:
        """The exponentials of the task's part, and what is left of the largest exponent."""
        own = [min(max(term.of_task(task), -_STEEP), _STEEP) for term in self.terms]
        factors = tuple(term.scale * math.exp(by) for term, by in zip(self.terms, own, strict=True))
        caps = tuple(math.exp(min(term.most - by, _STEEP)) for term, by in zip(self.terms, own, strict=True))
        return Weights(self.constant, factors, caps)

    def predict(self, rows: FloatVector) -> FloatVector:
        """At once for samples."""
        return np.asarray(np.maximum(self.constant + self.cpu.of(rows) + self.io.of(rows), 1.0), np.float64)

    def dump(self) -> Mapping[str, Any]:
        """As JSON values."""
        terms = {"cpu": self.cpu.dump(), "io": self.io.dump()}
        return {"family": Family.EXPONENTIAL.value, **terms, "constant": self.constant}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Polynomial:
    """S = constant + w . x + x . W x (5.4), W upper triangular; the linear form is the one without W.

    Attributes:
        family: Linear or quadratic.
        constant: The constant.
        of: w, shape [11].
        pairs: W, shape [11, 11].
    """

    family: Family
    constant: float
    of: FloatVector
    pairs: FloatVector

    def parts(self, system: FloatVector) -> FloatVector:
        """The sum of what is of the system alone, then each of its metrics, shape [9, N]."""
        of, pairs = self.of[: metrics.SYSTEM], self.pairs[: metrics.SYSTEM, : metrics.SYSTEM]
        alone = of @ system + (system * (pairs @ system)).sum(axis=0)
        return np.concatenate([alone[None], system])

    def weights(self, task: metrics.Demand) -> Weights:
        """The task's own sum, and the slope that it gives to each metric of the system."""
        own = np.array(task)
        slopes = self.pairs[: metrics.SYSTEM, metrics.SYSTEM :] @ own
        constant = self.of[metrics.SYSTEM :] @ own + own @ self.pairs[metrics.SYSTEM :, metrics.SYSTEM :] @ own
        factors = (1.0, *slopes.tolist())
        return Weights(self.constant + float(constant), factors, (math.inf,) * len(factors))

    def predict(self, rows: FloatVector) -> FloatVector:
        """The slowdown of samples of all metrics, shape [11, n] to [n]."""
        total = self.of @ rows + (rows * (self.pairs @ rows)).sum(axis=0) + self.constant
        return np.asarray(np.maximum(total, 1.0), np.float64)

    def dump(self) -> Mapping[str, Any]:
        """As JSON values; of the pairs only those that count."""
        state = {"family": self.family.value, "constant": self.constant, "of": _rounded(self.of)}
        pairs = [(i, j, round(float(self.pairs[i, j]), 6)) for i, j in np.argwhere(self.pairs).tolist()]
        return state if self.family is Family.LINEAR else {**state, "pairs": pairs}


Model: TypeAlias = Exponential | Polynomial


def load(state: Mapping[str, Any]) -> Model:
    """The inverse of `dump`.

    Raises:
        ValueError: There is no such family.
    """
    family, constant = Family(state["family"]), float(state["constant"])
    if family is Family.EXPONENTIAL:
        return Exponential(cpu=Term.load(state["cpu"]), io=Term.load(state["io"]), constant=constant)
    pairs = np.zeros((metrics.ALL, metrics.ALL))
    for i, j, weight in state.get("pairs", ()):
        pairs[i, j] = weight
    return Polynomial(family=family, constant=constant, of=np.array(state["of"], np.float64), pairs=pairs)


def _rounded(vector: FloatVector) -> list[float]:
    return [round(value, 6) for value in vector.tolist()]


_STEEP = 300.0  # beyond it exp is of no use
