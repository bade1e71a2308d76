"""How long maps and reducers run: reports of a reducer, and what is learned from it once it has ended (3.1.2).

A class of jobs is the program (`Job.kind`); a job that names none is a class of its own. Each class has a fuzzy model.

What is left cannot be measured while a reducer runs: a lag is (1 - progress)/rate, with the rate since the present
phase began (readings). Each third of the progress is a phase, as Hadoop counts. Time during which the reducer was
suspended counts in no rate: what is predicted is the time that it must still run.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from boathouse_policies.framework.crowding import Programs
from boathouse_policies.ikayak.fuzzy import RULES, WIDTH, Fuzzy, Sample
from boathouse_policies.model import FloatVector, Stage, TaskClass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_policies.ikayak.config import Config

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
