"""Interference models that were fitted (4.1, eqs 1-3; 5.4): frozen values which predict.

A prediction splits into what depends on the system alone, worked out once for all nodes, and what a task adds to it:

    S(task, node) = constant(task) + sum over k of factor_k(task) * min(part_k(node), cap_k(task))

So all classes of tasks are predicted for all nodes at the price of a few additions each.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from boathouse_policies.ila import metrics

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


class Model(Protocol):
    """A fitted model."""

    def parts(self, system: FloatVector) -> FloatVector:
        """What depends on the system, from `metrics.system`, shape [K, N]."""
        ...

    def weights(self, task: metrics.Demand) -> Weights:
        """What a task makes of it."""
        ...

    def predict(self, rows: FloatVector) -> FloatVector:
        """The slowdown of samples of all metrics, shape [11, n] to [n]."""
        ...

    def dump(self) -> Mapping[str, Any]:
        """As JSON values."""
        ...


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
        return {
            "scale": self.scale,
            "gamma": [round(one, 6) for one in self.gamma.tolist()],
            "mean": [round(one, 6) for one in self.mean.tolist()],
            "most": self.most,
        }

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> Term:
        """The inverse of `dump`."""
        return cls(
            scale=float(state["scale"]),
            gamma=vector(state["gamma"]),
            mean=vector(state["mean"]),
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
        """Of CPU and of I/O."""
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
        return np.array([one.gamma[: metrics.SYSTEM] for one in self.terms])

    @functools.cached_property
    def _moved(self) -> FloatVector:
        """The exponents at the means, shape [2, 1]."""
        means = [float(one.gamma[: metrics.SYSTEM] @ one.mean[: metrics.SYSTEM]) for one in self.terms]
        return np.array(means)[:, None]

    def weights(self, task: metrics.Demand) -> Weights:
        """The exponentials of the task's part, and what is left of the largest exponent."""
        own = [min(max(one.of_task(task), -_STEEP), _STEEP) for one in self.terms]
        factors = tuple(term.scale * math.exp(by) for term, by in zip(self.terms, own, strict=True))
        caps = tuple(math.exp(min(term.most - by, _STEEP)) for term, by in zip(self.terms, own, strict=True))
        return Weights(self.constant, factors, caps)

    def predict(self, rows: FloatVector) -> FloatVector:
        """At once for samples."""
        slowdown: FloatVector = np.maximum(self.constant + self.cpu.of(rows) + self.io.of(rows), 1.0)
        return slowdown

    def dump(self) -> Mapping[str, Any]:
        """As JSON values."""
        return {
            "family": "exponential",
            "cpu": self.cpu.dump(),
            "io": self.io.dump(),
            "constant": self.constant,
        }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linear:
    """S = constant + w . x (5.4).

    Attributes:
        constant: The constant.
        of: w, shape [11].
    """

    constant: float
    of: FloatVector

    def parts(self, system: FloatVector) -> FloatVector:
        """The system's share of the sum, shape [1, N]."""
        part: FloatVector = self.of[: metrics.SYSTEM] @ system
        return part[None]

    def weights(self, task: metrics.Demand) -> Weights:
        """The task's share."""
        return Weights(self.constant + float(self.of[metrics.SYSTEM :] @ np.array(task)), (1.0,), (math.inf,))

    def predict(self, rows: FloatVector) -> FloatVector:
        """At once for samples."""
        slowdown: FloatVector = np.maximum(self.of @ rows + self.constant, 1.0)
        return slowdown

    def dump(self) -> Mapping[str, Any]:
        """As JSON values."""
        return {"family": "linear", "constant": self.constant, "of": [round(one, 6) for one in self.of.tolist()]}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quadratic:
    """S = constant + w . x + x . W x (5.4), W upper triangular.

    Attributes:
        constant: The constant.
        of: w, shape [11].
        pairs: W, shape [11, 11].
    """

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
        """At once for samples."""
        total: FloatVector = self.of @ rows + (rows * (self.pairs @ rows)).sum(axis=0) + self.constant
        slowdown: FloatVector = np.maximum(total, 1.0)
        return slowdown

    def dump(self) -> Mapping[str, Any]:
        """As JSON values; of the pairs only those that count."""
        pairs = [(i, j, round(float(self.pairs[i, j]), 6)) for i, j in np.argwhere(self.pairs).tolist()]
        return {
            "family": "quadratic",
            "constant": self.constant,
            "of": [round(one, 6) for one in self.of.tolist()],
            "pairs": pairs,
        }


def load(state: Mapping[str, Any]) -> Model:
    """The inverse of `dump`.

    Raises:
        KeyError: It is not a dump of a model.
    """
    match state["family"]:
        case "exponential":
            cpu, io = Term.load(state["cpu"]), Term.load(state["io"])
            return Exponential(cpu=cpu, io=io, constant=float(state["constant"]))
        case "linear":
            return Linear(constant=float(state["constant"]), of=vector(state["of"]))
        case "quadratic":
            pairs = np.zeros((metrics.ALL, metrics.ALL))
            for i, j, one in state["pairs"]:
                pairs[i, j] = one
            return Quadratic(constant=float(state["constant"]), of=vector(state["of"]), pairs=pairs)
        case other:
            raise KeyError(f"there is no family {other!r} of interference models")


def vector(listed: list[float]) -> FloatVector:
    """Coefficients of all metrics, from JSON, shape [11]."""
    return np.array(listed, np.float64)


_STEEP = 300.0  # beyond it exp is of no use
