"""The shell of a live world: all that happens at one millisecond, then cycles, then the rates that follow from it.

`LiveHeartbeats` is the shell with YARN's protocol (docs/simulator.md): nothing is placed but at nodes' heartbeats. What
was lost is free at once. Decisions on tasks that run are carried out when they are made, but a second attempt is an
allocation: it starts on the node whose heartbeat it is, or not at all. Heartbeats that could change nothing are left
out, as in `boathouse_sim.simulation`.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import assert_never

import numpy as np
from typing_extensions import override

from boathouse_policies import framework, model
from boathouse_sim.base_world import Shell
from boathouse_sim.clock import Beat, Happening, next_beat_ms
from boathouse_sim.conditions import Outages
from boathouse_sim.live.application import course_of
from boathouse_sim.live.course import Pod
from boathouse_sim.live.world import LiveWorld
from boathouse_sim.workload import Errors, Workload, WorkloadError

_STREAM = 3  # of the seed
_LONGEST = 20  # times the mean: no random recovery takes longer, in practice


class Failing:
    """Carries outages out."""

    def __init__(self, world: LiveWorld, outages: Outages) -> None:
        self._world, self._outages = world, outages
        self._nodes = {node.name: node for node in world.nodes}
        self._random = np.random.default_rng([world.seed, _STREAM])
        self.down: set[model.NodeName] = set()  # nodes that are away
        for outage in outages.given:
            name = model.NodeName(outage.node)
            if name not in self._nodes:
                raise WorkloadError(f"an outage names the node {outage.node!r}, which the cluster has not")
            away_ms = None if outage.to_s is None else round((outage.to_s - outage.from_s) * 1000)
            world.clock.after(round(outage.from_s * 1000), self._fail, name, away_ms)
        if outages.mean_time_to_failure_s:
            world.clock.patience_ms += round(_LONGEST * outages.mean_time_to_recovery_s * 1000)
            for node in world.nodes:
                self._fail_later(node.name)

    def _fail_later(self, name: model.NodeName) -> None:
        after_ms = round(self._random.exponential(self._outages.mean_time_to_failure_s) * 1000)
        away_ms = max(1, round(self._random.exponential(self._outages.mean_time_to_recovery_s) * 1000))
        self._world.clock.after(after_ms, self._fail, name, away_ms, background=True)

    def _fail(self, name: model.NodeName, away_ms: int | None) -> None:
        world = self._world
        if world.over or name in self.down:
            return
        self.down.add(name)
        world.ledger.remove_node(name)
        lost = sorted((pod for pod in world.pods.values() if pod.node == name), key=lambda pod: pod.id)
        for pod in lost:
            world.lose(pod, "the node is away")
        for run in world.runs.values():
            if run.ended_ms < 0:
                run.course.node_lost(name)
        world.renewed = True
        world.notify(model.NodeChanged(now_s=world.clock.now_s, name=name, node=None))
        if away_ms is not None:
            # Nodes that fail at random do so for ever: that they recover does not keep the simulation going.
            world.clock.after(away_ms, self._recover, name, background=self._outages.mean_time_to_failure_s > 0)

    def _recover(self, name: model.NodeName) -> None:
        world, node = self._world, self._nodes[name]
        self.down.discard(name)
        world.ledger.set_node(node)
        world.room.nodes_changed()
        world.renewed = True
        world.notify(model.NodeChanged(now_s=world.clock.now_s, name=name, node=node))
        if self._outages.mean_time_to_failure_s and not world.over:
            self._fail_later(name)


_BYTES = 1e6  # of a MB/s


class Reports:
    """Tells observers that want to know (`framework.Observer`), and asks for a cycle where there are controllers."""

    def __init__(self, world: LiveWorld) -> None:
        self._world = world
        self.ticked = False  # whether time has passed that controllers wait for, since the shell looked
        observers = world.profile.observers
        if every_s := [observer.report_every_s for observer in observers if observer.report_every_s > 0]:
            self._every(round(min(every_s) * 1000), self._report)
        if every_s := [observer.measure_every_s for observer in observers if observer.measure_every_s > 0]:
            self._measure()
            self._every(round(min(every_s) * 1000), self._measure)
        if world.profile.controllers:
            self._every(world.conditions.tick_ms, self._tick)

    def _every(self, period_ms: int, callback: Happening) -> None:
        self._world.clock.after(period_ms, self._again, period_ms, callback, background=True)

    def _again(self, period_ms: int, callback: Happening) -> None:
        if not self._world.over:
            callback()
            self._every(period_ms, callback)

    def _tick(self) -> None:
        self.ticked = True
        self._world.notify(model.Tick(now_s=self._world.clock.now_s))

    def _report(self) -> None:
        for pod in tuple(self._world.pods.values()):
            found = pod.run.course.report(pod)
            if found is not None:
                fraction, phase, counters = found
                about = self._world.about(pod)
                self._world.notify(model.Progress(**about, fraction=fraction, phase=phase, counters=counters))

    def _measure(self) -> None:
        world = self._world
        sums = {node.name: [0.0, 0.0, 0.0] for node in world.nodes}
        for pod in world.pods.values():
            for activity in pod.activities:
                for kind, used in enumerate(world.rates.used(activity)[:3]):
                    sums[pod.node][kind] += used
        for name, (cores, disk, network) in sums.items():
            rates = {"disk_bytes_per_s": disk * _BYTES, "network_bytes_per_s": network * _BYTES}
            world.notify(model.Measured(now_s=world.clock.now_s, name=name, usage={"cpu_cores": cores, **rates}))


class Live(Shell):
    """Drives a live world: tasks start when they fit."""

    world: LiveWorld

    def __init__(
        self, workload: Workload, profile: framework.Profile, *, errors: Errors | None = None, seed: int = 0
    ) -> None:
        self.world = LiveWorld(workload, profile, course_of, errors=errors, seed=seed)
        self._reports = Reports(self.world)
        self._failing = Failing(self.world, self.world.conditions.outages)

    @override
    def _settle(self) -> None:
        self._decide()
        self.world.note_kept()
        self.world.rates.settle()

    def _decide(self) -> None:
        self.world.run_cycles(self._cycle, once=self._take_tick())

    def _take_tick(self) -> bool:
        """Return whether time has passed that controllers wait for, once."""
        ticked, self._reports.ticked = self._reports.ticked, False
        return ticked

    def _cycle(self, offered: Iterable[model.NodeName] | None) -> None:
        self._carry_out_all(self.world.decide(offered, park=not self.world.profile.node_driven))

    def _carry_out_all(self, decisions: Sequence[model.Decision]) -> None:
        # Placements first: the cycle gave them room before it knew what its controllers let grow.
        for decision in decisions:
            if isinstance(decision, model.Create | model.Bind):
                self.world.place(decision)
        for decision in decisions:
            self._carry_out(decision)

    def _carry_out(self, decision: model.Decision) -> None:
        world = self.world
        match decision:
            case model.Create() | model.Bind():
                pass  # placed before
            case model.Reservation() if decision.task is not None:
                world.runs[decision.job.id].course.reserve(decision)
            case model.Reservation() | model.Wait():
                self.look_at(decision)
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


@dataclasses.dataclass(slots=True, eq=False)
class _Node:
    beat: Beat
    ended: list[Pod] = dataclasses.field(default_factory=list)


class LiveHeartbeats(Live):
    """See the module's docstring. The workload's `timing` holds the periods."""

    def __init__(
        self, workload: Workload, profile: framework.Profile, *, errors: Errors | None = None, seed: int = 0
    ) -> None:
        super().__init__(workload, profile, errors=errors, seed=seed)
        self.world.start_ms, self.world.sizes.release = self._launch_ms, self._ended
        self._by_name = {name: _Node(beat) for name, beat in self.beats(self._heartbeat).items()}

    @override
    def _decide(self) -> None:
        """Wake the nodes for which something has changed: what is decided is decided at their heartbeats."""
        world = self.world
        if self._take_tick() or world.renewed:
            world.renewed = False
            world.room.tick(world.clock.now_s)
            for node in self._by_name.values():
                node.beat.wake()
        for name in world.freed:
            self._by_name[name].beat.wake()
        world.freed.clear()

    def _launch_ms(self, pod: Pod) -> int:
        period_ms = self.world.workload.timing.am_heartbeat_ms
        at_ms = next_beat_ms(self.world.clock.now_ms, period_ms, pod.run.submitted_ms % period_ms)
        if pod.task_class.stage is not model.Stage.DRIVER:
            at_ms += period_ms
        return at_ms + self.world.conditions.launch_ms

    def _ended(self, pod: Pod) -> None:
        self.world.ledger.forget_resize(pod.id)  # it will not grow any more
        node = self._by_name[pod.node]
        node.ended.append(pod)
        node.beat.wake()

    def _heartbeat(self, name: model.NodeName) -> None:
        node, world = self._by_name[name], self.world
        node.beat.awake = False
        for pod in node.ended:
            world.sizes.free(pod)
        node.ended.clear()
        world.freed.discard(name)
        if name in self._failing.down or not (world.waits or world.profile.controllers):
            return
        if self._cycle_on(name):
            world.clock.progress()
            node.beat.wake()

    def _cycle_on(self, name: model.NodeName) -> bool:
        """Let the cycle place on this node; return whether it did."""
        world, before, here = self.world, len(self.world.ledger), list[model.Decision]()
        for decision in world.decide([name], max_per_node=world.workload.timing.allocs_per_node_heartbeat, park=False):
            if isinstance(decision, model.Speculate) and decision.node != name:
                world.notify_refused(decision, "NotItsHeartbeat")
            else:
                here.append(decision)
        self._carry_out_all(here)
        return len(world.ledger) > before
