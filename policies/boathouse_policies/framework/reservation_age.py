"""How long nodes have been reserved, for users to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies.framework.figures import Figure, Figures
from boathouse_policies.framework.questions import Hooks

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from boathouse_policies import model
    from boathouse_policies.framework.cycle_state import Assignment, CycleState, PendingClass
    from boathouse_policies.framework.queue import SchedulingQueue


class ReservationAge(Hooks, Figures):
    """Says of classes and placed tasks since when a node was reserved for them.

    Args:
        apart: Stages whose reservations another policy explains.
    """

    def __init__(self, apart: Collection[model.Stage] = ()) -> None:
        self._apart = apart
        self._since_s: dict[tuple[model.NodeName, model.ClassId], float] = {}
        self._last_s: float | None = None

    def begins(self, queue: SchedulingQueue, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """Note what is reserved: what is new, since the last cycle."""
        known, names, now_s = self._since_s, state.view.layout.names, state.view.now_s
        new_s = now_s if self._last_s is None else self._last_s
        keys = [(names[place], owner) for place, owner in state.reserved.items()]
        self._since_s = {key: known.get(key, new_s) for key in keys}
        self._last_s = now_s

    def of_pending(self, pending: PendingClass, state: CycleState) -> Sequence[Figure]:
        """Return how long the node that was first reserved for the class has been."""
        own = pending.task_class.id
        since_s = [since_s for (_, owner), since_s in self._since_s.items() if owner == own]
        return self._figure(pending, state, min(since_s, default=None))

    def of_placed(self, assignment: Assignment, state: CycleState) -> Sequence[Figure]:
        """Return how long the node was reserved for the class."""
        pending = assignment.pending
        key = (state.view.layout.names[assignment.node], pending.task_class.id)
        return self._figure(pending, state, self._since_s.get(key))

    def _figure(self, pending: PendingClass, state: CycleState, since_s: float | None) -> Sequence[Figure]:
        if since_s is None or pending.task_class.stage in self._apart:
            return ()
        return (("reservedForSeconds", state.view.now_s - since_s),)
