"""Room for tasks of gangs that have no pod: reserved where a cycle, or an earlier leader, placed them."""

import dataclasses
from collections.abc import Iterable, Sequence

from boathouse.scheduling import jobs
from boathouse.scheduling.pods import rows
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.state import Part
from boathouse_policies import model
from boathouse_policies.framework import eligibility


class GangRoom(Part):
    """Reserves room, and takes reservations back."""

    def reserve(self, decision: model.Reservation) -> None:
        """Count an expected task where a plan placed it."""
        row = None if decision.task is None else self._pods.get(decision.task.id)
        if row is None or row.state is not PodState.PLANNED or row.reserved is not None or decision.task is None:
            return
        self._pods.reserve(
            row,
            model.Create(
                task=decision.task,
                task_class=decision.task_class,
                job=decision.job,
                node=decision.node,
                resources=decision.resources or decision.task_class.resources,
            ),
        )

    def reserve_at(
        self, entry: jobs.Entry, row: rows.PodRow, task_class: model.TaskClass, node: model.NodeName
    ) -> None:
        """Count a task on a node."""
        assert row.task is not None
        one, size = dataclasses.replace(task_class, gang_min=0), task_class.resources
        self._pods.reserve(row, model.Create(task=row.task, task_class=one, job=entry.job, node=node, resources=size))

    def has_room(self, task_class: model.TaskClass, name: model.NodeName, size: Sequence[int]) -> bool:
        """Say whether a task of a class fits on a node, and may be bound to it."""
        node, free = self._pods.nodes.get(name), self._ledger.free(name)
        if node is None or free is None or eligibility.refusal(task_class.constraints, node) is not None:
            return False
        return all(left >= amount for left, amount in zip(free, size, strict=False) if amount)

    def release(self, expected: Iterable[rows.PodRow]) -> None:
        """Take reservations back."""
        for row in expected:
            self._pods.unreserve(row)
