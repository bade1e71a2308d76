"""The waiting tasks of one class, and which of them is closest to a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from boathouse_policies.model import Distance

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from boathouse_policies import model
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
        return Pick(self._pool.order[position], position, _ANYWHERE)

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


_ANYWHERE = Distance.ANYWHERE  # to look into an enum each time is slow
