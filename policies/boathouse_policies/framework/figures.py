"""What policies computed for a decision, for users to read: figures by name, such as a predicted slowdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_policies.framework.cycle_state import Assignment, CycleState, PendingClass

Figure: TypeAlias = tuple[str, float]


class Figures:
    """Explains placements, and why classes stay pending. Figures are finite; what says nothing is left out."""

    def of_placed(self, assignment: Assignment, state: CycleState) -> Sequence[Figure]:  # noqa: ARG002 - the protocol's
        """Return figures of a task that was placed, after all hooks were told of it; asked for each placement."""
        return ()

    def of_pending(self, pending: PendingClass, state: CycleState) -> Sequence[Figure]:  # noqa: ARG002 - the protocol's
        """Return figures of a class that stays pending, from the cycle's last state; asked for diagnoses alone."""
        return ()

    def of_policy(self) -> Mapping[str, Sequence[float]]:
        """Return figures of the policy itself, some for each node, as of its last cycle; asked for metrics alone."""
        return {}
