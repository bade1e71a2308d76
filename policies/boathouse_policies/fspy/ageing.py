"""A node for whoever waits too long (FSPY has none: ours, so that nothing starves).

Backfill lets small tasks pass a large one that does not fit. Where that goes on for `ageing_s`, the node closest
to having room for it is kept for it. One node at a time, for the job that has waited for longest; none for gangs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.questions import Reserve
from boathouse_policies.fspy.order import Group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_policies.framework import CycleState, PendingClass, Where
    from boathouse_policies.fspy.order import SizeBased


class KeptForAged(Reserve):
    """One node is kept for an aged job that fits nowhere.

    Args:
        order: Knows who is aged.
    """

    def __init__(self, order: SizeBased) -> None:
        self._order = order
        self._owner: model.ClassId | None = None

    def is_idle(self, state: CycleState) -> bool:
        """Whether nothing is kept in this cycle, nor will be."""
        return not state.reserved and self._order.nobody_aged(state)

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """True where the node is kept for nobody, or for this class."""
        if not state.reserved:
            return None
        mask = np.ones(state.free.shape[1], np.bool_)
        mask[[node for node, owner in state.reserved.items() if owner != pending.task_class.id]] = False
        return mask[where]

    def reserve(self, pending: PendingClass, state: CycleState) -> Sequence[model.Hold]:
        """The node that lacks least of what the class needs, of those that could hold it when empty."""
        if self._owner in state.reserved.values() or self._order.group(pending.job, state) is not Group.AGED:
            return ()
        layout, rows = state.view.layout, pending.rows
        could = pending.eligibility.mask & (layout.allocatable[rows] >= pending.need).all(axis=0)
        could[list(state.reserved)] = False  # others' (iKayak's, in the default profile)
        if not could.any():
            return ()
        lacking = (np.maximum(pending.need - state.free[rows], 0) / pending.need).max(axis=0)
        node = layout.names[int(np.where(could, lacking, np.inf).argmin())]
        self._owner = pending.task_class.id
        message = f"{node} is kept for it until there is room: it has waited for long"
        verdict = model.Verdict(code=model.Code.JOB_ORDER, message=message)
        return (model.Hold(task_class=pending.task_class, job=pending.job, verdict=verdict, node=node),)
