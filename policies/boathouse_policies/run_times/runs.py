"""Keep sums over runs of the stages of programs in tables of bounded size."""

from __future__ import annotations

import dataclasses
import math
from typing import Final, TypeAlias, TypeGuard, TypeVar

from boathouse_policies.framework import crowding
from boathouse_policies.run_times.fit import LEAST_SECONDS, MAX_BYTES, MAX_SECONDS, Sums

PROGRAMS_KEPT: Final = 256
"""Stages of programs in a table."""
NAMESPACE_KEPT: Final = 64
"""Stages of programs of one namespace in a table."""
_KEY_SLASHES: Final = 3
"""Of a key: `NAMESPACE/HASH/STEP/STAGE`."""
_MAX_KEY_LENGTH: Final = 128
_Kept = TypeVar("_Kept")
_Added = TypeVar("_Added", bound=Sums)

Table: TypeAlias = dict[str, _Added]
"""Sums by key, the least recently updated first."""
Maxima: TypeAlias = dict[str, float]
"""Bytes by key, the least recently updated first."""


def add(table: Table[_Added], kind: type[_Added], key: str, seconds: float, input_bytes: float) -> None:
    """Add a run to a table of such sums, which makes its key the most recently updated one."""
    seconds = min(max(seconds, LEAST_SECONDS), MAX_SECONDS)
    input_bytes = min(input_bytes, MAX_BYTES) if input_bytes >= 1 else 0.0
    known = table.pop(key, None)
    table[key] = kind.first(seconds, input_bytes) if known is None else known.after(seconds, input_bytes)
    if known is None:
        _bound(table, crowding.group_of(key))


def raise_to(table: Maxima, key: str, size: float) -> None:
    """Raise the maximum of a key."""
    is_new = key not in table
    table[key] = max(table.pop(key, 0.0), min(size, MAX_BYTES))
    if is_new:
        _bound(table, crowding.group_of(key))


def dump(table: Table[_Added]) -> dict[str, list[float]]:
    """Return a table as JSON values."""
    return {key: list(dataclasses.astuple(sums)) for key, sums in table.items()}


def load(dumped: object, kind: type[_Added]) -> Table[_Added]:
    """Return the table of a dump. Entries without a namespace (an older version's) and invalid ones are left out."""
    table: Table[_Added] = {}
    for key, values in dumped.items() if isinstance(dumped, dict) else ():
        sums = kind.restored([float(value) for value in values]) if _is_key(key) and _are_numbers(values) else None
        if sums is not None:
            table[key] = sums
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


def _are_numbers(values: object) -> TypeGuard[list[float]]:
    return isinstance(values, list) and all(
        isinstance(value, int | float) and abs(value) < math.inf for value in values
    )


def _bound(table: dict[str, _Kept], namespace: str) -> None:
    """Drop the least recently updated key of a namespace with too many, then of the namespace with the most."""
    own = [key for key in table if crowding.group_of(key) == namespace]
    if len(own) > NAMESPACE_KEPT:
        del table[own[0]]
    if len(table) > PROGRAMS_KEPT:
        del table[crowding.crowded_out(table)]
