"""How long the phases of a program's reducers took, and what that says of one that still runs.

A reducer's pace tells of its present phase alone: shuffling follows the maps, sorting the disks, reducing the program.
The phases ahead take what they took in the program's earlier reducers, by its input, and longer where this one is
slow. The present one takes what its own pace says, the more of it is over.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from boathouse_policies.ikayak.fuzzy import INPUT, LASTED, REST, RULES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_policies.model import FloatVector


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """The means of the reducers of a program that ended.

    Attributes:
        count: How many.
        lengths_s: Of each phase.
        input_bytes: Of a reducer.
    """

    count: int = 0
    lengths_s: tuple[float, ...] = (0.0,) * RULES
    input_bytes: float = 0.0

    def after(self, lengths_s: Sequence[float], input_bytes: float) -> Phases:
        """Return the means with one reducer more; beyond `_MOST` of them the older ones count less."""
        count = self.count + 1
        share = 1.0 / min(count, _MOST)
        pairs = zip(self.lengths_s, lengths_s, strict=True)
        return Phases(
            count=count,
            lengths_s=tuple(mean + share * (new - mean) for mean, new in pairs),
            input_bytes=self.input_bytes + share * (input_bytes - self.input_bytes),
        )

    def left(self, samples: FloatVector, unit_s: float, unit_bytes: float) -> FloatVector:
        """Return how long reducers still run.

        Args:
            samples: Shape [M, 10], in these units of time and of input.
            unit_s: In seconds.
            unit_bytes: In bytes.

        Returns:
            Shape [M], in the unit.
        """
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
    def restored(cls, numbers: Any) -> Phases | None:
        """Return the means of a dump; None where it is none."""
        if not isinstance(numbers, list) or len(numbers) != RULES + 2:
            return None
        if not all(isinstance(number, int | float) and 0 <= number < math.inf for number in numbers):
            return None
        count, *lengths_s, input_bytes = numbers
        return cls(count=int(count), lengths_s=tuple(map(float, lengths_s)), input_bytes=float(input_bytes))


UNKNOWN = Phases()
"""Of a program none of whose reducers has ended."""
_MOST = 64
"""Reducers, after which one more counts as much as all others together do less (as `run_times.fit`)."""
_PRIOR = 0.3
"""Part of a phase after which its own pace counts as much as what the phase usually takes."""
_MOST_TIMES = 4.0
"""By which an estimate differs from the usual length."""
_LEAST_S = 0.1
_ROUNDING = 1e-9
