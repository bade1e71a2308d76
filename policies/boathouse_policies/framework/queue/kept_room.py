"""Room that is kept for gangs between cycles: one guard for all that takes room without a turn in a cycle.

The turns of a cycle give kept room to nobody else. A resize of a running task and a second attempt have no turn: a
policy chooses the node of an attempt by `beside`, and a shell carries out no decision for which there is a `refusal`. A
resume is not guarded: it takes back what the task has requested before.
"""

from __future__ import annotations

import itertools
import operator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from boathouse_policies import model
    from boathouse_policies.framework.queue.reservations import Reservations
    from boathouse_policies.framework.view import ClusterView

KEPT_FOR_GANG = "KeptForGang"
"""Why a decision is refused: it would take room that is kept for a gang."""


class KeptPart(NamedTuple):
    """Room on a node that a cycle left free for a task of a gang: all that the task needs, or a part of it."""

    task_class: model.ClassId
    node: model.NodeName
    amounts: Sequence[int]


class KeptRoom:
    """The room that is kept for the gangs in a scheduling queue: parts of nodes, and whole nodes.

    Args:
        reservations: The class that each reserved node is for.
        starts_whole: Returns whether a class is of a gang that is in the queue.
    """

    def __init__(self, reservations: Reservations, starts_whole: Callable[[model.ClassId], bool]) -> None:
        self._reservations, self._starts_whole = reservations, starts_whole
        self._parts: Sequence[KeptPart] = ()

    def replace(self, parts: Iterable[KeptPart]) -> None:
        """Note the parts that the last cycle kept; whole nodes are those of the reservations."""
        self._parts = tuple(parts)

    def nodes(self) -> set[model.NodeName]:
        """Return the nodes on which anything is kept."""
        return {*self._whole(), *(part.node for part in self._current())}

    def left(self, node: model.NodeName, free: Sequence[int]) -> model.Amounts:
        """Return what of the free amounts of a node is not kept, by row."""
        if self._is_whole(node):
            return tuple(min(0, amount) for amount in free)
        left = tuple(free)
        for part in self._current():
            if part.node == node:
                more = itertools.chain(part.amounts, itertools.repeat(0))
                left = tuple(map(operator.sub, left, more))
        return left

    def refusal(self, node: model.NodeName, free: Sequence[int], more: Sequence[int]) -> str:
        """Return why a running task may not take more of a node; empty if it takes nothing that is kept.

        Args:
            node: Its node.
            free: What is free there, by row.
            more: What it would take, by row.
        """
        left = self.left(node, free)
        takes = any(amount > 0 and rest < amount for rest, amount in zip(left, more, strict=False))
        return KEPT_FOR_GANG if takes and left != tuple(free) else ""

    def beside(self, view: ClusterView) -> model.IntMatrix:
        """Return what is free and not kept, shape [R, N]. A new array."""
        free, index = view.free(), view.layout.index
        for node in self.nodes():
            if (place := index.get(node)) is not None:
                free[:, place] = self.left(node, free[:, place].tolist())
        return free

    def idle(self, node: model.NodeName, free: Sequence[int]) -> model.Amounts:
        """Return what of the free amounts of a node is kept, by row."""
        return tuple(max(0, amount - max(0, rest)) for amount, rest in zip(free, self.left(node, free), strict=True))

    def _current(self) -> Iterator[KeptPart]:
        return (part for part in self._parts if self._starts_whole(part.task_class))

    def _whole(self) -> Iterator[model.NodeName]:
        return (node for node, owner in self._reservations.items() if self._starts_whole(owner))

    def _is_whole(self, node: model.NodeName) -> bool:
        owner = self._reservations.get(node)
        return owner is not None and self._starts_whole(owner)
