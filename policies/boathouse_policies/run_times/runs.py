"""Sums over runs of the stages of programs, in tables of bounded size."""

from __future__ import annotations

import dataclasses
from typing import Final, TypeAlias, TypeGuard, TypeVar

from boathouse_policies.framework import crowding

PROGRAMS_KEPT: Final = 256
"""Stages of programs in a table."""
NAMESPACE_KEPT: Final = 64
"""Stages of programs of one namespace in a table."""
MAX_SECONDS: Final = 10 * 365 * 86400.0
MAX_BYTES: Final = 2.0**63
_MAX_WEIGHT: Final = 64
"""Older runs count less: from this number on, each new run replaces an equal share of the older ones."""
_KEY_SLASHES: Final = 3
"""Of a key: `NAMESPACE/HASH/STEP/STAGE`."""
_MAX_KEY_LENGTH: Final = 128
_Kept = TypeVar("_Kept")


@dataclasses.dataclass(slots=True, kw_only=True)
class Runs:
    """Sums over runs of one stage; `weight` is their number, bounded."""

    weight: float = 0.0
    seconds: float = 0.0
    input_bytes: float = 0.0

    def add(self, seconds: float, input_bytes: float) -> None:
        """Add a run."""
        keep = min(1.0, (_MAX_WEIGHT - 1) / self.weight) if self.weight else 1.0
        self.weight = self.weight * keep + 1
        self.seconds = self.seconds * keep + seconds
        self.input_bytes = self.input_bytes * keep + input_bytes

    def mean_s(self, input_bytes: float) -> float:
        """Return the run time of a task with this input; the mean of all runs where an input is not known."""
        if input_bytes > 0 and self.input_bytes > 0:
            return self.seconds * input_bytes / self.input_bytes
        return self.seconds / self.weight

    @property
    def mean_bytes(self) -> float:
        """Return the mean input of a run."""
        return self.input_bytes / self.weight


Table: TypeAlias = dict[str, Runs]
"""By key, the least recently updated first."""
Maxima: TypeAlias = dict[str, float]
"""Bytes by key, the least recently updated first."""


def add(table: Table, key: str, seconds: float, input_bytes: float) -> None:
    """Add a run to a table, which makes its key the most recently updated one."""
    known = table.pop(key, None)
    runs = table[key] = known or Runs()
    runs.add(min(seconds, MAX_SECONDS), min(max(0.0, input_bytes), MAX_BYTES))
    if known is None:
        _bound(table, crowding.group_of(key))


def raise_to(table: Maxima, key: str, size: float) -> None:
    """Raise the maximum of a key."""
    is_new = key not in table
    table[key] = max(table.pop(key, 0.0), min(size, MAX_BYTES))
    if is_new:
        _bound(table, crowding.group_of(key))


def dump(table: Table) -> dict[str, list[float]]:
    """Return a table as JSON values."""
    return {key: [runs.weight, runs.seconds, runs.input_bytes] for key, runs in table.items()}


def load(dumped: object) -> Table:
    """Return the table of a dump. Entries without a namespace (an older version's) and invalid ones are left out."""
    table: Table = {}
    for key, values in dumped.items() if isinstance(dumped, dict) else ():
        if _is_key(key) and _is_runs(values):
            table[key] = Runs(weight=float(values[0]), seconds=float(values[1]), input_bytes=float(values[2]))
            _bound(table, crowding.group_of(key))
    return table


def load_maxima(dumped: object) -> Maxima:
    """Return the maxima of a dump, without the invalid ones."""
    table: Maxima = {}
    for key, size in dumped.items() if isinstance(dumped, dict) else ():
        if _is_key(key) and isinstance(size, int | float) and 0 < size <= MAX_BYTES:
            raise_to(table, key, float(size))
    return table


def _is_key(key: object) -> TypeGuard[str]:
    return isinstance(key, str) and key.count("/") == _KEY_SLASHES and len(key) <= _MAX_KEY_LENGTH


def _is_runs(values: object) -> TypeGuard[list[float]]:
    """Say whether these are a weight, seconds and bytes that runs can have."""
    if not isinstance(values, list) or len(values) != len(dataclasses.fields(Runs)):
        return False
    if not all(isinstance(value, int | float) for value in values):
        return False
    weight, seconds, size = map(float, values)
    return 1 <= weight <= _MAX_WEIGHT and 0 < seconds <= weight * MAX_SECONDS and 0 <= size <= weight * MAX_BYTES


def _bound(table: dict[str, _Kept], namespace: str) -> None:
    """Drop the least recently updated key of a namespace with too many, then of the namespace with the most."""
    own = [key for key in table if crowding.group_of(key) == namespace]
    if len(own) > NAMESPACE_KEPT:
        del table[own[0]]
    if len(table) > PROGRAMS_KEPT:
        del table[crowding.crowded_out(table)]
