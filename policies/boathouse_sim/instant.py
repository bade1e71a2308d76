"""Tasks start when they fit: the operator's way, where a watch tells at once what came free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies import framework, model
from boathouse_sim.base_world import Call
from boathouse_sim.clock import Priority
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

    def advance(self) -> bool:
        """Process one event; after the last of a millisecond, the cycles. Return False at the end."""
        clock = self.world.clock
        if not clock.step():
            return False
        if clock.next_ms() != clock.now_ms:
            self.world.run_cycles(self._cycle)
        return True

    def _cycle(self, offered: Iterable[model.NodeName] | None) -> None:
        world, now_s = self.world, self.world.clock.now_s
        for decision in world.decide(offered, park=not world.profile.node_driven):
            match decision:
                case model.Create() | model.Bind():
                    task = world.place(decision)
                    if task.phase < 0:
                        self._master_placed(task)
                        continue
                    world.start(task)
                    world.renewed |= world.placed_whole(task.run)
                case model.Reservation(until_s=until_s) | model.Wait(until_s=until_s) if (
                    until_s is not None and until_s > now_s
                ):
                    world.clock.background(round(until_s * 1000), Priority.ARRIVAL, self._look_again)
                case model.Reservation() | model.Wait():
                    pass
                case _:
                    world.notify_refused(decision, "NotSupported")  # tasks here only run

    def _arrived(self, run: JobRun) -> None:
        self.world.renewed = True
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
        self.world.renewed = True
        self.world.submit_next_phase(run)

    def _master_gone(self, task: Running) -> None:
        world, cores = self.world, task.run.spec.master.cores if task.run.spec.master is not None else 0
        held_ms = world.clock.now_ms - task.started_ms
        world.tally.mb_ms += task.given_mb * held_ms
        world.tally.core_ms += cores * held_ms
        self.world.freed.add(task.node)
        world.give_back([task])

    def _ended(self, tasks: Sequence[Running]) -> None:
        if self.world.profile.node_driven:
            self.world.freed.update([task.node for task in tasks])
        self.world.give_back(tasks)
        for task in tasks:
            run = task.run
            run.left -= 1
            if not run.left:
                self._job_ended(run)
            elif run.phase + 1 < len(run.classes):
                self.world.renewed |= self.world.ended_whole(run)

    def _job_ended(self, run: JobRun) -> None:
        if run.container is not None:
            self._master_gone(run.container)
        self.world.end_job(run)
        self.world.drop_probe(run)

    def _look_again(self) -> None:
        """Run a cycle for which time itself is the event."""
        self.world.renewed = True
