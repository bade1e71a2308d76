"""Nodes that are kept for classes, over cycles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from boathouse_policies import model

if TYPE_CHECKING:
    from boathouse_policies.framework.layout import Layout


class Kept(dict[model.NodeName, model.ClassId]):
    """Which class each node is kept for: a dictionary by name that knows the same by place, for cycles are many."""

    def __init__(self) -> None:
        super().__init__()
        self._layout: Layout | None = None
        self._places: dict[int, model.ClassId] = {}

    @override
    def __setitem__(self, node: model.NodeName, task_class: model.ClassId) -> None:
        """Keep a node."""
        super().__setitem__(node, task_class)
        if self._layout is not None and node in self._layout.index:
            self._places[self._layout.index[node]] = task_class

    @override
    def __delitem__(self, node: model.NodeName) -> None:
        """Keep it for nobody any more."""
        super().__delitem__(node)
        if self._layout is not None and node in self._layout.index:
            del self._places[self._layout.index[node]]

    def places(self, layout: Layout) -> dict[int, model.ClassId]:
        """The same by place, without nodes that are gone: a new dictionary."""
        if self._layout is not layout:
            index = layout.index
            self._layout, self._places = layout, {index[name]: one for name, one in self.items() if name in index}
        return self._places.copy()
