"""Which node is reserved for which class or gang.

Room is kept for gangs between cycles, with one guard for all that takes room without a turn in a cycle. The turns give
kept room to nobody else. A resize of a running task and a second attempt have no turn: a
policy chooses the node of an attempt by `beside`, and a shell carries out no decision for which there is a `refusal`. A
resume is not guarded: it takes back what the task has requested before.
"""

import itertools
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from boathouse_policies import model
from boathouse_policies.framework.layout import Layout
from boathouse_policies.framework.queue.queued_class import QueuedClass
from boathouse_policies.framework.view import ClusterView


class Reservations(dict[model.NodeName, model.ClassId]):
    """The class that each reserved node is for, over cycles: nodes are set and deleted one by one."""

    def __init__(
        self,
        classes: Mapping[model.ClassId, QueuedClass],
        jobs: Mapping[model.JobId, Mapping[model.ClassId, QueuedClass]],
    ) -> None:
        self._classes, self._jobs = classes, jobs
        self._by_place: dict[int, model.ClassId] = {}
        self._layout: Layout | None = None
        self._since_s: dict[model.NodeName, float] = {}

    def reserve(self, node: model.NodeName, owner: model.ClassId, now_s: float) -> None:
        """Reserve a node; one that is reserved for the class already keeps its time."""
        if self.get(node) != owner:
            self._since_s[node] = now_s
        self[node] = owner

    def since_s(self, node: model.NodeName, owner: model.ClassId) -> float | None:
        """Return since when a node has been reserved for a class; None if it is not."""
        return self._since_s.get(node) if self.get(node) == owner else None

    def __setitem__(self, node: model.NodeName, owner: model.ClassId) -> None:
        super().__setitem__(node, owner)
        if self._layout is not None and node in self._layout.index:
            self._by_place[self._layout.index[node]] = owner

    def __delitem__(self, node: model.NodeName) -> None:
        super().__delitem__(node)
        self._since_s.pop(node, None)
        if self._layout is not None:
            self._by_place.pop(self._layout.index.get(node, -1), None)

    def by_place(self, layout: Layout) -> dict[int, model.ClassId]:
        """Return a copy by the nodes' places in a layout: kept up for one layout, because cycles are many."""
        if layout is not self._layout:
            self._layout, index = layout, layout.index
            self._by_place = {index[node]: owner for node, owner in self.items() if node in index}
        return self._by_place.copy()

    def open_to(self, owner: model.ClassId) -> Collection[model.ClassId]:
        """Return the classes that may use the nodes of a class: those of its job up to it, and those of its gang.

        The job's order serves the earlier classes first, and a gang starts whole: locked out, they would wait for the
        owner, and it for them.
        """
        queued = self._classes.get(owner)
        members = self._jobs[queued.job.id].values() if queued is not None else ()
        if queued is None or len(members) == 1:
            return (owner,)
        gang_min = queued.task_class.gang_min
        return [
            member.task_class.id
            for member in members
            if member.rank <= queued.rank or (gang_min and member.task_class.gang_min)
        ]


KEPT_FOR_GANG = "KeptForGang"  # why a decision is refused: it would take room that is kept for a gang


class KeptPart(NamedTuple):
    """Room on a node that a cycle left free for a task of a gang: all that the task needs, or a part of it."""

    task_class: model.ClassId
    node: model.NodeName
    amounts: Sequence[int]


class KeptRoom:
    """The room that is kept for gangs that a scheduling queue starts whole: parts of nodes, and whole nodes."""

    def __init__(self, reservations: Reservations, starts_whole: Callable[[model.ClassId], bool]) -> None:
        self._reservations, self._starts_whole = reservations, starts_whole
        self.parts: Sequence[KeptPart] = ()  # of the last cycle

    def nodes(self) -> set[model.NodeName]:
        """Return the nodes on which anything is kept."""
        whole = (node for node, owner in self._reservations.items() if self._starts_whole(owner))
        return {*whole, *(part.node for part in self._current())}

    def left(self, node: model.NodeName, free: Sequence[int]) -> model.Amounts:
        """Return what of the free amounts of a node is not kept, by row."""
        if (owner := self._reservations.get(node)) is not None and self._starts_whole(owner):
            return tuple(min(0, amount) for amount in free)
        left = tuple(free)
        for part in self._current():
            if part.node == node:
                left = tuple(map(operator.sub, left, itertools.chain(part.amounts, itertools.repeat(0))))
        return left

    def refusal(self, node: model.NodeName, free: Sequence[int], more: Sequence[int]) -> str:
        """Return why a running task may not take more of what is free on a node; empty if it takes nothing kept."""
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
        return (part for part in self.parts if self._starts_whole(part.task_class))
