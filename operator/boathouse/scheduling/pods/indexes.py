"""Indexes of the pod table: the pods that pods make, nominated room, and who holds what.

* Children: who makes a pod can write any label, and any UID as that of its owner. So account, queue and job of an
  executor follow its controller, a pod in the same namespace that a job of ours owns, and never its labels.
* Nominations: room that a scheduler has nominated a pending pod for. Pods of equal or lower priority leave it. The
  nominee itself, and pods of its class, may use the room; a higher priority may take it.
* Holders: who holds how much of each resource, for messages that name whom one waits for.
"""

import collections
import dataclasses
import heapq
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, TypeVar

import numpy as np
from typing_extensions import override

from boathouse.scheduling.pods.facts import PodFacts
from boathouse.scheduling.pods.rows import PodKey, PodRow
from boathouse_policies import framework, model

K = TypeVar("K")
T = TypeVar("T")


def discard(index: MutableMapping[K, dict[T, Any]], key: K, item: T) -> None:
    """Remove an item of a group, if it is there, and the group if that is empty then."""
    group = index.get(key, {})
    group.pop(item, None)
    if not group:
        index.pop(key, None)


@dataclasses.dataclass(slots=True, kw_only=True)
class Family:
    """The pods of one controller."""

    # the controller as last shown, if it is a pod of a job; known after its end, as long as a pod of it is there
    driver: PodFacts | None = None
    is_over: bool = False
    rows: dict[model.TaskId, PodRow] = dataclasses.field(default_factory=dict)


class Children:
    """All pods that another pod controls."""

    def __init__(self) -> None:
        self._families: dict[PodKey | None, Family] = {}  # none is of None, which is asked for too
        self._drivers: dict[str, dict[PodKey, Family]] = {}

    def __len__(self) -> int:
        return len(self._families)

    def join(self, row: PodRow, driver: PodFacts | None) -> None:
        """Add a pod that another pod controls."""
        assert row.parent is not None
        family = self._families.setdefault(row.parent, Family())
        family.rows[row.id] = row
        if family.driver is None and driver is not None:
            self.adopt(driver)

    def leave(self, row: PodRow) -> None:
        """Remove a pod that ended, as a pod of another and as the controller of others."""
        if (own := self._families.get(row.key)) is not None:
            own.is_over = True
        if (family := self._families.get(row.parent)) is not None:
            family.rows.pop(row.id, None)
        self._drop_empty(row.key)
        self._drop_empty(row.parent)

    def _drop_empty(self, key: PodKey | None) -> None:
        family = self._families.get(key)
        if key is None or family is None or family.rows or (family.driver is not None and not family.is_over):
            return
        del self._families[key]
        if family.driver is not None and family.driver.task_of is not None:
            discard(self._drivers, family.driver.task_of, key)

    def adopt(self, driver: PodFacts) -> Iterable[PodRow]:
        """Take a pod of a job for the controller that its pods name; return those of which that is news."""
        key = driver.metadata.namespace, driver.metadata.uid
        family = self._families.get(key)
        if family is None or family.driver is not None or driver.task_of is None:
            return ()
        family.driver = driver
        self._drivers.setdefault(driver.task_of, {})[key] = family
        return list(family.rows.values())

    def driver(self, key: PodKey | None) -> PodFacts | None:
        """Return a controller that is a pod of a job."""
        return None if (family := self._families.get(key)) is None else family.driver

    def of(self, key: PodKey | None) -> Mapping[model.TaskId, PodRow]:
        """Return the pods of a controller."""
        return {} if (family := self._families.get(key)) is None else family.rows

    def of_job(self, job: model.JobId) -> Iterator[PodRow]:
        """Yield the pods of all pods of a job, those of ended ones included."""
        for family in list(self._drivers.get(job, {}).values()):
            yield from list(family.rows.values())


class Nominations(framework.Filter):
    """Pending pods by the node for which they are nominated."""

    until_freed = True

    def __init__(self) -> None:
        self._on: dict[model.NodeName, dict[model.TaskId, PodRow]] = {}

    def __len__(self) -> int:
        return len(self._on)

    def set(self, row: PodRow, node: model.NodeName | None) -> list[framework.Freed]:
        """Note the node for which a pod is nominated; return the one that it was nominated for before."""
        former, row.nominated = row.nominated, node
        if former is not None:
            discard(self._on, former, row.id)
        if node is not None:
            self._on.setdefault(node, {})[row.id] = row
        return [] if former in (None, node) else [framework.Freed(former, None)]

    @override
    def concerns(self, pending: framework.PendingClass) -> bool:
        """Return whether room is left to a pod of another class, of the same priority or more."""
        return any(True for row in self._all() if _precedes(row, pending))

    @override
    def mask(
        self, pending: framework.PendingClass, state: framework.CycleState, where: framework.Where
    ) -> model.BoolVector | None:
        has_room: model.BoolVector = np.ones(len(state.view.layout), np.bool_)
        for place, lacking in self._lacking(pending, state):
            has_room[place] = not lacking
        return has_room[where]

    @override
    def refusals(
        self, pending: framework.PendingClass, state: framework.CycleState, among: model.BoolVector
    ) -> Sequence[model.Refusal]:
        lacking = (reason for place, lacking in self._lacking(pending, state) if among[place] for reason in lacking)
        return [model.Refusal(reason=reason, nodes=nodes) for reason, nodes in collections.Counter(lacking).items()]

    def _all(self) -> Iterator[PodRow]:
        return (row for nominees in self._on.values() for row in nominees.values())

    def _is_placed(self, row: PodRow, state: framework.CycleState) -> bool:
        """Return whether the cycle has placed all nominees of a class: their room is taken, and counted already."""
        if row.task is None:
            return False
        task_class = row.task.task_class
        placed = state.placed(task_class) - state.view.by_class.get(task_class, 0)
        return placed > 0 and placed >= sum(
            [1 for nominee in self._all() if nominee.task is not None and nominee.task.task_class == task_class]
        )

    def _lacking(self, pending: framework.PendingClass, state: framework.CycleState) -> Iterator[tuple[int, list[str]]]:
        """Yield each node with nominees that go before a class, with what it then lacks."""
        axis, index = state.view.axis, state.view.layout.index
        for node, nominees in self._on.items():
            waiting = [row for row in nominees.values() if _precedes(row, pending) and not self._is_placed(row, state)]
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
                framework.predicates.reason(axis.names[i])
                for i, (need, left) in enumerate(needed)
                if need and left < need
            ]
            taken = [port for pod in first for port in pod.host_ports]
            if any(mine.conflicts(port) for mine in pending.task_class.constraints.host_ports for port in taken):
                lacking.append(framework.predicates.PORTS)
            yield index[node], lacking


def _precedes(row: PodRow, pending: framework.PendingClass) -> bool:
    """Return whether a nominee precedes a class, which then leaves room to it."""
    is_other = row.task is None or row.task.task_class != pending.task_class.id
    return is_other and row.facts is not None and row.facts.priority >= pending.job.priority


Amounts = dict[str, int]  # Kubernetes' resource name to base units (millicores, bytes, counts)

_ALL = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Who holds a resource, as a namespace may know it: the others' owners have no names."""

    # the largest holders of the namespace and what each holds, the largest first; ties by name
    named: tuple[tuple[str, int], ...] = ()
    elsewhere: int = 0  # what all other namespaces hold together


class Holders:
    """Sums by namespace and owner of what pods hold of nodes that exist."""

    def __init__(self) -> None:
        self._owners: dict[str, dict[str, Amounts]] = {}
        self._totals: dict[str, Amounts] = {}  # by namespace, and of all
        self._largest: dict[tuple[str, str], list[tuple[str, int]]] = {}  # until a sum changes

    def add(self, namespace: str, owner: str, resources: model.Resources, sign: int) -> None:
        """Add what one pod of an owner holds, or with the sign -1 take it away."""
        held, owners = resources.by_name, self._owners.setdefault(namespace, {})
        self._largest.clear()
        for sums, key in ((owners, owner), (self._totals, namespace), (self._totals, _ALL)):
            total = sums.setdefault(key, {})
            for name, amount in held.items():
                total[name] = total.get(name, 0) + sign * amount
            if not total["pods"]:
                del sums[key]
        if not owners:
            del self._owners[namespace]

    def top(self, resource: str, namespace: str) -> Held:
        """Return the three largest holders of a resource in a namespace, and what all others hold."""
        if (largest := self._largest.get((resource, namespace))) is None:
            held = ((owner, theirs.get(resource, 0)) for owner, theirs in self._owners.get(namespace, {}).items())
            largest = heapq.nsmallest(3, held, key=lambda pair: (-pair[1], pair[0]))
            self._largest[resource, namespace] = largest
        here, everywhere = (self._totals.get(key, {}).get(resource, 0) for key in (namespace, _ALL))
        return Held(named=tuple(pair for pair in largest if pair[1] > 0), elsewhere=everywhere - here)
