"""Online adaptation of the interference model (4.1): a fit for every k new observations, and the model's current error.

Until the first fit, and with little weight in all, stands what `offline` tells, where the paper trained first. A fit
keeps the variables of the model before, which takes a few milliseconds; variables are selected anew only
while the error is not acceptable, and then after four times as many fits each time.
"""

from __future__ import annotations

import collections
import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from boathouse_policies.ila import families, fitting, offline
from boathouse_policies.ila.config import Family

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_policies.ila import metrics
    from boathouse_policies.ila.config import Config


class Learner:
    """The model, and what it learns from.

    Args:
        config: The constants.

    Attributes:
        model: The current one.
        error: The mean of |S - predicted| / S, of observations that it was not fitted to (5.4).
        fits: How often it was fitted.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self.model: families.Model = offline.model()
        self._first, self._offline = offline.model(), offline.samples()
        self.error = config.first_error
        self.fits = 0
        self._fresh: list[list[float]] = []
        self._reserved = {kind: collections.deque[list[float]](maxlen=config.window) for kind in (False, True)}
        self._fitted = False
        self._patience = _FIRST_PATIENCE
        self._since_selection = 0

    def train(self, samples: fitting.Samples) -> None:
        """Offline training (4.1) on this cluster: what was seen then stays in every fit, instead of what stands for it.

        Args:
            samples: Of both kinds and of any load. Too few change nothing.
        """
        found = fitting.fit(self._config.family, samples)
        if found is None:
            return
        reserved = np.arange(0, len(samples), max(1, len(samples) // _KEPT))
        self.model, self._fitted = found, True
        self._offline = dataclasses.replace(samples.of(reserved), counted=np.full(len(reserved), _COUNTED))
        if isinstance(found, families.Exponential):
            self._first = found

    def observe(self, system: list[float], task: metrics.Demand, slowdown: float) -> bool:
        """A task has ended.

        Args:
            system: The system's metrics while it ran, length 8.
            task: Its demand.
            slowdown: S.

        Returns:
            Whether the model is another one now.
        """
        row = [*system, *task, slowdown]
        self._fresh.append(row)
        self._reserved[task.io_bound].append(row)
        return len(self._fresh) >= self._config.refit_every and self.update()

    def update(self) -> bool:
        """Judge the model by what is new, then fit it; whether it is another one now."""
        fresh = fitting.Samples.of_rows(self._fresh)
        self._fresh = []
        if not len(fresh):
            return False
        missed = float((np.abs(fresh.slowdown - self.model.predict(fresh.rows)) / fresh.slowdown).mean())
        self.error += _NEW * (missed - self.error)
        self._since_selection += 1
        again = self._fitted and not self._is_due()
        every = fitting.Samples.of_rows([row for reserved in self._reserved.values() for row in reserved])
        every = every.beside(self._offline)
        found = fitting.fit(self._config.family, every, before=self.model if again else None, start=self._first)
        if found is None:
            return False
        if not again:
            self._patience, self._since_selection = self._patience * _GROWTH if self._fitted else _FIRST_PATIENCE, 0
        self.model, self._fitted = found, True
        self.fits += 1
        return True

    def _is_due(self) -> bool:
        """Whether the variables are to be selected anew."""
        return self.error > self._config.acceptable_error and self._since_selection >= self._patience

    def dump(self) -> Mapping[str, Any]:
        """The model and its error; what it was fitted to is observed anew."""
        return {"model": self.model.dump(), "error": round(self.error, 4), "fitted": self._fitted}

    def load(self, state: Mapping[str, Any]) -> None:
        """The inverse of `dump`; a model of another family than the configured one is not taken over."""
        model, fitted = state.get("model"), bool(state.get("fitted", False))
        if model is None or model.get("family") not in tuple(Family):
            return
        if fitted and model["family"] != self._config.family:
            return
        self.model, self._fitted = families.load(model), fitted
        self.error = float(state.get("error", self._config.first_error))


_FIRST_PATIENCE, _GROWTH = 1, 4  # fits between two selections
_KEPT, _COUNTED = 400, 0.25  # arbitrary: of the offline samples; together as much as a hundred new ones
_NEW = 0.3  # arbitrary: how much a hundred new observations count in the error
