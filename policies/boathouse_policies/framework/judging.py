"""Whether a gang could ever start: on nodes without other pods, and within the limits of its queue. Pure."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Self

from boathouse_policies import model
from boathouse_policies.framework.gathering import Member, how_many, most_beside

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boathouse_policies.framework.queue import LeastSizes
    from boathouse_policies.framework.view import ClusterView


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """A driver and its expected executors, as their owner submitted them.

    Attributes:
        driver: The driver's task.
        expected: The expected tasks: as many as the minimum.
        leader: The class of the driver.
        executor: The class of the expected tasks.
    """

    driver: model.TaskId
    expected: tuple[model.TaskId, ...]
    leader: model.TaskClass
    executor: model.TaskClass

    @classmethod
    def of(cls, classes: Sequence[model.TaskClass], tasks: Iterable[model.Task]) -> Self | None:
        """Return the gang among submitted tasks; None if nothing is expected.

        Raises:
            ValueError: Tasks are expected of several classes, or not of exactly one driver.
        """
        expected: list[model.Task] = []
        drivers: list[model.Task] = []
        for task in tasks:
            (expected if task.expected else drivers).append(task)
        if not expected:
            return None
        executors = {task.task_class for task in expected}
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
        leader, executor = (
            dataclasses.replace(task_class, resources=sizer.least(task_class))
            for task_class in (self.leader, self.executor)
        )
        return dataclasses.replace(self, leader=leader, executor=executor)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a gang's pods, by line of a quota that counts limits; a pod without a limit has no line.

    Attributes:
        driver: Those of the driver.
        executor: Those of one executor.
    """

    driver: Mapping[str, int] = dataclasses.field(default_factory=dict)
    executor: Mapping[str, int] = dataclasses.field(default_factory=dict)


def of_quota(gang: Gang, limits: Limits) -> dict[str, int]:
    """Return what a gang takes of the quotas of its namespace as a whole, by resource and by line of limits."""
    minimum = len(gang.expected)
    total = _sum(gang.leader.resources.by_name, minimum, gang.executor.resources.by_name)
    both = limits.driver.keys() & limits.executor.keys()
    return total | {line: limits.driver[line] + minimum * limits.executor[line] for line in both}


def promised(gang: Gang, limits: Limits, executors: int, *, with_driver: bool) -> dict[str, int]:
    """Return what a gang that has begun will still take of the quotas of its namespace.

    Args:
        gang: The gang.
        limits: The limits of its pods.
        executors: How many executors of its minimum the driver has not created (`seating.uncreated`).
        with_driver: Whether the driver's pod is not there either.
    """
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
