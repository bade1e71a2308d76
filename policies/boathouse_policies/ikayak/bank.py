"""One fuzzy model for each class of jobs, and how long their tasks took: what iKayak remembers over jobs and restarts.

A class of jobs is the program (`Job.kind`); a job that names none is a class of its own.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from boathouse_policies.ikayak.fuzzy import Fuzzy
from boathouse_policies.ikayak.history import UNIT_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_policies.ikayak.config import Config
    from boathouse_policies.ikayak.fuzzy import Sample
    from boathouse_policies.ikayak.history import History
    from boathouse_policies.model import FloatVector

Key: TypeAlias = str
"""Of a class of jobs: its program, or a job's id."""

_STAGES = ("map", "reduce")


@dataclasses.dataclass(slots=True)
class Mean:
    """A mean of run times."""

    count: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """One more."""
        self.count += 1
        self.seconds += (seconds - self.seconds) / self.count


class Bank:
    """See the module's docstring.

    Args:
        config: The constants.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._models: dict[Key, Fuzzy] = {}
        self._means: dict[tuple[Key, str], Mean] = {}
        self._maps = Mean()

    def _new(self) -> Fuzzy:
        one = self._config
        return Fuzzy(forgetting=one.forgetting, discount=one.discount, trust=one.trust)

    def model(self, key: Key) -> Fuzzy:
        """The model of a class; the prior rules if nothing was learned of it."""
        return self._models.get(key) or self._new()

    # Learning

    def map_ended(self, key: Key, seconds: float) -> None:
        """A map took so long."""
        self._maps.add(seconds)
        self._means.setdefault((key, "map"), Mean()).add(seconds)

    def reduce_ended(self, key: Key, seconds: float, history: History, ended_s: float) -> None:
        """A reducer took so long: its labels are known now, and are replayed."""
        self._means.setdefault((key, "reduce"), Mean()).add(seconds)
        one = self._models.pop(key, None) or self._new()
        self._models[key] = one  # the last used is the last to be forgotten
        one.fit(history.samples, history.labels(ended_s))
        while len(self._models) > self._config.models_kept:
            self._forget(next(iter(self._models)))

    def _forget(self, key: Key) -> None:
        self._models.pop(key, None)
        for stage in _STAGES:
            self._means.pop((key, stage), None)

    def over(self, key: Key) -> None:
        """No job of the class will ever come again."""
        self._forget(key)

    # Predicting

    def map_s(self, key: Key, stated_s: float | None) -> float:
        """How long a map of a class runs: what others took, else what is stated, else the mean of all."""
        known = self._means.get((key, "map"))
        if known is not None:
            return known.seconds
        if stated_s is not None:
            return stated_s
        return self._maps.seconds if self._maps.count else self._config.map_s

    def reduce_s(self, key: Key) -> float | None:
        """The mean of a class' reducers; None if none has ended."""
        known = self._means.get((key, "reduce"))
        return None if known is None else known.seconds

    def left_s(self, keys: Sequence[Key], samples: Sequence[Sample]) -> FloatVector:
        """Predicted remaining times of many reducers, shape [M], at the times of their samples."""
        found = np.zeros(len(keys))
        groups: dict[Key, list[int]] = {}
        for i, key in enumerate(keys):
            groups.setdefault(key, []).append(i)
        for key, members in groups.items():
            regressor = np.stack([samples[i].regressor for i in members])
            premise = np.stack([samples[i].premise for i in members])
            found[members] = self.model(key).predict(regressor, premise) * UNIT_S
        return found

    # State

    def dump(self) -> Mapping[str, Any]:
        """All models and means, as JSON values."""
        means = [[key, stage, one.count, one.seconds] for (key, stage), one in self._means.items()]
        models = {key: one.dump() for key, one in self._models.items()}
        return {"models": models, "means": means, "maps": [self._maps.count, self._maps.seconds]}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump; what is not understood is left out."""
        models = state.get("models")
        for key, dumped in models.items() if isinstance(models, dict) else ():
            self._models[key] = one = self._new()
            one.load(dumped)
        for key, stage, count, seconds in _rows(state.get("means"), 4):
            self._means[str(key), str(stage)] = Mean(int(count), float(seconds))
        for count, seconds in _rows([state.get("maps")], 2):
            self._maps = Mean(int(count), float(seconds))


def _rows(found: Any, width: int) -> list[Any]:
    rows = found if isinstance(found, list) else []
    return [row for row in rows if isinstance(row, list) and len(row) == width and _is_finite(row[-1])]


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
