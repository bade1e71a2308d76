"""How close each node is to the nearest waiting input of a class: one column, kept as its tasks are taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies.model import Distance

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from boathouse_policies import model
    from boathouse_policies.framework.layout import Layout
    from boathouse_policies.framework.pool import TaskPool
    from boathouse_policies.framework.want import Want


class Groups:
    """Nodes that share something, as columns: a node that names nothing is a group of its own.

    Args:
        keys: What each node names, None for nothing, length N.
        names: The nodes' names, length N.

    Attributes:
        of: The group of each node, shape [N].
        places: The same as plain numbers.
        names: Of each group: what its nodes name, or the node's own name.
        members: The places of each group's nodes, ascending.
    """

    def __init__(self, keys: Iterable[str | None], names: Iterable[str]) -> None:
        found: dict[tuple[bool, str], int] = {}
        own = [(key is not None, name if key is None else key) for key, name in zip(keys, names, strict=True)]
        self.of = np.array([found.setdefault(key, len(found)) for key in own], np.intp)
        self.names = tuple(name for _, name in found)
        self.places: list[int] = self.of.tolist()
        order = np.argsort(self.of, kind="stable")
        sizes = np.bincount(self.of, minlength=len(found))
        self.members: list[npt.NDArray[np.intp]] = np.split(order, np.cumsum(sizes)[:-1]) if found else []

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def servers(cls, layout: Layout) -> Groups:
        """Nodes on one physical host."""
        return cls((node.server for node in layout.nodes), layout.names)

    @classmethod
    def racks(cls, layout: Layout) -> Groups:
        """Nodes in one rack."""
        return cls((node.rack for node in layout.nodes), layout.names)


class Closeness:
    """The nearest waiting input of one class, for each node of a layout.

    Args:
        pool: The class' tasks: those that wait when it is made count.
        layout: The nodes.
        servers: Those on one host.
        racks: Those in one rack.

    Attributes:
        pool: As given.
        left: Tasks that wait and were not taken.
        levels: A `model.Distance` for each node, shape [N].
    """

    def __init__(self, pool: TaskPool, layout: Layout, servers: Groups, racks: Groups) -> None:
        self.pool = pool
        self.left = pool.count
        self._index, self._servers, self._racks = layout.index, servers, racks
        self._server_of, self._rack_of = servers.places, racks.places
        self._nodes, self._by_server, self._by_rack = [0] * len(layout), [0] * len(servers), [0] * len(racks)
        for task in pool.waiting() if pool.located else ():
            self._count(task, +1)
        by = zip(self._nodes, self._server_of, self._rack_of, strict=True)
        self._listed = [self._level(node, server, rack) for node, server, rack in by]
        self.levels = np.array(self._listed, np.int64)

    def _places(self, task: model.Task) -> tuple[set[int], set[int], set[int]]:
        """The nodes, hosts and racks that hold a task's input."""
        index = self._index
        nodes = {index[name] for name in task.locations if name in index}
        return nodes, {self._server_of[one] for one in nodes}, {self._rack_of[one] for one in nodes}

    def _count(self, task: model.Task, step: int) -> tuple[set[int], set[int], set[int]]:
        """Which of its nodes, hosts and racks hold the input of no task any more."""
        empty: tuple[set[int], set[int], set[int]] = (set(), set(), set())
        counts = (self._nodes, self._by_server, self._by_rack)
        for places, count, none in zip(self._places(task), counts, empty, strict=True):
            for place in places:
                count[place] += step
                if not count[place]:
                    none.add(place)
        return empty

    def _level(self, tasks: int, server: int, rack: int) -> int:
        if tasks:
            return _NODE
        if self._by_server[server]:
            return _SERVER
        return _RACK if self._by_rack[rack] else _ANYWHERE

    def take(self, task: model.Task) -> list[int]:
        """A task is placed; the nodes for which the nearest input is further away now, ascending."""
        self.left -= 1
        nodes, servers, racks = self._count(task, -1)
        for server in servers:
            nodes.update(self._servers.members[server].tolist())
        for rack in racks:
            nodes.update(self._racks.members[rack].tolist())
        further = []
        for node in sorted(nodes):
            level = self._level(self._nodes[node], self._server_of[node], self._rack_of[node])
            if level != self._listed[node]:
                self._listed[node] = level
                further.append(node)
        if further:
            self.levels[further] = [self._listed[node] for node in further]
        return further


_NODE, _SERVER, _RACK, _ANYWHERE = map(int, Distance)  # plain numbers: an enum's are slow to get at


class Distances:
    """The closeness of classes that cycles ask for, kept from one to the next as long as it is right.

    It must be told of each task that is placed, or it starts anew with what waits.
    """

    def __init__(self) -> None:
        self._layout: Layout | None = None
        self._groups: tuple[Groups, Groups] | None = None
        self._known: dict[model.ClassId, Closeness] = {}

    def of(self, want: Want) -> Closeness:
        """The closeness of a class, right for what its cycle has taken so far."""
        layout, pool, class_id = want.scratch.view.layout, want.waiting.pool, want.task_class.id
        if layout is not self._layout or self._groups is None:
            self._layout, self._known = layout, {}
            self._groups = Groups.servers(layout), Groups.racks(layout)
        known = self._known.get(class_id)
        left = want.left
        if known is None or known.pool is not pool or (known.left != left and left == pool.count):
            known = self._known[class_id] = Closeness(pool, layout, *self._groups)
        return known

    def take(self, want: Want, task: model.Task) -> None:
        """A task is about to be placed: nodes that are further away for it are marked as changed in the cycle."""
        further, scratch = self.of(want).take(task), want.scratch
        if further:
            places = np.array(further, np.intp)
            has_room = np.logical_and.reduce(scratch.free[want.rows][:, places] >= want.need)
            for node in places[has_room].tolist():  # who has no room does not come to have any in this cycle
                scratch.touch(node)

    def forget(self, class_id: model.ClassId) -> None:
        """The class is over."""
        self._known.pop(class_id, None)
