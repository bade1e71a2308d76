"""Room for tasks of gangs that have no pod: reserved where a cycle placed them."""

from collections.abc import Iterable

from boathouse.scheduling.pods import rows
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.state import Part
from boathouse_policies import model


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

    def release(self, expected: Iterable[rows.PodRow]) -> None:
        """Take reservations back."""
        for row in expected:
            self._pods.unreserve(row)
