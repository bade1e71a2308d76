"""A node for whoever waits too long (FSPY has none: ours, so that nothing starves).

Backfill lets small tasks pass a large one that does not fit. Where that goes on for `ageing_s`, the node closest
to having room for it is kept for it. One node at a time, for the job that has waited for longest; none for gangs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.extension import Reserve
from boathouse_policies.fspy.order import Group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_policies.framework import Scratch, Want, Where
    from boathouse_policies.fspy.order import SizeBased


class KeptForAged(Reserve):
    """One node is kept for an aged job that fits nowhere.

    Args:
        order: Knows who is aged.
    """

    def __init__(self, order: SizeBased) -> None:
        self._order = order
        self._owner: model.ClassId | None = None

    def is_idle(self, scratch: Scratch) -> bool:
        """Whether nothing is kept in this cycle, nor will be."""
        return not scratch.kept and self._order.nobody_aged(scratch)

    def mask(self, want: Want, scratch: Scratch, where: Where) -> model.BoolVector | None:
        """True where the node is kept for nobody, or for this class."""
        if not scratch.kept:
            return None
        mask = np.ones(scratch.free.shape[1], np.bool_)
        mask[[node for node, owner in scratch.kept.items() if owner != want.task_class.id]] = False
        return mask[where]

    def keep(self, want: Want, scratch: Scratch) -> Sequence[model.Hold]:
        """The node that lacks least of what the class needs, of those that could hold it when empty."""
        if self._owner in scratch.kept.values() or self._order.group(want.job, scratch) is not Group.AGED:
            return ()
        layout, rows = scratch.view.layout, want.rows
        could = want.eligibility.mask & (layout.allocatable[rows] >= want.need).all(axis=0)
        could[list(scratch.kept)] = False  # others' (iKayak's, in the default profile)
        if not could.any():
            return ()
        lacking = (np.maximum(want.need - scratch.free[rows], 0) / want.need).max(axis=0)
        node = layout.names[int(np.where(could, lacking, np.inf).argmin())]
        self._owner = want.task_class.id
        message = f"{node} is kept for it until there is room: it has waited for long"
        verdict = model.Verdict(code=model.Code.JOB_ORDER, message=message)
        return (model.Hold(task_class=want.task_class, job=want.job, verdict=verdict, node=node),)
