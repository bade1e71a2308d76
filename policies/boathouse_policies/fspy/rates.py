"""Total execution times of a program's jobs in proportion to their input: what FSPY's models are compared with."""

from __future__ import annotations

import math
from typing import Any

from boathouse_policies.framework.programs import Programs


class Rates:
    """Times by program in proportion to the input."""

    def __init__(self, kept: int) -> None:
        self._sums: Programs[tuple[float, float, float]] = Programs(kept)

    def add(self, kind: str, input_bytes: float, map_s: float, reduce_s: float) -> None:
        """Add a job that ended."""
        known = self._sums.get(kind, (0.0, 0.0, 0.0))
        self._sums.put(kind, (known[0] + input_bytes, known[1] + map_s, known[2] + reduce_s))

    def predict(self, kind: str, input_bytes: float) -> tuple[float, float] | None:
        """Return the times of a job's maps and of its reduces; None if no job of the program has ended."""
        sums = self._sums.get(kind)
        if sums is None or input_bytes <= 0:
            return None
        share = input_bytes / sums[0]
        return share * sums[1], share * sums[2]

    def dump(self) -> dict[str, list[float]]:
        """Return the sums as JSON values."""
        return {kind: list(sums) for kind, sums in self._sums.items()}

    def load(self, dumped: Any) -> None:
        """Continue from a dump, without the entries of it that are invalid."""
        for kind, sums in dumped.items() if isinstance(dumped, dict) else ():
            are_numbers = isinstance(sums, list) and all(
                isinstance(of, int | float) and 0 <= of < math.inf for of in sums
            )
            if are_numbers and len(sums) == _SUMS and sums[0] > 0:
                self._sums.put(str(kind), (float(sums[0]), float(sums[1]), float(sums[2])))


_SUMS = 3
