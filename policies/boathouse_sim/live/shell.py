"""The shell of a live world: all that happens at one millisecond, then cycles, then the rates that follow from it.

`LiveHeartbeats` is the shell with YARN's protocol: nothing is placed but at nodes' heartbeats.

| who | what |
|---|---|
| a node, each period at its own phase | reports what ended: its room is free, and its job is not charged, from then on; then takes at most `allocs_per_node_heartbeat` containers |
| a job's master, each period from its submission | learns of its containers at one heartbeat, launches at the next; a driver, which is its job's master, is launched at the first |

Masters without a driver take no room, and no time before a job's first task and after its last: `Timing`'s container of
masters is for `boathouse_sim.simulation`. What was lost is free at once. Decisions on tasks that run are carried out
when they are made, but a second attempt is an allocation: it starts on the node whose heartbeat it is, or not at all.
Heartbeats that could change nothing are left out, as in `boathouse_sim.simulation`.
"""  # noqa: E501 - a table

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, assert_never

import numpy as np
from typing_extensions import override

from boathouse_policies import framework, model
from boathouse_sim.base_world import Call
from boathouse_sim.clock import Priority, next_beat_ms
from boathouse_sim.live.application import course_of
from boathouse_sim.live.world import LiveWorld
from boathouse_sim.workload import WorkloadError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boathouse_sim.clock import Happening
    from boathouse_sim.conditions import Outages
    from boathouse_sim.live.course import Pod
    from boathouse_sim.workload import Errors, Workload

_STREAM = 3  # of the seed
_LONGEST = 20  # times the mean: no random recovery takes longer, in practice


class Failing:
    """Carries outages out.

    Attributes:
        down: Nodes that are away.
        coming: Nodes that will come back.

    Raises:
        WorkloadError: An outage names a node that there is not.
    """

    def __init__(self, world: LiveWorld, outages: Outages) -> None:
        self._world, self._outages = world, outages
        self._nodes = {node.name: node for node in world.nodes}
        self._random = np.random.default_rng([world.seed, _STREAM])
        self.down: set[model.NodeName] = set()
        self.coming = 0
        for outage in outages.given:
            name = model.NodeName(outage.node)
            if name not in self._nodes:
                raise WorkloadError(f"an outage names the node {outage.node!r}, which the cluster has not")
            away_ms = None if outage.to_s is None else round((outage.to_s - outage.from_s) * 1000)
            self._world.clock.at(round(outage.from_s * 1000), Priority.ARRIVAL, Call(self._fail, (name, away_ms)))
        if outages.mean_time_to_failure_s:
            world.clock.patience_ms += round(_LONGEST * outages.mean_time_to_recovery_s * 1000)
            for node in world.nodes:
                self._fail_later(node.name)

    def _fail_later(self, name: model.NodeName) -> None:
        after_ms = round(self._random.exponential(self._outages.mean_time_to_failure_s) * 1000)
        away_ms = max(1, round(self._random.exponential(self._outages.mean_time_to_recovery_s) * 1000))
        clock = self._world.clock
        clock.background(clock.now_ms + after_ms, Priority.ARRIVAL, Call(self._fail, (name, away_ms)))

    def _fail(self, what: tuple[model.NodeName, int | None]) -> None:
        name, away_ms = what
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
            self.coming += 1
            clock = world.clock
            # Nodes that fail at random do so for ever: that they recover does not keep the simulation going.
            make = clock.background if self._outages.mean_time_to_failure_s else clock.at
            make(clock.now_ms + away_ms, Priority.ARRIVAL, Call(self._recover, name))

    def _recover(self, name: model.NodeName) -> None:
        world, node = self._world, self._nodes[name]
        self.down.discard(name)
        self.coming -= 1
        world.ledger.set_node(node)
        world.room.nodes_changed()
        world.renewed = True
        world.notify(model.NodeChanged(now_s=world.clock.now_s, name=name, node=node))
        if self._outages.mean_time_to_failure_s and not world.over:
            self._fail_later(name)


_BYTES = 1e6  # of a MB/s


class Reports:
    """Tells observers that want to know (`framework.Observer`), and asks for a cycle where there are controllers.

    Attributes:
        ticked: Whether time has passed that controllers wait for, since the shell looked.
    """

    def __init__(self, world: LiveWorld) -> None:
        self._world = world
        self.ticked = False
        curious = [
            observer for observer in world.profile.observers if observer.report_every_s or observer.measure_every_s
        ]
        every_ms = [round(observer.report_every_s * 1000) for observer in curious if observer.report_every_s > 0]
        if every_ms:
            self._every(min(every_ms), self._report)
        every_ms = [round(observer.measure_every_s * 1000) for observer in curious if observer.measure_every_s > 0]
        if every_ms:
            self._measure()
            self._every(min(every_ms), self._measure)
        if world.profile.controllers:
            self._every(world.conditions.tick_ms, self._tick)

    def _every(self, period_ms: int, callback: Happening) -> None:
        clock = self._world.clock
        clock.background(clock.now_ms + period_ms, Priority.ARRIVAL, Call(self._again, (period_ms, callback)))

    def _again(self, timer: tuple[int, Happening]) -> None:
        period_ms, callback = timer
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
                self._world.notify(
                    model.Progress(
                        **self._world.about(pod),
                        fraction=found.fraction,
                        phase=found.phase,
                        counters=found.counters,
                    )
                )

    def _measure(self) -> None:
        world = self._world
        sums = {node.name: [0.0, 0.0, 0.0] for node in world.nodes}
        for pod in world.pods.values():
            self._add(pod, sums[pod.node])
        for name, (cores, disk, network) in sums.items():
            usage = {
                "cpu_cores": cores,
                "disk_bytes_per_s": disk * _BYTES,
                "network_bytes_per_s": network * _BYTES,
            }
            world.notify(model.Measured(now_s=world.clock.now_s, name=name, usage=usage))

    def _add(self, pod: Pod, sums: list[float]) -> None:
        for activity in pod.activities:
            for kind, used in enumerate(self._world.rates.used(activity)[:3]):
                sums[kind] += used


class Live:
    """Drives a live world: tasks start when they fit."""

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
            self._decide()
            self.world.note_kept()
            self.world.rates.settle()
        return True

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
            self._carry_out(decision, self.world.clock.now_s)

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


_MOST_PERIODS = 10  # heartbeats between two that change something, at most


@dataclasses.dataclass(slots=True, eq=False)
class _Node:
    """A node's side.

    Attributes:
        phase_ms: Its heartbeats are at this offset in each period.
        heartbeat: What happens at them.
        awake: Whether its next heartbeat is on the heap.
        ended: Pods to report.
    """

    phase_ms: int
    heartbeat: Happening
    awake: bool = False
    ended: list[Pod] = dataclasses.field(default_factory=list)


class LiveHeartbeats(Live):
    """See the module's docstring.

    Args:
        workload: Its jobs, applications and conditions; its `timing` holds the periods.
        profile: The policies.
        errors: How the truth strays from the estimates.
        seed: Of all that is drawn.
    """

    def __init__(
        self, workload: Workload, profile: framework.Profile, *, errors: Errors | None = None, seed: int = 0
    ) -> None:
        super().__init__(workload, profile, errors=errors, seed=seed)
        timing, world = workload.timing, self.world
        self._node_ms, self._master_ms = timing.node_heartbeat_ms, timing.am_heartbeat_ms
        self._most = timing.allocs_per_node_heartbeat
        world.clock.patience_ms += _MOST_PERIODS * (self._node_ms + self._master_ms)
        world.start_ms = self._launch_ms
        world.sizes.release = self._ended
        self._by_name: dict[model.NodeName, _Node] = {}
        for i, node in enumerate(world.nodes):
            phase_ms = round(i * self._node_ms / len(world.nodes)) % self._node_ms
            self._by_name[node.name] = _Node(phase_ms, Call(self._heartbeat, node.name))

    @override
    def _decide(self) -> None:
        """Wake the nodes for which something has changed: what is decided is decided at their heartbeats."""
        world = self.world
        if self._take_tick() or world.renewed:
            world.renewed = False
            world.room.tick(world.clock.now_s)
            for node in self._by_name.values():
                self._wake(node)
        for name in world.freed:
            self._wake(self._by_name[name])
        world.freed.clear()

    def _launch_ms(self, pod: Pod) -> int:
        clock, phase_ms = self.world.clock, pod.run.submitted_ms % self._master_ms
        at_ms = next_beat_ms(clock.now_ms, self._master_ms, phase_ms)
        if pod.task_class.stage is not model.Stage.DRIVER:
            at_ms += self._master_ms
        return at_ms + self.world.conditions.launch_ms

    def _ended(self, pod: Pod) -> None:
        self.world.ledger.forget_resize(pod.id)  # it will not grow any more
        node = self._by_name[pod.node]
        node.ended.append(pod)
        self._wake(node)

    def _wake(self, node: _Node) -> None:
        if not node.awake:
            node.awake = True
            clock = self.world.clock
            at_ms = next_beat_ms(clock.now_ms, self._node_ms, node.phase_ms)
            clock.background(at_ms, Priority.NODE_HEARTBEAT, node.heartbeat)

    def _heartbeat(self, name: model.NodeName) -> None:
        node, world = self._by_name[name], self.world
        node.awake = False
        for pod in node.ended:
            world.sizes.free(pod)
        node.ended.clear()
        world.freed.discard(name)
        if name in self._failing.down or not (world.waits or world.profile.controllers):
            return
        if self._cycle_on(name):
            world.clock.progress()
            self._wake(node)

    def _cycle_on(self, name: model.NodeName) -> bool:
        """Let the cycle place on this node; return whether it did."""
        world, before = self.world, len(self.world.ledger)
        decisions = world.decide([name], max_per_node=self._most, park=False)
        elsewhere = [
            decision for decision in decisions if isinstance(decision, model.Speculate) and decision.node != name
        ]
        for decision in elsewhere:
            world.notify_refused(decision, "NotItsHeartbeat")
        self._carry_out_all(
            [decision for decision in decisions if decision not in elsewhere] if elsewhere else decisions
        )
        return len(world.ledger) > before
