"""System monitoring (4.3): what is used on each node and host, kept up with events.

Usage is the sum of the demands of what runs, so a task counts from the moment it is placed; where a node's instruments
show more than that sum, the excess is added, as of their last report. A map of which nothing was measured yet counts by
its first, high demand: instruments show what tasks get, not what they would use. Anything else does so only until its
node's instruments report, for a reducer is idle while it waits for maps: from then on it is in what they show. Without
instruments, and once they report nothing any more, CPU that others' pods request counts as used (`iasm.Slowdowns`).
Where instruments do not count bytes, the share of time in which tasks waited for the disk (`io_pressure`) is the least
that the disk was busy.
"""

import collections
import dataclasses
import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import Groups, Layout
from boathouse_policies.ila.profiling import IDLE, Demand

Total: TypeAlias = tuple[float, float, float]
"""CPU seconds, and seconds of the host's disks reading and writing, that were used by some time."""


@dataclasses.dataclass(slots=True, eq=False)
class Meter:
    """Adds up what is used over time, in plain numbers, for it changes with every event."""

    since_s: float  # up to when the totals are added up
    cpu: float = 0.0  # CPUs in use
    read: float = 0.0  # share of the host's disks in use, reading
    write: float = 0.0  # the same, writing
    cpu_s: float = 0.0  # CPU seconds that were used
    read_s: float = 0.0  # seconds of the host's disks that were used, reading
    write_s: float = 0.0  # the same, writing

    def change(self, by: Demand, step: int, now_s: float) -> None:
        """Use so much more (or less) from now on."""
        self.total(now_s)
        cpu, read, write = by
        self.cpu += step * cpu
        self.read += step * read
        self.write += step * write

    def total(self, now_s: float) -> Total:
        """Return the total use until now."""
        passed_s = now_s - self.since_s
        if passed_s:
            self.cpu_s += passed_s * self.cpu
            self.read_s += passed_s * self.read
            self.write_s += passed_s * self.write
            self.since_s = now_s
        return self.cpu_s, self.read_s, self.write_s


@dataclasses.dataclass(slots=True, eq=False)
class Running:
    """A task that was placed."""

    task_class: model.ClassId
    node: model.NodeName
    resources: model.Resources  # what it was given
    demand: Demand  # by what it is counted
    is_remote: bool  # whether its input is on another host
    is_guess: bool  # whether that is its class' first, high demand, or is left to its node's instruments
    idles: bool  # whether it may be idle for long: no map
    since_s: float  # when it was placed; later, when it started
    place: int | None = None  # the place of its node; None for a node that is not known
    totals: tuple[Total, Total] = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))  # what its node and its host had used by then
    is_shown: bool = False  # whether it is in what the instruments show beyond the demands


class Monitor:
    """Columns over the nodes of a layout, and over their hosts. A host's disks carry so many MB/s."""

    def __init__(self, disk_mb_per_s: float) -> None:
        self._disk_bytes_per_s = disk_mb_per_s * 1e6
        self._tasks: dict[model.TaskId, Running] = {}
        self._by_class: dict[model.ClassId, dict[model.TaskId, Running]] = collections.defaultdict(dict)
        self._left_to_instruments: dict[model.NodeName, dict[model.TaskId, Running]] = collections.defaultdict(dict)
        self._now_s = 0.0
        self._index: Mapping[model.NodeName, int] = {}
        self._reporting: set[model.NodeName] = set()
        self._resize(0, Groups((), ()))

    def _resize(self, nodes: int, hosts: Groups) -> None:
        self.hosts = hosts  # which node is on which host
        self.most_cpus = math.inf  # of the largest host
        self.unit = np.ones((3, nodes))  # what makes shares of a host of CPUs and of shares of its disks, shape [3, N]
        self._meters, self._host_meters = ([Meter(self._now_s) for _ in range(n)] for n in (nodes, len(hosts)))
        self._use = np.zeros((3, nodes))
        self._changed: set[int] = set()
        self._excess = [IDLE] * nodes
        self._guesses = [0] * len(hosts)
        self._guessed_until_s = [-math.inf] * len(hosts)
        self.beyond = np.zeros(nodes)  # CPUs of a node's system beside its pods, where instruments tell, shape [N]
        self.instrumented = np.zeros(nodes, np.bool_)  # nodes whose instruments have reported, shape [N]
        self.requested = np.zeros(nodes, np.int64)  # millicores that what runs requests, shape [N]
        self.running = np.zeros(len(hosts), np.int64)  # tasks on each host, shape [H]
        self.ended_s = np.full(len(hosts), -math.inf)  # when a task last ended on each host, shape [H]

    def adopt(self, layout: Layout) -> None:
        """Set the columns to these nodes: what runs is summed again where they changed."""
        if layout.index is self._index:
            return
        index, excess, beyond = self._index, self._excess, self.beyond
        ended_s = dict(zip(self.hosts.names, self.ended_s.tolist(), strict=True))
        self._index = layout.index
        self._resize(len(layout), layout.servers)
        cores = np.bincount(self.hosts.of, layout.allocatable[model.CPU], len(self.hosts)) / 1000
        self.most_cpus = float(cores.max(initial=0.0)) or math.inf
        self.unit[0] = 1.0 / np.maximum(cores, 1e-3)[self.hosts.of]
        self.ended_s[:] = [ended_s.get(name, -math.inf) for name in self.hosts.names]
        self._reporting &= layout.index.keys()
        self.instrumented[:] = [name in self._reporting for name in layout.names]
        for place, name in enumerate(layout.names):
            before = index.get(name)
            if before is not None:
                self.beyond[place] = beyond[before]
                self._exceed(place, excess[before], self._now_s)
        for task in self._tasks.values():
            task.place = self._index.get(task.node)
            if task.place is not None:
                self._count(task, task.place, +1, self._now_s)
                self._begin(task, task.place, self._now_s)

    def use(self) -> model.FloatVector:
        """Return the use on each node: CPUs, and reads and writes as shares of its host's disks, shape [3, N]."""
        if self._changed:
            places = list(self._changed)
            meters = [self._meters[place] for place in places]
            self._use[:, places] = np.array([(meter.cpu, meter.read, meter.write) for meter in meters]).T
            self._changed.clear()
        return self._use

    def placed(self, task_id: model.TaskId, task: Running) -> None:
        """Count a task in flight to a node."""
        self._now_s = now_s = task.since_s
        if task_id in self._tasks:
            self.gone(task_id, now_s)
        self._tasks[task_id] = self._by_class[task.task_class][task_id] = task
        task.place = self._index.get(task.node)
        if task.place is not None:
            self._count(task, task.place, +1, now_s)
            self._begin(task, task.place, now_s)
            if task.is_guess and task.idles:
                self._left_to_instruments[task.node][task_id] = task

    def given(self, task_id: model.TaskId) -> model.Resources | None:
        """Return what a task was given; None where it is not known."""
        task = self._tasks.get(task_id)
        return None if task is None else task.resources

    def started(self, task_id: model.TaskId, now_s: float) -> None:
        """Record that its container runs: what its neighbours do counts from now on."""
        task = self._tasks.get(task_id)
        if task is not None and task.since_s != now_s and task.place is not None:
            self._begin(task, task.place, now_s)

    def gone(self, task_id: model.TaskId, now_s: float) -> tuple[int, Demand, Demand] | None:
        """Remove a task that ended; return its node's place, and the mean use of node and host, its own included.

        None where that is not known: nor if a map there counted by a guess meanwhile.
        """
        task = self._tasks.pop(task_id, None)
        if task is None:
            return None
        self._now_s = now_s
        del self._by_class[task.task_class][task_id]
        if not self._by_class[task.task_class]:
            del self._by_class[task.task_class]
        if task.idles and task.node in self._left_to_instruments:
            idle = self._left_to_instruments[task.node]
            idle.pop(task_id, None)
            if not idle:
                del self._left_to_instruments[task.node]
        if task.place is None:
            return None
        host, ran_s = self.hosts.places[task.place], now_s - task.since_s
        is_certain = not self._guesses[host] and self._guessed_until_s[host] <= task.since_s
        (node_before, host_before), (node_now, host_now) = task.totals, self._totals(task.place, now_s)
        self._count(task, task.place, -1, now_s)
        self.ended_s[host] = now_s
        if ran_s <= 0 or not is_certain:
            return None
        return task.place, _mean(node_before, node_now, ran_s), _mean(host_before, host_now, ran_s)

    def _begin(self, task: Running, place: int, now_s: float) -> None:
        task.since_s, task.totals = now_s, self._totals(place, now_s)

    def _totals(self, place: int, now_s: float) -> tuple[Total, Total]:
        return self._meters[place].total(now_s), self._host_meters[self.hosts.places[place]].total(now_s)

    def _count(self, task: Running, place: int, step: int, now_s: float) -> None:
        self._change(place, task.demand, step, now_s)
        self.requested[place] += step * task.resources.cpu_milli
        self.running[self.hosts.places[place]] += step
        if task.is_guess and not task.idles:
            self._guess(place, step, now_s)

    def _guess(self, place: int, step: int, now_s: float) -> None:
        host = self.hosts.places[place]
        self._guesses[host] += step
        self._guessed_until_s[host] = now_s

    def _change(self, place: int, by: Demand, step: int, now_s: float) -> None:
        self._meters[place].change(by, step, now_s)
        self._host_meters[self.hosts.places[place]].change(by, step, now_s)
        self._changed.add(place)

    def rate(self, task_class: model.ClassId, demand: Demand, now_s: float) -> None:
        """Set a class' demand; its running tasks count by it from now on."""
        for task in self._by_class.get(task_class, _NONE).values():
            if task.is_remote:
                continue
            pairs = zip(task.demand, demand, strict=True)
            if not task.is_guess and all(abs(a - b) <= _CLOSE * max(a, b) + 1e-4 for a, b in pairs):
                return  # as all others of it
            if task.is_guess and not task.idles and task.place is not None:
                self._guess(task.place, -1, now_s)
            task.is_guess = False
            self._recount(task, demand, now_s)
            if task.is_shown and task.place is not None:
                self._exceed(task.place, _less(self._excess[task.place], demand), now_s)
                task.is_shown = False

    def _recount(self, task: Running, demand: Demand, now_s: float) -> None:
        if task.place is not None:
            self._change(task.place, task.demand, -1, now_s)
            self._change(task.place, demand, +1, now_s)
        task.demand = demand

    def around(self, place: int, node: Demand, host: Demand, own: Demand) -> list[float]:
        """Return the system's metrics, length 8, while a task ran, without its own use, from what `gone` returned."""
        per_core = float(self.unit[0, place])
        here, host = _less(node, own), _less(host, own)
        neighbours = _less(host, here)
        beyond = float(self.beyond[self.hosts.spans[self.hosts.places[place]]].sum()) * per_core
        busy = min(host.read + host.write, 1.0)
        cpus = [here.cpu * per_core, neighbours.cpu * per_core, beyond]
        return [*cpus, here.read, here.write, neighbours.read, neighbours.write, busy]

    # Instruments

    def measured(self, node: model.NodeName, usage: Mapping[str, float], now_s: float) -> None:
        """Record a node's measurements: use beyond what its tasks should use is counted too."""
        cores, busy, disk = usage.get("cpu_cores"), usage.get("io_pressure"), usage.get("disk_bytes_per_s")
        if disk is not None:
            busy = disk / self._disk_bytes_per_s
        if cores is not None:
            self._reporting.add(node)  # a node may report before the first cycle that knows it
        elif not usage:
            self._reporting.discard(node)
        place = self._index.get(node)
        if place is None:
            return
        if not usage:
            self._unmeasured(node, place, now_s)
            return
        if cores is not None:
            self._show_idle(node, now_s)
            self.instrumented[place] = True
            self.beyond[place] = usage.get("system_cpu_cores", 0.0)
        cpu, read, write = self._excess[place]
        meter = self._meters[place]
        if cores is not None:
            cpu = max(0.0, cores - (meter.cpu - cpu))
        if busy is not None:
            read = write = max(0.0, busy - (meter.read - read) - (meter.write - write)) / 2  # not told apart
        self._exceed(place, Demand(cpu, read, write), now_s)

    def _show_idle(self, node: model.NodeName, now_s: float) -> None:
        for task in self._left_to_instruments.get(node, _NONE).values():
            if task.is_guess and not task.is_shown:  # what it does is in what was measured
                self._recount(task, IDLE, now_s)
                task.is_shown = True

    def _unmeasured(self, node: model.NodeName, place: int, now_s: float) -> None:
        """Mark a node whose instruments report nothing any more: only its tasks' requests are known."""
        self.instrumented[place] = False
        self.beyond[place] = 0.0
        self._exceed(place, IDLE, now_s)
        for task in self._left_to_instruments.get(node, _NONE).values():
            if task.is_shown:
                self._recount(task, Demand(task.resources.cpu_milli / 1000, 0.0, 0.0), now_s)
                task.is_shown = False

    def _exceed(self, place: int, excess: Demand, now_s: float) -> None:
        before = self._excess[place]
        if excess != before:
            self._excess[place] = excess
            self._change(place, before, -1, now_s)
            self._change(place, excess, +1, now_s)


def _mean(before: Total, after: Total, seconds: float) -> Demand:
    cpu, read, write = before
    return Demand((after[0] - cpu) / seconds, (after[1] - read) / seconds, (after[2] - write) / seconds)


def _less(whole: Demand, part: Demand) -> Demand:
    return Demand(max(whole.cpu - part.cpu, 0.0), max(whole.read - part.read, 0.0), max(whole.write - part.write, 0.0))


_CLOSE = 0.05  # arbitrary: what runs is not counted anew for less
_NONE: dict[model.TaskId, Running] = {}
