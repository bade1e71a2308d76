"""Nodes that fail and come back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_sim.base_world import Call
from boathouse_sim.clock import Priority
from boathouse_sim.workload import WorkloadError

if TYPE_CHECKING:
    from boathouse_sim.conditions import Outages
    from boathouse_sim.live.world import LiveWorld

_STREAM = 3  # of the seed
_LONGEST = 20  # times the mean: no random recovery takes longer, in practice


class Failing:
    """Carries outages out.

    Attributes:
        down: Nodes that are away.
        coming: Nodes that will come back.

    Args:
        world: Where.
        outages: Which.

    Raises:
        WorkloadError: An outage names a node that there is not.
    """

    def __init__(self, world: LiveWorld, outages: Outages) -> None:
        self._world, self._outages = world, outages
        self._nodes = {node.name: node for node in world.nodes}
        self._random = np.random.default_rng([world.seed, _STREAM])
        self.down: set[model.NodeName] = set()
        self.coming = 0
        for one in outages.given:
            name = model.NodeName(one.node)
            if name not in self._nodes:
                raise WorkloadError(f"an outage names the node {one.node!r}, which the cluster has not")
            away_ms = None if one.to_s is None else round((one.to_s - one.from_s) * 1000)
            self._world.clock.at(round(one.from_s * 1000), Priority.ARRIVAL, Call(self._fail, (name, away_ms)))
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
