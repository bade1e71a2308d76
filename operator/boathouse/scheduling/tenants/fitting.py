"""Whether a gang could ever start: on nodes without other pods, and within the limits of its queue. Pure."""

from collections.abc import Iterable, Mapping
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


def empty(nodes: Iterable[model.Node]) -> Iterable[Space]:
    """Yield all nodes without their pods."""
    for node in nodes:
        yield Space(node, holders.amounts(node.allocatable) | {"pods": node.max_pods})


def never_fits(gang: gangs.Gang, spaces: Iterable[Space]) -> str | None:
    """Return why a gang does not fit on nodes; None if it does, or if there is no node."""
    driver, executor = holders.amounts(gang.leader.resources), holders.amounts(gang.executor.resources)
    minimum = len(gang.expected)
    count, has_nodes, largest, least_loss = 0, False, 0, None
    for node, room in spaces:
        has_nodes = True
        fits = _fit(executor, room) if _is_selected(gang.executor, node) else 0
        count, largest = count + fits, max(largest, fits)
        if _is_selected(gang.leader, node) and _fit(driver, room):
            rest = {name: amount - driver.get(name, 0) for name, amount in room.items()}
            loss = fits - (_fit(executor, rest) if fits else 0)
            least_loss = loss if least_loss is None else min(loss, least_loss)
        if least_loss is not None and count - least_loss >= minimum:
            return None
    if not has_nodes:
        return None
    if least_loss is None:
        return f"the driver requests {_text(driver)}: no node that its constraints allow has so much"
    if not largest:
        return f"an executor requests {_text(executor)}: no node that its constraints allow has so much"
    return (
        f"the driver and its minimum of {minimum} executors start together, and all nodes have room for the "
        f"driver and {count - least_loss} of them: each executor requests {_text(executor)}"
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


def _is_selected(task_class: model.TaskClass, node: model.Node) -> bool:
    """Say whether the node's labels allow it: taints and readiness come and go."""
    return eligibility.selected(task_class.constraints, node)


def _fit(size: Mapping[str, int], room: Mapping[str, int]) -> int:
    """Return how many of a size there is room for."""
    return max(0, min(room.get(name, 0) // amount for name, amount in size.items() if amount))


def _text(amounts: Mapping[str, int]) -> str:
    named = sorted((name, amount) for name, amount in amounts.items() if amount and name != "pods")
    return ", ".join(f"{reasons.amount(name, amount)} {name}" for name, amount in named)


def without(spaces: Iterable[Space], held: Mapping[model.NodeName, Mapping[str, int]]) -> Iterable[Space]:
    """Yield nodes less what pods hold of them."""
    for node, room in spaces:
        taken = held.get(node.name, {})
        yield Space(node, {name: amount - taken.get(name, 0) for name, amount in room.items()})
