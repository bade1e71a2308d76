"""The shell of a live world with YARN's protocol: nothing is placed but at nodes' heartbeats.

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
from typing import TYPE_CHECKING

from typing_extensions import override

from boathouse_policies import model
from boathouse_sim.base_world import Call
from boathouse_sim.clock import Priority, next_beat_ms
from boathouse_sim.live.shell import Live

if TYPE_CHECKING:
    from boathouse_policies import framework
    from boathouse_sim.clock import Happening
    from boathouse_sim.errors import Errors
    from boathouse_sim.live.course import Pod
    from boathouse_sim.workload import Workload

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
        elsewhere = [one for one in decisions if isinstance(one, model.Speculate) and one.node != name]
        for decision in elsewhere:
            world.notify_refused(decision, "NotItsHeartbeat")
        self._carry_out_all([one for one in decisions if one not in elsewhere] if elsewhere else decisions)
        return len(world.ledger) > before
