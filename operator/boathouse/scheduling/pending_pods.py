"""Pods made ahead: a few of a job that waits for want of nodes, so that autoscalers and people see what is missing."""

import math
from collections.abc import Iterator

from boathouse.scheduling import cycle
from boathouse.scheduling.pods import rows
from boathouse.scheduling.state import ClusterState, Part
from boathouse_policies import model


class PendingPods(Part):
    """Decides whose pods are made without a node.

    A class qualifies when it has waited for want of nodes for a while without any of its tasks being placed: in a busy
    cluster, where tasks follow one another, no pod is made twice as dear for show.

    Args:
        state: The state of the scheduler.
    """

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._delay_s = state.options.pending_ahead_delay_s
        self._since_s: dict[model.ClassId, float] = {}

    def next_s(self) -> float:
        """Return when a class may come to qualify; infinity if none may."""
        now_s = self._clock()
        due = (since_s + self._delay_s for since_s in self._since_s.values())
        return min((due_s for due_s in due if due_s > now_s), default=math.inf)

    def decide(self, result: cycle.CycleResult | None) -> Iterator[rows.Operation]:
        """Yield the operations that create pods without a node now.

        Args:
            result: What a cycle placed and left pending; None if there was no cycle.
        """
        now_s = self._clock()
        for class_id in result.placed | result.left.keys() if result is not None else ():
            since_s = self._since_s.pop(class_id, now_s)
            if result is not None and result.left.get(class_id) is model.Code.UNSCHEDULABLE:
                self._since_s[class_id] = now_s if class_id in result.placed else since_s
        if not self._options.pending_ahead or not self._since_s:
            return
        for entry in list(self._jobs.entries()):
            for queued in self._queue.classes_of(entry.job.id) if entry.factory is not None else ():
                if self._since_s.get(queued.task_class.id, math.inf) > now_s - self._delay_s:
                    continue
                for task in queued.pool.pending()[: self._options.pending_ahead]:
                    row = self._pods.get(task.id)
                    if row is None or task.expected or self._jobs.hold_of(row) is not None:
                        continue  # a pod made ahead would be refused as any other
                    if (operation := self._pods.decide_ahead(task, queued.task_class)) is not None:
                        yield operation
