"""What any class is slowed down on all nodes in one cycle, and where Algorithm 1 accepts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.candidates import fits_in
from boathouse_policies.ila import metrics

if TYPE_CHECKING:
    from collections.abc import Callable

    from boathouse_policies.framework import CycleState, PendingClass, Where
    from boathouse_policies.framework.shapes import Shape
    from boathouse_policies.ila.config import Config
    from boathouse_policies.ila.families import Model, Weights
    from boathouse_policies.ila.metrics import Demand
    from boathouse_policies.ila.monitoring import Monitor
    from boathouse_policies.ila.thresholds import Thresholds


class Slowdowns:
    """What the model predicts in one cycle.

    Args:
        state: The state of the cycle.
        monitor: What is used.
        thresholds: H_d of each host.
        interference: The model.
        weights: What the model makes of a demand.
        config: The constants.

    Attributes:
        thresholds: Algorithm 1's state of this cycle.
        limits: The largest slowdown that is accepted on each node, shape [N].
    """

    def __init__(
        self,
        state: CycleState,
        monitor: Monitor,
        thresholds: Thresholds,
        interference: Model,
        weights: Callable[[Demand], Weights],
        config: Config,
    ) -> None:
        self._state, self._config = state, config
        self._model, self._weights = interference, weights
        self._hosts = monitor.hosts
        self._unit, hosts = monitor.unit, monitor.hosts.of
        others = np.maximum(state.view.requested[model.CPU] - monitor.requested, 0) * (self._unit[0] / 1000)
        node = monitor.use() * self._unit
        node[0] += np.where(monitor.instrumented, 0.0, others)
        host = np.array([self._of_hosts(row)[hosts] for row in node])
        self._system = metrics.system(node, host, self._of_hosts(monitor.beyond * self._unit[0])[hosts])
        self._parts = interference.parts(self._system)
        cpu, memory = state.free[model.CPU], state.free[model.MEMORY]
        self._slots = np.maximum(np.minimum(cpu // config.slot_cpu_milli, memory // config.slot_memory_bytes), 0)
        idle = self._of_hosts(self._slots).astype(np.int64)
        self.thresholds = thresholds.begin(state.view.now_s, monitor, idle)
        self.limits = self.thresholds.limits()[hosts]
        self._columns: dict[Demand, tuple[int, model.FloatVector]] = {}
        self._takers: dict[tuple[Shape, Demand], tuple[int, bool, int | None]] = {}

    def _of_hosts(self, column: model.FloatVector | model.IntVector) -> model.FloatVector:
        """The sum over the nodes of each host, shape [H]."""
        return np.asarray(np.bincount(self._hosts.of, column, len(self._hosts)), np.float64)

    def on_all(self, demand: Demand) -> model.FloatVector:
        """The predicted slowdown of a task with some demand on each node, shape [N]: read-only."""
        seen, column = self._columns.get(demand, (0, None))
        if column is None:
            column = self._weights(demand).predict(self._parts)
        elif (where := self._state.to_mend(seen)) is not None:
            column[where] = self._weights(demand).predict(self._parts[:, where])
        self._columns[demand] = self._state.changes, column
        return column

    def on(self, demand: Demand, node: int) -> float:
        """The predicted slowdown on one node."""
        return self._weights(demand).at(self._parts[:, node].tolist())

    def accepts(self, demand: Demand, node: int) -> bool:
        """Whether Algorithm 1 accepts a task on one node."""
        return self.on(demand, node) <= float(self.limits[node])

    def takers(self, pending: PendingClass, demand: Demand) -> tuple[bool, bool]:
        """Whether some node on offer that a class may use has room for it, and whether some of those accepts it."""
        key, now = (pending.shape, demand), self._state.changes
        seen, has_room, taker = self._takers.get(key, (-1, False, None))
        if seen != now and not (taker is not None and self._still_takes(taker, pending, demand)):
            room = self._state.room(pending) & self._state.offered
            if not pending.eligibility.everywhere:
                room &= pending.eligibility.mask
            takes = (room & (self.on_all(demand) <= self.limits)).nonzero()[0]
            has_room, taker = bool(np.count_nonzero(room)), int(takes[0]) if len(takes) else None
            self._takers[key] = now, has_room, taker
        return has_room, taker is not None

    def _still_takes(self, node: int, pending: PendingClass, demand: Demand) -> bool:
        """Whether a node that had room for a class and accepted it still has and does."""
        if not self._state.offered[node] or not fits_in(pending.shape, self._state.free_on(node)):
            return False
        return self.accepts(demand, node)

    def place(self, node: int, demand: Demand, *, is_judged: bool) -> None:
        """A task was placed: its host has one more neighbour, and perhaps another threshold.

        Args:
            node: Its place.
            demand: Of its class.
            is_judged: Whether Algorithm 1 has accepted it: only then does H_d change.
        """
        host = self._hosts.places[node]
        nodes = self._hosts.spans[host]
        slowdown = self.on(demand, node) if is_judged else None
        if any(demand):
            self._add(node, nodes, demand)
        cpu, memory = (self._state.free_on(node)[row] for row in (model.CPU, model.MEMORY))
        slots = max(min(cpu // self._config.slot_cpu_milli, memory // self._config.slot_memory_bytes), 0)
        self.thresholds.accept(host, slowdown, int(self._slots[node]) - slots)
        self._slots[node] = slots
        self.limits[nodes] = self.thresholds.limit(host)
        self._state.touch_all(self._hosts.members[host])

    def _add(self, node: int, nodes: Where, demand: Demand) -> None:
        """Add a demand to what is used on a node of these, which share a host."""
        system, unit = self._system, self._unit[:, node].tolist()
        for own, others, use, scale in zip(_OWN, _OTHERS, demand, unit, strict=True):
            if use:  # it is the others' neighbour, and one more on its own machine
                system[others, nodes] += use * scale
                system[others, node] -= use * scale
                system[own, node] += use * scale
        system[metrics.IO_U, nodes] = min(sum(system[metrics.R_U : metrics.IO_U, node].tolist()), 1.0)
        self._parts[:, nodes] = self._model.parts(system[:, nodes])


_OWN, _OTHERS = (metrics.C_U, metrics.R_U, metrics.W_U), (metrics.C_A, metrics.R_A, metrics.W_A)
