"""Amounts of resources, and the axis that turns them into int64 vectors.

Amounts are whole numbers in base units: millicores, bytes, and counts for extended resources. A pod always takes one of
the resource `pods`, which only vectors carry.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Mapping

IntVector = npt.NDArray[np.int64]
"""One amount for each resource of an axis, shape [R]; or one for each node, shape [N]."""

Amounts: TypeAlias = tuple[int, ...]
"""The same as plain numbers: for one vector quicker than an array. As long as the axis was when they were made."""

IntMatrix = npt.NDArray[np.int64]
"""Amounts by resource and node, shape [R, N]: a resource is a contiguous row."""

FloatVector = npt.NDArray[np.float64]
BoolVector = npt.NDArray[np.bool_]

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = range(4)
"""Rows of every axis. Extended resources follow in the order in which they were first seen."""

UNLIMITED = int(np.iinfo(np.int64).max)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a pod asks for or a node has.

    Attributes:
        cpu_milli: Millicores.
        memory_bytes: Bytes.
        ephemeral_storage_bytes: Bytes.
        extended: (name, count) of extended resources and huge pages (bytes), sorted by name, without zeros. Use
            `Resources.of` to pass a mapping.
    """

    cpu_milli: int = 0
    memory_bytes: int = 0
    ephemeral_storage_bytes: int = 0
    extended: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(
        cls,
        *,
        cpu_milli: int = 0,
        memory_bytes: int = 0,
        ephemeral_storage_bytes: int = 0,
        extended: Mapping[str, int] | None = None,
    ) -> Resources:
        """Build from a mapping of extended resources in any order."""
        pairs = tuple(sorted((name, count) for name, count in (extended or {}).items() if count))
        return cls(
            cpu_milli=cpu_milli,
            memory_bytes=memory_bytes,
            ephemeral_storage_bytes=ephemeral_storage_bytes,
            extended=pairs,
        )

    def __add__(self, other: Resources) -> Resources:
        """Sum, resource by resource."""
        return _combine(self, other, int.__add__)

    def most(self, other: Resources) -> Resources:
        """The larger amount of each resource: how a resize in flight is counted."""
        return _combine(self, other, max)

    def covers(self, other: Resources) -> bool:
        """Whether every amount is at least the other's."""
        return self.most(other) == self


def _combine(a: Resources, b: Resources, rule: _Rule) -> Resources:
    left, right = dict(a.extended), dict(b.extended)
    return Resources.of(
        cpu_milli=rule(a.cpu_milli, b.cpu_milli),
        memory_bytes=rule(a.memory_bytes, b.memory_bytes),
        ephemeral_storage_bytes=rule(a.ephemeral_storage_bytes, b.ephemeral_storage_bytes),
        extended={name: rule(left.get(name, 0), right.get(name, 0)) for name in left.keys() | right.keys()},
    )


class Axis:
    """Which row of a vector belongs to which resource; grows when an extended resource is first seen.

    Rows are never removed or moved, so a vector made earlier is a prefix of what it would be now.

    Attributes:
        width: The number of rows, as `len` says it.
    """

    def __init__(self) -> None:
        self._rows = {"cpu": CPU, "memory": MEMORY, "ephemeral-storage": EPHEMERAL_STORAGE, "pods": PODS}
        self._names = list(self._rows)
        self.width = len(self._names)
        self._nothing = _zeros(self.width)
        self._vectors: dict[tuple[Resources, int], IntVector] = {}
        self._amounts: dict[Resources, Amounts] = {}

    def __len__(self) -> int:
        return self.width

    @property
    def nothing(self) -> IntVector:
        """Zeros, shape [R], read-only."""
        if len(self._nothing) != self.width:
            self._nothing = _zeros(self.width)
        return self._nothing

    @property
    def names(self) -> tuple[str, ...]:
        """Kubernetes' name of each row."""
        return tuple(self._names)

    def row(self, name: str) -> int:
        """The row of a resource by Kubernetes' name of it; a new row for a new name."""
        row = self._rows.get(name)
        if row is None:
            row = self._rows[name] = len(self._names)
            self._names.append(name)
            self.width = len(self._names)
        return row

    def vector(self, resources: Resources, *, pods: int = 1) -> IntVector:
        """Amounts by row, shape [R], read-only; `pods` is 1 for a pod and the pod limit for a node."""
        known = self._vectors.get((resources, pods))
        if known is not None and len(known) == self.width:
            return known
        rows = [(self.row(name), count) for name, count in resources.extended]
        vector = np.zeros(len(self._names), np.int64)
        vector[CPU], vector[MEMORY] = resources.cpu_milli, resources.memory_bytes
        vector[EPHEMERAL_STORAGE], vector[PODS] = resources.ephemeral_storage_bytes, pods
        for row, count in rows:
            vector[row] = count
        vector.flags.writeable = False
        if len(self._vectors) >= _VECTORS_KEPT:
            self._vectors.clear()
        self._vectors[resources, pods] = vector
        return vector

    def amounts(self, resources: Resources) -> Amounts:
        """What a pod takes, as plain numbers."""
        known = self._amounts.get(resources)
        if known is None or len(known) != self.width:
            if len(self._amounts) >= _VECTORS_KEPT:
                self._amounts.clear()
            known = self._amounts[resources] = tuple(self.vector(resources).tolist())
        return known

    def resources(self, vector: IntVector) -> Resources:
        """The inverse of `vector`, without the pod count."""
        return Resources.of(
            cpu_milli=int(vector[CPU]),
            memory_bytes=int(vector[MEMORY]),
            ephemeral_storage_bytes=int(vector[EPHEMERAL_STORAGE]),
            extended={name: int(n) for name, n in zip(self._names[PODS + 1 :], vector[PODS + 1 :], strict=False)},
        )


def _zeros(width: int) -> IntVector:
    zeros = np.zeros(width, np.int64)
    zeros.flags.writeable = False
    return zeros


_VECTORS_KEPT = 4096  # arbitrary: sizes that policies decide are many, and a vector is quickly made again


if TYPE_CHECKING:
    from collections.abc import Callable

    _Rule = Callable[[int, int], int]
