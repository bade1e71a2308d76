"""Suspend the reducers of jobs whose author asks for it."""

import math
from collections.abc import Iterator

from boathouse.resources import names
from boathouse.scheduling.pods import rows
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.state import ClusterState, Part
from boathouse.suspension import timeouts
from boathouse.suspension.reasons import Reason
from boathouse.suspension.stages import Stage
from boathouse_policies import model

_LASTING = {Reason.PHASE_PASSED, Reason.NOTHING_TO_LEND, Reason.NOT_SUPPORTED, Reason.SWITCHED_OFF}


class ByHand(Part):
    """Names the tasks that their authors suspend.

    Args:
        state: The state of the scheduler.
    """

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._asked_s = -math.inf
        self._not_before_s: dict[tuple[model.TaskId, float], float] = {}

    def next_s(self) -> float:
        """Return when `wanted` may name a task though nothing happened; infinity for never."""
        return self._asked_s + timeouts.BY_HAND_EVERY_S if self._jobs.by_hand else math.inf

    def wanted(self) -> Iterator[tuple[rows.PodRow, float]]:
        """Yield running reducers to suspend, and until when."""
        now_s = self._clock()
        if not self._jobs.by_hand or now_s < self._asked_s + timeouts.BY_HAND_EVERY_S:
            return
        self._asked_s = now_s
        self._not_before_s = {key: due_s for key, due_s in self._not_before_s.items() if key[1] > now_s}
        for row in self._pods.running(PodState.CONFIRMED):
            pod, until_s = row.facts, self._until_s(row)
            if pod is None or until_s is None or until_s <= now_s or pod.stage is not Stage.NONE:
                continue
            if self._not_before_s.get((row.id, until_s), 0.0) <= now_s:
                yield row, until_s

    def _until_s(self, row: rows.PodRow) -> float | None:
        """Return until when the author of a job suspends a task of it; None if not."""
        if row.facts is None or row.facts.task_of not in self._jobs.by_hand:
            return None
        if row.facts.metadata.labels.get(names.LABEL_TASK_TYPE) != model.Stage.REDUCE:
            return None
        entry = self._jobs.owner_of(row)
        return None if entry is None else entry.suspend_until_s

    def refused(self, row: rows.PodRow, until_s: float, reason: Reason) -> None:
        """Note that a task was not suspended: it is asked again later, or never for this time."""
        self._not_before_s[row.id, until_s] = (
            math.inf if reason in _LASTING else self._clock() + timeouts.BY_HAND_RETRY_S
        )
