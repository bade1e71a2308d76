"""The scheduling cycle: one pure function from what waits and what is free to what is decided."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies.framework.attempt import Attempt
from boathouse_policies.framework.cycle_state import Scratch
from boathouse_policies.framework.draft import Draft
from boathouse_policies.framework.line import Line

if TYPE_CHECKING:
    from boathouse_policies.framework.plan import Plan
    from boathouse_policies.framework.policy import Profile
    from boathouse_policies.framework.view import ClusterView
    from boathouse_policies.framework.waiting import WaitingRoom


def run_cycle(queue: WaitingRoom, profile: Profile, view: ClusterView) -> Plan:
    """Place what can be placed, and say why the rest waits.

    Deterministic; changes neither queue nor view. Work-conserving: a class that does not fit is passed over, unless the
    profile's Reserve keeps a node for it.

    Args:
        queue: What waits.
        profile: The choice for each extension point.
        view: What the cluster holds.

    Returns:
        The plan, for the shell to assume and carry out, and to settle in the waiting room.
    """
    scratch = Scratch(view, queue.keeping)
    draft = Draft(profile, scratch)
    draft.advise(queue)
    for hooks in profile.hooks:
        hooks.begins(queue, scratch)
    # 1. Order jobs: queues by share, jobs by the profile's keys.
    line = Line(queue, profile, scratch)
    draft.leave_orphans(line, queue)
    # 2. Take the next class: one task of it, or the minimum of its gang, all or nothing.
    while not scratch.exhausted and (want := line.next_class()) is not None:
        attempt = Attempt(want, line, profile, scratch)
        for member in attempt.members():
            # 3. Feasible nodes. 4. Rank: the best first.
            while (node := line.rankings.best(member)) is not None:
                # 5. Size: how much of this node, and how many tasks on it together.
                sized = attempt.size(member, node)
                if sized is None:
                    line.rankings.refuse(member, node)
                    continue
                # 6. Reserve: is it worth to wait for a better node?
                if attempt.waits(member, node):
                    break
                # 7. Pick the closest tasks and take their room on the scratch copy.
                attempt.take(member, node, sized)
                break
        # 8. Decide.
        if attempt.succeeded():
            draft.decide(attempt.spots)
        # 9. Diagnose: remember why; the words are worked out when somebody asks.
        else:
            draft.diagnose(attempt, line)
    return draft.plan(line)
