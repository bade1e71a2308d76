"""Names of things, one type each; amounts of resources and the axis that turns them into vectors; ranges of constants.

Amounts are whole numbers in base units: millicores, bytes, and counts for extended resources. A pod always takes one of
the resource `pods`, which only vectors carry.

Columns are int64 and must not overflow, whatever a pod asks for. So a pod counts for at most `LARGEST` of a resource,
and a node has at most `LARGEST - 1`: what saturates fits no node. Sums are exact Python integers, so that they are
right again when a pod goes; in columns a node's sum is at most `2 * LARGEST`. Then `allocatable - requested` is at
least -2**51, and its sum over N nodes at least -N * 2**51: below 2**63 in magnitude for up to 4,096 saturated nodes.
"""

import collections
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NewType, TypeAlias

import numpy as np
import numpy.typing as npt

TaskId = NewType("TaskId", str)  # `namespace/pod-name` of the pod that the task has, or will have

PodUid = NewType("PodUid", str)
JobId = NewType("JobId", str)
"""The UID of the job's object (MRJob, SparkApp); of pods of others, what tells their jobs apart."""

ClassId = NewType("ClassId", str)
"""Unique over all jobs: by custom `job/step/stage`, with a suffix where one stage asks for several sizes."""

QueueName = NewType("QueueName", str)
NamespaceName = NewType("NamespaceName", str)
NodeName = NewType("NodeName", str)


if TYPE_CHECKING:
    from dataclasses import dataclass as value
else:

    def value(*, frozen: bool, **options: Any) -> Callable[[type], type]:
        """Make a dataclass that is frozen to type checkers alone: at run time that takes twice as long to construct."""
        return dataclasses.dataclass(unsafe_hash=frozen, **options)


def check_ranges(
    policy: str,
    constants: object,
    *,
    shares: Iterable[str] = (),
    positive: Iterable[str] = (),
    not_negative: Iterable[str] = (),
) -> None:
    """Raise a ValueError for constants of a policy without a meaning: shares are above 0 and at most 1."""
    ranges: Iterable[tuple[Iterable[str], Callable[[float], bool], str]] = (
        (shares, lambda constant: 0 < constant <= 1, "above 0 and at most 1"),
        (positive, lambda constant: constant > 0, "above 0"),
        (not_negative, lambda constant: constant >= 0, "at least 0"),
    )
    for names, is_valid, words in ranges:
        for name in names:
            if not is_valid(getattr(constants, name)):
                raise ValueError(f"{policy}: {name} must be {words}, not {getattr(constants, name)}")


__all__ = ["check_ranges", "value"]


IntVector = npt.NDArray[np.int64]  # one amount for each resource of an axis, shape [R]; or one for each node, shape [N]

Amounts: TypeAlias = tuple[int, ...]
"""An IntVector as plain numbers: quicker than an array. As long as the axis was when they were made."""

IntMatrix = npt.NDArray[np.int64]  # amounts by resource and node, shape [R, N]: a resource is a contiguous row

FloatVector = npt.NDArray[np.float64]
BoolVector = npt.NDArray[np.bool_]

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = range(4)
"""Rows of every axis. Extended resources follow in the order in which they were first seen."""

LARGEST = 1 << 50  # the most of a resource that a pod counts for: 1 PiB, or as many millicores or devices


@value(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a pod asks for or a node has."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    ephemeral_storage_bytes: int = 0
    # (name, count) of extended resources and huge pages (bytes), sorted by name, without zeros. Use `Resources.of` to
    # pass a mapping.
    extended: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(
        cls,
        *,
        cpu_milli: int = 0,
        memory_bytes: int = 0,
        ephemeral_storage_bytes: int = 0,
        extended: Mapping[str, int] | None = None,
    ) -> "Resources":
        """Build from a mapping of extended resources in any order."""
        pairs = tuple(sorted((name, count) for name, count in (extended or {}).items() if count))
        return cls(
            cpu_milli=cpu_milli,
            memory_bytes=memory_bytes,
            ephemeral_storage_bytes=ephemeral_storage_bytes,
            extended=pairs,
        )

    @property
    def by_name(self) -> dict[str, int]:
        """What one pod of this size takes, by Kubernetes' name of the resource."""
        named = {"cpu": self.cpu_milli, "memory": self.memory_bytes, "ephemeral-storage": self.ephemeral_storage_bytes}
        return {**named, "pods": 1, **dict(self.extended)}

    def most(self, other: "Resources") -> "Resources":
        """Return the larger amount of each resource: how a resize in flight is counted."""
        return Resources.of(
            cpu_milli=max(self.cpu_milli, other.cpu_milli),
            memory_bytes=max(self.memory_bytes, other.memory_bytes),
            ephemeral_storage_bytes=max(self.ephemeral_storage_bytes, other.ephemeral_storage_bytes),
            extended=collections.Counter(dict(self.extended)) | collections.Counter(dict(other.extended)),
        )

    def covers(self, other: "Resources") -> bool:
        """Return whether every amount is at least the other's."""
        return self.most(other) == self


def readable(resource: str, amount: int) -> str:
    """Return an amount of a resource for users: cores, a size with a binary suffix, or a count."""
    if resource == "cpu":
        return f"{amount / _MILLI:.3f}".rstrip("0").rstrip(".")
    if resource in _BYTES or resource.startswith("hugepages-"):
        for suffix, size in _UNITS:
            if amount >= size:
                return f"{amount / size:.1f}".removesuffix(".0") + suffix
    return str(amount)


class Axis:
    """Which row of a vector belongs to which resource; grows when an extended resource is first seen.

    Anybody can invent names of resources. So only what nodes or queues name has a row of its own, and the first few
    names that pods bring; all others share the row `OTHER`, of which no node has anything. Rows are never removed or
    moved, so a vector made earlier is a prefix of what it would be now, until a node brings a resource that pods asked
    for before: then `renamed` grows, and vectors must be made anew.
    """

    def __init__(self) -> None:
        self._rows = {"cpu": CPU, "memory": MEMORY, "ephemeral-storage": EPHEMERAL_STORAGE, "pods": PODS}
        self.names = tuple(self._rows)  # Kubernetes' name of each row
        self.width = len(self.names)
        self.renamed = 0  # how often a resource left the shared row for one of its own
        self._brought_by_pods = 0
        self._amounts: dict[tuple[Resources, int, int], Amounts] = {}

    def row(self, name: str) -> int:
        """Return the row of a resource by its Kubernetes name; add a row for a new name."""
        if name not in self._rows:
            self.renamed += OTHER in self._rows
            self._add(name)
        return self._rows[name]

    def _row_of_pods(self, name: str) -> int:
        """Return the row of a resource that a pod names: `OTHER` for new names once pods have brought enough."""
        own = name if name in self._rows or self._brought_by_pods < _ROWS_FOR_PODS else OTHER
        if own not in self._rows:
            self._brought_by_pods += 1
            self._add(own)
        return self._rows[own]

    def _add(self, name: str) -> None:
        self._rows[name] = self.width
        self.names = (*self.names, name)
        self.width += 1
        self._amounts.clear()  # they lack the new row

    def amounts(self, resources: Resources) -> Amounts:
        """Return what a pod takes, by row, as plain numbers; each from 0 to `LARGEST`."""
        return self._amounts.get((resources, 1, LARGEST)) or self._listed(resources, 1, LARGEST, self._row_of_pods)

    def vector(self, resources: Resources) -> IntVector:
        """Return what a pod takes, by row, shape [R]; each amount from 0 to `LARGEST`."""
        return np.array(self.amounts(resources), np.int64)

    def capacity(self, resources: Resources, *, pods: int) -> Amounts:
        """Return what a node has, by row, as plain numbers; each from 0 to `LARGEST - 1`."""
        most = LARGEST - 1
        return self._amounts.get((resources, pods, most)) or self._listed(resources, pods, most, self.row)

    def _listed(self, resources: Resources, pods: int, most: int, row_of: Callable[[str], int]) -> Amounts:
        rows = [row_of(name) for name, _ in resources.extended]
        amounts = [resources.cpu_milli, resources.memory_bytes, resources.ephemeral_storage_bytes, pods]
        amounts += [0] * (self.width - len(amounts))
        for row, (_, count) in zip(rows, resources.extended, strict=True):
            amounts[row] += count
        if len(self._amounts) >= _AMOUNTS_KEPT:
            self._amounts.clear()
        known = self._amounts[resources, pods, most] = tuple(min(max(amount, 0), most) for amount in amounts)
        return known


OTHER = "other extended resources"  # the row that resources share which no node has

_ROWS_FOR_PODS = 8  # enough for messages that name what no node has; each more makes all columns longer for good
_AMOUNTS_KEPT = 4096  # arbitrary: sizes that policies decide are many, and amounts are quickly listed again
_BYTES = {"memory", "ephemeral-storage"}
_UNITS = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))
_MILLI = 1000
