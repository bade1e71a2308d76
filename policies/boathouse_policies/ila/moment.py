"""The system's state in one cycle as columns: the slowdown of any class on all nodes, mended as tasks are placed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.extension import ALL
from boathouse_policies.ila import metrics

if TYPE_CHECKING:
    from boathouse_policies.framework import Scratch, Want, Where
    from boathouse_policies.ila.book import Book
    from boathouse_policies.ila.config import Config
    from boathouse_policies.ila.families import Model, Weights
    from boathouse_policies.ila.thresholds import Thresholds


class Moment:
    """See the module's docstring. Made anew for each cycle.

    Args:
        scratch: The cycle's copy.
        book: What runs.
        thresholds: H_d of each host.
        interference: The model.
        config: The constants.

    Attributes:
        scratch: The cycle's copy.
        thresholds: Algorithm 1's state of this cycle.
    """

    def __init__(
        self, scratch: Scratch, book: Book, thresholds: Thresholds, interference: Model, config: Config
    ) -> None:
        self.scratch = scratch
        self._placed = 0
        self._config, self._model = config, interference
        self._hosts, self._unit = book.hosts, book.unit
        self._rows = self._system(book)
        self._parts = interference.parts(self._rows)
        self._slots = self._idle_slots()
        idle = np.bincount(self._hosts.of, self._slots, len(self._hosts)).astype(np.int64)
        self.thresholds = thresholds.begin(scratch.view.now_s, book, idle)
        self._limits = self.thresholds.limits(ALL)[self._hosts.of]
        self._weights: dict[metrics.Demand, Weights] = {}
        self._accepted: dict[metrics.Demand, tuple[int, model.BoolVector]] = {}
        self._room: dict[bytes, tuple[int, model.BoolVector]] = {}
        self._outcomes: dict[tuple[bytes, metrics.Demand], tuple[int, bool, bool]] = {}

    def _system(self, book: Book) -> model.FloatVector:
        """Table 2's metrics of each node, shape [8, N]."""
        of, count, view = self._hosts.of, len(self._hosts), self.scratch.view
        node = book.use() * self._unit
        others = np.maximum(view.requested[model.CPU] - book.asked, 0) * (self._unit[0] / 1000)
        node[0] += np.where(book.instrumented, 0.0, others)
        host = np.array([np.bincount(of, row, count)[of] for row in node], np.float64)
        beyond = np.asarray(np.bincount(of, book.beyond * self._unit[0], count)[of], np.float64)
        return metrics.system(node, host, beyond)

    def _idle_slots(self) -> model.IntVector:
        """How many more tasks of a slot's size each node has room for, shape [N]."""
        free, config = self.scratch.free, self._config
        cpu, memory = free[model.CPU] // config.slot_cpu_milli, free[model.MEMORY] // config.slot_memory_bytes
        slots: model.IntVector = np.maximum(np.minimum(cpu, memory), 0)
        return slots

    def weights(self, demand: metrics.Demand) -> Weights:
        """What the model makes of a demand."""
        known = self._weights.get(demand)
        if known is None:
            known = self._weights[demand] = self._model.weights(demand)
        return known

    def slowdown(self, demand: metrics.Demand, where: Where) -> model.FloatVector:
        """The predicted slowdown of a task with some demand on some nodes."""
        return self.weights(demand).predict(self._parts[:, where])

    def accepts(self, demand: metrics.Demand, where: Where) -> model.BoolVector:
        """Where Algorithm 1 accepts it."""
        if not (isinstance(where, slice) and where == ALL):
            some: model.BoolVector = self.slowdown(demand, where) <= self._limits[where]
            return some
        known, now = self._accepted.get(demand), self._now()
        if known is None or known[0] != now:
            known = self._accepted[demand] = (now, self.slowdown(demand, where) <= self._limits)
        return known[1]

    def room(self, want: Want) -> model.BoolVector:
        """Which nodes on offer have room for a class, shape [N]."""
        key, now = want.least.tobytes(), self._now()
        known = self._room.get(key)
        if known is None or known[0] != now:
            scratch = self.scratch
            free = scratch.free[want.rows] >= want.need
            known = self._room[key] = (now, np.logical_and.reduce(free) & scratch.offered)
        return known[1]

    def outcome(self, want: Want, demand: metrics.Demand) -> tuple[bool, bool]:
        """Whether some node has room for a class, and whether some of those accepts it."""
        key, now = (want.least.tobytes(), demand), self._now()
        known = self._outcomes.get(key)
        if known is None or known[0] != now:
            room = self.room(want)
            some = bool(room.any())
            known = self._outcomes[key] = (now, some, some and bool((room & self.accepts(demand, ALL)).any()))
        return known[1:]

    def _now(self) -> int:
        """Another number whenever anything has changed."""
        return self._placed + self.scratch.changes

    def place(self, node: int, demand: metrics.Demand, resources: model.IntVector, *, ours: bool) -> None:
        """A task is about to be placed: its host has one more neighbour, and perhaps another threshold.

        Args:
            node: Its place.
            demand: Of its class.
            resources: What it takes, shape [R].
            ours: Whether Algorithm 1 has accepted it: only then does H_d change.
        """
        host = int(self._hosts.of[node])
        predicted = self.weights(demand).at(self._parts[:, node].tolist()) if ours else math.nan
        members = self._hosts.members[host]
        self._add(node, members, demand)
        self.thresholds.accept(host, predicted, self._slots_lost(node, resources))
        self._limits[members] = self.thresholds.limit(host)
        self._placed += 1
        for other in members.tolist():
            if other != node:
                self.scratch.touch(other)

    def _add(self, node: int, members: model.IntVector, demand: metrics.Demand) -> None:
        cpu, read, write = demand.cpu * float(self._unit[0, node]), demand.read, demand.write
        rows = self._rows[:, members]
        rows += np.array(((0.0,), (cpu,), (0.0,), (0.0,), (0.0,), (read,), (write,), (0.0,)))
        own = int(members.searchsorted(node))
        rows[:, own] += (cpu, -cpu, 0.0, read, write, -read, -write, 0.0)
        busy = float(rows[metrics.R_U : metrics.IO_U, own].sum())  # reads and writes of itself and the others
        rows[metrics.IO_U] = min(busy, 1.0)
        self._rows[:, members] = rows
        self._parts[:, members] = self._model.parts(rows)

    def _slots_lost(self, node: int, resources: model.IntVector) -> int:
        free, before = self.scratch.free, int(self._slots[node])
        cpu = (int(free[model.CPU, node]) - int(resources[model.CPU])) // self._config.slot_cpu_milli
        memory = (int(free[model.MEMORY, node]) - int(resources[model.MEMORY])) // self._config.slot_memory_bytes
        left = self._slots[node] = max(min(cpu, memory), 0)
        return before - left
