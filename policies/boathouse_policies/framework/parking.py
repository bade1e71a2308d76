"""Parked classes: who is woken by what, without looking at each."""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_policies.framework.waiting import Waiting


class Wake(enum.Flag):
    """What may help a parked class."""

    ROOM = enum.auto()
    NODES = enum.auto()
    QUEUE = enum.auto()
    QUEUES = enum.auto()
    JOBS = enum.auto()


_HELPS = {
    model.Code.UNSCHEDULABLE: Wake.ROOM | Wake.NODES,
    model.Code.SIZING: Wake.ROOM | Wake.NODES,
    model.Code.NOT_OFFERED: Wake.ROOM | Wake.NODES,
    model.Code.NEVER_FITS: Wake.NODES,
    model.Code.QUEUE_LIMIT: Wake.QUEUE | Wake.QUEUES,
    model.Code.UNKNOWN_QUEUE: Wake.QUEUES,
    model.Code.JOB_ORDER: Wake.ROOM | Wake.NODES | Wake.JOBS,
    model.Code.PATIENCE: Wake.ROOM | Wake.NODES | Wake.JOBS,
    model.Code.GANG: Wake.ROOM | Wake.NODES | Wake.JOBS,
}


FLUSH_S = 60.0  # a safety net, as kube-scheduler's flush after 5 minutes; a queue of jobs is looked at sooner


@dataclasses.dataclass(slots=True)
class _Parked:
    row: int
    queue: model.QueueName
    verdict: model.Verdict
    helps: Wake
    until_s: float


class Parking:
    """Classes by row of a matrix of sizes, so that freed room is compared with all of them at once."""

    def __init__(self, axis: model.Axis) -> None:
        self._axis = axis
        self._parked: dict[model.ClassId, _Parked] = {}
        self._limited: dict[model.QueueName, dict[model.ClassId, None]] = {}
        self._least = np.zeros((len(axis), 16), np.int64)
        self._by_room = np.zeros(16, np.bool_)
        self._who: list[model.ClassId | None] = [None] * 16
        self._empty = list(range(15, -1, -1))
        self._earliest_s = math.inf

    def enter(
        self, waiting: Waiting, least: model.IntVector, verdict: model.Verdict, now_s: float, until_s: float | None
    ) -> None:
        """Park a class, or park it anew, at the latest until `until_s`."""
        class_id, queue = waiting.task_class.id, waiting.job.queue
        self.leave(class_id)
        if not self._empty or len(self._axis) != len(self._least):
            self._grow()
        row = self._empty.pop()
        helps = _HELPS[verdict.code]
        self._least[:, row] = 0
        self._least[: len(least), row] = least
        self._by_room[row] = Wake.ROOM in helps
        self._who[row] = class_id
        if Wake.QUEUE in helps:
            self._limited.setdefault(queue, {})[class_id] = None
        until_s = now_s + FLUSH_S if until_s is None else min(until_s, now_s + FLUSH_S)
        self._parked[class_id] = _Parked(row, queue, verdict, helps, until_s)
        self._earliest_s = min(self._earliest_s, until_s)

    def leave(self, class_id: model.ClassId) -> None:
        """The class is not parked any more; nothing happens if it was not."""
        parked = self._parked.pop(class_id, None)
        if parked is None:
            return
        self._by_room[parked.row] = False
        self._who[parked.row] = None
        self._empty.append(parked.row)
        self._limited.get(parked.queue, {}).pop(class_id, None)

    def _grow(self) -> None:
        rows = self._least.shape[1]
        more = 0 if self._empty else rows
        self._least = np.pad(self._least, ((0, len(self._axis) - len(self._least)), (0, more)))
        self._by_room = np.pad(self._by_room, (0, more))
        self._who += [None] * more
        self._empty += range(rows + more - 1, rows - 1, -1)

    def verdicts(self) -> Mapping[model.ClassId, model.Verdict]:
        """Why each is parked."""
        return {class_id: parked.verdict for class_id, parked in self._parked.items()}

    def woken_by(self, what: Wake) -> list[model.ClassId]:
        """Who may be helped by an event of this kind."""
        return [class_id for class_id, parked in self._parked.items() if what in parked.helps]

    def woken_by_room(self, free: model.IntVector | None, queue: model.QueueName | None) -> list[model.ClassId]:
        """Who fits what is free on a node, or waits for its queue's usage to fall."""
        woken = list(self._limited.get(queue, ())) if queue is not None else []
        if free is None:
            return woken
        # Requests of 0 fit where a resource is over-committed, as in kube-scheduler.
        fits = (self._least[: len(free)] <= np.maximum(free, 0)[:, None]).all(axis=0) & self._by_room
        return woken + [class_id for i in fits.nonzero()[0].tolist() if (class_id := self._who[i]) is not None]

    def woken_by_time(self, now_s: float) -> list[model.ClassId]:
        """Whose hold ends, or who is parked for long."""
        if now_s < self._earliest_s:
            return []
        woken = [class_id for class_id, parked in self._parked.items() if parked.until_s <= now_s]
        later = (parked.until_s for parked in self._parked.values() if parked.until_s > now_s)
        self._earliest_s = min(later, default=math.inf)
        return woken

    def next_s(self) -> float:
        """When `woken_by_time` may have somebody, at the earliest."""
        return self._earliest_s if self._parked else math.inf
