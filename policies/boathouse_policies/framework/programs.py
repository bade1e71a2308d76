"""What policies keep by program: bounded tables, and which of several predictors has predicted best so far.

In the tables nobody's programs displace everybody else's.
"""

import collections
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

V = TypeVar("V")


class Programs(dict[str, V]):
    """Values by program, `NAMESPACE/...`, in the order of their last use: so many, and so many of a namespace."""

    def __init__(self, kept: int, of_group: int | None = None) -> None:
        super().__init__()
        self._kept, self._of_group = kept, of_group

    def put(self, key: str, value: V) -> None:
        """Store a value as the last used. What it displaces is the oldest of the namespace with the most programs."""
        is_new = self.pop(key, None) is None
        self[key] = value
        if is_new and self._of_group is not None:
            own = [stored_key for stored_key in self if group_of(stored_key) == group_of(key)]
            if len(own) > self._of_group:
                del self[own[0]]
        if len(self) > self._kept:
            sizes = collections.Counter(map(group_of, self))
            del self[max(self, key=lambda key: sizes[group_of(key)])]  # the first of several

    def use(self, key: str) -> V | None:
        """Return a value, which is then the last used; None if there is none."""
        if (value := self.pop(key, None)) is not None:
            self[key] = value
        return value


def group_of(key: str) -> str:
    """Return the group of a key, its namespace: what is before its first slash."""
    return key.partition("/")[0]


def numbers(dumped: object, count: int | None = None) -> list[float]:
    """Return the numbers of a list in a dump; none unless all are finite, and so many if a count is given."""
    values = dumped if isinstance(dumped, list) and count in (None, len(dumped)) else []
    found = [float(number) for number in values if isinstance(number, int | float) and abs(number) < math.inf]
    return found if len(found) == len(values) else []


class Standing(NamedTuple):
    """How well each predictor did on a program."""

    judged: int  # how many predictions of each were compared with what came
    errors: tuple[float, ...]  # mean relative error of each, newer ones weighing more


class Contest:
    """Compares predictors, each prediction made before what it predicts was learned from.

    The first predicts until `FEW` predictions were judged.
    """

    def __init__(self, kept: int, predictors: int) -> None:
        self._predictors = predictors
        self._standings: Programs[Standing] = Programs(kept)

    def judge(self, program: str, errors: Sequence[float]) -> None:
        """Record the relative error of each predictor, each 0 or more; a larger one than `MOST` counts as that."""
        bounded = tuple([min(MOST, error) for error in errors])  # where it is not a number, `MOST`
        known = self._standings.get(program) or Standing(0, bounded)
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
        for program, dumped in state.items() if isinstance(state, dict) else ():
            found = numbers(dumped, self._predictors + 1)
            if found and min(found) >= 0:
                self._standings.put(str(program), Standing(int(found[0]), tuple(found[1:])))


FEW = 3  # predictions that were judged before another predictor than the first is taken
MOST = 10.0  # the largest relative error that counts: one that is wild tells no more than that
_NEW = 0.1  # arbitrary: the least weight of the newest prediction in the mean
