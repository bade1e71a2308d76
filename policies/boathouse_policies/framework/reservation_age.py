"""How long nodes have been reserved, for users to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies.framework.questions import Figure, Figures

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from boathouse_policies import model
    from boathouse_policies.framework.cycle_state import Assignment, CycleState, PendingClass


class ReservationAge(Figures):
    """Says of classes and placed tasks since when a node was reserved for them.

    Args:
        apart: Stages whose reservations another policy explains.
    """

    def __init__(self, apart: Collection[model.Stage] = ()) -> None:
        self._apart = apart

    def of_pending(self, pending: PendingClass, state: CycleState) -> Sequence[Figure]:
        """Return how many seconds ago the first of the nodes was reserved that are reserved for the class."""
        own = pending.task_class.id
        return self._figure(pending, state, [node for node, owner in state.reserved.items() if owner == own])

    def of_placed(self, assignment: Assignment, state: CycleState) -> Sequence[Figure]:
        """Return for how many seconds the node was reserved for the class."""
        return self._figure(assignment.pending, state, (assignment.node,))

    def _figure(self, pending: PendingClass, state: CycleState, nodes: Collection[int]) -> Sequence[Figure]:
        if pending.task_class.stage in self._apart:
            return ()
        since_s = [at_s for node in nodes if (at_s := state.reserved_since_s(node, pending.task_class.id)) is not None]
        return (("reservedForSeconds", state.view.now_s - min(since_s)),) if since_s else ()
