"""Gangs for the shells: whether one could ever start, and which executors get the room of its minimum. Pure.

An expected executor has no pod: the driver creates its executors. Until it does, room is reserved for those that are
expected: the minimum, less the executors that have a node or are about to get a place. So this follows from the pods
that exist, and a crash changes nothing.

* An executor takes the place of an expected one, on the node where room is reserved for that.
* One that admission made larger takes as many places of one node as cover it. If no node has so many, the places that
  it stands for are released, and it waits for its turn: nobody could use them.
* What is then short of a place goes before all that waits (`TaskClass.is_short`), to former places first
  (`cycle.restored`).
"""

import collections
import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Self

from boathouse_policies import model
from boathouse_policies.framework.eligibility import refusal
from boathouse_policies.framework.gathering import Member, how_many, most_beside
from boathouse_policies.framework.queue import LeastSizes
from boathouse_policies.framework.queue.scheduling_queue import DELAYS_S
from boathouse_policies.framework.view import ClusterView


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """A driver and its expected executors, as their owner submitted them."""

    driver: model.TaskId
    expected: tuple[model.TaskId, ...]
    leader: model.TaskClass
    executor: model.TaskClass

    @classmethod
    def of(cls, classes: Sequence[model.TaskClass], tasks: Iterable[model.Task]) -> Self | None:
        """Return the gang among submitted tasks, None if none is expected; a ValueError without exactly one driver."""
        submitted = list(tasks)
        expected = [task for task in submitted if task.expected]
        drivers = [task for task in submitted if not task.expected]
        executors = {task.task_class for task in expected}
        if not expected:
            return None
        if len(executors) > 1 or len(drivers) != 1:
            raise ValueError(
                "expected tasks must be of one class, and submitted with the one task that requests their pods"
            )
        known = {task_class.id: task_class for task_class in classes}
        return cls(
            driver=drivers[0].id,
            expected=tuple(task.id for task in expected),
            leader=known[drivers[0].task_class],
            executor=known[executors.pop()],
        )

    def with_classes(self, classes: Iterable[model.TaskClass]) -> Self:
        """Return the gang with other versions of its classes."""
        known = {task_class.id: task_class for task_class in classes}
        return dataclasses.replace(self, leader=known[self.leader.id], executor=known[self.executor.id])

    def least(self, sizer: LeastSizes) -> Self:
        """Return the gang with the least sizes that a sizer may decide."""
        classes = self.leader, self.executor
        return self.with_classes([dataclasses.replace(of, resources=sizer.least(of)) for of in classes])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a gang's pods, by line of a quota that counts limits; a pod without a limit has no line."""

    driver: Mapping[str, int] = dataclasses.field(default_factory=dict)
    executor: Mapping[str, int] = dataclasses.field(default_factory=dict)


def of_quota(gang: Gang, limits: Limits) -> dict[str, int]:
    """Return what a gang takes of the quotas of its namespace as a whole, by resource and by line of limits."""
    minimum = len(gang.expected)
    total = _sum(gang.leader.resources.by_name, minimum, gang.executor.resources.by_name)
    lines = limits.driver.keys() & limits.executor.keys()
    return total | {line: limits.driver[line] + minimum * limits.executor[line] for line in lines}


def promised(gang: Gang, limits: Limits, executors: int, *, with_driver: bool) -> dict[str, int]:
    """Return what a gang that has begun will still take of its namespace's quotas: so many executors (`uncreated`)."""
    driver = {**gang.leader.resources.by_name, **limits.driver} if with_driver else {}
    return _sum(driver, executors, {**gang.executor.resources.by_name, **limits.executor})


def _sum(driver: Mapping[str, int], executors: int, executor: Mapping[str, int]) -> dict[str, int]:
    return {name: driver.get(name, 0) + executors * executor.get(name, 0) for name in {**driver, **executor}}


def above_limit(gang: Gang, queue: model.Queue | None, axis: model.Axis) -> str | None:
    """Return why the limits of a queue never allow a gang; None if they do."""
    minimum = len(gang.expected)
    for name, most in queue.limits if queue is not None else ():
        row = axis.row(name)
        wanted = axis.amounts(gang.leader.resources)[row] + minimum * axis.amounts(gang.executor.resources)[row]
        if queue is not None and wanted > most:
            return (
                f"the driver and its minimum of {minimum} executors request {model.readable(name, wanted)} {name}, and "
                f"queue {queue.name!r} is limited to {model.readable(name, most)}"
            )
    return None


def never_fits(gang: Gang, view: ClusterView) -> str | None:
    """Return why a gang does not fit on nodes without their pods; None if it does, or if there is no node.

    Only labels count of what nodes allow: taints and readiness come and go. Its resources have rows in the view.
    """
    room, minimum = view.layout.allocatable, len(gang.expected)
    driver, executor = _member(gang.leader, 1, view), _member(gang.executor, minimum, view)
    beside = most_beside([driver, executor], room)
    if not view.nodes or (beside is not None and beside >= minimum):
        return None
    for what, member, task_class in (("the driver", driver, gang.leader), ("an executor", executor, gang.executor)):
        if not how_many(member, room).any():
            size = _text(task_class.resources, view.axis)
            return f"{what} requests {size}: no node that its constraints allow has so much"
    return (
        f"the driver and its minimum of {minimum} executors start together, and all nodes have room for the driver and "
        f"{beside} of them: each executor requests {_text(gang.executor.resources, view.axis)}"
    )


def _member(task_class: model.TaskClass, count: int, view: ClusterView) -> Member:
    return Member(view.axis.vector(task_class.resources), view.selected(task_class.constraints), count)


def _text(resources: model.Resources, axis: model.Axis) -> str:
    amounts = zip(axis.names, axis.amounts(resources), strict=True)
    named = sorted((name, amount) for name, amount in amounts if amount and name != "pods")
    return ", ".join(f"{model.readable(name, amount)} {name}" for name, amount in named)


_BACKOFF_S = (0.0, *DELAYS_S)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """An executor that the driver has created."""

    id: model.TaskId
    resources: model.Resources | None
    constraints: model.Constraints | None = None  # where it may go; None if they cannot be represented
    is_placed: bool = False  # whether it has a node, or is being bound to one
    since_s: float = 0.0
    failures: int = 0  # binds of it that failed in a row
    is_held: bool = False  # whether no bind of it is tried now, because others like it were refused

    @property
    def due_s(self) -> float:
        """When its next bind may be tried."""
        return self.since_s + _BACKOFF_S[min(self.failures, len(_BACKOFF_S) - 1)]


class Place(NamedTuple):
    """Room that is reserved for an expected executor."""

    expected: model.TaskId
    node: model.NodeName


class Seat(NamedTuple):
    """An executor, the node that it is bound to, and the expected ones whose places it takes."""

    executor: model.TaskId
    node: model.NodeName
    expected: Sequence[model.TaskId]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seating:
    """What becomes of the executors and of the places of a gang."""

    seats: Sequence[Seat]
    released: Sequence[model.TaskId]  # the expected executors whose places nobody needs any more
    short: Sequence[model.TaskId]  # the executors that have no place, in order
    missing: int  # how many expected executors are short of a place
    retry_s: float  # when an executor may be tried again whose bind failed; infinity for none


def uncreated(gang: Gang, executors: Iterable[Executor]) -> int:
    """Return how many executors the driver may still create of its minimum."""
    return max(0, len(gang.expected) - sum([stands_for(executor, gang.executor) for executor in executors]))


def short_of(gang: Gang, executors: Iterable[Executor]) -> int:
    """Return how many executors lack a node for the minimum."""
    return uncreated(gang, [executor for executor in executors if executor.is_placed])


def seat(
    gang: Gang,
    executors: Sequence[Executor],
    places: Sequence[Place],
    nodes: Mapping[model.NodeName, model.Node],
    now_s: float,
) -> Seating:
    """Decide which executors get which places of expected ones, the last places first."""
    needed, left, seats = short_of(gang, executors), list(places), list[Seat]()
    pending = [executor for executor in executors if not executor.is_placed] if needed else []
    due = [executor for executor in pending if executor.due_s <= now_s and not executor.is_held]
    due.sort(key=lambda executor: (len(executor.id), executor.id))
    equal = [executor for executor in due if replaces(executor, gang.executor)][:needed]
    for executor in equal[: len(left)]:
        place = left.pop()
        seats.append(Seat(executor.id, place.node, (place.expected,)))
    open_places = needed - len(equal)
    for executor in [executor for executor in due if not replaces(executor, gang.executor)]:
        if open_places <= 0:
            break
        if (found := _seat_of_several(executor, gang, left, nodes)) is not None:
            seats.append(found)
            left = [place for place in left if place.expected not in found.expected]
        open_places = max(0, open_places - stands_for(executor, gang.executor))
    return Seating(
        seats=seats,
        released=[place.expected for place in left[open_places:]],
        short=[executor.id for executor in equal[len(places) :]],
        missing=open_places - min(open_places, len(left)),
        retry_s=min((executor.due_s for executor in pending if executor.due_s > now_s), default=math.inf),
    )


def _seat_of_several(
    executor: Executor, gang: Gang, places: Sequence[Place], nodes: Mapping[model.NodeName, model.Node]
) -> Seat | None:
    wanted, count = executor.constraints, stands_for(executor, gang.executor)
    if wanted is None or wanted.claims or wanted.host_ports or wanted.concern_pods:
        return None  # a cycle can say where it may go
    on_node: dict[model.NodeName, list[model.TaskId]] = {}
    for place in places:
        on_node.setdefault(place.node, []).append(place.expected)
    for name, expected in sorted(on_node.items()):
        if len(expected) >= count and name in nodes and refusal(wanted, nodes[name]) is None:
            return Seat(executor.id, name, expected[:count])
    return None


def stands_for(executor: Executor, expected: model.TaskClass) -> int:
    """Return for how many expected executors one stands: for as many as it is as large as.

    Else a driver whose minimum is of small executors could have large ones placed before all that waits.
    """
    if executor.resources is None or expected.resources.covers(executor.resources):
        return 1
    own = expected.resources.by_name
    return max(-(-amount // max(1, own.get(name, 0))) for name, amount in executor.resources.by_name.items())


def replaces(executor: Executor, expected: model.TaskClass) -> bool:
    """Return whether an executor can take the place of an expected one: it needs no more room, nor other nodes."""
    found, wanted = executor.constraints, expected.constraints
    return (
        found is not None
        and executor.resources is not None
        and expected.resources.covers(executor.resources)
        and not found.host_ports
        and (found.node_selector, found.affinity, found.claims)
        == (wanted.node_selector, wanted.affinity, wanted.claims)
        and set(wanted.tolerations) <= set(found.tolerations)
    )


def is_enough(reserved: model.TaskClass, executor: model.TaskClass) -> bool:
    """Return whether room that was reserved for a class is of use: admission may add to requests and constraints."""
    return reserved.resources.covers(executor.resources) and reserved.constraints == executor.constraints


def together(
    classes: Sequence[model.TaskClass],
    tasks: Iterable[model.Task],
    gang: Gang | None,
    *,
    is_short: bool = False,
    former_places: tuple[model.NodeName, ...] = (),
) -> Sequence[model.TaskClass]:
    """Return the classes of a job such that a cycle places the tasks of a gang that has not begun all or none.

    What a gang that has begun lacks is short: it goes to the places that an earlier leader had reserved, if any.
    """
    if not any(task_class.gang_min for task_class in classes) and not is_short:
        return classes
    counts = collections.Counter(task.task_class for task in tasks)
    is_gang = gang is not None and counts[gang.executor.id] > 0 and not is_short
    return [
        dataclasses.replace(
            task_class,
            gang_min=counts[task_class.id] * is_gang,
            is_short=is_short,
            former_places=former_places if is_short and gang is not None and task_class.id == gang.executor.id else (),
        )
        for task_class in classes
        if counts[task_class.id]
    ]
