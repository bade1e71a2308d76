"""Seating: which executors of a gang that has begun get the room that is reserved for its minimum. Pure.

An expected executor has no pod: the driver creates its executors. Until it does, room is reserved for those that are
expected: the minimum, less the executors that have a node or are about to get a place. So this follows from the pods
that exist, and a crash changes nothing.

* An executor takes the place of an expected one, on the node where room is reserved for that.
* One that admission made larger takes as many places of one node as cover it. If no node has so many, the places that
  it stands for are released, and it waits for its turn: nobody could use them.
* What is then short of a place goes before all that waits (`TaskClass.is_short`), to former places first (`restoring`).
"""

from __future__ import annotations

import collections
import dataclasses
import math
from typing import TYPE_CHECKING, NamedTuple

from boathouse_policies.framework.eligibility import refusal
from boathouse_policies.framework.queue.scheduling_queue import DELAYS_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boathouse_policies import model
    from boathouse_policies.framework.judging import Gang

_BACKOFF_S = (0.0, *DELAYS_S)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """An executor that the driver has created.

    Attributes:
        id: Its pod.
        resources: What it requests; None if that is not known.
        constraints: Where it may go; None if they cannot be represented.
        is_placed: Whether it has a node, or is being bound to one.
        since_s: Since when it is pending.
        failures: Binds of it that failed in a row.
        is_held: Whether no bind of it is tried now, because others like it were refused.
    """

    id: model.TaskId
    resources: model.Resources | None
    constraints: model.Constraints | None = None
    is_placed: bool = False
    since_s: float = 0.0
    failures: int = 0
    is_held: bool = False

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
    """What becomes of the executors and of the places of a gang.

    Attributes:
        seats: The executors to bind.
        released: The expected executors whose places nobody needs any more.
        short: The executors that have no place, in order.
        missing: How many expected executors are short of a place.
        retry_s: When an executor may be tried again whose bind failed; infinity for none.
    """

    seats: Sequence[Seat]
    released: Sequence[model.TaskId]
    short: Sequence[model.TaskId]
    missing: int
    retry_s: float


def placed(gang: Gang, executors: Iterable[Executor]) -> int:
    """Return for how many of the minimum those stand that have a node."""
    return sum([stands_for(executor, gang.executor) for executor in executors if executor.is_placed])


def short_of(gang: Gang, executors: Iterable[Executor]) -> int:
    """Return how many executors lack a node for the minimum."""
    return max(0, len(gang.expected) - placed(gang, executors))


def uncreated(gang: Gang, executors: Iterable[Executor]) -> int:
    """Return how many executors the driver may still create of its minimum."""
    return max(0, len(gang.expected) - sum([stands_for(executor, gang.executor) for executor in executors]))


def seat(
    gang: Gang,
    executors: Sequence[Executor],
    places: Sequence[Place],
    nodes: Mapping[model.NodeName, model.Node],
    now_s: float,
) -> Seating:
    """Decide which executors get which places.

    Args:
        gang: The gang.
        executors: The executors of its driver.
        places: Where room is reserved for expected ones; the last ones are taken first.
        nodes: The nodes.
        now_s: The shell's time.
    """
    needed, left, seats = short_of(gang, executors), list(places), list[Seat]()
    pending = [executor for executor in executors if not executor.is_placed] if needed else []
    due = sorted((one for one in pending if one.due_s <= now_s), key=lambda one: (len(one.id), one.id))
    equal = [one for one in due if replaces(one, gang.executor) and not one.is_held][:needed]
    for executor in equal[: len(left)]:
        place = left.pop()
        seats.append(Seat(executor.id, place.node, (place.expected,)))
    open_places = needed - len(equal)
    for executor in (one for one in due if not one.is_held and not replaces(one, gang.executor)):
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
        retry_s=min((one.due_s for one in pending if one.due_s > now_s), default=math.inf),
    )


def _seat_of_several(
    executor: Executor, gang: Gang, places: Sequence[Place], nodes: Mapping[model.NodeName, model.Node]
) -> Seat | None:
    """Return the seat of an executor where places of one node together have room for it; None for none."""
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

    Args:
        classes: The classes.
        tasks: The tasks of the job that wait in line.
        gang: Its gang; None for none.
        is_short: Whether they are what a gang that has begun lacks.
        former_places: Where an earlier leader had reserved room for its expected executors, a node for each.
    """
    if not any(one.gang_min for one in classes) and not is_short:
        return classes
    counts = collections.Counter(task.task_class for task in tasks)
    is_gang = gang is not None and counts[gang.executor.id] > 0 and not is_short
    return [
        dataclasses.replace(
            one,
            gang_min=counts[one.id] * is_gang,
            is_short=is_short,
            former_places=former_places if is_short and gang is not None and one.id == gang.executor.id else (),
        )
        for one in classes
        if counts[one.id]
    ]
