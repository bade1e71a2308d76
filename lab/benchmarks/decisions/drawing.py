"""Random draws for random worlds."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

T = TypeVar("T")


class Draw:
    """Draws in plain numbers.

    Args:
        random: The generator.
    """

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random

    def pick(self, among: Sequence[T]) -> T:
        """Return one of several."""
        return among[int(self._random.integers(len(among)))]

    def some(self, among: Sequence[T], count: int) -> list[T]:
        """Several different ones, in the order drawn."""
        chosen = self._random.permutation(len(among))[:count]
        return [among[i] for i in chosen.tolist()]

    def between(self, least: int, most: int) -> int:
        """Return a whole number, both bounds included."""
        return int(self._random.integers(least, most + 1))

    def chance(self, share: float) -> bool:
        """Return whether something of this probability happens."""
        return bool(self._random.random() < share)

    def time(self, from_s: float, to_s: float) -> float:
        """Return a time in tenths of a second, so that some are equal."""
        return round(float(self._random.uniform(from_s, to_s)), 1)

    def factor(self, least: float, most: float) -> float:
        """Return a number in between."""
        return float(self._random.uniform(least, most))
