"""How long maps and reducers run, as reports tell and a fuzzy model predicts (iKayak, 3.1.2, eqs 1-6).

The fuzzy model of a reducer's remaining time is NARX, Takagi-Sugeno, and self-learning. A sample at time t is, with n_y
= 2 and n_u = 1 (readings), a row of

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
* λ_f is how much a reducer counts once the next has ended: each of its n samples is forgotten by λ_f^(1/n). With 0.98
  for each sample only the last two or three reducers would count, and the model was worse than the mean of the class:
  NRMSE 0.55 to 1.07 instead of 0.27 to 0.41, the mean's 0.43 to 0.48 (four runs of
  `boathouse_lab.reproduce.ikayak.predicting`).
* What P allows for a direction that is never excited would grow without end (windup): u and d hardly vary within a
  class. Once its trace is over a bound, P's eigenvalues are cut to a hundred times what they were at first.

A class of jobs is the program (`Job.kind`); a job that names none is a class of its own. Each class has a fuzzy model.

What is left cannot be measured while a reducer runs: a lag is (1 - progress)/rate, with the rate since the present
phase began (readings). Each third of the progress is a phase, as Hadoop counts. Time during which the reducer was
suspended counts in no rate: what is predicted is the time that it must still run.
"""

from __future__ import annotations

import base64
import dataclasses
import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from boathouse_policies.framework.crowding import Programs
from boathouse_policies.model import FloatVector, Stage, TaskClass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_policies.ikayak.config import Config


Sample: TypeAlias = "FloatVector"
"""X and the premise variables, shape [8]."""

WIDTH = 6
"""Length of X."""
RULES = 3
"""Shuffle, sort, reduce."""

_MOST_TRACE, _CUT = 1e6, 100.0
_AT_ONCE = 32


_PHASE_WIDTH = 0.12  # two rules fire alike halfway between their centres, at 1.4 widths from each
_CENTRES: FloatVector = np.array([[5.0], [3.0], [1.0]]) / 6.0
"""What is left of the work in the middle of shuffle, sort and reduce: each is a third, as Hadoop counts."""


def firing(premise: FloatVector) -> FloatVector:
    """Return σ: how much each rule fires, by what is left of the work at the two lags.

    Args:
        premise: Shape [..., 2].

    Returns:
        Shape [..., J], at least 0, adding up to 1.
    """
    exponents = -0.5 * (((premise[..., None, :] - _CENTRES) / _PHASE_WIDTH) ** 2).sum(axis=-1)
    fired = np.exp(exponents - exponents.max(axis=-1, keepdims=True))  # far from all rules the nearest still fires
    return np.asarray(fired / fired.sum(axis=-1, keepdims=True))


class Fuzzy:
    """One model, of one class of jobs.

    Args:
        config: λ_f, from reducer to reducer; τ; and the variance of the prior rules' parameters.

    Attributes:
        parameters: φ, shape [J·6].
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self.parameters: FloatVector = prior()
        self._p: FloatVector = np.eye(len(self.parameters)) * config.trust

    def rows(self, samples: Sequence[Sample]) -> FloatVector:
        """Return χ = σ ⊗ X: shape [M, J·6]."""
        rows = np.stack(samples)
        return (firing(rows[:, WIDTH:])[:, :, None] * rows[:, None, :WIDTH]).reshape(len(rows), -1)

    def predict(self, samples: Sequence[Sample]) -> FloatVector:
        """Predict ŷ of each sample; never below 0."""
        return np.maximum(self.rows(samples) @ self.parameters, 0.0)

    def fit(self, samples: Sequence[Sample], labels: FloatVector) -> None:
        """Learn a reducer's history: samples in order of time and the true y of each.

        All at once: the same as one update after the other, each forgetting λ_f^(1/n).
        """
        if not samples:
            return
        rows, count, forgetting = self.rows(samples), len(samples), self._config.forgetting
        root = np.sqrt(forgetting ** ((count - 1 - np.arange(count)) / count))
        earlier = math.sqrt(self._config.discount) * root[1:]
        self._learn(
            np.concatenate([rows * root[:, None], rows[:-1] * earlier[:, None]]),
            np.concatenate([labels * root, labels[:-1] * earlier]),
            forgetting,
        )

    def _learn(self, rows: FloatVector, labels: FloatVector, forgetting: float) -> None:
        """Update K, φ and P of the module's docstring, for any number of rows at once.

        Args:
            rows: Χ, shape [M, J·6].
            labels: Y, shape [M].
            forgetting: λ_f.
        """
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

    # State

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


Key: TypeAlias = str
"""Of a class of jobs: its program, or a job's id."""

UNIT_S = 60.0
"""Times in the model are in minutes, so that all regressors are of about one size."""
UNIT_BYTES = float(1 << 30)
"""Inputs in the model are in GiB."""
LEAST_SEEN = 0.05
"""Of a phase, before its pace counts: that of its first moments may be wrong a hundredfold."""
MOST_SAMPLES = 128
"""Kept of a reducer; then every second one is dropped and only every second is taken."""


@dataclasses.dataclass(slots=True, eq=False)
class History:
    """The reports of one reducer.

    Attributes:
        since_s: When the present phase began, in running time; its start at first.
        at_s: The time of the newest sample.
        now: The newest sample; None before there is one.
        times_s: Running time, without suspensions, at each kept sample.
        samples: The kept samples.
        away_s: How long it was suspended so far.
    """

    since_s: float
    at_s: float = -math.inf
    now: Sample | None = None
    times_s: list[float] = dataclasses.field(default_factory=list)
    samples: list[Sample] = dataclasses.field(default_factory=list)
    away_s: float = 0.0
    _phase: int = 0
    _taken: int = 0
    _skip: int = 1

    def report(self, now_s: float, fraction: float, cpu: float, input_bytes: float) -> None:
        """Take a report of its progress.

        Args:
            now_s: When.
            fraction: 0..1.
            cpu: CPU that it has, as a share of what it requested.
            input_bytes: Of the reducer.
        """
        running_s = now_s - self.away_s
        phase = min(int(fraction * RULES + _ROUNDING), RULES - 1)
        if phase != self._phase:
            self.since_s = self._began_s(phase, running_s)
            self._phase = phase
        done = fraction - phase / RULES
        if done * RULES < LEAST_SEEN or running_s <= self.since_s:
            return  # little is known of its pace yet: what the last sample said holds on
        rest = 1.0 - fraction
        left = rest * (running_s - self.since_s) / done / UNIT_S
        left_before, cpu_before, rest_before = (left, cpu, rest) if self.now is None else self.now[_LAG]
        self.now = np.array([left, left_before, cpu_before, cpu, input_bytes / UNIT_BYTES, 1.0, rest, rest_before])
        self.at_s = now_s
        self._keep(self.now, running_s)

    def _began_s(self, phase: int, running_s: float) -> float:
        """Return when the phase began: by the pace of the one before, between the last report and this one."""
        if self.now is None or not self.times_s:
            return self.since_s
        left, _, rest = self.now[_LAG].tolist()
        pace = rest / max(left * UNIT_S, _ROUNDING)
        last_s = self.at_s - self.away_s
        began_s: float = last_s + (phase / RULES - (1.0 - rest)) / max(pace, _ROUNDING)
        return min(max(last_s, began_s), running_s - _SHORT_S)

    def _keep(self, sample: Sample, running_s: float) -> None:
        self._taken += 1
        if self._taken % self._skip:
            return
        self.times_s.append(running_s)
        self.samples.append(sample)
        if len(self.samples) > MOST_SAMPLES:
            del self.times_s[::2], self.samples[::2]
            self._skip *= 2

    def labels(self, ended_s: float) -> FloatVector:
        """Return what was really left at each kept sample, in the model's unit."""
        return np.maximum(ended_s - self.away_s - np.array(self.times_s), 0.0) / UNIT_S


@dataclasses.dataclass(slots=True)
class Mean:
    """A mean of run times."""

    count: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """Take one more into the mean."""
        self.count += 1
        self.seconds += (seconds - self.seconds) / self.count


class Bank:
    """One fuzzy model for each class of jobs, and how long their tasks took: what outlasts jobs and restarts.

    Args:
        config: The constants.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._models: Programs[Fuzzy] = Programs(config.models_kept)
        self._means: Programs[dict[str, Mean]] = Programs(config.programs_kept)
        self._maps = Mean()

    def model(self, key: Key) -> Fuzzy:
        """Return the model of a class; the prior rules if nothing was learned of it."""
        return self._models.get(key) or Fuzzy(self._config)

    # Learning

    def ended(self, key: Key, stage: Stage, seconds: float) -> None:
        """Learn how long a map or reducer took."""
        means = self._means.use(key) or {}
        means.setdefault(stage, Mean()).add(seconds)
        self._means.put(key, means)
        if stage is Stage.MAP:
            self._maps.add(seconds)

    def learn(self, key: Key, history: History, ended_s: float) -> None:
        """Learn from the reports of a reducer that ended: their labels are known now, and are replayed."""
        model = self._models.use(key) or Fuzzy(self._config)
        model.fit(history.samples, history.labels(ended_s))
        self._models.put(key, model)

    def forget(self, key: Key) -> None:
        """Forget a class: no job of it will ever come again."""
        self._models.pop(key, None)
        self._means.pop(key, None)

    # Predicting

    def mean_s(self, key: Key, stage: Stage) -> float | None:
        """Return the mean of a class' maps or reducers; None if none has ended."""
        known = self._means.get(key, {}).get(stage)
        return None if known is None else known.seconds

    def length_s(self, key: Key, task_class: TaskClass) -> float:
        """Return how long a map or reducer runs: as others of its class, else as stated, else as all maps did."""
        known_s = self.mean_s(key, task_class.stage)
        if known_s is None:
            known_s = task_class.estimates.duration_s(task_class.resources)
        if known_s is None and task_class.stage is Stage.REDUCE:
            return self._config.reduce_s
        if known_s is None:
            return self._maps.seconds if self._maps.count else self._config.map_s
        return known_s

    def left_s(self, keys: Sequence[Key], samples: Sequence[Sample]) -> FloatVector:
        """Predict the remaining times of many reducers, shape [M], at the times of their samples."""
        found = np.zeros(len(keys))
        groups: dict[Key, list[int]] = {}
        for i, key in enumerate(keys):
            groups.setdefault(key, []).append(i)
        for key, members in groups.items():
            found[members] = self.model(key).predict([samples[i] for i in members]) * UNIT_S
        return found

    # State

    def dump(self) -> Mapping[str, Any]:
        """Return all models and means, as JSON values."""
        means = [
            [key, stage, mean.count, mean.seconds]
            for key, known in self._means.items()
            for stage, mean in known.items()
        ]
        models = {key: model.dump() for key, model in self._models.items()}
        return {"models": models, "means": means, "maps": [self._maps.count, self._maps.seconds]}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump; what is not understood is left out."""
        models = state.get("models")
        for key, dumped in models.items() if isinstance(models, dict) else ():
            model = Fuzzy(self._config)
            model.load(dumped)
            self._models.put(key, model)
        for key, stage, count, seconds in _rows(state.get("means"), 4):
            known = self._means.use(str(key)) or {}
            self._means.put(str(key), known | {str(stage): Mean(int(count), float(seconds))})
        for count, seconds in _rows([state.get("maps")], 2):
            self._maps = Mean(int(count), float(seconds))


def _rows(found: Any, width: int) -> list[Any]:
    """Return the rows of so many values that end in a finite number."""
    rows = [row for row in found if isinstance(row, list) and len(row) == width] if isinstance(found, list) else []
    return [row for row in rows if isinstance(row[-1], int | float) and math.isfinite(row[-1])]


_LAG = [0, 3, WIDTH]  # of a sample: y, u and what is left of the work, at its own time
_ROUNDING = 1e-9
_SHORT_S = 0.5  # a phase that is seen has lasted so long at least
