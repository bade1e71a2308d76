"""How close each node is to the nearest waiting input of a class: one column, kept as its tasks are taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies.model import Distance

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boathouse_policies import model
    from boathouse_policies.framework.layout import Layout
    from boathouse_policies.framework.task_pool import TaskPool


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
