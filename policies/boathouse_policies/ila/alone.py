"""The run time without neighbours, T of S = T_real / T (4.1), of classes of which nobody states it.

The paper measured it offline, on idle hosts. Here it is what the model makes of the run times seen: the sum of the run
times over the sum of the slowdowns that were predicted for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from boathouse_policies import model
    from boathouse_policies.ila import metrics
    from boathouse_policies.ila.families import Model


class Alone:
    """Run times without neighbours, by class."""

    def __init__(self) -> None:
        self._sums: dict[model.ClassId, tuple[int, float, float]] = {}

    def seconds(self, one: model.ClassId) -> float | None:
        """The run time; None until a few tasks have ended."""
        count, took_s, slower = self._sums.get(one, (0, 0.0, 1.0))
        return took_s / slower if count >= _FEW else None

    def ended(
        self, one: model.ClassId, took_s: float, interference: Model, system: list[float], demand: metrics.Demand
    ) -> None:
        """A task with local input has ended.

        Args:
            one: Its class.
            took_s: Its run time.
            interference: The model.
            system: The system's metrics while it ran.
            demand: Its demand.
        """
        predicted = float(interference.predict(np.array([*system, *demand])[:, None])[0])
        count, sum_s, slower = self._sums.get(one, (0, 0.0, 0.0))
        self._sums[one] = (count + 1, sum_s + took_s, slower + predicted)

    def forget(self, one: model.ClassId) -> None:
        """The class is over."""
        self._sums.pop(one, None)


_FEW = 5  # arbitrary: chance evens out
