"""What runs where and what it uses: columns over nodes and hosts, mended by events (4.3 "System Monitoring").

Usage is the sum of the demands of what runs, so a task counts from the moment it is placed; where a node's instruments
show more than that sum, the excess is added, as of their last report. A task of which nothing was measured yet counts
by its first, high demand only until its node's instruments report: from then on it is in what they show. Without
instruments, CPU that others' pods request counts as used (`Moment`).
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import Groups
from boathouse_policies.ila import metrics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_policies.framework import Layout
    from boathouse_policies.ila.config import Config
    from boathouse_policies.model import FloatVector


@dataclasses.dataclass(slots=True, eq=False)
class Running:
    """A task that was placed.

    Attributes:
        task_class: Its class.
        node: Where.
        cpu_milli: What it asked for.
        demand: By what it is counted.
        far: Whether its input is on another host.
        guessed: Whether that is its class' first, high demand, or is left to its node's instruments.
        shown: Whether it is in what the instruments show beyond the demands.
        since_s: When it was placed; later, when it started.
        marks: What its node and its host had used by then, shape [2, 3].
    """

    task_class: model.ClassId
    node: model.NodeName
    cpu_milli: int
    demand: metrics.Demand
    far: bool
    guessed: bool
    since_s: float
    marks: FloatVector
    shown: bool = False


class Book:
    """Columns over the nodes of a layout, and over their hosts.

    Args:
        config: The constants.

    Attributes:
        layout: The nodes; None before the first cycle.
        hosts: Which node is on which host.
        use: What is used on each node: CPUs, and reads and writes as shares of its host's disks, shape [N, 3].
        unit: What makes shares of a host of such amounts, shape [3, N].
        excess: Of it, what instruments showed beyond the demands of what runs, same shape.
        beyond: CPUs of a node's system beside its pods, where instruments tell, shape [N].
        instrumented: Nodes whose instruments have reported, shape [N].
        asked: Millicores that what runs asked for, shape [N].
        running: Tasks on each host, shape [H].
        ended_s: When one last ended on each host, shape [H].
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._tasks: dict[model.TaskId, Running] = {}
        self._by_class: dict[model.ClassId, dict[model.TaskId, Running]] = {}
        self._guessed: dict[model.NodeName, list[Running]] = {}
        self.layout: Layout | None = None
        self._now_s = 0.0
        self._index: Mapping[model.NodeName, int] = {}
        self._resize(0, Groups((), ()))

    def _resize(self, nodes: int, hosts: Groups) -> None:
        self.hosts = hosts
        self.unit = np.ones((3, nodes))
        if self.layout is not None:
            cores = np.bincount(hosts.of, self.layout.allocatable[model.CPU], len(hosts)) / 1000
            self.unit[0] = 1.0 / np.maximum(cores, 1e-3)[hosts.of]
        self.use, self.excess, self._area = (np.zeros((nodes, 3)) for _ in range(3))
        self.beyond, self._since_s = np.zeros(nodes), np.zeros(nodes)
        self.instrumented = np.zeros(nodes, np.bool_)
        self.asked = np.zeros(nodes, np.int64)
        self._host_use, self._host_area = (np.zeros((len(hosts), 3)) for _ in range(2))
        self._host_since_s = np.zeros(len(hosts))
        self.running = np.zeros(len(hosts), np.int64)
        self.ended_s = np.full(len(hosts), -math.inf)

    def adopt(self, layout: Layout) -> None:
        """Columns for these nodes from now on: what runs is added up anew where they are others than before."""
        if layout is self.layout:
            return
        before, excess, beyond, known = self._index, self.excess, self.beyond, self.instrumented
        hosts_before = dict(zip(self.hosts.names, self.ended_s.tolist(), strict=True))
        self.layout, self._index = layout, layout.index
        self._resize(len(layout), Groups.servers(layout))
        kept = [(i, before[name]) for i, name in enumerate(layout.names) if name in before]
        if kept:
            new, old = (list(places) for places in zip(*kept, strict=True))
            self.beyond[new], self.instrumented[new] = beyond[old], known[old]
            for i, was in kept:
                self._exceed(i, excess[was])
        self.ended_s[:] = [hosts_before.get(name, -math.inf) for name in self.hosts.names]
        self._since_s[:] = self._host_since_s[:] = self._now_s
        for one in self._tasks.values():
            if one.node in self._index:
                self._add(one, +1)
                one.since_s, one.marks = self._now_s, self._used(self._index[one.node], self._now_s)

    # Tasks

    def placed(self, task: model.TaskId, running: Running) -> None:
        """A task is on its way to a node."""
        self._now_s = running.since_s
        if task in self._tasks:
            self.gone(task, running.since_s)
        self._tasks[task] = running
        self._by_class.setdefault(running.task_class, {})[task] = running
        place = self._index.get(running.node)
        if place is not None:
            self._advance(place, running.since_s)
            self._add(running, +1)
            running.marks = self._used(place, running.since_s)
            if running.guessed:
                self._guessed.setdefault(running.node, []).append(running)

    def started(self, task: model.TaskId, now_s: float) -> None:
        """Its container runs: what its neighbours do counts from now on."""
        running = self._tasks.get(task)
        if running is not None and running.since_s != now_s:
            running.since_s = now_s
            if running.node in self._index:
                running.marks = self._used(self._index[running.node], now_s)

    def gone(self, task: model.TaskId, now_s: float) -> FloatVector | None:
        """A task has ended.

        Returns:
            What was used on its node and its host while it ran, on average, itself included, shape [2, 3]; None where
            that is not known.
        """
        running = self._tasks.pop(task, None)
        if running is None:
            return None
        self._now_s = now_s
        del self._by_class[running.task_class][task]
        place = self._index.get(running.node)
        if place is None:
            return None
        self._advance(place, now_s)
        ran_s = now_s - running.since_s
        around = (self._used(place, now_s) - running.marks) / ran_s if ran_s > 0 else None
        self._add(running, -1)
        self.ended_s[self.hosts.of[place]] = now_s
        return around

    def _add(self, running: Running, step: int) -> None:
        place = self._index[running.node]
        host = self.hosts.of[place]
        change = np.array(running.demand) * step
        self.use[place] += change
        self._host_use[host] += change
        self.asked[place] += step * running.cpu_milli
        self.running[host] += step

    def rate(self, one: model.ClassId, demand: metrics.Demand, now_s: float) -> None:
        """The demand of a class is known better: what runs of it counts by it from now on."""
        for running in self._by_class.get(one, {}).values():
            if running.far:
                continue
            if not running.guessed and _close(running.demand, demand):
                return  # as all others of it
            running.guessed = False
            self._count(running, demand, now_s)
            place = self._index.get(running.node)
            if running.shown and place is not None:
                self._exceed(place, np.maximum(self.excess[place] - demand, 0.0))
                running.shown = False

    def _count(self, running: Running, demand: metrics.Demand, now_s: float) -> None:
        """A running task counts by another demand."""
        change, running.demand = np.array(demand) - np.array(running.demand), demand
        place = self._index.get(running.node)
        if place is not None:
            self._advance(place, now_s)
            self.use[place] += change
            self._host_use[self.hosts.of[place]] += change

    def forget(self, one: model.ClassId) -> None:
        """The class is over."""
        if not self._by_class.get(one):
            self._by_class.pop(one, None)

    def place_of(self, node: model.NodeName) -> int | None:
        """The place of a node; None for one that is not known."""
        return self._index.get(node)

    def around(self, used: FloatVector, own: metrics.Demand, node: model.NodeName) -> list[float] | None:
        """The system's metrics while a task ran, itself left out.

        Args:
            used: On its node and its host, from `gone`, shape [2, 3].
            own: By what demand it was counted.
            node: Where it ran.

        Returns:
            Length 8; None for a node that is not known.
        """
        place = self._index.get(node)
        if place is None or self.layout is None:
            return None
        per_core = float(self.unit[0, place])
        cpu, read, write = np.maximum(used[0] - own, 0.0).tolist()
        all_cpu, all_read, all_write = np.maximum(used[1] - own, 0.0).tolist()
        cpu, all_cpu = cpu * per_core, all_cpu * per_core
        beyond = float(self.beyond[self.hosts.members[self.hosts.of[place]]].sum()) * per_core
        busy = min(all_read + all_write, 1.0)
        return [cpu, all_cpu - cpu, beyond, read, write, all_read - read, all_write - write, busy]

    # Time

    def _advance(self, place: int, now_s: float) -> None:
        """Bring what a node and its host have used up to date."""
        host = self.hosts.of[place]
        self._area[place] += self.use[place] * (now_s - self._since_s[place])
        self._host_area[host] += self._host_use[host] * (now_s - self._host_since_s[host])
        self._since_s[place] = self._host_since_s[host] = now_s

    def _used(self, place: int, now_s: float) -> FloatVector:
        """CPU seconds and disk seconds of a node and its host, shape [2, 3]."""
        self._advance(place, now_s)
        return np.array([self._area[place], self._host_area[self.hosts.of[place]]])

    # Instruments

    def measured(self, node: model.NodeName, usage: Mapping[str, float], now_s: float) -> None:
        """A node's instruments: what they show beyond what its tasks should use is there too."""
        place = self._index.get(node)
        if place is None:
            return
        for running in self._guessed.pop(node, ()):
            if running.guessed:
                self._count(running, metrics.IDLE, now_s)
                running.shown = True
        demanded, excess = self.use[place] - self.excess[place], self.excess[place].copy()
        cpu, disk = usage.get("cpu_cores"), usage.get("disk_bytes_per_s")
        if cpu is not None:
            excess[0] = max(0.0, cpu - float(demanded[0]))
            self.instrumented[place] = True
        if disk is not None:
            share = disk / (self._config.disk_mb_per_s * 1e6)
            excess[1:] = max(0.0, share - float(demanded[1] + demanded[2])) / 2  # reads and writes are not told apart
        self._advance(place, now_s)
        self._exceed(place, excess)
        self.beyond[place] = usage.get("system_cpu_cores", 0.0)

    def _exceed(self, place: int, excess: FloatVector) -> None:
        change = excess - self.excess[place]
        self.excess[place] = excess
        self.use[place] += change
        self._host_use[self.hosts.of[place]] += change


def _close(one: metrics.Demand, other: metrics.Demand) -> bool:
    return all(abs(a - b) <= _NEAR * max(a, b) + 1e-4 for a, b in zip(one, other, strict=True))


_NEAR = 0.05  # arbitrary: what runs is not counted anew for less
