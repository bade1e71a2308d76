"""The system's state in one cycle as columns: the slowdown of any class on all nodes, mended as tasks are placed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import ALL
from boathouse_policies.framework.candidates import fits_in
from boathouse_policies.ila import metrics

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from boathouse_policies.framework import CycleState, PendingClass, Where
    from boathouse_policies.framework.shapes import Shape
    from boathouse_policies.ila.book import Book
    from boathouse_policies.ila.config import Config
    from boathouse_policies.ila.families import Model, Weights
    from boathouse_policies.ila.thresholds import Thresholds


class Moment:
    """See the module's docstring. Made anew for each cycle.

    Args:
        state: The cycle's copy.
        book: What runs.
        thresholds: H_d of each host.
        interference: The model.
        config: The constants.
        weights: What the model makes of demands, as far as that is known: more is added.

    Attributes:
        state: The cycle's copy.
        thresholds: Algorithm 1's state of this cycle.
        parts: What predictions take of the system, shape [K, N].
        limits: The largest slowdown that is accepted on each node, shape [N].
        changed: The nodes of the hosts that took tasks, in turn, with repetitions.
    """

    def __init__(
        self,
        state: CycleState,
        book: Book,
        thresholds: Thresholds,
        interference: Model,
        config: Config,
        weights: MutableMapping[metrics.Demand, Weights],
    ) -> None:
        self.state = state
        self._config, self._model = config, interference
        self._hosts, self._unit = book.hosts, book.unit
        self._rows = self._system(book)
        self.parts = interference.parts(self._rows)
        slots = self._idle_slots()
        self._slots = slots
        idle = np.bincount(self._hosts.of, slots, len(self._hosts)).astype(np.int64)
        self.thresholds = thresholds.begin(state.view.now_s, book, idle)
        self.limits = self.thresholds.limits[self._hosts.of]
        self._known = weights
        self._judgements: dict[metrics.Demand, Judged] = {}
        self.changed: list[int] = []
        self._outcomes: dict[tuple[Shape, metrics.Demand], tuple[int, bool, int | None]] = {}

    def _system(self, book: Book) -> model.FloatVector:
        """Table 2's metrics of each node, shape [8, N]."""
        of, count, view = self._hosts.of, len(self._hosts), self.state.view
        node = book.use() * self._unit
        others = np.maximum(view.requested[model.CPU] - book.asked, 0) * (self._unit[0] / 1000)
        node[0] += np.where(book.instrumented, 0.0, others)
        host = np.array([np.bincount(of, row, count)[of] for row in node], np.float64)
        beyond = np.asarray(np.bincount(of, book.beyond * self._unit[0], count)[of], np.float64)
        return metrics.system(node, host, beyond)

    def _idle_slots(self) -> model.IntVector:
        """How many more tasks of a slot's size each node has room for, shape [N]."""
        free, config = self.state.free, self._config
        cpu, memory = free[model.CPU] // config.slot_cpu_milli, free[model.MEMORY] // config.slot_memory_bytes
        slots: model.IntVector = np.maximum(np.minimum(cpu, memory), 0)
        return slots

    def slowdown(self, demand: metrics.Demand) -> model.FloatVector:
        """The predicted slowdown of a task with some demand on each node, shape [N]: not to be changed."""
        return self._judged(demand).slowdown

    def slowdown_at(self, demand: metrics.Demand, node: int) -> float:
        """The predicted slowdown on one node."""
        return self._weights(demand).at(self.parts[:, node].tolist())

    def _weights(self, demand: metrics.Demand) -> Weights:
        """What the model makes of a demand."""
        known = self._known.get(demand)
        if known is None:
            known = self._known[demand] = self._model.weights(demand)
        return known

    def _judged(self, demand: metrics.Demand) -> Judged:
        """What Algorithm 1 says of a demand now."""
        found = self._judgements.get(demand)
        if found is None:
            found = self._judgements[demand] = Judged(self, self._weights(demand))
        elif found.seen != len(self.changed):
            found.mend(self)
        return found

    def accepts(self, demand: metrics.Demand, where: Where) -> model.BoolVector:
        """Where Algorithm 1 accepts it."""
        return self._judged(demand).accepted[where]

    def outcome(self, pending: PendingClass, demand: metrics.Demand) -> tuple[bool, bool]:
        """Whether some node on offer that a class may use has room for it, and whether some of those accepts it."""
        key, now = (pending.shape, demand), len(self.changed) + self.state.changes
        known = self._outcomes.get(key)
        if known is None or (known[0] != now and not self._still_takes(known[2], pending, demand)):
            room = self.state.room(pending) & self.state.offered
            if not pending.eligibility.everywhere:
                room &= pending.eligibility.mask
            takes = (room & self._judged(demand).accepted).nonzero()[0]
            if len(takes):
                known = self._outcomes[key] = now, True, int(takes[0])
            else:
                known = self._outcomes[key] = now, bool(np.count_nonzero(room)), None
        return known[1], known[2] is not None

    def _still_takes(self, node: int | None, pending: PendingClass, demand: metrics.Demand) -> bool:
        """Whether a node that had room for a class and accepted it still has and does."""
        if node is None or not self.state.offered[node] or not fits_in(pending.shape, self.state.free_on(node)):
            return False
        return bool(self.slowdown_at(demand, node) <= self.limits[node])

    def place(self, node: int, demand: metrics.Demand, *, ours: bool) -> None:
        """A task was placed: its host has one more neighbour, and perhaps another threshold.

        Args:
            node: Its place.
            demand: Of its class.
            ours: Whether Algorithm 1 has accepted it: only then does H_d change.
        """
        host = self._hosts.places[node]
        span, members = self._hosts.spans[host], self._hosts.members[host]
        predicted = self.slowdown_at(demand, node) if ours else math.nan
        self._add(node, span, demand)
        self.thresholds.accept(host, predicted, self._slots_lost(node))
        self.limits[span] = self.thresholds.limit(host)
        if len(members) > 1:
            self.changed += members.tolist()
            self.state.touch_all(members)
        else:
            self.changed.append(node)

    def _add(self, node: int, span: Where, demand: metrics.Demand) -> None:
        cpu, read, write = demand.cpu * float(self._unit[0, node]), demand.read, demand.write
        rows = self._rows
        if not (cpu or read or write):
            return
        if isinstance(span, slice) and span.stop - span.start == 1:
            self._add_alone(node, (cpu, read, write))
            return
        for others, own, more in _USES:  # it is the others' neighbour, and one more on its own machine
            amount = (cpu, read, write)[more]
            if amount:
                rows[others, span] += amount
                rows[others, node] -= amount
                rows[own, node] += amount
        own_r, own_w, others_r, others_w = rows[metrics.R_U : metrics.IO_U, node].tolist()
        rows[metrics.IO_U, span] = min(own_r + own_w + others_r + others_w, 1.0)
        self.parts[:, span] = self._model.parts(rows[:, span])

    def _add_alone(self, node: int, uses: tuple[float, float, float]) -> None:
        """The same in plain numbers, for a host that is one node."""
        row = self._rows[:, node].tolist()
        for others, own, more in _USES:
            row[others] = row[others] + uses[more] - uses[more]  # rounded as where there are others
            row[own] += uses[more]
        row[metrics.IO_U] = min(row[metrics.R_U] + row[metrics.W_U] + row[metrics.R_A] + row[metrics.W_A], 1.0)
        self._rows[:, node] = row
        self.parts[:, node : node + 1] = self._model.parts(self._rows[:, node : node + 1])

    def _slots_lost(self, node: int) -> int:
        free, before = self.state.free_on(node), int(self._slots[node])
        cpu = free[model.CPU] // self._config.slot_cpu_milli
        left = max(min(cpu, free[model.MEMORY] // self._config.slot_memory_bytes), 0)
        self._slots[node] = left
        return before - left


class Judged:
    """What Algorithm 1 says of a demand on each node: columns that are mended for the hosts that took tasks.

    Args:
        moment: The state.
        weights: What the model makes of the demand.

    Attributes:
        slowdown: As predicted, shape [N].
        accepted: Where it is within the limit, shape [N].
        seen: How many placements are taken into account.
    """

    __slots__ = ("accepted", "seen", "slowdown", "weights")

    def __init__(self, moment: Moment, weights: Weights) -> None:
        self.weights = weights
        self.slowdown: model.FloatVector = weights.predict(moment.parts)
        self.accepted: model.BoolVector = self.slowdown <= moment.limits
        self.seen = len(moment.changed)

    def mend(self, moment: Moment) -> None:
        """Take in what was placed."""
        changed = moment.changed[self.seen :]
        self.seen = len(moment.changed)
        if len(changed) <= _ONE_BY_ONE:
            for node in dict.fromkeys(changed):
                slowdown = self.weights.at(moment.parts[:, node].tolist())
                self.slowdown[node] = slowdown
                self.accepted[node] = slowdown <= moment.limits[node]
            return
        where = ALL if len(changed) * _MENDED_AT_ONCE > len(self.slowdown) else np.array(changed, np.intp)
        slowdowns = self.weights.predict(moment.parts[:, where])
        self.slowdown[where] = slowdowns
        self.accepted[where] = slowdowns <= moment.limits[where]


_USES = ((metrics.C_A, metrics.C_U, 0), (metrics.R_A, metrics.R_U, 1), (metrics.W_A, metrics.W_U, 2))
_ONE_BY_ONE = 4
_MENDED_AT_ONCE = 8  # with an eighth of the nodes changed, plain slices over all are as cheap as picking some
