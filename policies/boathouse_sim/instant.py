"""Tasks start when they fit: the operator's way, where a watch tells at once what came free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies import framework, model
from boathouse_sim.clock import Priority
from boathouse_sim.world import World

if TYPE_CHECKING:
    from boathouse_sim.errors import Errors
    from boathouse_sim.workload import Workload
    from boathouse_sim.world import JobRun, Running


class Instant:
    """All that happens at one millisecond, then cycles until nothing more can be placed.

    Args:
        workload: The cluster and the jobs.
        profile: The policies.
        errors: How the truth strays from the estimates.
        seed: Of what is drawn for them.
    """

    def __init__(
        self, workload: Workload, profile: framework.Profile, *, errors: Errors | None = None, seed: int = 0
    ) -> None:
        self.world = World(workload, profile, self._arrived, errors=errors, seed=seed)

    def advance(self) -> bool:
        """One event; after the last of a millisecond, the cycles. False at the end."""
        clock = self.world.clock
        if not clock.step():
            return False
        if clock.next_ms() != clock.now_ms:
            now_s = clock.now_s
            while self.world.room.tick(now_s):
                self._cycle(now_s)
        return True

    def _cycle(self, now_s: float) -> None:
        world = self.world
        world.cycles += 1
        plan = framework.run_cycle(world.room, world.profile, world.ledger.snapshot(now_s))
        world.room.settle(plan, now_s)
        for decision in plan.decisions:
            match decision:
                case model.Create() | model.Bind():
                    task = world.place(decision)
                    world.start(task, self._ended)
                    world.placed_whole(task.run)
                case model.Hold(until_s=until_s) if until_s is not None and until_s > now_s:
                    world.clock.at(round(until_s * 1000), Priority.ARRIVAL, _look_again)
                case _:
                    pass

    def _arrived(self, run: JobRun) -> None:
        self.world.submit_next_phase(run)

    def _ended(self, task: Running) -> None:
        self.world.give_back(task)
        run = task.run
        run.left -= 1
        if not run.left:
            self.world.end_job(run)


def _look_again() -> None:
    """Time itself is the event."""
