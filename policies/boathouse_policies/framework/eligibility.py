"""Which nodes a set of constraints allows."""

from __future__ import annotations

import collections
import weakref
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies.framework import node_constraints

if TYPE_CHECKING:
    from boathouse_policies import model
    from boathouse_policies.framework.layout import Layout


class Eligibility:
    """Which nodes a set of constraints allows. Immutable.

    Attributes:
        mask: True where allowed, shape [N].
        everywhere: Whether it allows all nodes.
    """

    def __init__(self, layout: Layout, refusals: list[str | None]) -> None:
        self.layout = layout
        self.refusals = refusals
        self.mask = np.array([reason is None for reason in refusals], np.bool_)
        self.mask.flags.writeable = False
        self.everywhere = bool(self.mask.all())


class Eligibilities:
    """Static masks by constraints: computed once, then mended for the nodes that changed.

    Kept for as long as a class that waits has these constraints, and the last ones beyond that.

    A memo: what it answers depends on its arguments alone.
    """

    def __init__(self) -> None:
        self._known: weakref.WeakValueDictionary[model.Constraints, Eligibility] = weakref.WeakValueDictionary()
        self._last: collections.OrderedDict[model.Constraints, Eligibility] = collections.OrderedDict()

    def of(self, constraints: model.Constraints, layout: Layout) -> Eligibility:
        """The mask over the nodes of this layout."""
        known = self._known.get(constraints)
        if known is None or known.layout is not layout:
            known = self._known[constraints] = Eligibility(layout, self._refusals(constraints, layout, known))
        self._last[constraints] = known
        self._last.move_to_end(constraints)
        if len(self._last) > _CONSTRAINTS_KEPT:
            self._last.popitem(last=False)
        return known

    @staticmethod
    def _refusals(constraints: model.Constraints, layout: Layout, known: Eligibility | None) -> list[str | None]:
        if known is None:
            return [node_constraints.refusal(constraints, node) for node in layout.nodes]
        refusals = known.refusals
        return [
            refusals[i] if i >= 0 else node_constraints.refusal(constraints, node)
            for i, node in zip(layout.origins(known.layout), layout.nodes, strict=True)
        ]


_CONSTRAINTS_KEPT = 1024  # arbitrary: pods of others may each bring their own
