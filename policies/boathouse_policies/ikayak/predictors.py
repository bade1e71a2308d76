"""Models of a reducer's remaining time: the paper's fuzzy one, and one of how long the phases of earlier reducers took.

Fuzzy model: NARX, Takagi-Sugeno, self-learning (3.1.2, eqs 1-6).

A sample at time t is, with n_y = 2 and n_u = 1 (readings), a row of

* the regressor X = [ξ, u, d, 1] with ξ = [y(t-1), y(t-2), u(t-1)] (eqs 2, 3), 6 numbers;
* the premise variables of eq. 4 that any rule looks at, 2 numbers: the two lags y as the rules see them.

Rule j fires by the product of Gaussians of its premises; σ_j is that, normalised over the rules. The prediction is
ŷ = Σ_j σ_j φ_jᵀ X = χᵀφ with χ = σ ⊗ X. Premises are fixed; the consequents φ are learned by recursive least squares on
the extended error e(t)² + τ e(t-1)² (eq. 6): rows Χ = [χ(t); √τ χ(t-1)], K = PΧᵀ(λ_f I + ΧPΧᵀ)⁻¹, φ += K(Y - Χφ),
P = (P - KΧP)/λ_f. That equals batch weighted least squares with the prior as the first observation (tested).

Deviations:

* How the rules see a lag y is as a part of the task's whole length at its present pace, which is 1 - progress: so the
  three rules are shuffle, sort and reduce whatever the job's size. u and d, of which eq. 4 has premises too, are "don't
  care" in all three.
* A reducer counts as one observation: each of its n samples has the weight 1/n, and is forgotten by λ_f^(1/n). All of
  them share one end, so twenty samples tell not twenty times as much. With 0.98 for each sample only the last two or
  three reducers would count; with full weights the first of a class drown the prior rules.
* What P allows for a direction that is never excited would grow without end (windup): u and d hardly vary within a
  class. Once its trace is over a bound, P's eigenvalues are cut to a hundred times what they were at first.

The model of phases: a reducer's pace tells of its present phase alone: shuffling follows the maps, sorting the
disks, reducing the program. The phases ahead take what they took in the program's earlier reducers, by its input, and
longer where this one is slow. The present one takes what its own pace says, the more of it is over.
"""

import base64
import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from boathouse_policies.ikayak.config import Config
from boathouse_policies.model import FloatVector

Sample: TypeAlias = FloatVector
"""X, the premise variables, and for other predictors how long the phase and the reducer have run, shape [10]."""

WIDTH = 6  # length of X
LAG, INPUT, REST, LASTED, RAN = 0, 4, 6, 8, 9
"""Columns of a sample: y(t-1), d, 1 - progress, and how long the phase has lasted and the reducer has run."""
RULES = 3  # shuffle, sort, reduce

_MOST_TRACE, _CUT = 1e6, 100.0
_AT_ONCE = 32


_PHASE_WIDTH = 0.12  # two rules fire alike halfway between their centres, at 1.4 widths from each
_CENTRES: FloatVector = np.array([[5.0], [3.0], [1.0]]) / 6.0
"""What is left of the work in the middle of shuffle, sort and reduce: each is a third, as Hadoop counts."""


def firing(premise: FloatVector) -> FloatVector:
    """Return σ, how much each rule fires, by what is left of the work at the lags: shape [..., 2] to [..., J]."""
    exponents = -0.5 * (((premise[..., None, :] - _CENTRES) / _PHASE_WIDTH) ** 2).sum(axis=-1)
    fired = np.exp(exponents - exponents.max(axis=-1, keepdims=True))  # far from all rules the nearest still fires
    return np.asarray(fired / fired.sum(axis=-1, keepdims=True))


class Fuzzy:
    """One model, of one class of jobs."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.parameters: FloatVector = prior()  # φ, shape [J·6]
        self._p: FloatVector = np.eye(len(self.parameters)) * config.trust

    def rows(self, samples: Sequence[Sample]) -> FloatVector:
        """Return χ = σ ⊗ X: shape [M, J·6]."""
        rows = np.stack(samples)
        return (firing(rows[:, WIDTH:LASTED])[:, :, None] * rows[:, None, :WIDTH]).reshape(len(rows), -1)

    def predict(self, samples: Sequence[Sample]) -> FloatVector:
        """Predict ŷ of each sample; never below 0."""
        return np.maximum(self.rows(samples) @ self.parameters, 0.0)

    def fit(self, samples: Sequence[Sample], labels: FloatVector) -> None:
        """Learn a reducer's samples in order of time and their true y, as if each had weight 1/n and λ_f^(1/n)."""
        if not samples:
            return
        rows, count, forgetting = self.rows(samples), len(samples), self._config.forgetting
        root = np.sqrt(forgetting ** ((count - 1 - np.arange(count)) / count) / count)
        earlier = math.sqrt(self._config.discount) * root[1:]
        rows = np.concatenate([rows * root[:, None], rows[:-1] * earlier[:, None]])
        self.learn(rows, np.concatenate([labels * root, labels[:-1] * earlier]), forgetting)

    def learn(self, rows: FloatVector, labels: FloatVector, forgetting: float) -> None:
        """Update K, φ and P of the module's docstring, for any number of rows: Χ, shape [M, J·6], and Y, shape [M]."""
        # P's inverse is λ_f of the old one plus ΧᵀΧ, so parts of Χ may follow each other. A small system is solved by
        # one thread; a large one wakes all of the linear algebra library's, which cost 40 times their work.
        for first in range(0, len(rows), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            self._absorb(rows[part], labels[part], 1.0 if first else forgetting)
        if float(np.trace(self._p)) > _MOST_TRACE * self._config.trust:
            values, vectors = np.linalg.eigh(self._p)
            self._p = (vectors * np.clip(values, 0.0, _CUT * self._config.trust)) @ vectors.T

    def _absorb(self, rows: FloatVector, labels: FloatVector, forgetting: float) -> None:
        spread = self._p @ rows.T
        gain = np.linalg.solve(forgetting * np.eye(len(rows)) + rows @ spread, spread.T).T
        self.parameters = self.parameters + gain @ (labels - rows @ self.parameters)
        p = (self._p - gain @ spread.T) / forgetting
        self._p = (p + p.T) / 2.0

    def dump(self) -> Mapping[str, Any]:
        """Return the parameters and the upper triangle of P, exactly: some 1.9 kB."""
        upper = self._p[np.triu_indices(len(self._p))]
        return {"parameters": _packed(self.parameters), "p": _packed(upper)}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump; one of another shape is ignored: the prior rules stay."""
        try:
            parameters, upper = _unpacked(state["parameters"]), _unpacked(state["p"])
        except (KeyError, TypeError, ValueError):
            return
        size = len(self.parameters)
        has_shape = parameters.shape == (size,) and upper.shape == (size * (size + 1) // 2,)
        if not (has_shape and np.isfinite(parameters).all() and np.isfinite(upper).all()):
            return
        p = np.zeros((size, size))
        p[np.triu_indices(size)] = upper
        self._p = p + np.triu(p, 1).T
        self.parameters = parameters


def prior() -> FloatVector:
    """Return the prior rules, used before learning: the rest takes as long as the last sample's pace says."""
    return np.eye(1, WIDTH).repeat(RULES, axis=0).reshape(-1)


def _packed(values: FloatVector) -> str:
    return base64.b64encode(np.ascontiguousarray(values, "<f8").tobytes()).decode("ascii")


def _unpacked(text: str) -> FloatVector:
    return np.frombuffer(base64.b64decode(text, validate=True), "<f8").astype(np.float64)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """The means of the reducers of a program that ended."""

    count: int = 0
    lengths_s: tuple[float, ...] = (0.0,) * RULES  # of each phase
    input_bytes: float = 0.0  # of a reducer

    def after(self, lengths_s: Sequence[float], input_bytes: float) -> "Phases":
        """Return the means with one reducer more; beyond `_MOST` of them the older ones count less."""
        count = self.count + 1
        share = 1.0 / min(count, _MOST)
        means_s = (mean + share * (new - mean) for mean, new in zip(self.lengths_s, lengths_s, strict=True))
        mean_bytes = self.input_bytes + share * (input_bytes - self.input_bytes)
        return Phases(count=count, lengths_s=tuple(means_s), input_bytes=mean_bytes)

    def left(self, samples: FloatVector, unit_s: float, unit_bytes: float) -> FloatVector:
        """Return how long reducers still run, shape [M], from samples, shape [M, 10], in units of time and input."""
        done = (1.0 - samples[:, REST]) * RULES
        phase = np.clip((done + _ROUNDING).astype(np.intp), 0, RULES - 1)
        done = np.clip(done - phase, 0.0, 1.0)
        size = np.where(samples[:, INPUT] > 0, samples[:, INPUT] * unit_bytes, self.input_bytes)
        by_input = np.sqrt(size / self.input_bytes) if self.input_bytes > 0 else np.ones(len(samples))
        usual = np.array(self.lengths_s) / unit_s * np.clip(by_input, 1.0 / _MOST_TIMES, _MOST_TIMES)[:, None]
        ahead = usual[:, ::-1].cumsum(axis=1)[:, ::-1] - usual  # of the phases after each, shape [M, J]
        rows = np.arange(len(samples))
        present = np.maximum(usual[rows, phase], _LEAST_S / unit_s)
        length = (samples[:, LASTED] + _PRIOR * present) / (done + _PRIOR)
        slower = np.clip(length / present, 1.0 / _MOST_TIMES, _MOST_TIMES)
        slower = np.where(phase > 0, np.sqrt(slower), 1.0)  # a shuffle waits for maps
        found: FloatVector = (1.0 - done) * length + slower * ahead[rows, phase]
        return found

    def dump(self) -> list[float]:
        """Return the means as JSON values."""
        return [self.count, *self.lengths_s, self.input_bytes]

    @classmethod
    def restored(cls, numbers: Any) -> "Phases | None":
        """Return the means of a dump; None where it is none."""
        if not isinstance(numbers, list) or len(numbers) != RULES + 2:
            return None
        if not all(isinstance(number, int | float) and 0 <= number < math.inf for number in numbers):
            return None
        count, *lengths_s, input_bytes = numbers
        return cls(count=int(count), lengths_s=tuple(map(float, lengths_s)), input_bytes=float(input_bytes))


UNKNOWN = Phases()  # of a program none of whose reducers has ended
_MOST = 64  # reducers, after which one more counts as much as all others together do less (as `run_times.fit`)
_PRIOR = 0.3  # part of a phase after which its own pace counts as much as what the phase usually takes
_MOST_TIMES = 4.0  # by which an estimate differs from the usual length
_LEAST_S = 0.1
_ROUNDING = 1e-9
