"""Node reservations that lock others out only where they would harm (3.3, "Node reservations")."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.baselines.yarn import LockedNodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_policies.framework import Scratch, Want, Where
    from boathouse_policies.yarn_me.book import Book, Running


class Passing:
    """A reserved node may be used by others whose task ends before the reserved task could start there regularly.

    Args:
        book: Knows when what runs there ends.
    """

    def __init__(self, book: Book) -> None:
        self._book = book
        self._locked = LockedNodes()

    def mask(self, want: Want, scratch: Scratch, where: Where) -> model.BoolVector | None:
        """True where the node is kept for nobody, or this class, or where this class does no harm."""
        locked = self._locked.mask(want, scratch, slice(None))
        if locked is None:
            return None
        shortest_s = want.task_class.estimates.duration_s(want.task_class.resources)
        if shortest_s is not None:
            for node in np.arange(len(locked))[where][~locked[where]].tolist():
                locked[node] = self._harmless(want, node, scratch)
        return locked[where]

    def _harmless(self, want: Want, node: int, scratch: Scratch) -> bool:
        """Whether the task, as it would be sized there, ends before the node's owner could start regularly."""
        one = want.task_class
        memory = min(int(scratch.free[model.MEMORY, node]), one.resources.memory_bytes)
        if memory < want.least[model.MEMORY]:
            return False
        seconds = one.estimates.duration_s(
            model.Resources(cpu_milli=one.resources.cpu_milli, memory_bytes=memory)
        )
        gap_s = self.gap_s(node, scratch)
        return seconds is not None and seconds <= gap_s

    def gap_s(self, node: int, scratch: Scratch) -> float:
        """How long it is until the owner of a kept node has room there for a task of its ideal size.

        0 where it has room now, or where what runs there is unknown: then nobody may pass.
        """
        owner = self._book.classes.get(scratch.kept[node])
        if owner is None:
            return 0.0
        memory, cpu = int(scratch.free[model.MEMORY, node]), int(scratch.free[model.CPU, node])
        need = owner.resources
        if memory >= need.memory_bytes and cpu >= need.cpu_milli:
            return 0.0
        running = self._book.nodes.get(scratch.view.layout.names[node], {}).values()
        for task in sorted(running, key=_end_s):
            memory += task.resources.memory_bytes
            cpu += task.resources.cpu_milli
            if memory >= need.memory_bytes and cpu >= need.cpu_milli:
                return max(0.0, task.end_s - scratch.view.now_s) if task.end_s < math.inf else 0.0
        return 0.0

    def keep(self, want: Want, scratch: Scratch) -> Sequence[model.Hold]:
        """All nodes on offer that are kept for nobody; nodes that nobody may pass any more leave the cycle."""
        return self._locked.keep(want, scratch)


def _end_s(task: Running) -> float:
    return task.end_s
