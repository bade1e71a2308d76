"""The pending tasks of a class: which of them is closest to a node, and how close each node is to any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boathouse_policies.model import Distance

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from boathouse_policies import model
    from boathouse_policies.framework.layout import Layout
    from boathouse_policies.framework.topology import Place, Topology


class TaskPool:
    """Tasks of a class in their order, some of them waiting.

    Tasks are addressed by position. One that is out (placed, or backing off) keeps its position, so that it may come
    back to it.

    Args:
        tasks: The tasks.
        out: Those that do not wait now.

    Attributes:
        order: All tasks, in order.
        count: How many of them wait.
        changes: How often one came to wait, or ceased to.
        located: Whether any has input somewhere.
    """

    def __init__(self, tasks: Iterable[model.Task], out: Container[model.TaskId] = ()) -> None:
        self.order: list[model.Task] = sorted(tasks, key=lambda task: (task.expected, task.index, task.id))
        self._position = {task.id: i for i, task in enumerate(self.order)}
        self._waiting = bytearray(task.id not in out for task in self.order)
        self.count = sum(self._waiting)
        self.changes = 0
        self._index: tuple[Topology, dict[Place, list[int]]] | None = None
        self._heads: dict[Place, int] = {}
        self.located = any(task.locations for task in self.order)

    def __len__(self) -> int:
        return self.count

    def __contains__(self, task: model.TaskId) -> bool:
        position = self._position.get(task)
        return position is not None and bool(self._waiting[position])

    def knows(self, task: model.TaskId) -> bool:
        """Whether the task has a position, waiting or not."""
        return task in self._position

    def same(self, other: TaskPool) -> bool:
        """Whether the same tasks wait, and the same are out."""
        return self.order == other.order and self._waiting == other._waiting

    def queued(self) -> list[model.Task]:
        """The waiting tasks in order."""
        return [task for task, waits in zip(self.order, self._waiting, strict=True) if waits]

    def remove(self, task: model.TaskId) -> bool:
        """A task was placed, or backs off; False if it did not wait."""
        position = self._position.get(task)
        if position is None or not self._waiting[position]:
            return False
        self._waiting[position] = 0
        self.count -= 1
        self.changes += 1
        return True

    def put_back(self, task: model.TaskId) -> bool:
        """A task waits again; False if it waited, or is not known."""
        position = self._position.get(task)
        if position is None or self._waiting[position]:
            return False
        self._waiting[position] = 1
        self.count += 1
        self.changes += 1
        self._heads.clear()
        return True

    def replace(self, task: model.Task, *, waits: bool) -> bool | None:
        """Take in what is known of a task now; whether that changed anything, None if it cannot keep its position."""
        position = self._position.get(task.id)
        if position is None:
            return None
        known = self.order[position]
        if (known.expected, known.index, known.locations) != (task.expected, task.index, task.locations):
            return None
        self.order[position] = task
        moved = self.put_back(task.id) if waits else self.remove(task.id)
        return moved or known != task

    def first(self, start: int, taken: set[int]) -> int:
        """Position of the first waiting task from `start` that is not taken; -1 if there is none."""
        queued = self._waiting
        i = queued.find(1, start)
        while i in taken:
            i = queued.find(1, i + 1)
        return i

    def near(self, place: Place, topology: Topology, taken: set[int]) -> int | None:
        """Position of the first waiting task at a place that is not taken."""
        positions = self._places(topology).get(place)
        if positions is None:
            return None
        head = self._heads.get(place, 0)
        while head < len(positions) and not self._waiting[positions[head]]:
            head += 1
        self._heads[place] = head
        for i in range(head, len(positions)):
            position = positions[i]
            if self._waiting[position] and position not in taken:
                return position
        return None

    def tasks_at(self, place: Place, topology: Topology, taken: set[int], most: int) -> list[model.Task]:
        """The first waiting tasks at a place that are not taken, at most so many."""
        found: list[model.Task] = []
        for position in self._places(topology).get(place, ())[self._heads.get(place, 0) :]:
            if len(found) >= most:
                break
            if self._waiting[position] and position not in taken:
                found.append(self.order[position])
        return found

    def _places(self, topology: Topology) -> dict[Place, list[int]]:
        """The inverted index: where there is input, and of which tasks."""
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
    distance: Distance


class Picker:
    """Takes tasks from a pool without changing it: what a cycle has taken so far."""

    __slots__ = ("_pool", "_start", "_taken", "_topology")

    def __init__(self, pool: TaskPool, topology: Topology) -> None:
        self._pool = pool
        self._topology = topology
        self._taken: set[int] = set()
        self._start = 0

    @property
    def left(self) -> int:
        """Waiting tasks that are not taken."""
        return self._pool.count - len(self._taken)

    def closest(self, node: model.Node) -> Pick | None:
        """The waiting task whose input is closest to the node, the first of equals; None if none is left."""
        if self._pool.located:
            for place in self._topology.places(node.name):
                position = self._pool.near(place, self._topology, self._taken)
                if position is not None:
                    return Pick(self._pool.order[position], position, place[0])
        position = self._pool.first(self._start, self._taken)
        if position < 0:
            return None
        self._start = position
        return Pick(self._pool.order[position], position, _NO_INPUT)

    def local(self, node: model.NodeName, most: int = 1) -> Sequence[model.Task]:
        """The first waiting tasks whose input is on the node itself, at most so many."""
        if not self._pool.located:
            return ()
        return self._pool.tasks_at((Distance.NODE, node), self._topology, self._taken, most)

    def taken(self) -> Sequence[model.Task]:
        """What was placed."""
        return [self._pool.order[position] for position in self._taken]

    def take(self, pick: Pick) -> None:
        """The task is placed."""
        self._taken.add(pick.position)

    def give_back(self, pick: Pick) -> None:
        """The task is not placed after all."""
        self._taken.discard(pick.position)
        self._start = 0


class Closeness:
    """The nearest waiting input of one class, for each node of a layout.

    Args:
        pool: The class' tasks: those that wait when it is made count.
        layout: The nodes.
        by_host: Whether virtual machines on the host of the input are closer than others of its rack.

    Attributes:
        levels: A `model.Distance` for each node, shape [N].
    """

    def __init__(self, pool: TaskPool, layout: Layout, *, by_host: bool = True) -> None:
        self._pool, self._layout, self._left, self._changes = pool, layout, pool.count, pool.changes
        servers, racks = layout.servers if by_host else layout.apart, layout.racks
        self._index, self._servers, self._racks = layout.index, servers, racks
        self._server_of, self._rack_of = servers.places, racks.places
        self._nodes, self._by_server, self._by_rack = [0] * len(layout), [0] * len(servers), [0] * len(racks)
        for task in pool.queued() if pool.located else ():
            self._count(task, +1)
        by = zip(self._nodes, self._server_of, self._rack_of, strict=True)
        self._listed = [self._level(node, server, rack) for node, server, rack in by]
        self.levels = np.array(self._listed, np.int64)

    def _count(self, task: model.Task, step: int) -> tuple[list[int], list[int], list[int]]:
        """One task more or less has its input there: which nodes, hosts and racks hold that of no task any more."""
        index, server_of, rack_of = self._index, self._server_of, self._rack_of
        nodes = {index[name] for name in task.locations if name in index}
        servers, racks = {server_of[node] for node in nodes}, {rack_of[node] for node in nodes}
        return _add(self._nodes, nodes, step), _add(self._by_server, servers, step), _add(self._by_rack, racks, step)

    def _level(self, tasks: int, server: int, rack: int) -> int:
        if tasks:
            return _NODE
        if self._by_server[server]:
            return _SERVER
        return _RACK if self._by_rack[rack] else _ANYWHERE

    def is_of(self, pool: TaskPool, layout: Layout) -> bool:
        """Whether it is right for what waits now: what was taken was placed, and nothing else has changed."""
        as_it_was = self._changes == pool.changes and self._left == pool.count
        return as_it_was and self._pool is pool and self._layout is layout

    def take(self, task: model.Task) -> list[int]:
        """A task is placed; the nodes for which the nearest input is further away now."""
        self._left -= 1
        self._changes += 1
        nodes, servers, racks = self._count(task, -1)
        further: list[int] = []
        for node in nodes:
            if self._server_of[node] not in servers:
                self._move(node, _SERVER, further)
        for server in servers:
            for node in self._servers.members[server].tolist():
                self._move(node, _RACK if self._by_rack[self._rack_of[node]] else _ANYWHERE, further)
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
    """Add to some counts; where they are 0 now."""
    for place in places:
        counts[place] += step
    return [place for place in places if not counts[place]]


_NODE, _SERVER, _RACK, _ANYWHERE = map(int, Distance)  # plain numbers: an enum's are slow to get at
_NO_INPUT = Distance.ANYWHERE
