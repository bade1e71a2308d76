"""The classes as columns: what each would do with so much memory, for all of them at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies.yarn_me.penalty import Elastic

if TYPE_CHECKING:
    import numpy.typing as npt

    from boathouse_policies import model


class Columns:
    """One row for each class of the book; rows of classes that are gone are used again.

    Attributes:
        left: Tasks that are not placed; 0 in rows that nobody uses.
        regular_s: Run time with the ideal memory; infinite where nothing is known.
        allowed_s: The latest end that was found to be in time (`decide`).
        refused_s: The earliest that was found to be too late.
    """

    def __init__(self) -> None:
        self._rows: dict[model.ClassId, int] = {}
        self._ids: list[model.ClassId | None] = []
        self._unused: list[int] = []
        self._ideal = np.zeros(0, np.int64)
        self._step = np.ones(0, np.int64)
        self._seconds = np.full((0, 1), np.inf)
        self._by_free: dict[int, npt.NDArray[np.float64]] = {}
        self.left = np.zeros(0, np.int64)
        self.regular_s = np.zeros(0)
        self.allowed_s = np.zeros(0)
        self.refused_s = np.zeros(0)

    def add(self, one: model.TaskClass, left: int) -> None:
        """A class was submitted."""
        if not self._unused:
            self._grow(max(16, len(self._ids)))
        estimates = one.estimates
        table = estimates.table()[1] if isinstance(estimates, Elastic) else _NOTHING
        if len(table) > self._seconds.shape[1]:
            more = len(table) - self._seconds.shape[1]
            self._seconds = np.pad(self._seconds, ((0, 0), (0, more)), constant_values=np.inf)
        self._by_free.clear()
        row = self._rows[one.id] = self._unused.pop()
        self._ids[row] = one.id
        self._seconds[row] = np.inf
        self._seconds[row, : len(table)] = table
        if isinstance(estimates, Elastic):
            self._ideal[row], self._step[row] = estimates.ideal_bytes, estimates.step_bytes
            self.regular_s[row] = estimates.seconds(estimates.ideal_bytes)
        else:
            self._ideal[row], self._step[row], self.regular_s[row] = one.resources.memory_bytes, 1 << 62, math.inf
        self.left[row] = left
        self.allowed_s[row], self.refused_s[row] = -np.inf, np.inf

    def remove(self, class_id: model.ClassId) -> None:
        """Its job has ended."""
        row = self._rows.pop(class_id, None)
        if row is not None:
            self._ids[row] = None
            self.left[row] = 0
            self._unused.append(row)

    def set_left(self, class_id: model.ClassId, left: int) -> None:
        """A task was placed, or failed."""
        self.left[self._rows[class_id]] = left

    def row(self, class_id: model.ClassId) -> int | None:
        """The row of a class."""
        return self._rows.get(class_id)

    def id(self, row: int) -> model.ClassId:
        """The class of a row in use."""
        found = self._ids[row]
        assert found is not None
        return found

    def seconds(self, free_bytes: int) -> npt.NDArray[np.float64]:
        """The lowest run time of each class with so much memory, infinite where it is too little, shape [classes]."""
        known = self._by_free.get(free_bytes)
        if known is None:
            free = max(0, free_bytes)
            steps = np.minimum(self._ideal, free) // self._step
            known = np.where(self._ideal <= free, self.regular_s, self._seconds[np.arange(len(steps)), steps])
            if len(self._by_free) >= _LEVELS_KEPT:
                self._by_free.clear()
            self._by_free[free_bytes] = known
        return known

    def ask_again(self) -> None:
        """What was found about ends is out of date."""
        self.allowed_s.fill(-np.inf)
        self.refused_s.fill(np.inf)

    def _grow(self, more: int) -> None:
        rows = len(self._ids)
        self._ids += [None] * more
        self._unused += range(rows + more - 1, rows - 1, -1)
        self._ideal = np.pad(self._ideal, (0, more))
        self._step = np.pad(self._step, (0, more), constant_values=1)
        self._seconds = np.pad(self._seconds, ((0, more), (0, 0)), constant_values=np.inf)
        self.left = np.pad(self.left, (0, more))
        self.regular_s = np.pad(self.regular_s, (0, more))
        self.allowed_s = np.pad(self.allowed_s, (0, more), constant_values=-np.inf)
        self.refused_s = np.pad(self.refused_s, (0, more), constant_values=np.inf)


_NOTHING = np.full(1, np.inf)
_LEVELS_KEPT = 512  # sizes go in steps, so that the same amounts are free again and again
