"""Sums by program: what FSPY's models are compared with, and what they do not know."""

import math
import operator
from typing import Any

from boathouse_policies.framework.programs import Programs


class Sums:
    """Sums of a base, such as the input of a program's jobs or their number, and of amounts that go with it."""

    def __init__(self, kept: int, width: int) -> None:
        self._width = width
        self._sums: Programs[tuple[float, ...]] = Programs(kept)

    def add(self, kind: str, *amounts: float) -> None:
        """Add a job's base and amounts."""
        known = self._sums.get(kind)
        self._sums.put(kind, amounts if known is None else tuple(map(operator.add, known, amounts)))

    def scaled(self, kind: str, base: float, *, as_used: bool = False) -> list[float] | None:
        """Return base and amounts in proportion to this base; None without any, or for an unknown program."""
        sums = self._sums.use(kind) if as_used else self._sums.get(kind)
        return None if sums is None or base <= 0 else [amount * (base / sums[0]) for amount in sums]

    def mean(self, kind: str) -> float | None:
        """Return the first amount over the base; None for an unknown program."""
        sums = self._sums.get(kind)
        return None if sums is None else sums[1] / sums[0]

    def dump(self) -> dict[str, list[float]]:
        """Return the sums as JSON values."""
        return {kind: list(sums) for kind, sums in self._sums.items()}

    def load(self, dumped: Any) -> None:
        """Continue from a dump, without the entries of it that are invalid."""
        for kind, sums in dumped.items() if isinstance(dumped, dict) else ():
            if isinstance(sums, list) and len(sums) == self._width and all(map(_is_amount, sums)) and sums[0] > 0:
                self._sums.put(str(kind), tuple(sums))


def _is_amount(found: Any) -> bool:
    return isinstance(found, int | float) and 0 <= found < math.inf
