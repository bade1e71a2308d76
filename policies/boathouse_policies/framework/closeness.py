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
        names: Of each group: what its nodes name, or the node's own name.
        members: The places of each group's nodes, ascending.
    """

    def __init__(self, keys: Iterable[str | None], names: Iterable[str]) -> None:
        found: dict[tuple[bool, str], int] = {}
        own = [(key is not None, name if key is None else key) for key, name in zip(keys, names, strict=True)]
        self.of = np.array([found.setdefault(key, len(found)) for key in own], np.intp)
        self.names = tuple(name for _, name in found)
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
        self._layout, self._servers, self._racks = layout, servers, racks
        self._nodes = np.zeros(len(layout), np.int64)
        self._by_server, self._by_rack = np.zeros(len(servers), np.int64), np.zeros(len(racks), np.int64)
        for task in pool.waiting() if pool.located else ():
            here = self._places(task)
            self._nodes[here] += 1
            self._by_server[np.unique(servers.of[here])] += 1
            self._by_rack[np.unique(racks.of[here])] += 1
        self.levels = self._levels(np.arange(len(layout)))

    def _places(self, task: model.Task) -> npt.NDArray[np.intp]:
        index = self._layout.index
        return np.array(sorted({index[name] for name in task.locations if name in index}), np.intp)

    def _levels(self, where: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
        levels = np.full(len(where), int(Distance.ANYWHERE))
        levels[self._by_rack[self._racks.of[where]] > 0] = Distance.RACK
        levels[self._by_server[self._servers.of[where]] > 0] = Distance.SERVER
        levels[self._nodes[where] > 0] = Distance.NODE
        return levels

    def take(self, task: model.Task) -> npt.NDArray[np.intp]:
        """A task is placed; the nodes for which the nearest input is further away now."""
        self.left -= 1
        here = self._places(task)
        if not len(here):
            return here
        servers, racks = np.unique(self._servers.of[here]), np.unique(self._racks.of[here])
        self._nodes[here] -= 1
        self._by_server[servers] -= 1
        self._by_rack[racks] -= 1
        near = [here[self._nodes[here] == 0]]
        near += [self._servers.members[one] for one in servers[self._by_server[servers] == 0].tolist()]
        near += [self._racks.members[one] for one in racks[self._by_rack[racks] == 0].tolist()]
        changed = np.unique(np.concatenate(near))
        self.levels[changed] = self._levels(changed)
        return changed


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
        for node in self.of(want).take(task).tolist():
            want.scratch.touch(node)

    def forget(self, class_id: model.ClassId) -> None:
        """The class is over."""
        self._known.pop(class_id, None)
