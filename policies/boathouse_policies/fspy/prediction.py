"""Total execution times, predicted from features (FSPY, III.A).

Deviations:
* A prediction below the function time itself (MFE, RFE), which a linear model may give, counts as that time.
* Predictions are kept per program (`Job.kind`), which the paper does not do: what one probe measured, per byte of
  input, serves the later jobs of its kind, which then need no probe and no time in the fair sub-queue.
* A model predicts only once it has learnt from `least_jobs` jobs; before, jobs stay in the fair sub-queue.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from boathouse_policies.framework.crowding import crowded_out
from boathouse_policies.fspy import features as _features
from boathouse_policies.fspy.regression import LinearModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_policies import model
    from boathouse_policies.fspy.config import Config
    from boathouse_policies.fspy.features import Features


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TotalTimes:
    """SE_m and SE_r."""

    map_s: float
    reduce_s: float


class Predictor:
    """The two models, the features of known programs, and the mean time of uber tasks."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.maps = LinearModel(_features.MAP_COLUMNS, config.forgetting)
        self.reduces = LinearModel(_features.REDUCE_COLUMNS, config.forgetting)
        self._kinds: dict[str, model.FloatVector] = {}
        self._uber: dict[str, tuple[int, float]] = {}

    # Normal jobs

    def learn(self, features: Features, times: TotalTimes) -> None:
        """A job is over: its probed features and its actual times."""
        if features.maps:
            self.maps.update(features.map_row(), times.map_s, features.maps)
        if features.reduces:
            self.reduces.update(features.reduce_row(times.map_s), times.reduce_s, features.reduces)

    def predict(self, features: Features) -> TotalTimes | None:
        """What a job will take; None while too little was learnt.

        SE_r is predicted from the predicted SE_m: the actual one is not known yet.
        """
        least = self._config.least_jobs
        if (features.maps and self.maps.seen < least) or (features.reduces and self.reduces.seen < least):
            return None
        map_s = reduce_s = 0.0
        if features.maps:
            map_s = max(self.maps.predict(features.map_row()), features.map_function_s)
        if features.reduces:
            reduce_s = max(self.reduces.predict(features.reduce_row(map_s)), features.reduce_function_s)
        return TotalTimes(map_s=map_s, reduce_s=reduce_s)

    # Programs

    def remember(self, kind: str, features: Features) -> None:
        """Keep what a probe of a program measured."""
        if not kind or features.map_input_bytes <= 0:
            return
        sums = self._kinds.pop(kind, np.zeros(len(features.amounts())))
        self._kinds[kind] = sums + features.amounts()
        if len(self._kinds) > self._config.kinds_kept:
            del self._kinds[crowded_out(self._kinds)]

    def recall(self, kind: str, *, input_bytes: float, maps: int, reduces: int) -> Features | None:
        """The features of a job of a program that was probed before, by its input; None if it was not."""
        sums = self._kinds.pop(kind, None)
        if sums is None or input_bytes <= 0:
            return None
        self._kinds[kind] = sums  # now the last used
        return _features.of_amounts(sums * (input_bytes / sums[0]), maps=maps, reduces=reduces)

    # Uber jobs

    def learn_uber(self, kind: str, task_s: float) -> None:
        """An uber task succeeded."""
        for key in dict.fromkeys((kind, _ALL)):
            count, total_s = self._uber.pop(key, (0, 0.0))
            self._uber[key] = (count + 1, total_s + task_s)
        kinds = [key for key in self._uber if key != _ALL]
        if len(kinds) > self._config.kinds_kept:
            del self._uber[crowded_out(kinds)]

    def uber_s(self, kind: str) -> float | None:
        """The historic mean: of the program where it is known, else of all; None if none was seen."""
        known = self._uber.get(kind) or self._uber.get(_ALL)
        return None if known is None else known[1] / known[0]

    # State

    def dump(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "maps": self.maps.dump(),
            "reduces": self.reduces.dump(),
            "kinds": {kind: sums.tolist() for kind, sums in self._kinds.items()},
            "uber": {kind: list(known) for kind, known in self._uber.items()},
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump; entries that no dump holds are left out.

        Raises:
            ValueError: The dump of a model is none.
        """
        self.maps.load(state.get("maps", {}))
        self.reduces.load(state.get("reduces", {}))
        amounts = {kind: np.array(sums, np.float64) for kind, sums in state.get("kinds", {}).items()}
        known = {kind: sums for kind, sums in amounts.items() if sums.shape == (_features.AMOUNTS,)}
        self._kinds = {
            kind: sums for kind, sums in known.items() if sums[0] > 0 and np.isfinite(sums).all() and sums.min() >= 0
        }
        uber = {kind: (int(count), float(total)) for kind, (count, total) in state.get("uber", {}).items()}
        self._uber = {
            kind: (count, total) for kind, (count, total) in uber.items() if count > 0 and 0 <= total < np.inf
        }


_ALL = ""
