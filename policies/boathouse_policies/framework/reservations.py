"""Nodes that are kept for classes, over cycles."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boathouse_policies import model
    from boathouse_policies.framework.layout import Layout


class Reservations:
    """Which class each node is kept for.

    Attributes:
        by_name: The class by the node's name; not to be changed but by the methods.
    """

    def __init__(self) -> None:
        self.by_name: dict[model.NodeName, model.ClassId] = {}
        self._layout: Layout | None = None
        self._places: dict[int, model.ClassId] = {}

    def reserve(self, node: model.NodeName, task_class: model.ClassId) -> None:
        """Keep a node for a class."""
        self.by_name[node] = task_class
        if self._layout is not None and node in self._layout.index:
            self._places[self._layout.index[node]] = task_class

    def released(self, node: model.NodeName) -> None:
        """Keep a node that was kept for nobody any more."""
        del self.by_name[node]
        if self._layout is not None and node in self._layout.index:
            del self._places[self._layout.index[node]]

    def places(self, layout: Layout) -> dict[int, model.ClassId]:
        """The same by place, without nodes that are gone: a new dictionary, but cheap, for cycles are many."""
        if self._layout is not layout:
            index = layout.index
            self._layout, self._places = (
                layout,
                {index[name]: one for name, one in self.by_name.items() if name in index},
            )
        return self._places.copy()
