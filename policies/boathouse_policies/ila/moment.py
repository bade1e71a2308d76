"""The system's state in one cycle as columns: the slowdown of any class on all nodes, mended as tasks are placed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.ila import metrics

if TYPE_CHECKING:
    from boathouse_policies.framework import Scratch, Where
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
        version: How often it was mended.
    """

    def __init__(
        self, scratch: Scratch, book: Book, thresholds: Thresholds, interference: Model, config: Config
    ) -> None:
        self.scratch = scratch
        self.version = 0
        self._config, self._model = config, interference
        self._hosts = book.hosts
        view = scratch.view
        self._unit = book.unit
        others = np.maximum(view.requested[model.CPU] - book.asked, 0) / 1000
        used = book.use.T.copy()
        used[0] += np.where(book.instrumented, 0.0, others)
        self._node = np.asarray(used * self._unit, np.float64)
        self._host = np.empty((3, len(self._hosts)))
        for i, row in enumerate(self._node):
            self._host[i] = np.bincount(self._hosts.of, row, len(self._hosts))
        beyond = np.bincount(self._hosts.of, book.beyond * self._unit[0], len(self._hosts))
        self._beyond = np.asarray(beyond, np.float64)
        self._parts = self._model.parts(self._system(slice(None)))
        self._slots = self._idle_slots(slice(None))
        idle = np.bincount(self._hosts.of, self._slots, len(self._hosts)).astype(np.int64)
        self.thresholds = thresholds.begin(view.now_s, book, idle)
        self._limits = self.thresholds.limits(slice(None))[self._hosts.of]
        self._weights: dict[model.ClassId, Weights] = {}

    def _system(self, where: Where) -> model.FloatVector:
        of = self._hosts.of[where]
        return metrics.system(self._node[:, where], self._host[:, of], self._beyond[of])

    def _idle_slots(self, where: Where) -> model.IntVector:
        """How many more tasks of a slot's size each node has room for, shape [N]."""
        free, config = self.scratch.free, self._config
        slots = np.minimum(
            free[model.CPU, where] // config.slot_cpu_milli, free[model.MEMORY, where] // config.slot_memory_bytes
        )
        return np.maximum(slots, 0)

    def slowdown(self, one: model.ClassId, demand: metrics.Demand, where: Where) -> model.FloatVector:
        """The predicted slowdown of a task of a class on some nodes."""
        weights = self._weights.get(one)
        if weights is None:
            weights = self._weights[one] = self._model.weights(demand)
        return weights.predict(self._parts[:, where])

    def accepts(self, one: model.ClassId, demand: metrics.Demand, where: Where) -> model.BoolVector:
        """Where Algorithm 1 accepts it."""
        accepted: model.BoolVector = self.slowdown(one, demand, where) <= self._limits[where]
        return accepted

    def place(
        self, node: int, one: model.ClassId, demand: metrics.Demand, resources: model.IntVector, *, ours: bool
    ) -> None:
        """A task is about to be placed: its host has one more neighbour, and perhaps another threshold.

        Args:
            node: Its place.
            one: Its class.
            demand: Of the class.
            resources: What it takes, shape [R].
            ours: Whether Algorithm 1 has accepted it: only then does H_d change.
        """
        host = int(self._hosts.of[node])
        predicted = float(self.slowdown(one, demand, slice(node, node + 1))[0])
        change = np.array(demand) * self._unit[:, node]
        self._node[:, node] += change
        self._host[:, host] += change
        members = self._hosts.members[host]
        self._parts[:, members] = self._model.parts(self._system(members))
        self.thresholds.accept(host, predicted if ours else math.nan, self._slots_lost(node, resources))
        self._limits[members] = self.thresholds.limits(slice(host, host + 1))[0]
        self.version += 1
        for other in members.tolist():
            if other != node:
                self.scratch.touch(other)

    def _slots_lost(self, node: int, resources: model.IntVector) -> int:
        free = self.scratch.free
        cpu = (int(free[model.CPU, node]) - int(resources[model.CPU])) // self._config.slot_cpu_milli
        memory = (int(free[model.MEMORY, node]) - int(resources[model.MEMORY])) // self._config.slot_memory_bytes
        left = max(min(cpu, memory), 0)
        lost = int(self._slots[node]) - left
        self._slots[node] = left
        return lost
