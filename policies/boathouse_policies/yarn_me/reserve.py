"""Node reservations that lock others out only where they would harm (3.3, "Node reservations")."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.baselines.yarn import keep_unkept

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boathouse_policies.framework import Layout, Scratch, Want, Where
    from boathouse_policies.yarn_me.book import Running
    from boathouse_policies.yarn_me.decide import Elasticity

_NOBODY = -1


class Passing:
    """A reserved node may be used by others whose task ends before the reserved task could start there regularly.

    Args:
        elasticity: Knows what runs where, and how long a task of a class would run on each node.
    """

    def __init__(self, elasticity: Elasticity) -> None:
        self._elasticity = elasticity
        self._book = elasticity.book
        self._codes: dict[model.ClassId, int] = {}
        self._known: _Known | None = None
        self._cycle: _Gaps | None = None

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
            layout = scratch.view.layout
            if self._known is None or self._known.layout is not layout:
                self._known = _Known(layout)
                self._book.touched.clear()
            self._known.forget(self._book.touched)
            self._cycle = _Gaps(scratch, self._known)
        self._cycle.renew(self._code, self._free_from_s)
        return self._cycle

    def _free_from_s(self, node: int, scratch: Scratch) -> float:
        """When the owner of a kept node will have room there for a task of its ideal size.

        -inf where it has room now, or where what runs there is unknown: then nobody may pass.
        """
        owner = self._book.classes.get(scratch.kept[node])
        if owner is None:
            return -math.inf
        memory, cpu = int(scratch.free[model.MEMORY, node]), int(scratch.free[model.CPU, node])
        need = owner.resources
        if memory >= need.memory_bytes and cpu >= need.cpu_milli:
            return -math.inf
        running = self._book.nodes.get(scratch.view.layout.names[node], {}).values()
        for task in sorted(running, key=_end_s):
            memory += task.resources.memory_bytes
            cpu += task.resources.cpu_milli
            if memory >= need.memory_bytes and cpu >= need.cpu_milli:
                return task.end_s if task.end_s < math.inf else -math.inf
        return -math.inf

    def keep(self, want: Want, scratch: Scratch) -> Sequence[model.Hold]:
        """All nodes on offer that are kept for nobody; who can pass none of them leaves the cycle."""
        held = keep_unkept(want, scratch)
        gaps = self._gaps(scratch)
        if scratch.all_kept and not gaps.confined:
            gaps.confined = True
            scratch.confine(self._elasticity.placeable(scratch, gaps.gap_s) | scratch.owners())
        return held


class _Known:
    """When each kept node is free for its owner: worked out once, until something there changes.

    Attributes:
        layout: The nodes.
        owner: Code of the class that the time is for; `_NOBODY` where it is not known.
        free_from_s: The time.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.owner = np.full(len(layout), _NOBODY, np.int64)
        self.free_from_s = np.full(len(layout), -np.inf)

    def forget(self, touched: set[model.NodeName]) -> None:
        """Tasks came, started or went on these nodes."""
        index = self.layout.index
        self.owner[[index[name] for name in touched if name in index]] = _NOBODY
        touched.clear()


class _Gaps:
    """One cycle's view of kept nodes.

    Attributes:
        scratch: The cycle.
        owner: Code of the class that each node is kept for, shape [N].
        gap_s: How long it will not have room there, shape [N].
        confined: Whether the cycle was told who can still be placed.
    """

    def __init__(self, scratch: Scratch, known: _Known) -> None:
        self.scratch = scratch
        self.confined = False
        self._known = known
        self._seen = -1
        size = scratch.free.shape[1]
        self.owner = np.full(size, _NOBODY, np.int64)
        self.gap_s = np.full(size, -np.inf)

    def renew(self, code: Callable[[model.ClassId], int], free_from_s: Callable[[int, Scratch], float]) -> None:
        """Take in what the cycle changed since the last call."""
        scratch, known = self.scratch, self._known
        if self._seen == scratch.changes:
            return
        if self._seen < 0:
            if scratch.kept:
                self.owner[list(scratch.kept)] = [code(one) for one in scratch.kept.values()]
            changed = scratch.offered.nonzero()[0]
        else:
            changed = scratch.changed_since(self._seen)
            known.owner[changed] = _NOBODY
        self._seen = scratch.changes
        for node in changed.tolist():
            owner = scratch.kept.get(node)
            self.owner[node] = own = _NOBODY if owner is None else code(owner)
            if own != _NOBODY and own != known.owner[node]:
                known.free_from_s[node] = free_from_s(node, scratch)
                known.owner[node] = own
            self.gap_s[node] = known.free_from_s[node] - scratch.view.now_s if own != _NOBODY else -math.inf


def _end_s(task: Running) -> float:
    return task.end_s
