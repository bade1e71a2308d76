"""Parked classes: who is woken by what, without looking at each."""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boathouse_policies import model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_policies.framework.waiting import Waiting


class Wake(enum.IntFlag):
    """What may help a parked class."""

    ROOM = enum.auto()
    NODES = enum.auto()
    QUEUE = enum.auto()
    QUEUES = enum.auto()
    JOBS = enum.auto()


_HELPS: dict[model.Code, int] = {
    model.Code.UNSCHEDULABLE: int(Wake.ROOM | Wake.NODES),
    model.Code.SIZING: int(Wake.ROOM | Wake.NODES),
    model.Code.NOT_OFFERED: int(Wake.ROOM | Wake.NODES),
    model.Code.NEVER_FITS: int(Wake.NODES),
    model.Code.QUEUE_LIMIT: int(Wake.QUEUE | Wake.QUEUES),
    model.Code.UNKNOWN_QUEUE: int(Wake.QUEUES),
    model.Code.JOB_ORDER: int(Wake.ROOM | Wake.NODES | Wake.JOBS),
    model.Code.PATIENCE: int(Wake.ROOM | Wake.NODES | Wake.JOBS),
    model.Code.GANG: int(Wake.ROOM | Wake.NODES | Wake.JOBS),
}


_ROOM, _QUEUE = int(Wake.ROOM), int(Wake.QUEUE)  # plain numbers: enum's own operators are slow

FLUSH_S = 60.0  # a safety net, as kube-scheduler's flush after 5 minutes; a queue of jobs is looked at sooner


class _Place(NamedTuple):
    row: int
    least: model.IntVector


class _Parked(NamedTuple):
    queue: model.QueueName
    verdict: model.Verdict
    helps: int
    until_s: float


class Parking:
    """Classes by row of a matrix of sizes, so that freed room is compared with all of them at once."""

    def __init__(self, axis: model.Axis) -> None:
        self._axis = axis
        self._parked: dict[model.ClassId, _Parked] = {}
        self._places: dict[model.ClassId, _Place] = {}
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
        place = self._places.get(class_id)
        if place is None or place.least is not least:
            place = self._settle_in(class_id, least)
        helps = _HELPS[verdict.code]
        self._by_room[place.row] = helps & _ROOM != 0
        if helps & _QUEUE:
            self._limited.setdefault(queue, {})[class_id] = None
        until_s = now_s + FLUSH_S if until_s is None else min(until_s, now_s + FLUSH_S)
        self._parked[class_id] = _Parked(queue, verdict, helps, until_s)
        self._earliest_s = min(self._earliest_s, until_s)

    def leave(self, class_id: model.ClassId) -> None:
        """The class is not parked any more; nothing happens if it was not."""
        parked = self._parked.pop(class_id, None)
        if parked is None:
            return
        self._by_room[self._places[class_id].row] = False
        if parked.helps & _QUEUE:
            self._limited[parked.queue].pop(class_id, None)

    def remove(self, class_id: model.ClassId) -> None:
        """The class does not exist any more."""
        self.leave(class_id)
        place = self._places.pop(class_id, None)
        if place is not None:
            self._who[place.row] = None
            self._empty.append(place.row)

    def _settle_in(self, class_id: model.ClassId, least: model.IntVector) -> _Place:
        """A class keeps its row as long as it exists: it is parked and woken often."""
        place = self._places.get(class_id)
        if (place is None and not self._empty) or len(self._axis) != len(self._least):
            self._grow()
        place = _Place(self._empty.pop() if place is None else place.row, least)
        self._places[class_id] = place
        self._who[place.row] = class_id
        self._least[:, place.row] = 0
        self._least[: len(least), place.row] = least
        return place

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
        return [class_id for class_id, parked in self._parked.items() if parked.helps & what]

    def woken_by_room(self, free: model.IntVector | None, queue: model.QueueName | None) -> list[model.ClassId]:
        """Who fits what is free on a node, or waits for its queue's usage to fall."""
        woken = list(self._limited.get(queue, ())) if queue is not None else []
        if free is None:
            return woken
        # Requests of 0 fit where a resource is over-committed, as in kube-scheduler.
        rows = min(len(self._least), len(free))  # whoever asks for a newer resource is parked by a longer vector
        fits = (self._least[:rows] <= np.maximum(free[:rows], 0)[:, None]).all(axis=0) & self._by_room
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
