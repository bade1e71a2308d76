"""The classes of the scheduling queue as columns: which are active, which are unschedulable, and what wakes those."""

import collections
import enum
import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.queue.queued_class import QueuedClass


class Wake(enum.IntFlag):
    """What may help an unschedulable class, beside the time until which the cycle decided to wait."""

    ROOM = enum.auto()  # freed on a node that the size fits
    NODES = enum.auto()  # added or changed
    QUEUES = enum.auto()  # changed
    JOBS = enum.auto()  # withdrawn


_WOKEN_BY: dict[model.Code, Wake] = {
    model.Code.UNSCHEDULABLE: Wake.ROOM | Wake.NODES,
    model.Code.SIZING: Wake.ROOM | Wake.NODES,
    model.Code.NOT_OFFERED: Wake.ROOM | Wake.NODES,
    model.Code.NEVER_FITS: Wake.NODES,
    model.Code.QUEUE_LIMIT: Wake.QUEUES,  # and once the usage of that queue falls
    model.Code.UNKNOWN_QUEUE: Wake.QUEUES,
    model.Code.QUEUE_NOT_ALLOWED: Wake.QUEUES,
    model.Code.JOB_ORDER: Wake.ROOM | Wake.NODES | Wake.JOBS,
    model.Code.PATIENCE: Wake.ROOM | Wake.NODES | Wake.JOBS,
    model.Code.GANG: Wake.ROOM | Wake.NODES | Wake.JOBS,
}

FLUSH_S = 60.0  # a safety net, as kube-scheduler's flush after 5 minutes; a queue of jobs is considered sooner


class UnschedulableClasses:
    """One row for each class, as long as the class exists."""

    def __init__(self, axis: model.Axis) -> None:
        self._axis = axis
        self._classes: list[QueuedClass | None] = []
        self._vacant: list[int] = []
        self._limited: dict[model.QueueName, dict[int, QueuedClass]] = collections.defaultdict(dict)
        self._bytes = bytearray()  # the flags as they lie in memory: to search them costs less than an array's methods
        self.earliest_s = math.inf  # when `woken_by_time` may return a class, at the earliest
        self._woken_by = np.zeros(0, np.int64)  # 0 for a class that is not unschedulable
        self._until_s = np.zeros(0)
        self._least = np.zeros((axis.width, 0), np.int64)
        self._largest = [0] * axis.width  # no size was ever larger
        # The room on nodes where it came free since the last cycle, by resource: what `match_freed` compared, the rest.
        self.freed: dict[model.NodeName, Sequence[int]] = {}
        self.unmatched: dict[model.NodeName, Sequence[int]] = {}
        self._grow(16)

    # Rows

    def add(self, queued: QueuedClass) -> None:
        """Give a class a row."""
        if not self._vacant:
            self._grow(len(self._classes))
        queued.row = self._vacant.pop()
        self._classes[queued.row] = queued

    def remove(self, queued: QueuedClass) -> None:
        """Free the row of a class that does not exist any more."""
        self._leave(queued)
        self.active[queued.row] = self.always_active[queued.row] = False
        self._classes[queued.row] = None
        self._vacant.append(queued.row)

    def _grow(self, more: int) -> None:
        rows = len(self._classes)
        flags = np.frombuffer(self._bytes, np.bool_).reshape(_FLAGS, rows)
        self._bytes = bytearray(np.pad(flags, ((0, 0), (0, more))).tobytes())
        columns = np.frombuffer(self._bytes, np.bool_).reshape(_FLAGS, rows + more)
        # Classes that every cycle considers, but that are no reason to run one; for which the next considers all nodes;
        # and unschedulable ones for whose size room came free on nodes of `freed`, the only ones that it considers.
        self.always_active, self.active, self.matches_freed, self._needs_only_room, self._needs_more = columns
        self._woken_by = np.pad(self._woken_by, (0, more))
        self._until_s = np.pad(self._until_s, (0, more), constant_values=math.inf)
        self._least = np.pad(self._least, ((0, 0), (0, more)))
        self._classes += [None] * more
        self._vacant += range(rows + more - 1, rows - 1, -1)

    def activate(self, queued: QueuedClass) -> None:
        """Let the next cycle consider all nodes for a class, if it has pending tasks."""
        self._leave(queued)
        self.active[queued.row] = queued.pool.count > 0

    def _leave(self, queued: QueuedClass) -> None:
        row = queued.row
        self._woken_by[row], self._until_s[row] = 0, math.inf
        self.matches_freed[row] = self._needs_only_room[row] = self._needs_more[row] = False
        if queued.job.queue in self._limited:
            self._limited[queued.job.queue].pop(row, None)

    def enter(
        self, queued: QueuedClass, least: model.IntVector, verdict: model.Verdict, now_s: float, until_s: float | None
    ) -> None:
        """Make a class unschedulable: until something wakes it, or until `until_s`, if that is a time."""
        self._leave(queued)
        row = queued.row
        if queued.least is not least:
            if self._axis.width > len(self._least):
                self._least = np.pad(self._least, ((0, self._axis.width - len(self._least)), (0, 0)))
            self._least[:, row] = 0
            self._least[: len(least), row] = least
            self._largest = list(map(max, itertools.zip_longest(self._largest, least.tolist(), fillvalue=0)))
        queued.least, queued.verdict = least, verdict
        self._woken_by[row] = _WOKEN_BY[verdict.code]
        if verdict.code is model.Code.QUEUE_LIMIT:
            self._limited[queued.job.queue][row] = queued
        only_room = verdict.code is model.Code.UNSCHEDULABLE and queued.is_plain
        self._needs_only_room[row] = only_room
        self._needs_more[row] = not only_room and verdict.code in _NEED_ROOM
        self.active[row] = False
        self._until_s[row] = due_s = now_s + FLUSH_S if until_s is None else min(until_s, now_s + FLUSH_S)
        self.earliest_s = min(self.earliest_s, due_s)

    def cycle_ended(self, now_s: float) -> None:
        """Keep the classes unschedulable that a cycle considered for freed room only: nothing else has changed."""
        if self.freed:
            np.copyto(self._until_s, now_s + FLUSH_S, where=self.matches_freed)
            self.matches_freed.fill(False)
            self.freed.clear()

    # Reading

    def verdicts(self) -> Mapping[model.ClassId, model.Verdict]:
        """Return why each class is unschedulable."""
        unschedulable = self._selected((self._woken_by != 0) & ~self.matches_freed)
        return {queued.task_class.id: queued.verdict for queued in unschedulable if queued.verdict is not None}

    def any_active(self) -> bool:
        """Return whether a class is a reason to run a cycle."""
        return self._bytes.find(1, len(self._classes), 3 * len(self._classes)) >= 0

    def considered(self) -> bytes:
        """Return the flags that say which classes the next cycle considers, and whether for all nodes."""
        return bytes(self._bytes[: 3 * len(self._classes)])

    def considers(self, queued: QueuedClass) -> bool:
        """Return whether the next cycle considers a class."""
        return bool(self.active[queued.row] or self.matches_freed[queued.row])

    def is_unschedulable(self, queued: QueuedClass) -> bool:
        """Return whether a class is unschedulable."""
        return bool(self._woken_by[queued.row])

    # Waking

    def woken_by(self, what: Wake) -> list[QueuedClass]:
        """Return the classes that an event of this kind may help."""
        return self._selected(self._woken_by & int(what) != 0)

    def woken_by_usage(self, queue: model.QueueName | None) -> list[QueuedClass]:
        """Return the classes that may start once the usage of their queue falls."""
        return list(self._limited[queue].values()) if queue in self._limited else []

    def woken_by_time(self, now_s: float) -> list[QueuedClass]:
        """Return the classes that are unschedulable until now, or for long."""
        if now_s < self.earliest_s:
            return []
        due = self._until_s <= now_s
        self.earliest_s = float(self._until_s[~due].min(initial=math.inf))
        return self._selected(due)

    def match_freed(self) -> list[QueuedClass]:
        """Compare the room that came free since the last call with the sizes of all unschedulable classes.

        Of several nodes the most of each resource counts. This is one comparison; now and then it matches a class for
        which no single node has room. Classes for which room alone decides are marked in `matches_freed`. The others
        are returned, for they may fit elsewhere too by now.
        """
        rooms, self.unmatched = self.unmatched, {}
        self.freed.update(rooms)
        if self._bytes.find(1, -2 * len(self._classes)) < 0:
            return []  # no class needs room
        # Requests of 0 fit where a resource is over-committed, as in kube-scheduler. The shortest vector ends the list:
        # newer resources are in the longer ones alone.
        room = list(map(max, itertools.repeat(0), *rooms.values()))
        self.matches_freed |= self._fitting(room, self._needs_only_room)
        return self._selected(self._fitting(room, self._needs_more)) if 1 in self._bytes[-len(self._classes) :] else []

    def _fitting(self, room: Sequence[int], among: model.BoolVector) -> model.BoolVector:
        for row, (largest, amount) in enumerate(zip(self._largest, room, strict=False)):
            if amount < largest:  # otherwise there is enough for every class
                among = among & (self._least[row] <= amount)
        return among

    def _selected(self, mask: model.BoolVector) -> list[QueuedClass]:
        return [queued for row in mask.nonzero()[0].tolist() if (queued := self._classes[row]) is not None]


_NEED_ROOM = {code for code, what in _WOKEN_BY.items() if Wake.ROOM in what}
_FLAGS = 5
