"""Restoring: what a gang that has begun is short of goes first where an earlier leader had reserved room for it.

The node may have only just as much room left, for that room was reserved. So all gangs get their former places before
any of them gets another node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies.framework.attempt import Attempt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boathouse_policies.framework.cycle_state import Assignment, CycleState, PendingClass
    from boathouse_policies.framework.scheduling_profile import Profile
    from boathouse_policies.framework.turn_order import TurnOrder


def restored(turns: TurnOrder, profile: Profile, state: CycleState) -> Iterator[Assignment]:
    """Place tasks on the former places of their classes (`TaskClass.former_places`), one for each that has room."""
    for pending in turns.short():
        for node in _places(pending, state):
            attempt = Attempt(pending, turns, profile, state)
            for member in attempt.members():
                if attempt.has_room(member.shape.sizes, node):
                    attempt.take(member, node, member.ideal)
            yield from attempt.assignments


def _places(pending: PendingClass, state: CycleState) -> Iterator[int]:
    index, allowed = state.view.layout.index, pending.eligibility.mask
    for name in pending.task_class.former_places:
        place = index.get(name)
        if place is not None and allowed[place] and state.is_offered(place):
            yield place
