"""IASM within a cycle (4.4, Algorithm 1): thresholds of slowdown, and which nodes' predictions keep within them.

H holds for all hosts, H_d for each that has had idle slots for a while.

Readings that the algorithm's listing needs: H_d, Z_R and Z_I are of a physical host. `H_d = min(H_d - 1, S)` would make
H_d 0 and divide by it: it falls by one at most, and never below S or H. Where nothing runs, everything is accepted. S
up to the threshold plus the model's own error is accepted: with H = 1 a model that errs at all would refuse nearly all.
What was accepted by that margin alone does not raise H_d. H_d changes when a task is placed, not when it is considered.
A node that no instruments measure refuses nobody: there the slowdown is a guess from requests, which ranks nodes only.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import CycleState, PendingClass
from boathouse_policies.framework.candidates import fits_in
from boathouse_policies.framework.shapes import Shape
from boathouse_policies.ila import profiling
from boathouse_policies.ila.config import Config
from boathouse_policies.ila.exponential import Weights
from boathouse_policies.ila.monitoring import Monitor
from boathouse_policies.model import BoolVector, FloatVector, IntVector


class Thresholds:
    """H_d of each host, from one cycle to the next."""

    def __init__(self, config: Config) -> None:
        self._first = math.inf if config.threshold is None else config.threshold
        self._idle_s = config.idle_s if config.dynamic else math.inf
        self._names: Sequence[str] = ()
        self._reached = np.zeros(0)
        self._idle_since_s = np.zeros(0)

    def begin(self, now_s: float, monitor: Monitor, idle: IntVector) -> "HostThresholds":
        """Return the thresholds in force as a cycle begins with Z_I, the idle slots of each host, shape [H]."""
        if self._names is not monitor.hosts.names:
            self._rename(monitor.hosts.names)
        several = idle > 1
        self._reached[~several] = self._first
        self._idle_since_s[~several] = math.inf
        fresh = several & np.isinf(self._idle_since_s)
        # Only what ended can have made room since the last cycle.
        ended_s = monitor.ended_s[fresh]
        self._idle_since_s[fresh] = np.where(ended_s > -math.inf, ended_s, now_s)
        return HostThresholds(
            first=self._first,
            is_due=self._idle_since_s + self._idle_s <= now_s,
            reached=self._reached.copy(),
            running=monitor.running.copy(),
            idle=idle,
            long_idle_s=self.long_idle_s(now_s),
        )

    def _rename(self, names: Sequence[str]) -> None:
        before = {name: (self._reached[i], self._idle_since_s[i]) for i, name in enumerate(self._names)}
        now = [before.get(name, (self._first, math.inf)) for name in names]
        self._reached, self._idle_since_s = np.array(now, np.float64).reshape(len(names), 2).T.copy()
        self._names = names

    def placed(self, host: int, reached: float) -> None:
        """Set a host's H_d after a task was placed on it."""
        self._reached[host] = reached

    def long_idle_s(self, now_s: float) -> float:
        """Return when the next host will have had idle slots for long enough; infinity for never."""
        due_s = self._idle_since_s + self._idle_s
        return float(due_s[due_s > now_s].min(initial=math.inf))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostThresholds:
    """Algorithm 1 for all hosts, as one cycle goes on: the columns change as tasks are placed."""

    first: float  # H
    is_due: BoolVector  # hosts on which more than one slot has been idle for long enough, shape [H]
    reached: FloatVector  # H_d of each host, shape [H]
    running: IntVector  # Z_R, shape [H]
    idle: IntVector  # Z_I, shape [H]
    long_idle_s: float = math.inf  # when the next host will have had idle slots for long enough

    def limits(self, margin: float) -> FloatVector:
        """Return the largest slowdown accepted on each host, with a margin for the model's error, shape [H]."""
        limits = np.where(self.running == 0, math.inf, self.first + margin)
        due = (self.is_due & (self.idle > 1) & (self.running > 0)).nonzero()[0]
        if len(due):  # Line 9: (Z_R + 1) / S > Z_R / H_d, for S.
            running, reached = self.running[due], self.reached[due]
            limits[due] = np.maximum(reached + margin, np.nextafter(reached * (running + 1) / running, 0.0))
        return limits

    def limit(self, host: int, margin: float) -> float:
        """Return the largest slowdown accepted on one host, with the margin."""
        running = self.running.item(host)
        if not running:
            return math.inf
        if not self._is_dynamic(host):
            return self.first + margin
        reached: float = self.reached.item(host)
        return max(reached + margin, math.nextafter(reached * (running + 1) / running, 0.0))

    def _is_dynamic(self, host: int) -> bool:
        """Return whether H_d is used on a host: line 19 ends that once one idle slot is left."""
        return self.is_due.item(host) and self.idle.item(host) > 1

    def accept(self, host: int, slowdown: float) -> None:
        """Update H_d for an accepted task that is not yet counted, by lines 9 to 13, and 19."""
        running, reached = self.running.item(host), self.reached.item(host)
        if not self._is_dynamic(host) or not running:  # who comes to an idle host meets nobody, whatever is predicted
            self.reached[host] = self.first
        elif slowdown > reached and (running + 1) / slowdown > running / reached:
            self.reached[host] = slowdown
        else:
            self.reached[host] = min(reached, max(self.first, reached - 1.0, slowdown))


class Model(Protocol):
    """A model of interference: what depends on the system alone, and what a task makes of that."""

    def __hash__(self) -> int:
        """Return the hash of what is the same model, not of an equal one."""
        ...

    def parts(self, system: FloatVector) -> FloatVector:
        """Return the system's parts, shape [8, N] to [K, N]."""
        ...

    def weights(self, task: profiling.Demand) -> Weights:
        """Return what a task makes of them."""
        ...


class Judged(NamedTuple):
    """A task of which slowdowns are predicted, and by whom."""

    demand: profiling.Demand  # what it uses
    model: Model  # the model of its namespace
    margin: float  # by how much more than a threshold that model's error lets pass


Takers: TypeAlias = dict[tuple[Shape, Judged], tuple[int, bool, int | None]]
"""When it was found out, whether any node has room for a class of a shape, and one that accepts it."""


class Slowdowns:
    """What the models predict in one cycle. `weights` says what a model makes of a demand."""

    def __init__(
        self,
        state: CycleState,
        monitor: Monitor,
        thresholds: Thresholds,
        weights: Callable[[Model, profiling.Demand], Weights],
        config: Config,
    ) -> None:
        self._state, self._config, self._weights = state, config, weights
        self._hosts, self._unit = monitor.hosts, monitor.unit
        others = np.maximum(state.view.requested[model.CPU] - monitor.requested, 0)
        # What is used as the cycle begins: as the monitor counts it, shape [3, N]; millicores that others' pods request
        # on nodes without instruments; CPUs of each node's system.
        self._used = monitor.use(), np.where(monitor.instrumented, 0, others), monitor.beyond.copy()
        cpu, memory = state.free[model.CPU], state.free[model.MEMORY]
        self._slots = np.maximum(np.minimum(cpu // config.slot_cpu_milli, memory // config.slot_memory_bytes), 0)
        self.thresholds = thresholds.begin(state.view.now_s, monitor, self._of_hosts(self._slots).astype(np.int64))
        self._at_least = np.where(monitor.instrumented, 0.0, math.inf)
        self._limits: dict[float, FloatVector] = {}
        self._parts: dict[Model, tuple[int, FloatVector]] = {}
        self._columns: dict[Judged, tuple[int, FloatVector]] = {}
        self._takers: Takers = {}
        self._before: list[float] = []  # H_d before each placement of this cycle
        self._moved: list[tuple[int, profiling.Demand, int]] = []  # placements that the metrics do not include yet
        self._hosts_moved: list[slice | IntVector] = []  # the nodes whose metrics changed, of each placement

    @functools.cached_property
    def _system(self) -> FloatVector:
        """The system's metrics as the cycle began, plus what `_settled` has counted, shape [8, N]."""
        use, others, beyond = self._used
        node = use * self._unit
        node[0] += others * (self._unit[0] / 1000)
        of = self._hosts.of
        host = np.array([self._of_hosts(row)[of] for row in node])
        return profiling.system(node, host, self._of_hosts(beyond * self._unit[0])[of])

    def _settled(self, of: Model) -> FloatVector:
        """Return what a model makes of the metrics, all placements of the cycle included, shape [K, N]."""
        system = self._system
        for node, demand, step in self._moved:
            self._hosts_moved.append(self._add(system, node, demand, step))
        self._moved.clear()
        seen, parts = self._parts.get(of, (0, None))
        now = len(self._hosts_moved)
        if parts is None or now - seen > _AT_ONCE:
            parts = of.parts(system)
        elif seen != now:
            for nodes in self._hosts_moved[seen:]:
                parts[:, nodes] = of.parts(system[:, nodes])
        else:
            return parts
        self._parts[of] = now, parts
        return parts

    def limits(self, margin: float) -> FloatVector:
        """Return the largest slowdown accepted on each node with a margin, shape [N]: read-only."""
        if margin not in self._limits:
            self._limits[margin] = np.maximum(self.thresholds.limits(margin)[self._hosts.of], self._at_least)
        return self._limits[margin]

    def _of_hosts(self, column: FloatVector | IntVector) -> FloatVector:
        """Return the sum over the nodes of each host, shape [H]."""
        return np.asarray(np.bincount(self._hosts.of, column, len(self._hosts)), np.float64)

    def on_all(self, task: Judged) -> FloatVector:
        """Return the predicted slowdown of a task on each node, shape [N]: read-only."""
        seen, column = self._columns.get(task, (0, None))
        if column is None:
            column = self._weights(task.model, task.demand).predict(self._settled(task.model))
        elif (where := self._state.to_recompute(seen)) is not None:
            column[where] = self._weights(task.model, task.demand).predict(self._settled(task.model)[:, where])
        self._columns[task] = self._state.changes, column
        return column

    def on(self, task: Judged, node: int) -> float:
        """Return the predicted slowdown on one node."""
        return self._weights(task.model, task.demand).at(self._settled(task.model)[:, node].tolist())

    def accepts(self, task: Judged, node: int) -> bool:
        """Return whether Algorithm 1 accepts a task on one node."""
        return self.on(task, node) <= float(self.limits(task.margin)[node])

    def takers(self, pending: PendingClass, task: Judged) -> tuple[bool, bool]:
        """Return whether a usable node on offer has room for a class, and whether one of those nodes accepts it."""
        key, now = (pending.shape, task), self._state.changes
        seen, has_room, taker = self._takers.get(key, (-1, False, None))
        if seen != now and not (taker is not None and self._still_takes(taker, pending, task)):
            room = self._state.room(pending) & self._state.offered
            if not pending.eligibility.everywhere:
                room &= pending.eligibility.mask
            takes = (room & (self.on_all(task) <= self.limits(task.margin))).nonzero()[0]
            has_room, taker = bool(room.any()), int(takes[0]) if len(takes) else None
            self._takers[key] = now, has_room, taker
        return has_room, taker is not None

    def _still_takes(self, node: int, pending: PendingClass, task: Judged) -> bool:
        has_room = self._state.is_offered(node) and fits_in(pending.shape, self._state.free_on(node))
        return has_room and self.accepts(task, node)

    def place(self, node: int, task: Judged, *, is_judged: bool) -> tuple[float, float] | None:
        """Record a placed task; return its predicted slowdown and the largest accepted one, None if it is not judged.

        Its host has one more neighbour, and another threshold if Algorithm 1 has accepted it.
        """
        host, thresholds, accepted = self._hosts.places[node], self.thresholds, None
        self._before.append(thresholds.reached.item(host))
        if is_judged:
            accepted = slowdown, _ = self.on(task, node), float(self.limits(task.margin)[node])
            thresholds.accept(host, slowdown)
        self._count(node, task.demand, 1)
        return accepted

    def undo(self, node: int, demand: profiling.Demand) -> None:
        """Take back the task that was placed last."""
        self.thresholds.reached[self._hosts.places[node]] = self._before.pop()
        self._count(node, demand, -1)

    def _count(self, node: int, demand: profiling.Demand, step: int) -> None:
        """Count one task more, or less, on a node of which the room is taken, or given back."""
        host = self._hosts.places[node]
        nodes = self._hosts.spans[host]
        if any(demand):
            self._moved.append((node, demand, step))
        free, config = self._state.free_on(node), self._config
        slots = min(free[model.CPU] // config.slot_cpu_milli, free[model.MEMORY] // config.slot_memory_bytes)
        slots = max(slots, 0)
        self.thresholds.running[host] += step
        self.thresholds.idle[host] += slots - self._slots.item(node)
        self._slots[node] = slots
        for margin, limits in self._limits.items():
            limits[nodes] = np.maximum(self.thresholds.limit(host, margin), self._at_least[nodes])
        self._state.touch(*self._hosts.members[host].tolist())

    def _add(self, system: FloatVector, node: int, demand: profiling.Demand, step: int) -> slice | IntVector:
        """Add a demand on a node for it and those that share its host, or take it away; return the host's nodes."""
        nodes = self._hosts.spans[self._hosts.places[node]]
        unit = self._unit[:, node].tolist()
        for own, others, use, scale in zip(_OWN, _OTHERS, demand, unit, strict=True):
            if use:  # it is the others' neighbour, and one more on its own machine
                share = step * use * scale
                system[others, nodes] += share
                system[others, node] -= share
                system[own, node] += share
        system[profiling.IO_U, nodes] = min(sum(system[profiling.R_U : profiling.IO_U, node].tolist()), 1.0)
        return nodes


_AT_ONCE = 16  # arbitrary: after more placements all nodes are predicted anew
_OWN, _OTHERS = (profiling.C_U, profiling.R_U, profiling.W_U), (profiling.C_A, profiling.R_A, profiling.W_A)
