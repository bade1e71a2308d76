"""What of a class decides where it fits: its least size and its constraints. Many classes share few shapes."""

from __future__ import annotations

import dataclasses
import weakref
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from boathouse_policies import model
    from boathouse_policies.framework.layout import Eligibility
    from boathouse_policies.framework.view import ClusterView


class Shape:
    """A least size with constraints; equal ones are one object.

    Args:
        least: The smallest size that may be placed, shape [R].
        constraints: What a node must satisfy.

    Attributes:
        least: As given.
        constraints: As given.
        rows: The resources that it requests.
        need: The amounts of `rows`, shape [len(rows), 1].
        asks: The same as plain numbers: (row, amount).
    """

    __slots__ = ("__weakref__", "_eligibility", "asks", "constraints", "least", "need", "rows")

    def __init__(self, least: model.IntVector, constraints: model.Constraints) -> None:
        self.least = least
        self.constraints = constraints
        self.rows = least.nonzero()[0]
        self.need: model.IntMatrix = least[self.rows, None]
        self.asks: list[tuple[int, int]] = list(zip(self.rows.tolist(), least[self.rows].tolist(), strict=True))
        self._eligibility: Eligibility | None = None

    def eligibility(self, view: ClusterView) -> Eligibility:
        """The nodes that its constraints allow."""
        known = self._eligibility
        if known is None or known.layout is not view.layout:
            known = self._eligibility = view.eligibilities.of(self.constraints, view.layout)
        return known


class Shapes:
    """Makes equal shapes one object, for as long as a class has it."""

    def __init__(self) -> None:
        self._known: weakref.WeakValueDictionary[tuple[bytes, model.Constraints], Shape] = weakref.WeakValueDictionary()

    def of(self, least: model.IntVector, constraints: model.Constraints) -> Shape:
        """The shape of a size and constraints."""
        key = (least.tobytes(), constraints)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Shape(least, constraints)
        return known


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ShapeColumns:
    """Some shapes as columns.

    Attributes:
        all: The shapes, length S.
        index: The column of each.
        sizes: Their least sizes, shape [R, S].
        least: The least amount of each resource that any of them requests, shape [R].
    """

    all: tuple[Shape, ...]
    index: dict[Shape, int]
    sizes: npt.NDArray[np.int64]
    least: npt.NDArray[np.int64]

    @classmethod
    def of(cls, shapes: Iterable[Shape], rows: int) -> ShapeColumns:
        """The columns of the distinct ones of some shapes."""
        distinct = tuple(dict.fromkeys(shapes))
        listed = np.array([one.least for one in distinct], np.int64).reshape(len(distinct), rows)
        sizes = np.ascontiguousarray(listed.T)
        least = sizes.min(axis=1) if distinct else np.zeros(rows, np.int64)
        return cls(distinct, {one: i for i, one in enumerate(distinct)}, sizes, least)

    def among(
        self, shape_of: npt.NDArray[np.intp], classes: npt.NDArray[np.bool_]
    ) -> tuple[Self, npt.NDArray[np.intp]]:
        """The columns of some classes' shapes, and the column of each of these shapes among them, -1 for the others."""
        used = np.zeros(len(self.all) + 1, np.bool_)
        used[shape_of[classes]] = True
        if used[:-1].all():
            return self, np.arange(len(self.all))
        kept = used.nonzero()[0].tolist()
        columns = np.full(len(self.all), -1)
        columns[kept] = np.arange(len(kept))
        distinct = tuple(self.all[i] for i in kept)
        sizes = self.sizes[:, kept]
        least = sizes.min(axis=1) if kept else np.zeros(len(sizes), np.int64)
        return type(self)(distinct, {one: i for i, one in enumerate(distinct)}, sizes, least), columns
