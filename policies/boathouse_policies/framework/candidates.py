"""The nodes that a cycle looks at, and which shapes each of them has room for.

As the cycle begins, the nodes on offer that have room for anything pending are found, and which shapes each of them has
room for: one comparison for all shapes and all such nodes. So with few nodes, as after a task ended or at a heartbeat,
the cycle sees all classes for these nodes at once; a class that no node has room for costs nothing.
"""

import math
import operator
from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from boathouse_policies import model
from boathouse_policies.framework.cycle_state import CycleState, PendingClass
from boathouse_policies.framework.layout import ALL, Where
from boathouse_policies.framework.queue import SortedClasses
from boathouse_policies.framework.scheduling_profile import Profile
from boathouse_policies.framework.shapes import Shape, ShapeColumns


def candidates(
    sorted_classes: SortedClasses, profile: Profile, state: CycleState, freed: Collection[model.NodeName]
) -> "Candidates":
    """Find the nodes that the cycle looks at."""
    if state.view.offered is not None:
        few = state.offered_places() if state.offers <= _FEW else None
    elif sorted_classes.only_matched and len(freed) <= _FEW and profile.until_freed and profile.reserve.is_idle(state):
        index = state.view.layout.index  # nothing else can have changed for who found no room
        few = sorted([index[name] for name in freed if name in index])
    else:
        few = None
    return Table(sorted_classes, profile, state) if few is None else FewNodes(few, sorted_classes, profile, state)


class FewNodes:
    """A few nodes as plain numbers: to set up columns would cost more than all else of such a cycle.

    `rooms` is what is free on those that have room for anything, `most` the most memory of that, -1 for none.
    """

    def __init__(
        self, nodes: Sequence[int], sorted_classes: SortedClasses, profile: Profile, state: CycleState
    ) -> None:
        self._state = state
        shapes, _, self.shapes = sorted_classes.shapes(profile.sizer, state.view.axis)
        self._least, self._score, self.listed = shapes.least_listed, profile.shape_score, nodes
        self.at: Mapping[int, int] = {node: i for i, node in enumerate(nodes)}  # the index of each node in `listed`
        self._seen = state.changes
        self._find_rooms()

    def _find_rooms(self) -> None:
        state, least = self._state, self._least
        self.rooms: dict[int, list[int]] = {
            node: room
            for node in self.listed
            if not any(map(operator.lt, room := state.free_on(node), least)) and node not in state.withdrawn
        }
        self.most = max(map(_memory_of, self.rooms.values()), default=-1)

    @property
    def where(self) -> Where:
        """The places of the nodes as columns are picked."""
        return np.array(self.listed, np.intp)

    def renew(self) -> None:
        """Take in what the cycle changed since the last call."""
        for node in self._state.changed_since(self._seen):
            self.update(node)

    def update(self, node: int) -> None:
        """Take in what the cycle changed on a node."""
        state, rooms = self._state, self.rooms
        if node not in rooms:
            if node in self.listed and not any(map(operator.lt, state.free_on(node), self._least)):
                self._find_rooms()  # in the order of nodes
        elif node in state.withdrawn or any(map(operator.lt, rooms[node], self._least)):
            del rooms[node]
        self.most = max(map(_memory_of, self.rooms.values()), default=-1)
        self._seen = state.changes

    @property
    def anything_fits(self) -> bool:
        """Whether anything pending may fit on any of the nodes."""
        if self._seen != self._state.changes:
            self.renew()
        return bool(self.rooms)

    def has_room(self, place: int) -> bool:
        """Return whether a class, by its place, may fit on any of the nodes: asked after `anything_fits`."""
        shape = self.shapes[place]
        return shape.memory <= self.most and bool(self.with_room(shape))

    def with_room(self, shape: Shape) -> list[int]:
        """Return the nodes that have room for a shape; memory is scarce nearly always, and so compared first."""
        memory, floor, compared = shape.memory, shape.floor, operator.lt
        return [
            node for node, room in self.rooms.items() if memory <= room[_MEMORY] and not any(map(compared, room, floor))
        ]

    def without_room(self) -> model.BoolVector | None:
        """Return the classes that fit on none of the nodes, shape [C], perhaps with others; None: not known."""
        return None

    def best_of(self, shape: Shape, fits: list[int], passing: model.BoolVector | None) -> int | None:
        """Return the best node for a shape of those that fit and pass, the first of equal ones."""
        if passing is not None:
            fits = [node for node in fits if passing[node]]
        view, rooms, eligibility = self._state.view, self.rooms, shape.eligibility(self._state.view)
        if not eligibility.everywhere:
            fits = [node for node in fits if eligibility.mask[node]]
        if len(fits) <= 1:
            return fits[0] if fits else None
        score, sizes, inverse = self._score.of_shapes, shape.sizes, view.layout.inverse_by_node
        scores = [score(sizes, rooms[node], inverse[node]) for node in fits]
        return fits[scores.index(max(scores))]


class Table:
    """The candidate nodes as columns, with a row for each shape: how each node ranks for it."""

    nodes: npt.NDArray[np.intp]
    # The index of a node in `nodes`; None where they are all nodes, so that a place is its own index.
    at: dict[int, int] | None

    def __init__(self, sorted_classes: SortedClasses, profile: Profile, state: CycleState) -> None:
        self._state = state
        shapes, self._row_of = self._looked_at(sorted_classes, profile)
        self._sizes, self._least = shapes.sizes[:, :, None], shapes.least_listed
        self.nodes = self._with_room(shapes.least)  # the places of the nodes, ascending, shape [K]
        # `nodes` to pick them from a column.
        self.where: Where = ALL if len(self.nodes) == len(state.view.layout) else self.nodes
        self.listed: Sequence[int] = range(len(self.nodes)) if self.where is ALL else self.nodes.tolist()
        self.at = None if self.where is ALL else dict(zip(self.listed, range(len(self.nodes)), strict=True))
        # Whether every shape was compared with every node; where they are too many, nothing is known before.
        self.compares = len(shapes) * len(self.nodes) <= _COMPARED_AT_ONCE
        self._seen = state.changes
        if self.compares:
            self._allowed = shapes.allowed(state.view, self.where)
            self._fits = np.zeros((len(shapes), len(self.nodes)), np.bool_)
            self._counts = np.zeros(len(shapes), np.int64)
            self._compare(ALL, self.where)
            self._count()

    def _looked_at(self, sorted_classes: SortedClasses, profile: Profile) -> tuple[ShapeColumns, npt.NDArray[np.intp]]:
        """Return the shapes of the cycle's classes, perhaps with others, and the index of each class' shape."""
        shapes, shape_of, _ = sorted_classes.shapes(profile.sizer, self._state.view.axis)
        used = np.zeros(len(shapes), np.bool_)
        used[shape_of[sorted_classes.open]] = True
        used[:1] |= not used.any()  # one at least: rows name it
        count = np.count_nonzero(used)
        if 2 * count >= len(used):
            return shapes, shape_of
        rows = np.zeros(len(used), np.intp)
        rows[used] = np.arange(count)
        return shapes.among(used), rows[shape_of]

    def _with_room(self, least: model.IntVector) -> npt.NDArray[np.intp]:
        """Return the nodes on offer that have as much of each resource as the shape that requests least of it."""
        free, enough = self._state.free, self._state.offered
        for row, amount in enumerate(least.tolist()):
            if amount:
                enough = enough & (free[row] >= amount)
        return enough.nonzero()[0]

    def renew(self) -> None:
        """Compare the nodes that changed since the last call with all shapes."""
        state = self._state
        if self._seen == state.changes or not self.compares:
            return
        found = indices(self.at, state.changed_since(self._seen))
        if len(found) > _MANY:
            at = np.array(found, np.intp)
            self._compare(at, self.nodes[at])
        else:
            for i in found:
                self._compare_one(i, self.listed[i])
        self._count()
        self._seen = state.changes

    def _count(self) -> None:
        self._on: list[int] = self._counts.tolist()
        self._most_on = max(self._on, default=0)

    def _compare_one(self, i: int, node: int) -> None:
        if self._state.is_offered(node) and all(map(operator.ge, self._state.free_on(node), self._least)):
            self._compare(slice(i, i + 1), slice(node, node + 1))  # views, where arrays of places would copy
        else:
            self._counts -= self._fits[:, i]
            self._fits[:, i] = False

    def _compare(self, at: Where, where: Where) -> None:
        """Compare some nodes, by index and by place, with all shapes."""
        room = np.maximum(self._state.free[:, where], 0)  # requests of 0 fit also where a resource is over-committed
        fits = np.logical_and.reduce(self._sizes <= room[:, None]) & self._state.offered[where]
        if self._allowed is not None:
            fits &= self._allowed[:, at]
        self._counts += np.add.reduce(fits, axis=1, dtype=np.int64) - np.add.reduce(self._fits[:, at], axis=1)
        self._fits[:, at] = fits

    @property
    def anything_fits(self) -> bool:
        """Whether anything pending may fit on any of the nodes."""
        # A shape may fit on fewer nodes than was counted: by one for each change at most.
        if not self.compares or self._most_on > self._state.changes - self._seen:
            return True
        self.renew()
        return self._most_on > 0

    def has_room(self, place: int) -> bool:
        """Return whether a class, by its place in the lineup, may fit on any of the nodes."""
        if not self.compares or self._on[self._row_of[place]] > self._state.changes - self._seen:
            return True
        self.renew()
        return bool(self._on[self._row_of[place]] > 0)

    def without_room(self) -> model.BoolVector | None:
        """Return the classes that fit on none of the nodes, shape [C], and perhaps others; None: not known."""
        return (self._counts == 0)[self._row_of] if self.compares else None

    def row(self, pending: PendingClass) -> model.BoolVector:
        """Return the nodes that a class' shape fits on, shape [K]."""
        if not self.compares:
            return all_fits(pending.shape, self.where, self._state)
        self.renew()
        fits: model.BoolVector = self._fits[self._row_of[pending.place]]
        return fits


def fits_in(shape: Shape, room: Sequence[int]) -> bool:
    """Return whether there is room for a shape: requests of 0 fit also where a resource is over-committed."""
    return not any(map(operator.lt, room, shape.floor))


def still_fits(shape: Shape, node: int, state: CycleState) -> bool:
    """Return whether a node is on offer, allowed by the shape's constraints and has room for it now."""
    if not state.is_offered(node) or not fits_in(shape, state.free_on(node)):
        return False
    eligibility = shape.eligibility(state.view)
    return eligibility.everywhere or bool(eligibility.mask[node])


def all_fits(shape: Shape, where: Where, state: CycleState) -> model.BoolVector:
    """Return, for some nodes, whether the class' shape fits, shape [K]."""
    found: model.BoolVector = np.logical_and.reduce(state.free[:, where][shape.rows] >= shape.need)
    found &= state.offered[where]
    eligibility = shape.eligibility(state.view)
    return found if eligibility.everywhere else found & eligibility.mask[where]


def indices(at: Mapping[int, int] | None, nodes: Sequence[int]) -> Sequence[int]:
    """Return the indices of those nodes that are candidates, each once."""
    if len(nodes) == 1:
        return nodes if at is None else [at[nodes[0]]] if nodes[0] in at else ()
    if at is None:
        return list(dict.fromkeys(nodes))
    return list(dict.fromkeys([at[node] for node in nodes if node in at]))


Candidates: TypeAlias = FewNodes | Table  # the nodes on offer that may have room for anything pending

NEVER = -math.inf
_MEMORY = model.MEMORY
_memory_of = operator.itemgetter(_MEMORY)
_FEW = 64  # measured: with so many nodes, columns begin to pay
_MANY = 8  # measured: with more nodes than that, columns begin to pay
_COMPARED_AT_ONCE = 1 << 19  # shapes times nodes: a few milliseconds, and 4 MiB
