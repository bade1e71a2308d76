"""The scheduling cycle: one pure function from what waits and what is free to what is decided.

What a gang that has begun is short of goes first where an earlier leader had reserved room for it. The node may have
only just as much room left, for that room was reserved. So all gangs get their former places before any of them gets
another node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies.framework import plan as plans
from boathouse_policies.framework.attempt import Attempt
from boathouse_policies.framework.cycle_state import CycleState
from boathouse_policies.framework.turn_order import TurnOrder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boathouse_policies.framework.cycle_state import Assignment, PendingClass
    from boathouse_policies.framework.queue import SchedulingQueue
    from boathouse_policies.framework.scheduling_profile import Profile
    from boathouse_policies.framework.view import ClusterView


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


def run_cycle(queue: SchedulingQueue, profile: Profile, view: ClusterView) -> plans.Plan:
    """Place what can be placed, and say why the rest waits.

    Deterministic; changes neither queue nor view. Work-conserving: a class that does not fit is passed over, unless the
    profile's Reserve reserves a node for it.

    Args:
        queue: What waits.
        profile: The choice for each extension point.
        view: A snapshot of this moment: its columns have every resource that a pending class names.

    Returns:
        The plan, for the shell to assume and carry out, and to settle in the scheduling queue.
    """
    state = CycleState(view, queue.reserved)
    advice = plans.advised(queue, profile, state)
    for hooks in profile.hooks:
        hooks.begins(queue, state)
    if not profile.reserve.reserves_for_gangs:
        profile.draining.begins(queue, state)
    # 1. Order jobs: queues and namespaces by share, then priority, then the profile's keys.
    turns = TurnOrder(queue, profile, state)
    plan = plans.Plan(advice, turns, profile, state)
    plan.leave_orphans(queue.queues)
    # Gangs that have begun take the places of before (`TaskClass.former_places`), ahead of all turns.
    plan.decide(list(restored(turns, profile, state)))
    if profile.depends_on_shape_only:
        plan.decide(turns.quick_turns())
    # 2. Take the next class: one task of it, or the minimum of its gang, all or nothing.
    rankings = turns.rankings
    while not state.exhausted and (pending := turns.next_class()) is not None:
        attempt = Attempt(pending, turns, profile, state)
        for member in attempt.members():
            # 3. Feasible nodes. 4. Rank: the best first.
            while (node := rankings.best(member)) is not None:
                # 5. Size: how much of this node, and how many tasks on it together.
                sized = attempt.size(member, node) if profile.decides_sizes else member.ideal
                if sized is None:
                    rankings.refuse(member, node)
                    continue
                # 6. Patience: wait for a better node?
                if profile.is_patient and attempt.waits(member, node):
                    break
                # 7. Pick the closest tasks and take their room on the cycle state.
                attempt.take(member, node, sized)
                break
        # 8. Decide.
        if attempt.succeeded():
            plan.decide(attempt.assignments)
        # 9. Diagnose: remember why; the words are worked out when somebody asks.
        else:
            plan.diagnose(attempt)
    return plan
