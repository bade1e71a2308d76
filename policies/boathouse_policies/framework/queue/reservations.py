"""Which node is reserved for which class: by name for the shells, by place for the cycles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies import model

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from boathouse_policies.framework.layout import Layout
    from boathouse_policies.framework.queue.queued_class import QueuedClass


class Reservations(dict[model.NodeName, model.ClassId]):
    """The class that each reserved node is for, over cycles: nodes are set and deleted one by one.

    Args:
        classes: The classes of the scheduling queue.
        jobs: The same by job, in the order in which they are served.
    """

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
