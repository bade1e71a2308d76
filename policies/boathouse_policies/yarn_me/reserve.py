"""Node reservations that lock others out only where they would harm (3.3, "Node reservations")."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.baselines.yarn import keep_unkept, places_of
from boathouse_policies.framework.extension import Reserve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_policies.framework import Scratch, Want, Where
    from boathouse_policies.yarn_me.book import Book
    from boathouse_policies.yarn_me.decide import Elasticity


class Waits:
    """When the owner of a kept node will have room there: a memo.

    Args:
        book: What runs where.
    """

    def __init__(self, book: Book) -> None:
        self._book = book
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


class Passing(Reserve):
    """A reserved node may be used by others whose task ends before the reserved task could start there regularly.

    Args:
        elasticity: Knows what runs where, and how long a task of a class would run on each node.
    """

    by_node = True

    def __init__(self, elasticity: Elasticity) -> None:
        self._elasticity = elasticity
        self._waits = Waits(elasticity.book)

    def mask(self, want: Want, scratch: Scratch, where: Where) -> model.BoolVector | None:
        """True where the node is kept for nobody, or this class, or where this class does no harm."""
        if not scratch.kept:
            return None
        own = want.task_class.id
        gaps_s = np.array([self._gap_s(node, scratch, own) for node in places_of(where, scratch)])
        return self._elasticity.seconds(want, scratch, where) <= gaps_s

    def passes(self, want: Want, scratch: Scratch, node: int) -> bool:
        """The same of one node."""
        if node not in scratch.kept:
            return True
        return self._elasticity.seconds(want, scratch, node) <= self._gap_s(node, scratch, want.task_class.id)

    def _gap_s(self, node: int, scratch: Scratch, own: model.ClassId | None = None) -> float:
        """How long the node is of no use to the class that it is kept for; for ever where nobody else keeps it."""
        owner = scratch.kept.get(node, own)
        if owner == own:
            return math.inf
        assert owner is not None
        view = scratch.view
        return self._waits.until_s(view.layout.names[node], owner, scratch.free_on(node)) - view.now_s

    def keep(self, want: Want, scratch: Scratch) -> Sequence[model.Hold]:
        """All nodes on offer that are kept for nobody; who can pass none of them leaves the cycle."""
        held = keep_unkept(want, scratch)
        if not scratch.is_confined and scratch.all_kept:
            places = scratch.offered_places()
            free = [scratch.memory(node) for node in places]
            gaps_s = [self._gap_s(node, scratch) for node in places]
            scratch.confine(self._elasticity.placeable(free, gaps_s, scratch.view.now_s) | scratch.owners())
        return held


_END_S = operator.attrgetter("end_s")
