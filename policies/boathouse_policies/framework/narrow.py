"""Classes that fitted nowhere before room came free on a few nodes: only those nodes are looked at for them.

Room shrinks within a cycle, so whoever fits none of these nodes any more is done: seen for all classes at once, after
each placement, by one comparison of sizes with what the node has left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from boathouse_policies import model
    from boathouse_policies.framework.scratch import Scratch


class Narrow:
    """Which of some classes fit on which of some nodes.

    Args:
        classes: The classes, shape [C].
        sizes: Their least sizes, shape [R, C].
        nodes: Places of the nodes, ascending.
        scratch: What is free.
    """

    def __init__(
        self, classes: model.BoolVector, sizes: model.IntMatrix, nodes: Sequence[int], scratch: Scratch
    ) -> None:
        self.classes = classes
        self._sizes = sizes
        self._nodes = np.array(nodes, np.intp)
        self._index = {node: i for i, node in enumerate(nodes)}
        self._free = scratch.free
        self._fits = np.empty((len(nodes), len(classes)), np.bool_)
        for i, node in enumerate(nodes):
            self._fits[i] = self._fitting(node)
        self._on = np.add.reduce(self._fits, axis=0, dtype=np.int64)

    def _fitting(self, node: int) -> model.BoolVector:
        room = np.maximum(self._free[:, node], 0)  # a request of 0 fits also where a resource is over-committed
        fits: model.BoolVector = np.logical_and.reduce(self._sizes <= room[:, None])
        return fits

    def nodes_of(self, place: int) -> npt.NDArray[np.intp]:
        """The nodes that have room for a class, ascending."""
        return self._nodes[self._fits[:, place]]

    def shrunk(self, node: int) -> model.BoolVector | None:
        """Who fits on none of the nodes, now that one took tasks; None if it is not one of them."""
        i = self._index.get(node)
        if i is None:
            return None
        fits = self._fitting(node)
        self._on -= self._fits[i]
        self._on += fits
        self._fits[i] = fits
        nowhere: model.BoolVector = self.classes & (self._on == 0)
        return nowhere
