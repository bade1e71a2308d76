"""Whether a gang could ever start: on nodes without other pods, and within the limits of its queue. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from boathouse.scheduling import gangs, reasons
from boathouse.scheduling.pods import holders
from boathouse_policies import model
from boathouse_policies.framework import eligibility


def amounts(gang: gangs.Gang) -> Mapping[str, int]:
    """Return all that a gang requests, by resource name."""
    total, minimum = holders.amounts(gang.leader.resources), len(gang.expected)
    for name, amount in holders.amounts(gang.executor.resources).items():
        total[name] = total.get(name, 0) + minimum * amount
    return total


class Space(NamedTuple):
    """A node, and what of it is there for the gang, by resource name."""

    node: model.Node
    room: Mapping[str, int]


def empty(nodes: Iterable[model.Node]) -> list[Space]:
    """Return all nodes without their pods."""
    return [Space(node, holders.amounts(node.allocatable) | {"pods": node.max_pods}) for node in nodes]


Allows = Callable[[model.TaskClass, model.Node], bool]
"""Whether pods of a class may go to a node."""


def is_selected(task_class: model.TaskClass, node: model.Node) -> bool:
    """Say whether a node's labels allow a class: taints and readiness come and go."""
    return eligibility.selected(task_class.constraints, node)


def is_allowed(task_class: model.TaskClass, node: model.Node) -> bool:
    """Say whether pods of a class may be bound to a node now."""
    return eligibility.refusal(task_class.constraints, node) is None


class Fit(NamedTuple):
    """How much of a gang nodes have room for.

    Attributes:
        driver: Where the driver takes least from the executors; None if it fits nowhere.
        beside: For how many executors there is room beside it; counted no further than the minimum.
        alone: Whether there is room for an executor at all.
    """

    driver: model.NodeName | None
    beside: int
    alone: bool


def fit(gang: gangs.Gang, spaces: Iterable[Space], allows: Allows = is_selected) -> Fit:
    """Return how much of a gang fits: exactly, because its executors are alike."""
    driver, executor = holders.amounts(gang.leader.resources), holders.amounts(gang.executor.resources)
    count, place, least_loss = 0, None, 0
    for node, room in spaces:
        fits = _fit(executor, room) if allows(gang.executor, node) else 0
        count += fits
        if allows(gang.leader, node) and _fit(driver, room):
            rest = {name: amount - driver.get(name, 0) for name, amount in room.items()}
            loss = fits - (_fit(executor, rest) if fits else 0)
            if place is None or loss < least_loss:
                place, least_loss = node.name, loss
        if place is not None and count - least_loss >= len(gang.expected):
            break
    return Fit(place, count - least_loss, count > 0)


def never_fits(gang: gangs.Gang, spaces: Sequence[Space]) -> str | None:
    """Return why a gang does not fit on nodes; None if it does, or if there is no node."""
    minimum, found = len(gang.expected), fit(gang, spaces)
    if not spaces or (found.driver is not None and found.beside >= minimum):
        return None
    for what, task_class, fits in (
        ("the driver", gang.leader, found.driver is not None),
        ("an executor", gang.executor, found.alone),
    ):
        if not fits:
            size = _text(holders.amounts(task_class.resources))
            return f"{what} requests {size}: no node that its constraints allow has so much"
    return (
        f"the driver and its minimum of {minimum} executors start together, and all nodes have room for the driver and "
        f"{found.beside} of them: each executor requests {_text(holders.amounts(gang.executor.resources))}"
    )


def above_limit(gang: gangs.Gang, queue: model.Queue | None) -> str | None:
    """Return why the limits of a queue never allow a gang; None if they do."""
    wanted, minimum = amounts(gang), len(gang.expected)
    for name, most in queue.limits if queue is not None else ():
        if queue is not None and wanted.get(name, 0) > most:
            return (
                f"the driver and its minimum of {minimum} executors request "
                f"{reasons.amount(name, wanted[name])} {name}, and queue {queue.name!r} is limited to "
                f"{reasons.amount(name, most)}"
            )
    return None


def _fit(size: Mapping[str, int], room: Mapping[str, int]) -> int:
    """Return how many of a size there is room for."""
    return max(0, min(room.get(name, 0) // amount for name, amount in size.items() if amount))


def _text(amounts: Mapping[str, int]) -> str:
    named = sorted((name, amount) for name, amount in amounts.items() if amount and name != "pods")
    return ", ".join(f"{reasons.amount(name, amount)} {name}" for name, amount in named)


def without(spaces: Iterable[Space], held: Mapping[model.NodeName, Mapping[str, int]]) -> list[Space]:
    """Return nodes less what pods hold of them."""
    left = []
    for node, room in spaces:
        taken = held.get(node.name, {})
        left.append(Space(node, {name: amount - taken.get(name, 0) for name, amount in room.items()}))
    return left
