"""What of a class decides where it fits: its least size and its constraints. Many classes share few shapes."""

import math
import weakref
from collections.abc import Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from boathouse_policies import model
from boathouse_policies.framework.eligibility import Eligibility
from boathouse_policies.framework.layout import Where
from boathouse_policies.framework.view import ClusterView
from boathouse_policies.model.values import value


@value(frozen=True, slots=True)
class Sized:
    """How large a task may be on a node, and how many of it are placed there together."""

    resources: model.Resources
    count: int = 1


class Shape:
    """A least size with constraints; equal ones are one object."""

    __slots__ = ("__weakref__", "_eligibility", "constraints", "floor", "least", "memory", "need", "rows", "sizes")

    def __init__(self, least: model.IntVector, constraints: model.Constraints) -> None:
        self.least = least  # the smallest size that may be placed, shape [R]; `sizes` as plain numbers
        self.constraints = constraints
        self.rows = least.nonzero()[0]  # the resources that it requests
        self.need: model.IntMatrix = least[self.rows, None]  # the amounts of `rows`, shape [len(rows), 1]
        self.sizes: list[int] = least.tolist()
        self.memory = self.sizes[model.MEMORY]
        # `sizes`, but -inf for what is not requested, which fits also where a resource is over-committed.
        self.floor: list[float] = [amount or -math.inf for amount in self.sizes]
        self._eligibility: Eligibility | None = None

    def eligibility(self, view: ClusterView) -> Eligibility:
        """Return the nodes that its constraints allow."""
        if (known := self._eligibility) is None or known.nodes is not view.layout.nodes:
            known = self._eligibility = view.eligibilities.of(self.constraints, view.layout)
        return known


class Shapes:
    """Makes equal shapes one object, for as long as a class has it."""

    def __init__(self) -> None:
        self._known: weakref.WeakValueDictionary[tuple[bytes, model.Constraints], Shape] = weakref.WeakValueDictionary()

    def of(self, least: model.IntVector, constraints: model.Constraints) -> Shape:
        """Return the shape of a size and constraints."""
        key = (least.tobytes(), constraints)
        return self._known.get(key) or self._known.setdefault(key, Shape(least, constraints))


class ShapeColumns:
    """Some shapes as columns."""

    def __init__(
        self,
        sizes: npt.NDArray[np.int64],
        constraints: Sequence[model.Constraints],
        constraints_of: npt.NDArray[np.intp],
    ) -> None:
        self.sizes = sizes  # their least sizes, shape [R, S]
        # The least amount of each resource that any of them requests, shape [R].
        self.least = sizes.min(axis=1) if sizes.shape[1] else np.zeros(len(sizes), np.int64)
        # `least`; -inf for what some do not request, which fits everywhere.
        self.least_listed: list[float] = [amount or -math.inf for amount in self.least.tolist()]
        self._constraints, self._constraints_of = constraints, constraints_of

    @classmethod
    def of(cls, shapes: Sequence[Shape], rows: int) -> Self:
        """Return the columns of some shapes, with this number of resources."""
        sizes = np.array([shape.least for shape in shapes], np.int64).reshape(len(shapes), rows)
        numbers: dict[model.Constraints, int] = {}
        constraints_of = [numbers.setdefault(shape.constraints, len(numbers)) for shape in shapes]
        return cls(np.ascontiguousarray(sizes.T), tuple(numbers), np.array(constraints_of, np.intp))

    def __len__(self) -> int:
        return len(self._constraints_of)

    def among(self, used: npt.NDArray[np.bool_]) -> Self:
        """Return the columns of some of them."""
        return type(self)(self.sizes[:, used], self._constraints, self._constraints_of[used])

    def allowed(self, view: ClusterView, where: Where) -> npt.NDArray[np.bool_] | None:
        """Return which of some nodes the shapes' constraints allow, shape [S, len(where)]; None for all."""
        found = [view.eligibilities.of(constraints, view.layout) for constraints in self._constraints]
        if all(eligibility.everywhere for eligibility in found):
            return None
        return np.array([eligibility.mask[where] for eligibility in found])[self._constraints_of]
