"""What runs where and what it uses: columns over nodes and hosts, mended by events (4.3 "System Monitoring").

Usage is the sum of the demands of what runs, so a task counts from the moment it is placed; where a node's instruments
show more than that sum, the excess is added, as of their last report. Without instruments, CPU that others' pods request
counts as used (`Moment`).
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
        since_s: When it was placed; later, when it started.
        marks: What its node and its host had used by then, shape [2, 3].
    """

    task_class: model.ClassId
    node: model.NodeName
    cpu_milli: int
    since_s: float
    marks: FloatVector


class Book:
    """Columns over the nodes of a layout, and over their hosts.

    Args:
        config: The constants.

    Attributes:
        layout: The nodes; None before the first cycle.
        hosts: Which node is on which host.
        use: Demands of what runs on each node: CPUs, and reads and writes as shares of its host's disks, shape [N, 3].
        unit: What makes shares of a host of such amounts, shape [3, N].
        excess: What instruments showed beyond that, same shape.
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
        self._applied: dict[model.ClassId, metrics.Demand] = {}
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
        hosts_before = {name: end_s for name, end_s in zip(self.hosts.names, self.ended_s.tolist(), strict=True)}
        self.layout, self._index = layout, layout.index
        self._resize(len(layout), Groups.servers(layout))
        kept = [(i, before[name]) for i, name in enumerate(layout.names) if name in before]
        if kept:
            new, old = (list(places) for places in zip(*kept, strict=True))
            self.excess[new], self.beyond[new], self.instrumented[new] = excess[old], beyond[old], known[old]
        self.ended_s[:] = [hosts_before.get(name, -math.inf) for name in self.hosts.names]
        self._since_s[:] = self._host_since_s[:] = self._now_s
        for one in self._tasks.values():
            if one.node in self._index:
                self._add(one, self._applied[one.task_class], +1)
                one.since_s, one.marks = self._now_s, self._used(self._index[one.node], self._now_s)

    # Tasks

    def placed(
        self,
        task: model.TaskId,
        one: model.ClassId,
        node: model.NodeName,
        cpu_milli: int,
        demand: metrics.Demand,
        now_s: float,
    ) -> None:
        """A task is on its way to a node."""
        self._now_s = now_s
        if task in self._tasks:
            self.gone(task, now_s)
        if one not in self._applied:
            self._applied[one] = demand
        running = Running(one, node, cpu_milli, now_s, _NOTHING)
        self._tasks[task] = running
        self._by_class.setdefault(one, {})[task] = running
        if node in self._index:
            self._advance(self._index[node], now_s)
            self._add(running, self._applied[one], +1)
            running.marks = self._used(self._index[node], now_s)

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
        self._add(running, self._applied[running.task_class], -1)
        self.ended_s[self.hosts.of[place]] = now_s
        return around

    def _add(self, running: Running, demand: metrics.Demand, step: int) -> None:
        place = self._index[running.node]
        host = self.hosts.of[place]
        change = np.array(demand) * step
        self.use[place] += change
        self._host_use[host] += change
        self.asked[place] += step * running.cpu_milli
        self.running[host] += step

    def rate(self, one: model.ClassId, demand: metrics.Demand, now_s: float) -> None:
        """The demand of a class is known better: what runs of it counts by it from now on."""
        before = self._applied.get(one)
        if before is None or _close(before, demand):
            return
        change = np.array(demand) - np.array(before)
        self._applied[one] = demand
        for running in self._by_class.get(one, {}).values():
            place = self._index.get(running.node)
            if place is not None:
                self._advance(place, now_s)
                self.use[place] += change
                self._host_use[self.hosts.of[place]] += change

    def forget(self, one: model.ClassId) -> None:
        """The class is over."""
        if not self._by_class.get(one):
            self._by_class.pop(one, None)
            self._applied.pop(one, None)

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

    def applied(self, one: model.ClassId) -> metrics.Demand | None:
        """By what demand tasks of a class that run are counted."""
        return self._applied.get(one)

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

    def measured(self, node: model.NodeName, usage: Mapping[str, float]) -> None:
        """A node's instruments: what they show beyond what its tasks should use is there too."""
        place = self._index.get(node)
        if place is None:
            return
        cpu = usage.get("cpu_cores")
        if cpu is not None:
            self.excess[place, 0] = max(0.0, cpu - float(self.use[place, 0]))
            self.instrumented[place] = True
        disk = usage.get("disk_bytes_per_s")
        if disk is not None:
            share = disk / (self._config.disk_mb_per_s * 1e6)
            over = max(0.0, share - float(self.use[place, 1] + self.use[place, 2]))
            self.excess[place, 1:] = over / 2  # not told apart
        self.beyond[place] = usage.get("system_cpu_cores", 0.0)


def _close(one: metrics.Demand, other: metrics.Demand) -> bool:
    return all(abs(a - b) <= _NEAR * max(a, b) + 1e-4 for a, b in zip(one, other, strict=True))


_NEAR = 0.05  # arbitrary: what runs is not counted anew for less
_NOTHING = np.zeros((2, 3))
