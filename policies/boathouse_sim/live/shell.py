"""The shell of a live world: all that happens at one millisecond, then cycles, then the rates that follow from it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, assert_never

from boathouse_policies import framework, model
from boathouse_sim.clock import Priority
from boathouse_sim.live.application import course_of
from boathouse_sim.live.outages import Failing
from boathouse_sim.live.reports import Reports
from boathouse_sim.live.world import LiveWorld

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boathouse_sim.errors import Errors
    from boathouse_sim.workload import Workload


class Live:
    """Drives a live world: tasks start when they fit.

    Args:
        workload: Its jobs, applications and conditions.
        profile: The policies.
        errors: How the truth strays from the estimates.
        seed: Of all that is drawn.
    """

    def __init__(
        self, workload: Workload, profile: framework.Profile, *, errors: Errors | None = None, seed: int = 0
    ) -> None:
        self.world = LiveWorld(workload, profile, course_of, errors=errors, seed=seed)
        self._reports = Reports(self.world)
        self._failing = Failing(self.world, self.world.conditions.outages)

    def advance(self) -> bool:
        """Process one event; after the last of a millisecond, the cycles. Return False at the end."""
        clock = self.world.clock
        if not clock.step():
            return False
        if clock.next_ms() != clock.now_ms:
            once, self._reports.ticked = self._reports.ticked, False
            self.world.run_cycles(self._cycle, once=once)
            self.world.note_kept()
            self.world.rates.settle()
        return True

    def _cycle(self, offered: Iterable[model.NodeName] | None) -> None:
        world, now_s = self.world, self.world.clock.now_s
        decisions = world.decide(offered, park=not world.profile.node_driven)
        # Placements first: the cycle gave them room before it knew what its controllers let grow.
        for decision in decisions:
            if isinstance(decision, model.Create | model.Bind):
                world.place(decision)
        for decision in decisions:
            self._carry_out(decision, now_s)

    def _carry_out(self, decision: model.Decision, now_s: float) -> None:
        world = self.world
        match decision:
            case model.Create() | model.Bind():
                pass  # placed before
            case model.Reservation() if decision.task is not None:
                world.runs[decision.job.id].course.reserve(decision)
            case model.Reservation(until_s=until_s) | model.Wait(until_s=until_s):
                if until_s is not None and until_s > now_s:
                    world.clock.background(math.ceil(until_s * 1000), Priority.ARRIVAL, self._look_again)
            case model.Suspend():
                world.sizes.suspend(decision)
            case model.Resume():
                world.sizes.resume(decision)
            case model.Resize():
                world.sizes.resize(decision)
            case model.Speculate():
                world.speculate(decision)
            case model.Scale():
                world.runs[decision.job].course.scale(decision)
            case _:
                assert_never(decision)

    def _look_again(self) -> None:
        """Run a cycle for which time itself is the event."""
        self.world.renewed = True
