"""The system's state in one cycle as columns: the slowdown of any class on all nodes, mended as tasks are placed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import ALL
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
        parts: What predictions take of the system, shape [K, N].
        limits: The largest slowdown that is accepted on each node, shape [N].
        placed_on: The hosts that took tasks, in turn.
    """

    def __init__(
        self, scratch: Scratch, book: Book, thresholds: Thresholds, interference: Model, config: Config
    ) -> None:
        self.scratch = scratch
        self._config, self._model = config, interference
        self._hosts, self._unit = book.hosts, book.unit
        self._rows = self._system(book)
        self.parts = interference.parts(self._rows)
        slots = self._idle_slots()
        self._slots: list[int] = slots.tolist()
        idle = np.bincount(self._hosts.of, slots, len(self._hosts)).astype(np.int64)
        self.thresholds = thresholds.begin(scratch.view.now_s, book, idle)
        self.limits = self.thresholds.limits[self._hosts.of]
        self._known: dict[metrics.Demand, Weights] = {}
        self._slowdown: dict[metrics.Demand, tuple[int, model.FloatVector]] = {}
        self.placed_on: list[int] = []
        self._ranks: dict[tuple[bytes, metrics.Demand, bool], Ranks] = {}
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

    def slowdown(self, demand: metrics.Demand) -> model.FloatVector:
        """The predicted slowdown of a task with some demand on each node, shape [N]: not to be changed."""
        seen, slowdown = self._slowdown.get(demand) or (-1, np.empty(len(self.limits)))
        now = len(self.placed_on)
        if seen != now:
            where = ALL if seen < 0 else self.nodes_since(seen)
            slowdown[where] = self._weights(demand).predict(self.parts[:, where])
            self._slowdown[demand] = now, slowdown
        return slowdown

    def _weights(self, demand: metrics.Demand) -> Weights:
        """What the model makes of a demand."""
        known = self._known.get(demand)
        if known is None:
            known = self._known[demand] = self._model.weights(demand)
        return known

    def nodes_since(self, count: int) -> Where:
        """The nodes of the hosts that took tasks since there were `count` of them."""
        hosts = self.placed_on[count:]
        if len(hosts) == 1:
            return self._hosts.spans[hosts[0]]
        hosts = sorted(set(hosts))
        if len(hosts) * _MENDED_AT_ONCE > len(self._hosts):
            return ALL
        return np.concatenate([self._hosts.members[host] for host in hosts])

    def accepts(self, demand: metrics.Demand, where: Where) -> model.BoolVector:
        """Where Algorithm 1 accepts it."""
        accepted: model.BoolVector = self.slowdown(demand)[where] <= self.limits[where]
        return accepted

    def ranks(self, want: Want, demand: metrics.Demand, *, judged: bool) -> Ranks:
        """Where a class may go, for all classes of its size and demand.

        Args:
            want: The class.
            demand: Of its tasks.
            judged: Whether Algorithm 1 has a say.
        """
        key = want.least.tobytes(), demand, judged
        known = self._ranks.get(key)
        if known is None:
            known = self._ranks[key] = Ranks(self, want, self._weights(demand), judged=judged)
        return known

    def outcome(self, want: Want, demand: metrics.Demand) -> tuple[bool, bool]:
        """Whether some node on offer has room for a class, and whether some of those accepts it."""
        key, now = (want.least.tobytes(), demand), self._now()
        known = self._outcomes.get(key)
        if known is None or known[0] != now:
            room = self.scratch.room(want) & self.scratch.offered
            some = bool(room.any())
            known = self._outcomes[key] = (now, some, some and bool((room & self.accepts(demand, ALL)).any()))
        return known[1:]

    def _now(self) -> int:
        """Another number whenever anything has changed."""
        return len(self.placed_on) + self.scratch.changes

    def place(self, node: int, demand: metrics.Demand, resources: model.IntVector, *, ours: bool) -> None:
        """A task is about to be placed: its host has one more neighbour, and perhaps another threshold.

        Args:
            node: Its place.
            demand: Of its class.
            resources: What it takes, shape [R].
            ours: Whether Algorithm 1 has accepted it: only then does H_d change.
        """
        host = self._hosts.places[node]
        span, members = self._hosts.spans[host], self._hosts.members[host]
        predicted = self._weights(demand).at(self.parts[:, node].tolist()) if ours else math.nan
        self._add(node, span, demand)
        self.thresholds.accept(host, predicted, self._slots_lost(node, resources))
        self.limits[span] = self.thresholds.limit(host)
        self.placed_on.append(host)
        if len(members) > 1:
            self.scratch.touch_all(members)

    def _add(self, node: int, span: Where, demand: metrics.Demand) -> None:
        cpu, read, write = demand.cpu * float(self._unit[0, node]), demand.read, demand.write
        rows = self._rows
        for others, own, more in _USES:  # it is the others' neighbour, and one more on its own machine
            amount = (cpu, read, write)[more]
            if amount:
                rows[others, span] += amount
                rows[others, node] -= amount
                rows[own, node] += amount
        own_r, own_w, others_r, others_w = rows[metrics.R_U : metrics.IO_U, node].tolist()
        rows[metrics.IO_U, span] = min(own_r + own_w + others_r + others_w, 1.0)
        self.parts[:, span] = self._model.parts(rows[:, span])

    def _slots_lost(self, node: int, resources: model.IntVector) -> int:
        free, takes, before = self.scratch.free[:, node].tolist(), resources.tolist(), self._slots[node]
        cpu = (free[model.CPU] - takes[model.CPU]) // self._config.slot_cpu_milli
        memory = (free[model.MEMORY] - takes[model.MEMORY]) // self._config.slot_memory_bytes
        left: int = max(min(cpu, memory), 0)
        self._slots[node] = left
        return before - left


class Ranks:
    """The nodes with room for a class by how little it is slowed down there: a column that is mended when asked for.

    Right where all that the cycle places was told to `Moment.place`.

    Args:
        moment: The state.
        want: The class.
        weights: What the model makes of its demand.
        judged: Whether Algorithm 1 has a say.
    """

    __slots__ = ("_column", "_judged", "_moment", "_need", "_rows", "_seen", "_weights")

    def __init__(self, moment: Moment, want: Want, weights: Weights, *, judged: bool) -> None:
        self._moment, self._weights, self._judged = moment, weights, judged
        self._rows, self._need = want.rows, want.need
        self._column, self._seen = np.empty(len(moment.limits)), -1

    def column(self) -> model.FloatVector:
        """The slowdown, negative; -inf where the class may not go, shape [N]: read-only."""
        moment, now = self._moment, len(self._moment.placed_on)
        if self._seen != now:
            where = ALL if self._seen < 0 else moment.nodes_since(self._seen)
            slowdown, free = self._weights.predict(moment.parts[:, where]), moment.scratch.free[:, where]
            may = np.logical_and.reduce(free[self._rows] >= self._need)
            if self._judged:
                may &= slowdown <= moment.limits[where]
            self._column[where] = np.where(may, -slowdown, -np.inf)
            self._seen = now
        return self._column


_USES = ((metrics.C_A, metrics.C_U, 0), (metrics.R_A, metrics.R_U, 1), (metrics.W_A, metrics.W_U, 2))
_MENDED_AT_ONCE = 8  # with an eighth of the hosts changed, plain slices over all are as cheap as picking some
