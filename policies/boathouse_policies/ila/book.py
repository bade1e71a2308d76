"""What runs where and what it uses: columns over nodes and hosts, mended by events (4.3 "System Monitoring").

Usage is the sum of the demands of what runs, so a task counts from the moment it is placed; where a node's instruments
show more than that sum, the excess is added, as of their last report. A map of which nothing was measured yet counts by
its first, high demand: instruments show what tasks get, not what they would use. Anything else does so only until its
node's instruments report, for a reducer is idle while it waits for maps: from then on it is in what they show. Without
instruments, CPU that others' pods request counts as used (`Moment`).
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import Groups
from boathouse_policies.ila import meter, metrics

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
        idles: Whether it may be idle for long: no map.
        since_s: When it was placed; later, when it started.
        marks: What its node and its host had used by then.
        shown: Whether it is in what the instruments show beyond the demands.
    """

    task_class: model.ClassId
    node: model.NodeName
    cpu_milli: int
    demand: metrics.Demand
    far: bool
    guessed: bool
    idles: bool
    since_s: float
    marks: tuple[meter.Reading, meter.Reading] = (meter.ZERO, meter.ZERO)
    shown: bool = False


class Book:
    """Columns over the nodes of a layout, and over their hosts.

    Args:
        config: The constants.

    Attributes:
        layout: The nodes; None before the first cycle.
        hosts: Which node is on which host.
        unit: What makes shares of a host of CPUs and of shares of its disks, shape [3, N].
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
        self._host_of: list[int] = hosts.of.tolist()
        self.unit = np.ones((3, nodes))
        if self.layout is not None:
            cores = np.bincount(hosts.of, self.layout.allocatable[model.CPU], len(hosts)) / 1000
            self.unit[0] = 1.0 / np.maximum(cores, 1e-3)[hosts.of]
        self._nodes, self._on_host = ([meter.Meter(self._now_s) for _ in range(n)] for n in (nodes, len(hosts)))
        self._use = np.zeros((3, nodes))
        self._changed: set[int] = set()
        self._excess = [_NOTHING] * nodes
        self._guesses = [0] * len(hosts)
        self._guessed_until_s = [-math.inf] * len(hosts)
        self.beyond = np.zeros(nodes)
        self.instrumented = np.zeros(nodes, np.bool_)
        self.asked = np.zeros(nodes, np.int64)
        self.running = np.zeros(len(hosts), np.int64)
        self.ended_s = np.full(len(hosts), -math.inf)

    def adopt(self, layout: Layout) -> None:
        """Columns for these nodes from now on: what runs is added up anew where they are others than before."""
        if layout is self.layout:
            return
        before, excess, beyond, known = self._index, self._excess, self.beyond, self.instrumented
        hosts_before = dict(zip(self.hosts.names, self.ended_s.tolist(), strict=True))
        self.layout, self._index = layout, layout.index
        self._resize(len(layout), layout.servers)
        for i, name in enumerate(layout.names):
            was = before.get(name)
            if was is not None:
                self.beyond[i], self.instrumented[i] = beyond[was], known[was]
                self._exceed(i, excess[was], self._now_s)
        self.ended_s[:] = [hosts_before.get(name, -math.inf) for name in self.hosts.names]
        for one in self._tasks.values():
            if one.node in self._index:
                self._add(one, +1, self._now_s)
                one.since_s, one.marks = self._now_s, self._marks(self._index[one.node], self._now_s)

    def use(self) -> FloatVector:
        """What is used on each node: CPUs, and reads and writes as shares of its host's disks, shape [3, N]."""
        if self._changed:
            places = list(self._changed)
            self._use[:, places] = np.array([(m.cpu, m.read, m.write) for m in map(self._nodes.__getitem__, places)]).T
            self._changed.clear()
        return self._use

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
            self._add(running, +1, running.since_s)
            running.marks = self._marks(place, running.since_s)
            if running.guessed and running.idles:
                self._guessed.setdefault(running.node, []).append(running)

    def started(self, task: model.TaskId, now_s: float) -> None:
        """Its container runs: what its neighbours do counts from now on."""
        running = self._tasks.get(task)
        if running is not None and running.since_s != now_s:
            running.since_s = now_s
            if running.node in self._index:
                running.marks = self._marks(self._index[running.node], now_s)

    def gone(self, task: model.TaskId, now_s: float) -> tuple[meter.Reading, meter.Reading] | None:
        """A task has ended.

        Returns:
            What was used on its node and its host while it ran, on average, itself included; None where that is not
            known: nor if a map there counted by a guess meanwhile.
        """
        running = self._tasks.pop(task, None)
        if running is None:
            return None
        self._now_s = now_s
        del self._by_class[running.task_class][task]
        place = self._index.get(running.node)
        if place is None:
            return None
        (node, host), ran_s = self._marks(place, now_s), now_s - running.since_s
        on = self._host_of[place]
        certain = not self._guesses[on] and self._guessed_until_s[on] <= running.since_s
        self._add(running, -1, now_s)
        self.ended_s[on] = now_s
        if ran_s <= 0 or not certain:
            return None
        return meter.mean(running.marks[0], node, ran_s), meter.mean(running.marks[1], host, ran_s)

    def _add(self, running: Running, step: int, now_s: float) -> None:
        place = self._index[running.node]
        self._change(place, running.demand, step, now_s)
        self.asked[place] += step * running.cpu_milli
        self.running[self._host_of[place]] += step
        if running.guessed and not running.idles:
            self._guess(place, step, now_s)

    def _guess(self, place: int, step: int, now_s: float) -> None:
        """One map more, or less, counts by a guess."""
        host = self._host_of[place]
        self._guesses[host] += step
        self._guessed_until_s[host] = now_s

    def _change(self, place: int, by: tuple[float, float, float], step: int, now_s: float) -> None:
        self._nodes[place].change(by, step, now_s)
        self._on_host[self._host_of[place]].change(by, step, now_s)
        self._changed.add(place)

    def _marks(self, place: int, now_s: float) -> tuple[meter.Reading, meter.Reading]:
        return self._nodes[place].reading(now_s), self._on_host[self._host_of[place]].reading(now_s)

    def rate(self, one: model.ClassId, demand: metrics.Demand, now_s: float) -> None:
        """The demand of a class is known better: what runs of it counts by it from now on."""
        for running in self._by_class.get(one, {}).values():
            if running.far:
                continue
            if not running.guessed and _close(running.demand, demand):
                return  # as all others of it
            place = self._index.get(running.node)
            if running.guessed and not running.idles and place is not None:
                self._guess(place, -1, now_s)
            running.guessed = False
            self._count(running, demand, now_s)
            if running.shown and place is not None:
                excess = self._excess[place]
                self._exceed(
                    place, metrics.Demand(*(max(e - d, 0.0) for e, d in zip(excess, demand, strict=True))), now_s
                )
                running.shown = False

    def _count(self, running: Running, demand: metrics.Demand, now_s: float) -> None:
        """A running task counts by another demand."""
        place = self._index.get(running.node)
        if place is not None:
            self._change(place, running.demand, -1, now_s)
            self._change(place, demand, +1, now_s)
        running.demand = demand

    def forget(self, one: model.ClassId) -> None:
        """The class is over."""
        if not self._by_class.get(one):
            self._by_class.pop(one, None)

    def host_of(self, node: model.NodeName) -> int | None:
        """The place of a node's host; None for a node that is not known."""
        place = self._index.get(node)
        return None if place is None else self._host_of[place]

    def around(
        self, used: tuple[meter.Reading, meter.Reading], own: metrics.Demand, node: model.NodeName
    ) -> list[float] | None:
        """The system's metrics while a task ran, itself left out.

        Args:
            used: On its node and its host, from `gone`.
            own: What it used itself.
            node: Where it ran.

        Returns:
            Length 8; None for a node that is not known.
        """
        place = self._index.get(node)
        if place is None:
            return None
        per_core = float(self.unit[0, place])
        here, all_ = _less(used[0], own), _less(used[1], own)
        beyond = float(self.beyond[self.hosts.spans[self._host_of[place]]].sum()) * per_core
        busy = min(all_.read + all_.write, 1.0)
        others = _less(all_, here)
        return [
            here.cpu * per_core,
            others.cpu * per_core,
            beyond,
            here.read,
            here.write,
            others.read,
            others.write,
            busy,
        ]

    # Instruments

    def measured(self, node: model.NodeName, usage: Mapping[str, float], now_s: float) -> None:
        """A node's instruments: what they show beyond what its tasks should use is there too."""
        place = self._index.get(node)
        if place is None:
            return
        if node in self._guessed:
            self._show(node, now_s)
        cpu, read, write = self._excess[place]
        here, cores, disk = self._nodes[place], usage.get("cpu_cores"), usage.get("disk_bytes_per_s")
        if cores is not None:
            cpu = max(0.0, cores - (here.cpu - cpu))
            self.instrumented[place] = True
        if disk is not None:
            share = disk / (self._config.disk_mb_per_s * 1e6)
            read = write = max(0.0, share - (here.read - read) - (here.write - write)) / 2  # not told apart
        self._exceed(place, metrics.Demand(cpu, read, write), now_s)
        self.beyond[place] = usage.get("system_cpu_cores", 0.0)

    def _show(self, node: model.NodeName, now_s: float) -> None:
        """What was left to the node's instruments is in what they show."""
        for running in self._guessed.pop(node):
            if running.guessed:
                self._count(running, metrics.IDLE, now_s)
                running.shown = True

    def _exceed(self, place: int, excess: metrics.Demand, now_s: float) -> None:
        before = self._excess[place]
        if excess != before:
            self._excess[place] = excess
            self._change(place, before, -1, now_s)
            self._change(place, excess, +1, now_s)


def _less(all_: meter.Reading, some: meter.Reading | metrics.Demand) -> meter.Reading:
    """What is left without some of it."""
    cpu, read, write = all_
    return meter.Reading(max(cpu - some.cpu, 0.0), max(read - some.read, 0.0), max(write - some.write, 0.0))


def _close(one: metrics.Demand, other: metrics.Demand) -> bool:
    return all(abs(a - b) <= _NEAR * max(a, b) + 1e-4 for a, b in zip(one, other, strict=True))


_NEAR = 0.05  # arbitrary: what runs is not counted anew for less
_NOTHING = metrics.Demand(0.0, 0.0, 0.0)
