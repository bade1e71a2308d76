"""How long maps and reducers run: reports of a reducer, and what is learned from it once it has ended (3.1.2).

A class of jobs is the program (`Job.kind`); a job that names none is a class of its own. Each class has a fuzzy model.

What is left cannot be measured while a reducer runs: a lag is (1 - progress)/rate, with the rate since the present
phase began (readings). Each third of the progress is a phase, as Hadoop counts. Time during which the reducer was
suspended counts in no rate: what is predicted is the time that it must still run.

Deviation: with `Config.best_predictor` each class is predicted by whichever has predicted its reducers best so far,
always before they were learned from.

| predictor | what is left |
|---|---|
| fuzzy | the paper's, `predictors.Fuzzy` |
| phases | the present phase by its pace, those ahead as the class' reducers took: `predictors.Phases` |
| mean | the mean time of the class' reducers, less the time so far: what is trivial |
"""

import dataclasses
import enum
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, assert_never

import numpy as np

from boathouse_policies.framework import Figure
from boathouse_policies.framework.programs import Contest, Programs
from boathouse_policies.ikayak.config import Config
from boathouse_policies.ikayak.predictors import INPUT, LAG, RAN, RULES, UNKNOWN, WIDTH, Fuzzy, Phases, Sample
from boathouse_policies.model import FloatVector, Stage, TaskClass

Key: TypeAlias = str  # of a class of jobs: its program, or a job's id

UNIT_S = 60.0  # times in the model are in minutes, so that all regressors are of about one size
UNIT_BYTES = float(1 << 30)  # inputs in the model are in GiB
LEAST_SEEN = 0.05  # of a phase, before its pace counts: that of its first moments may be wrong a hundredfold
MOST_SAMPLES = 128  # kept of a reducer; then every second one is dropped and only every second is taken


@dataclasses.dataclass(slots=True, eq=False)
class History:
    """The reports of one reducer."""

    since_s: float  # when the present phase began, in running time; its start at first
    at_s: float = -math.inf  # the time of the newest sample
    now: Sample | None = None  # the newest sample; None before there is one
    times_s: list[float] = dataclasses.field(default_factory=list)
    """Running time, without suspensions, at each kept sample."""
    samples: list[Sample] = dataclasses.field(default_factory=list)  # the kept samples
    away_s: float = 0.0  # how long it was suspended so far
    began_s: float = dataclasses.field(init=False)
    lengths_s: list[float] = dataclasses.field(default_factory=lambda: [0.0] * RULES)
    """Of its phases that are over, in running time."""
    _phase: int = 0
    _taken: int = 0
    _skip: int = 1

    def __post_init__(self) -> None:
        self.began_s = self.since_s

    def report(self, now_s: float, fraction: float, cpu: float, input_bytes: float) -> None:
        """Take a report of its progress, 0..1, with the CPU that it has, as a share of what it requested."""
        running_s = now_s - self.away_s
        phase = min(int(fraction * RULES + _ROUNDING), RULES - 1)
        if phase != self._phase:
            began_s = self._phase_began_s(phase, running_s)
            self.lengths_s[self._phase] += began_s - self.since_s
            self.since_s, self._phase = began_s, phase
        done = fraction - phase / RULES
        if done * RULES < LEAST_SEEN or running_s <= self.since_s:
            return  # little is known of its pace yet: what the last sample said holds on
        rest, lasted_s, ran_s = 1.0 - fraction, running_s - self.since_s, running_s - self.began_s
        left = rest * lasted_s / done / UNIT_S
        left_before, cpu_before, rest_before = (left, cpu, rest) if self.now is None else self.now[_LAGS]
        regressors = [left, left_before, cpu_before, cpu, input_bytes / UNIT_BYTES, 1.0]
        self.now = np.array([*regressors, rest, rest_before, lasted_s / UNIT_S, ran_s / UNIT_S])
        self.at_s = now_s
        self._keep(self.now, running_s)

    def _phase_began_s(self, phase: int, running_s: float) -> float:
        """Return when the phase began: by the pace of the one before, between the last report and this one."""
        if self.now is None or not self.times_s:
            return self.since_s
        left, _, rest = self.now[_LAGS].tolist()
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

    def all_lengths_s(self, ended_s: float) -> list[float]:
        """Return how long each phase lasted, of a reducer that ended; those after the last report lasted alike."""
        ended_s -= self.away_s
        found, last = list(self.lengths_s), self._phase
        later = RULES - 1 - last
        over_s = max(self._phase_began_s(last + 1, ended_s), self.since_s) if later else ended_s
        found[last] += over_s - self.since_s
        found[last + 1 :] = [(ended_s - over_s) / max(later, 1)] * later
        return [max(length_s, 0.0) for length_s in found]

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


class Predictor(enum.IntEnum):
    """What can predict the remaining time of a reducer."""

    FUZZY = 0
    PHASES = 1
    MEAN = 2


class Bank:
    """One fuzzy model for each class of jobs, and how long their tasks took: what outlasts jobs and restarts."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._models: Programs[Fuzzy] = Programs(config.models_kept)
        self._means: Programs[dict[str, Mean]] = Programs(config.programs_kept)
        self._phases: Programs[Phases] = Programs(config.programs_kept)
        self._contest = Contest(config.programs_kept, len(Predictor))
        self._maps = Mean()

    def model(self, key: Key) -> Fuzzy:
        """Return the model of a class; the prior rules if nothing was learned of it."""
        return self._models.get(key) or Fuzzy(self._config)

    def ended(self, key: Key, stage: Stage, seconds: float) -> None:
        """Learn how long a map or reducer took."""
        means = self._means.use(key) or {}
        means.setdefault(stage, Mean()).add(seconds)
        self._means.put(key, means)
        if stage is Stage.MAP:
            self._maps.add(seconds)

    def learn(self, key: Key, history: History, ended_s: float) -> None:
        """Learn from the reports of a reducer that ended, before `ended`: so the mean is judged by what it knew."""
        samples, labels = history.samples, history.labels(ended_s)
        self._judge(key, samples, labels)
        model = self._models.use(key) or Fuzzy(self._config)
        model.fit(samples, labels)
        self._models.put(key, model)
        if samples:
            input_bytes = float(samples[-1][INPUT]) * UNIT_BYTES
            self._phases.put(key, self._phases.get(key, UNKNOWN).after(history.all_lengths_s(ended_s), input_bytes))

    def _judge(self, key: Key, samples: Sequence[Sample], labels: FloatVector) -> None:
        """Compare all predictors with what was left, once all of them know the class."""
        if not samples or key not in self._phases or self.mean_s(key, Stage.REDUCE) is None:
            return
        left = max(float(labels.mean()), _LEAST_LEFT)
        squares = [((self.predicted(key, which, samples) - labels) ** 2).mean() for which in Predictor]
        self._contest.judge(key, [math.sqrt(square) / left for square in squares])

    def forget(self, key: Key) -> None:
        """Forget a class: no job of it will ever come again."""
        for table in (self._models, self._means, self._phases):
            table.pop(key, None)
        self._contest.forget(key)

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
            found[members] = self.predicted(key, self.predictor(key), [samples[i] for i in members]) * UNIT_S
        return found

    def predictor(self, key: Key) -> Predictor:
        """Return what predicts the reducers of a class."""
        return Predictor(self._contest.best(key)) if self._config.best_predictor else Predictor.FUZZY

    def standing(self, key: Key) -> tuple[Figure, ...]:
        """Return which predictor is the best of a class, and its mean relative error."""
        error = self._contest.error(key) if self._config.best_predictor else None
        return () if error is None else (("remainingPredictor", float(self.predictor(key))), ("remainingError", error))

    def predicted(self, key: Key, by: Predictor, samples: Sequence[Sample]) -> FloatVector:
        """Return what a predictor says is left at samples of reducers of a class, in the model's unit, shape [M]."""
        match by:
            case Predictor.FUZZY:
                return self.model(key).predict(samples)
            case Predictor.PHASES:
                return self._phases.get(key, UNKNOWN).left(np.stack(samples), UNIT_S, UNIT_BYTES)
            case Predictor.MEAN:
                ran = np.array([sample[RAN] for sample in samples])
                return np.maximum((self.mean_s(key, Stage.REDUCE) or 0.0) / UNIT_S - ran, 0.0)
            case _:
                assert_never(by)

    def dump(self) -> Mapping[str, Any]:
        """Return all models and means, as JSON values."""
        stages = [(key, stage, mean) for key, known in self._means.items() for stage, mean in known.items()]
        means = [[key, stage, mean.count, mean.seconds] for key, stage, mean in stages]
        models = {key: model.dump() for key, model in self._models.items()}
        phases = {key: usual.dump() for key, usual in self._phases.items()}
        maps = [self._maps.count, self._maps.seconds]
        return {"models": models, "means": means, "phases": phases, "contest": self._contest.dump(), "maps": maps}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump; what is not understood is left out."""
        models = state.get("models")
        for key, dumped in models.items() if isinstance(models, dict) else ():
            model = Fuzzy(self._config)
            model.load(dumped)
            self._models.put(key, model)
        phases = state.get("phases")
        for key, numbers in phases.items() if isinstance(phases, dict) else ():
            if (usual := Phases.restored(numbers)) is not None:
                self._phases.put(str(key), usual)
        self._contest.load(state.get("contest"))
        for key, stage, count, seconds in _rows(state.get("means"), 4):
            known = self._means.use(str(key)) or {}
            self._means.put(str(key), known | {str(stage): Mean(int(count), float(seconds))})
        for count, seconds in _rows([state.get("maps")], 2):
            self._maps = Mean(int(count), float(seconds))


def _rows(found: Any, width: int) -> list[Any]:
    """Return the rows of so many values that end in a finite number."""
    rows = [row for row in found if isinstance(row, list) and len(row) == width] if isinstance(found, list) else []
    return [row for row in rows if isinstance(row[-1], int | float) and math.isfinite(row[-1])]


_LAGS = [LAG, 3, WIDTH]  # of a sample: y, u and what is left of the work, at its own time
_ROUNDING = 1e-9
_LEAST_LEFT = 1.0 / UNIT_S  # what errors are compared with at least
_SHORT_S = 0.5  # a phase that is seen has lasted so long at least
