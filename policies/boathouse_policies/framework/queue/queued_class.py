"""A class in the scheduling queue: its pending tasks, by how close they are to nodes, and what a sizer says of it."""

import dataclasses
import itertools
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, Self

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.affinity import Resident, Rules, Tallies, rules_of
from boathouse_policies.framework.layout import Layout, Place, Topology
from boathouse_policies.framework.shapes import Shape, Shapes, Sized


class TaskPool:
    """Tasks of a class in their order, by position; one that is out (placed, or backing off) keeps its own."""

    def __init__(self, tasks: Iterable[model.Task], out: Container[model.TaskId] = ()) -> None:
        self.order: list[model.Task] = sorted(tasks, key=lambda task: (task.expected, task.index, task.id))
        self._position = {task.id: i for i, task in enumerate(self.order)}
        self._pending = bytearray(task.id not in out for task in self.order)
        self.count = sum(self._pending)  # how many of them are pending
        self.changes = 0  # how often a task became pending, or ceased to be
        self._index: tuple[Topology, dict[Place, list[int]]] | None = None
        self._heads: dict[Place, int] = {}
        self.located = any(task.locations for task in self.order)  # whether any has input somewhere

    def knows(self, task: model.TaskId) -> bool:
        """Return whether the task has a position, pending or not."""
        return task in self._position

    def same(self, other: Self) -> bool:
        """Return whether both have the same tasks, and the same of them are pending."""
        return self.order == other.order and self._pending == other._pending

    def pending(self) -> list[model.Task]:
        """Return the pending tasks in order."""
        return list(itertools.compress(self.order, self._pending))

    def set_pending(self, task: model.TaskId, *, pending: bool) -> bool:
        """Make a task pending, or not; returns False if it was so before, or is not known."""
        if (position := self._position.get(task)) is None or self._pending[position] == pending:
            return False
        self._pending[position] = pending
        self.count += 1 if pending else -1
        self.changes += 1
        if pending:
            self._heads.clear()
        return True

    def replace(self, task: model.Task, *, pending: bool) -> bool | None:
        """Replace a task; returns whether that changed anything, None if it cannot keep its position."""
        if (position := self._position.get(task.id)) is None:
            return None
        known = self.order[position]
        if (known.expected, known.index, known.locations) != (task.expected, task.index, task.locations):
            return None
        self.order[position] = task
        return self.set_pending(task.id, pending=pending) or known != task

    def first(self, start: int, taken: Container[int]) -> int:
        """Return the position of the first pending task from `start` that is not taken; -1 if there is none."""
        position = self._pending.find(1, start)
        while position in taken:
            position = self._pending.find(1, position + 1)
        return position

    def positions_at(self, place: Place, topology: Topology, taken: Container[int]) -> Iterator[int]:
        """Yield the positions of the pending tasks at a place that are not taken."""
        positions, head = self._places(topology).get(place, ()), self._heads.get(place, 0)
        while head < len(positions) and not self._pending[positions[head]]:
            head += 1
        self._heads[place] = head
        for position in itertools.islice(positions, head, None):
            if self._pending[position] and position not in taken:
                yield position

    def _places(self, topology: Topology) -> dict[Place, list[int]]:
        """Return the inverted index: the places of input, and the tasks with input there."""
        if self._index is not None and (self._index[0] is topology or self._index[0] == topology):
            return self._index[1]
        places: dict[Place, list[int]] = {}
        for position, task in enumerate(self.order):
            for place in dict.fromkeys(p for name in task.locations for p in topology.places(name)):
                places.setdefault(place, []).append(position)
        self._index = (topology, places)
        self._heads.clear()
        return places


class Pick(NamedTuple):
    """A task and how far its input is."""

    task: model.Task
    position: int
    distance: model.Distance


class Picker:
    """Takes tasks from a pool without changing it: the tasks that a cycle has placed so far."""

    __slots__ = ("_pool", "_start", "_taken", "_topology")

    def __init__(self, pool: TaskPool, topology: Topology) -> None:
        self._pool, self._topology = pool, topology
        self._taken: set[int] = set()
        self._start = 0

    def closest(self, node: model.Node) -> Pick | None:
        """Return the pending task whose input is closest to the node, the first of equals; None if none is left."""
        for place in self._topology.places(node.name) if self._pool.located else ():
            for position in self._pool.positions_at(place, self._topology, self._taken):
                return Pick(self._pool.order[position], position, place[0])
        if (position := self._pool.first(self._start, self._taken)) < 0:
            return None
        self._start = position
        return Pick(self._pool.order[position], position, _NO_INPUT)

    def local(self, node: model.NodeName, most: int = 1) -> Sequence[model.Task]:
        """Return the first pending tasks whose input is on the node itself, at most so many."""
        if not self._pool.located:
            return ()
        positions = self._pool.positions_at((model.Distance.NODE, node), self._topology, self._taken)
        return [self._pool.order[position] for position in itertools.islice(positions, most)]

    def taken(self) -> Sequence[model.Task]:
        """Return the tasks that are taken."""
        return [self._pool.order[position] for position in self._taken]

    def take(self, pick: Pick) -> None:
        """Take a task."""
        self._taken.add(pick.position)

    def give_back(self, pick: Pick) -> None:
        """Give back a task that is not placed after all."""
        self._taken.discard(pick.position)
        self._start = 0


class Closeness:
    """The nearest input of the tasks of a class that are pending now, for each node of a layout."""

    def __init__(self, pool: TaskPool, layout: Layout, *, by_host: bool = True) -> None:
        self._pool, self._layout, self._left, self._changes = pool, layout, pool.count, pool.changes
        self._servers, self._racks = layout.servers if by_host else layout.apart, layout.racks
        self._at_node, self._at_server, self._at_rack = (
            [0] * len(groups) for groups in (layout, self._servers, self._racks)
        )
        for task in pool.pending() if pool.located else ():
            self._count(task, +1)
        at_node, at_server, at_rack = (np.array(at, np.bool_) for at in (self._at_node, self._at_server, self._at_rack))
        near = [at_node, at_server[self._servers.of], at_rack[self._racks.of]]
        # A `model.Distance` for each node, shape [N]; without `by_host`, never that of a host.
        self.levels = np.select(near, [_NODE, _SERVER, _RACK], _ANYWHERE)
        self._listed: list[int] = self.levels.tolist()

    def _count(self, task: model.Task, step: int) -> tuple[list[int], list[int], list[int]]:
        """Add a task, or take it away; returns the nodes, hosts and racks that hold no pending task's input now."""
        index = self._layout.index
        nodes = {index[name] for name in task.locations if name in index}
        servers = {self._servers.places[node] for node in nodes}
        racks = {self._racks.places[node] for node in nodes}
        return _add(self._at_node, nodes, step), _add(self._at_server, servers, step), _add(self._at_rack, racks, step)

    def is_of(self, pool: TaskPool, layout: Layout) -> bool:
        """Return whether it is right for a pool as it is: what was taken was placed, and nothing else has changed."""
        return (self._pool, self._layout, self._left, self._changes) == (pool, layout, pool.count, pool.changes)

    def take(self, task: model.Task) -> list[int]:
        """Take a placed task away; returns the nodes for which the nearest input is further away now."""
        self._left -= 1
        self._changes += 1
        nodes, servers, racks = self._count(task, -1)
        further: list[int] = []
        for node in nodes:
            if self._servers.places[node] not in servers:
                self._move(node, _SERVER, further)
        for server in servers:
            for node in self._servers.members[server].tolist():
                self._move(node, _RACK if self._at_rack[self._racks.places[node]] else _ANYWHERE, further)
        for rack in racks:
            for node in self._racks.members[rack].tolist():
                if self._listed[node] == _RACK:
                    self._move(node, _ANYWHERE, further)
        return further

    def _move(self, node: int, level: int, further: list[int]) -> None:
        if self._listed[node] != level:
            self._listed[node] = self.levels[node] = level
            further.append(node)


def _add(counts: list[int], places: Iterable[int], step: int) -> list[int]:
    """Add to the counts of some places; returns the places where they are 0 now."""
    for place in places:
        counts[place] += step
    return [place for place in places if not counts[place]]


_NODE, _SERVER, _RACK, _ANYWHERE = map(int, model.Distance)  # plain numbers: an enum's are slow to get at
_NO_INPUT = model.Distance.ANYWHERE


class LeastSizes(Protocol):
    """Says how small tasks may be made: a sizer."""

    def least(self, task_class: model.TaskClass) -> model.Resources:
        """Return the smallest size that may be decided."""


@dataclasses.dataclass(frozen=True, slots=True)
class Sizing:
    """What a sizer says of a class whatever the node."""

    sizer: LeastSizes
    shape: Shape
    ideal: Sized
    is_rigid: bool


@dataclasses.dataclass(slots=True, eq=False)
class QueuedClass:
    """A class in the scheduling queue: read by the cycle, changed by the queue alone."""

    job: model.Job
    task_class: model.TaskClass
    pool: TaskPool
    rank: tuple[float, model.JobId, int]  # sorting key: order of submission of the job, then of the class within it
    shapes: Shapes = dataclasses.field(default_factory=Shapes)
    row: int = -1
    verdict: model.Verdict | None = None
    least: model.IntVector | None = None  # the smallest size that was refused then
    _sizing: Sizing | None = None
    _rules: Rules | None = None
    _closeness: Closeness | None = None

    def placement(
        self, pick: Pick, node: model.NodeName, resources: model.Resources, figures: tuple[tuple[str, float], ...] = ()
    ) -> model.Placement:
        """Return the decision to start a task of it."""
        kind = model.Create if pick.task.pod_uid is None else model.Bind
        return kind(
            task=pick.task,
            task_class=self.task_class,
            job=self.job,
            node=node,
            resources=resources,
            distance=pick.distance,
            figures=figures,
        )

    @property
    def is_plain(self) -> bool:
        """Whether room alone decides which of the nodes that it may use fit: no gang, host ports or features."""
        own, constraints = self.task_class, self.task_class.constraints
        return not (own.gang_min or own.is_short or constraints.host_ports or constraints.features)

    def rules(self, tallies: Tallies) -> Rules:
        """Return what decides where it may go beside other pods: a memo."""
        namespace = self.job.namespace
        if (known := self._rules) is None or known.version != tallies.version(namespace):
            own = self.task_class
            pod = Resident(namespace=namespace, labels=own.labels, anti_affinity=own.constraints.pod_anti_affinity)
            known = self._rules = rules_of(pod, own.constraints, tallies)
        return known

    def closeness(self, layout: Layout, *, sees_hosts: bool) -> Closeness:
        """Return how close the nodes are to pending input: a memo, as long as it is right."""
        if (known := self._closeness) is None or not known.is_of(self.pool, layout):
            known = self._closeness = Closeness(self.pool, layout, by_host=sees_hosts)
        return known

    def sizing(self, sizer: LeastSizes, axis: model.Axis) -> Sizing:
        """Return the class' size and the least that a sizer may decide: a memo, for every cycle needs it."""
        if (known := self._sizing) is None or known.sizer is not sizer or len(known.shape.sizes) != axis.width:
            ideal = self.task_class.resources
            least = ideal if self.task_class.is_short else sizer.least(self.task_class)
            shape = self.shapes.of(axis.vector(least), self.task_class.constraints)
            known = self._sizing = Sizing(sizer, shape, Sized(ideal), least is ideal)
        return known
