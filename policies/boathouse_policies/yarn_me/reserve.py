"""Node reservations that lock others out only where they would harm (3.3, "Node reservations")."""

from __future__ import annotations

import itertools
import math
import operator
from typing import TYPE_CHECKING, Self

import numpy as np

from boathouse_policies import model
from boathouse_policies.baselines.yarn import reserve_unreserved
from boathouse_policies.framework.questions import Hooks, Reserve

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from boathouse_policies.framework import CycleState, Layout, PendingClass, SchedulingQueue, Where
    from boathouse_policies.yarn_me.book import Book
    from boathouse_policies.yarn_me.decide import Elasticity


class Waits:
    """When the owner of a kept node will have room there: a memo.

    Args:
        book: What runs where.
    """

    def __init__(self, book: Book) -> None:
        self._book = book
        self._seen = -1
        self._known: dict[model.NodeName, tuple[tuple[model.ClassId, int, int, int], float]] = {}

    def until_s(self, node: model.NodeName, owner: model.ClassId, room: Sequence[int]) -> float:
        """When the owner may have a task of its ideal size there.

        -inf where it has room now, or where what runs there is unknown: then nobody may pass.

        Args:
            node: The kept node.
            owner: The class that it is kept for.
            room: What is free there, by row.
        """
        key = (owner, self._book.versions.get(node, 0), room[model.MEMORY], room[model.CPU])
        known = self._known.get(node)
        if known is None or known[0] != key:
            known = self._known[node] = key, self._until_s(node, owner, room[model.MEMORY], room[model.CPU])
        return known[1]

    def on(self, node: int, state: CycleState) -> float:
        """The same of a node's place; infinite where it is kept for nobody."""
        owner = state.reserved.get(node)
        if owner is None:
            return math.inf
        return self.until_s(state.view.layout.names[node], owner, state.free_on(node))

    def changed_on(self) -> Sequence[model.NodeName]:
        """Return the nodes on which tasks started or ended since the last call."""
        seen, self._seen = self._seen, self._book.changes
        return list(itertools.takewhile(lambda name: self._book.versions[name] > seen, reversed(self._book.versions)))

    def _until_s(self, node: model.NodeName, owner: model.ClassId, memory: int, cpu: int) -> float:
        one = self._book.classes.get(owner)
        if one is None:
            return -math.inf
        need = one.resources
        if memory >= need.memory_bytes and cpu >= need.cpu_milli:
            return -math.inf
        for task in sorted(self._book.nodes.get(node, {}).values(), key=_END_S):
            memory += task.resources.memory_bytes
            cpu += task.resources.cpu_milli
            if memory >= need.memory_bytes and cpu >= need.cpu_milli:
                return task.end_s if task.end_s < math.inf else -math.inf
        return -math.inf


class Passing(Reserve, Hooks):
    """A reserved node may be used by others whose task ends before the reserved task could start there regularly.

    Args:
        elasticity: Knows what runs where, and how long a task of a class would run on each node.
    """

    by_node = idle_once_all_kept = True

    def __init__(self, elasticity: Elasticity) -> None:
        self._elasticity = elasticity
        self._waits = Waits(elasticity.book)
        self._columns = _Columns(self._waits)

    def begins(self, queue: SchedulingQueue, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """Compare what the columns hold with the cluster before they are used."""
        self._columns.begin()

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """True where the node is kept for nobody, or this class, or where this class does no harm."""
        if not state.reserved:
            return None
        columns = self._columns.renewed(state)
        free: model.BoolVector = columns.owner[where] == pending.task_class.id
        free |= self._elasticity.seconds(pending, state, where) <= columns.until_s[where] - state.view.now_s
        return free

    def passes(self, pending: PendingClass, state: CycleState, node: int) -> bool:
        """The same of one node."""
        owner = state.reserved.get(node)
        if owner is None or owner == pending.task_class.id:
            return True
        gap_s = self._waits.on(node, state) - state.view.now_s
        return self._elasticity.seconds(pending, state, node) <= gap_s

    def reserve(self, pending: PendingClass, state: CycleState) -> Sequence[model.Reservation | model.Wait]:
        """All nodes on offer that are kept for nobody and would, empty, hold the class' ideal size."""
        return reserve_unreserved(pending, state)

    def passing(self, state: CycleState) -> Collection[model.ClassId]:
        """Those whom the nodes are kept for, and those that may use one of them before its owner can."""
        places, now_s = state.offered_places(), state.view.now_s
        if len(places) <= _FEW:
            free = [state.memory(node) for node in places]
            gaps_s = [self._waits.on(node, state) - now_s for node in places]
        else:
            free = state.memory(np.array(places)).tolist()
            gaps_s = (self._columns.renewed(state).until_s[places] - now_s).tolist()
        return self._elasticity.placeable(free, gaps_s, now_s) | state.owners()


class _Columns:
    """The nodes as columns: who keeps each, and until when it is of no use to its owner.

    They last from cycle to cycle; at the first question of a cycle they are mended where anything differs.

    Args:
        waits: Knows the times.

    Attributes:
        owner: Whom each node is kept for; None for nobody, shape [N].
        until_s: When its owner has room there; infinite where it is kept for nobody, shape [N].
    """

    def __init__(self, waits: Waits) -> None:
        self._waits = waits
        self._layout: Layout | None = None
        self._reserved: dict[int, model.ClassId] = {}
        self._seen: int | None = None
        self._mended: set[int] = set()

    def begin(self) -> None:
        """A cycle begins."""
        self._seen = None

    def renewed(self, state: CycleState) -> Self:
        """Return the columns, as the cycle has them now."""
        if self._seen != state.changes:
            if self._seen is None:
                changed = self._differing(state)
            else:
                changed = set(state.changed_since(self._seen))
                self._mended |= changed  # the cycle's placements may come to nothing
            self._seen = state.changes
            for node in changed:
                self.owner[node] = state.reserved.get(node)
                self.until_s[node] = self._waits.on(node, state)
        return self

    def _differing(self, state: CycleState) -> Collection[int]:
        """The nodes where anything differs from what the columns were made of."""
        layout, free = state.view.layout, state.free[:_ROWS]
        before, self._reserved = self._reserved, state.reserved.copy()
        if layout is not self._layout:
            self._layout, self._free = layout, free.copy()
            self.owner = np.full(len(layout), None, np.object_)
            self.until_s = np.full(len(layout), np.inf)
            self._waits.changed_on()
            self._mended.clear()
            return state.reserved.keys()
        index = layout.index
        changed = {node for node, _ in before.items() ^ state.reserved.items()}
        changed.update(self._mended)
        self._mended.clear()
        changed.update((free != self._free).any(axis=0).nonzero()[0].tolist())
        changed.update(index[name] for name in self._waits.changed_on() if name in index)
        self._free = free.copy()
        return changed


_END_S = operator.attrgetter("end_s")
_ROWS = max(model.CPU, model.MEMORY) + 1
_FEW = 8
