"""Reserve a node for a job that waits too long (FSPY does not: ours, so that nothing starves).

Backfill lets small tasks pass a large one that does not fit. Where that goes on for `ageing_s`, the node closest
to having room for it is reserved for it. One node at a time, for the job that has waited for longest; none for gangs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import CycleState, Hooks, PendingClass, Reserve, SchedulingQueue, Where
from boathouse_policies.framework.queue import NO_CLASSES
from boathouse_policies.fspy.order import Group, SizeBased

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


class AgeingReserve(Reserve, Hooks):
    """Reserve a node for an aged job that fits nowhere, one at a time.

    Args:
        order: Knows who is aged.
        apart: Stages whose nodes another policy reserves.

    Attributes:
        order: As given.
    """

    def __init__(self, order: SizeBased, apart: Collection[model.Stage] = ()) -> None:
        self.order = order
        self._apart = apart
        self._classes = NO_CLASSES

    def begins(self, queue: SchedulingQueue, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """Begin a cycle: note its classes, for the stages of those that have nodes reserved."""
        self._classes = queue.sorted_classes()

    def is_idle(self, state: CycleState) -> bool:
        """Return whether no node is reserved in this cycle, nor will be."""
        return not state.reserved and self.order.nobody_aged

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Return the nodes that are reserved for no class or for this one, shape [N]; None for all."""
        if not state.reserved:
            return None
        mask = np.ones(len(state.offered), np.bool_)
        mask[[node for node, owner in state.reserved.items() if owner != pending.task_class.id]] = False
        return mask[where]

    def reserve(self, pending: PendingClass, state: CycleState) -> Sequence[model.Reservation | model.Wait]:
        """Reserve the node that lacks least of what the class needs, of those that could hold it when empty."""
        queued, places = self._classes.queued, self._classes.places
        owners = [queued[places[owner]].task_class for owner in state.reserved.values() if owner in places]
        is_taken = any(task_class.stage not in self._apart for task_class in owners)
        if is_taken or self.order.group(pending.job, state) is not Group.AGED:
            return ()
        layout, rows = state.view.layout, pending.shape.rows
        could = state.reservable(pending) & layout.large_enough(pending.least)
        could[list(state.reserved)] = False
        if not could.any():
            return ()
        lacking = (np.maximum(pending.shape.need - state.free[rows], 0) / pending.shape.need).max(axis=0)
        node = layout.names[int(np.where(could, lacking, np.inf).argmin())]
        message = f"{node} is reserved for it until there is room: it has been pending for long"
        verdict = model.Verdict(code=model.Code.JOB_ORDER, message=message)
        return (model.Reservation(task_class=pending.task_class, job=pending.job, verdict=verdict, node=node),)
