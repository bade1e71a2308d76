"""Tasks start when they fit: the operator's way, where a watch tells at once what came free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies import framework, model
from boathouse_sim.clock import Priority
from boathouse_sim.ground import Call
from boathouse_sim.world import World

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
        self.world = World(workload, profile, self._arrived, self._ended, errors=errors, seed=seed)
        self._changed: set[model.NodeName] = set()
        self._all = False  # whether a class is new, so that every node is worth a look

    def advance(self) -> bool:
        """One event; after the last of a millisecond, the cycles. False at the end."""
        clock = self.world.clock
        if not clock.step():
            return False
        if clock.next_ms() != clock.now_ms:
            self._settle_down(clock.now_s)
        return True

    def _settle_down(self, now_s: float) -> None:
        """Cycles until nothing more can be placed."""
        world = self.world
        if not world.profile.node_driven:
            while world.room.tick(now_s):
                self._cycle(now_s, offered=None, park=True)
            return
        world.room.tick(now_s)
        while (self._changed or self._all) and world.waiting:
            offered, self._all = None if self._all else self._changed, False
            self._cycle(now_s, offered=offered, park=False)
            if not self._all:
                break
        self._changed.clear()
        self._all = False

    def _cycle(self, now_s: float, *, offered: Iterable[model.NodeName] | None, park: bool) -> None:
        world = self.world
        world.cycles += 1
        plan = framework.run_cycle(world.room, world.profile, world.ledger.snapshot(now_s, offered=offered))
        world.room.settle(plan, now_s, park=park)
        for decision in plan.decisions:
            match decision:
                case model.Create() | model.Bind():
                    task = world.place(decision)
                    if task.phase < 0:
                        self._master_placed(task)
                        continue
                    world.start(task)
                    self._all |= world.placed_whole(task.run)
                case model.Hold(until_s=until_s) if until_s is not None and until_s > now_s:
                    world.clock.at(round(until_s * 1000), Priority.ARRIVAL, self._look_again)
                case _:
                    pass

    def _arrived(self, run: JobRun) -> None:
        self._all = True
        if run.master is None:
            self.world.submit_next_phase(run)
        else:
            self.world.submit_master(run)

    def _master_placed(self, task: Running) -> None:
        run, clock = task.run, self.world.clock
        assert run.spec.master is not None
        run.container, task.started_ms = task, clock.now_ms
        clock.at(clock.now_ms + run.spec.master.duration_ms, Priority.ARRIVAL, Call(self._master_up, run))

    def _master_up(self, run: JobRun) -> None:
        self._all = True
        self.world.submit_next_phase(run)

    def _master_gone(self, task: Running) -> None:
        world, cores = self.world, task.run.spec.master.cores if task.run.spec.master is not None else 0
        held_ms = world.clock.now_ms - task.started_ms
        world.tally.mb_ms += task.given_mb * held_ms
        world.tally.core_ms += cores * held_ms
        self._changed.add(task.node)
        world.give_back([task])

    def _ended(self, tasks: Sequence[Running]) -> None:
        self._changed.update([task.node for task in tasks])
        self.world.give_back(tasks)
        for task in tasks:
            run = task.run
            run.left -= 1
            if not run.left:
                self._job_ended(run)
            elif run.phase + 1 < len(run.classes):
                self._all |= self.world.ended_whole(run)

    def _job_ended(self, run: JobRun) -> None:
        if run.container is not None:
            self._master_gone(run.container)
        self.world.end_job(run)
        self.world.drop_probe(run)

    def _look_again(self) -> None:
        """Time itself is the event."""
        self._all = True
