"""Node reservations that lock others out only where they would harm (3.3, "Node reservations")."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.baselines.yarn import keep_unkept
from boathouse_policies.framework.extension import Reserve

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boathouse_policies.framework import Scratch, Want, Where
    from boathouse_policies.yarn_me.book import Book
    from boathouse_policies.yarn_me.decide import Elasticity

_NOBODY = -1


class Waits:
    """When the owner of a kept node will have room there, remembered until something changes on the node.

    Args:
        book: What runs where.
    """

    def __init__(self, book: Book) -> None:
        self._book = book
        self._known: dict[model.NodeName, tuple[model.ClassId, int, float]] = {}

    def until_s(self, node: model.NodeName, owner: model.ClassId, free: Sequence[int], *, changed: bool) -> float:
        """When the owner may have a task of its ideal size there.

        -inf where it has room now, or where what runs there is unknown: then nobody may pass.

        Args:
            node: The kept node.
            owner: The class that it is kept for.
            free: What is free there, by row.
            changed: Whether this cycle placed something there, which the book does not know yet.
        """
        version = -1 if changed else self._book.versions.get(node, 0)
        known = self._known.get(node)
        if known is not None and known[0] == owner and known[1] == version >= 0:
            return known[2]
        time_s = self._until_s(node, owner, int(free[model.MEMORY]), int(free[model.CPU]))
        self._known[node] = (owner, version, time_s)
        return time_s

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

    def __init__(self, elasticity: Elasticity) -> None:
        self._elasticity = elasticity
        self._codes: dict[model.ClassId, int] = {}
        self._cycle: _Gaps | None = None
        self.waits = Waits(elasticity.book)

    def mask(self, want: Want, scratch: Scratch, where: Where) -> model.BoolVector | None:
        """True where the node is kept for nobody, or this class, or where this class does no harm."""
        if not scratch.kept:
            return None
        gaps = self._gaps(scratch)
        owner = gaps.owner[where]
        free: model.BoolVector = (owner == _NOBODY) | (owner == self._code(want.task_class.id))
        seconds = self._elasticity.seconds(want, scratch, where)
        return free if seconds is None else free | (seconds <= gaps.gap_s[where])

    def _code(self, class_id: model.ClassId) -> int:
        return self._codes.setdefault(class_id, len(self._codes))

    def _gaps(self, scratch: Scratch) -> _Gaps:
        if self._cycle is None or self._cycle.scratch is not scratch:
            self._cycle = _Gaps(scratch)
        self._cycle.renew(self._code, self.waits)
        return self._cycle

    def keep(self, want: Want, scratch: Scratch) -> Sequence[model.Hold]:
        """All nodes on offer that are kept for nobody; who can pass none of them leaves the cycle."""
        held = keep_unkept(want, scratch)
        gaps = self._gaps(scratch)
        if scratch.all_kept and not gaps.confined:
            gaps.confined = True
            places = scratch.offered.nonzero()[0]
            free = scratch.free[model.MEMORY, places].tolist()
            now_s = scratch.view.now_s
            found = self._elasticity.placeable(free, gaps.gap_s[places].tolist(), now_s)
            scratch.confine(found | scratch.owners())
        return held


class _Gaps:
    """One cycle's view of kept nodes.

    Attributes:
        scratch: The cycle.
        owner: Code of the class that each node is kept for, shape [N]; nobody where the node is not on offer.
        gap_s: How long it will not have room there, shape [N].
        confined: Whether the cycle was told who can still be placed.
    """

    def __init__(self, scratch: Scratch) -> None:
        self.scratch = scratch
        self.confined = False
        self._seen = -1
        size = scratch.free.shape[1]
        self.owner = np.full(size, _NOBODY, np.int64)
        self.gap_s = np.full(size, -np.inf)

    def renew(self, code: Callable[[model.ClassId], int], waits: Waits) -> None:
        """Take in what the cycle changed since the last call."""
        scratch = self.scratch
        if self._seen == scratch.changes:
            return
        first = self._seen < 0
        changed = scratch.offered_places() if first else scratch.changed_since(self._seen)
        self._seen = scratch.changes
        names, now_s = scratch.view.layout.names, scratch.view.now_s
        for node in changed:
            owner = scratch.kept.get(node)
            self.owner[node] = _NOBODY if owner is None else code(owner)
            self.gap_s[node] = -math.inf
            if owner is not None:
                free = scratch.free[:, node].tolist()
                self.gap_s[node] = waits.until_s(names[node], owner, free, changed=not first) - now_s


_END_S = operator.attrgetter("end_s")
