"""Which of several predictors of a quantity has predicted best so far, by program."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from boathouse_policies.framework.crowding import Programs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Standing(NamedTuple):
    """How well each predictor did on a program.

    Attributes:
        judged: How many predictions of each were compared with what came.
        errors: Mean relative error of each, newer ones weighing more.
    """

    judged: int
    errors: tuple[float, ...]


class Contest:
    """Compares predictors, each prediction made before what it predicts was learned from.

    Args:
        kept: Programs whose standings are kept.
        predictors: How many take part. The first predicts until `FEW` predictions were judged.
    """

    def __init__(self, kept: int, predictors: int) -> None:
        self._predictors = predictors
        self._standings: Programs[Standing] = Programs(kept)

    def judge(self, program: str, errors: Sequence[float]) -> None:
        """Record the relative error of each predictor, each 0 or more; a larger one than `MOST` counts as that."""
        bounded = [min(MOST, error) for error in errors]  # where it is not a number, `MOST`
        known = self._standings.get(program)
        if known is None:
            self._standings.put(program, Standing(1, tuple(bounded)))
            return
        share = max(1.0 / (known.judged + 1), _NEW)
        mixed = (old + share * (new - old) for old, new in zip(known.errors, bounded, strict=True))
        self._standings.put(program, Standing(known.judged + 1, tuple(mixed)))

    def best(self, program: str) -> int:
        """Return the place of the predictor with the least error; of equal ones the first."""
        known = self._standings.get(program)
        return 0 if known is None or known.judged < FEW else known.errors.index(min(known.errors))

    def error(self, program: str) -> float | None:
        """Return the mean relative error of the program's best predictor; None while too few were judged."""
        known = self._standings.get(program)
        return None if known is None or known.judged < FEW else min(known.errors)

    def forget(self, program: str) -> None:
        """Forget a program that will never come again."""
        self._standings.pop(program, None)

    def dump(self) -> Mapping[str, list[float]]:
        """Return the standings as JSON values."""
        return {
            program: [known.judged, *(round(error, 4) for error in known.errors)]
            for program, known in self._standings.items()
        }

    def load(self, state: Any) -> None:
        """Continue from a dump, without the entries of it that are invalid."""
        for program, numbers in state.items() if isinstance(state, dict) else ():
            if not isinstance(numbers, list) or len(numbers) != self._predictors + 1:
                continue
            if all(isinstance(number, int | float) and 0 <= number < math.inf for number in numbers):
                judged, *errors = numbers
                self._standings.put(str(program), Standing(int(judged), tuple(map(float, errors))))


FEW = 3
"""Predictions that were judged before another predictor than the first is taken."""
MOST = 10.0
"""The largest relative error that counts: one that is wild tells no more than that."""
_NEW = 0.1  # arbitrary: the least weight of the newest prediction in the mean
