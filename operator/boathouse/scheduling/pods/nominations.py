"""Room that a scheduler has nominated a pending pod for: pods of equal or lower priority leave it.

The nominee itself, and pods of its class, may use the room; a higher priority may take it.
"""

import collections
from collections.abc import Iterator, Sequence

import numpy as np
from typing_extensions import override

from boathouse.scheduling.pods import rows
from boathouse_policies import framework, model
from boathouse_policies.framework import predicates


class Nominations(framework.Filter):
    """Pending pods by the node for which they are nominated."""

    until_freed = True

    def __init__(self) -> None:
        self._on: dict[model.NodeName, dict[model.TaskId, rows.PodRow]] = {}

    def __len__(self) -> int:
        return len(self._on)

    def set(self, row: rows.PodRow, node: model.NodeName | None) -> framework.Freed | None:
        """Note the node for which a pod is nominated; return the node that it was nominated for before."""
        former, row.nominated = row.nominated, node
        if former is not None and row.id in self._on.get(former, ()):
            del self._on[former][row.id]
            if not self._on[former]:
                del self._on[former]
        if node is not None:
            self._on.setdefault(node, {})[row.id] = row
        return None if former in (None, node) else framework.Freed(former, None)

    # framework.Filter

    @override
    def concerns(self, pending: framework.PendingClass) -> bool:
        """Return whether room is left to a pod of another class, of the same priority or more."""
        return any(True for row in self._all() if _goes_before(row, pending))

    @override
    def mask(
        self, pending: framework.PendingClass, state: framework.CycleState, where: framework.Where
    ) -> model.BoolVector | None:
        """Return True for nodes that have room beside their nominees."""
        found: model.BoolVector = np.ones(len(state.view.layout), np.bool_)
        for place, lacking in self._lacking(pending, state):
            found[place] = not lacking
        return found[where]

    @override
    def refusals(
        self, pending: framework.PendingClass, state: framework.CycleState, among: model.BoolVector
    ) -> Sequence[model.Refusal]:
        """Return what nodes lack beside their nominees."""
        lacking = (reason for place, lacking in self._lacking(pending, state) if among[place] for reason in lacking)
        return [model.Refusal(reason=reason, nodes=nodes) for reason, nodes in collections.Counter(lacking).items()]

    def _all(self) -> Iterator[rows.PodRow]:
        return (row for nominees in self._on.values() for row in nominees.values())

    def _is_placed(self, row: rows.PodRow, state: framework.CycleState) -> bool:
        """Return whether the cycle has placed all nominees of a class: their room is taken, and counted already."""
        if row.task is None:
            return False
        task_class = row.task.task_class
        placed = state.placed(task_class) - state.view.by_class.get(task_class, 0)
        return placed > 0 and placed >= sum(
            [1 for each in self._all() if each.task is not None and each.task.task_class == task_class]
        )

    def _lacking(self, pending: framework.PendingClass, state: framework.CycleState) -> Iterator[tuple[int, list[str]]]:
        """Yield each node with nominees that go before a class, with what it then lacks."""
        axis, index = state.view.axis, state.view.layout.index
        for node, nominees in self._on.items():
            waiting = [
                row for row in nominees.values() if _goes_before(row, pending) and not self._is_placed(row, state)
            ]
            first = [row.facts for row in waiting if row.facts is not None]
            if not first or node not in index:
                continue
            room = list(state.free_on(index[node]))
            for pod in first:
                for i, amount in enumerate(axis.vector(pod.resources).tolist()):
                    if i < len(room):
                        room[i] -= amount
            needed = zip(pending.shape.sizes, room, strict=False)
            lacking = [
                predicates.reason(axis.names[i]) for i, (need, left) in enumerate(needed) if need and left < need
            ]
            taken = [port for pod in first for port in pod.host_ports]
            if any(mine.conflicts(port) for mine in pending.task_class.constraints.host_ports for port in taken):
                lacking.append(predicates.PORTS)
            yield index[node], lacking


def _goes_before(row: rows.PodRow, pending: framework.PendingClass) -> bool:
    """Return whether a class leaves room to a nominee."""
    if row.facts is None or row.facts.priority < pending.job.priority:
        return False
    return row.task is None or row.task.task_class != pending.task_class.id
