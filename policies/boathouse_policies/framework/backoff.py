"""Tasks whose request failed: when each waits again."""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boathouse_policies import model

FIRST_S = 1.0
MOST_S = 10.0  # kube-scheduler's podInitialBackoff and podMaxBackoff


class Backoffs:
    """A heap of who waits again when; the newest entry of a task is the one that counts."""

    def __init__(self) -> None:
        self._failures: dict[model.TaskId, int] = {}
        self._until: dict[model.TaskId, tuple[float, model.ClassId]] = {}
        self._due: list[tuple[float, model.TaskId]] = []

    def __contains__(self, task: object) -> bool:
        return task in self._until

    def __bool__(self) -> bool:
        return bool(self._until)

    def failed(self, task: model.TaskId, task_class: model.ClassId, now_s: float, at_least_s: float) -> float:
        """Back off for 1, 2, 4, 8, 10, 10 ... seconds, or longer if asked; returns the delay in seconds."""
        self._failures[task] = failures = self._failures.get(task, 0) + 1
        delay_s: float = max(at_least_s, min(FIRST_S * 2.0 ** (failures - 1), MOST_S))
        self._until[task] = (now_s + delay_s, task_class)
        heapq.heappush(self._due, (now_s + delay_s, task))
        return delay_s

    def succeeded(self, task: model.TaskId) -> None:
        """The next failure is the first again."""
        self._failures.pop(task, None)

    def remove(self, task: model.TaskId) -> None:
        """The task does not wait any more."""
        self._until.pop(task, None)
        self._failures.pop(task, None)

    def over(self, now_s: float) -> Iterator[tuple[model.TaskId, model.ClassId]]:
        """The tasks whose time is up."""
        while self._due and self._due[0][0] <= now_s:
            due_s, task = heapq.heappop(self._due)
            entry = self._until.get(task)
            if entry is not None and entry[0] == due_s:
                del self._until[task]
                yield task, entry[1]

    def next_s(self) -> float:
        """When `over` may have somebody; infinity if never."""
        return self._due[0][0] if self._due else math.inf
