"""The classes of the scheduling queue as columns: who looks, who is unschedulable, and who is woken by what."""

from __future__ import annotations

import enum
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_policies.framework.queue.queued_class import QueuedClass


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
    model.Code.QUEUE_NOT_ALLOWED: int(Wake.QUEUES),
    model.Code.JOB_ORDER: int(Wake.ROOM | Wake.NODES | Wake.JOBS),
    model.Code.PATIENCE: int(Wake.ROOM | Wake.NODES | Wake.JOBS),
    model.Code.GANG: int(Wake.ROOM | Wake.NODES | Wake.JOBS),
}


_ROOM, _QUEUE = int(Wake.ROOM), int(Wake.QUEUE)  # plain numbers: enum's own operators are slow

FLUSH_S = 60.0  # a safety net, as kube-scheduler's flush after 5 minutes; a queue of jobs is looked at sooner


class UnschedulableClasses:
    """One row for each class, which it keeps as long as it exists.

    Attributes:
        active: Who looks at all nodes in the next cycle, shape [rows].
        standing: Who is looked at in every cycle, but is no reason to run one, shape [rows].
        stirred: Parked for want of room, and some came free on nodes of `freed`: only there can it go, shape [rows].
        freed: Nodes where room came free since the last cycle, and what was free when it did.
        unseen: Those of them that `stir` did not look at.
        changes: Another number whenever it is others who look.
    """

    def __init__(self, axis: model.Axis) -> None:
        self._axis = axis
        self._who: list[QueuedClass | None] = []
        self._verdicts: list[model.Verdict | None] = []
        self._sizes: list[model.IntVector | None] = []
        self._limited: dict[model.QueueName, dict[int, None]] = {}
        self._vacant: list[int] = []
        self._least = np.zeros((len(axis), 0), np.int64)
        self._most = [0] * len(axis)  # no size was ever larger
        self._helps = np.zeros(0, np.int64)
        self._until_s = np.zeros(0)
        self._needs_room = np.zeros(0, np.bool_)  # waits for room, which it can only find where some came free
        self._needs_more = np.zeros(0, np.bool_)  # waits for room, and for more than that
        self.active = np.zeros(0, np.bool_)
        self.always_active = np.zeros(0, np.bool_)
        self.matches_freed = np.zeros(0, np.bool_)
        self.freed: dict[model.NodeName, Sequence[int]] = {}
        self.changes = 0
        self._active: set[int] = set()  # the same as the columns: quicker to ask whether there is anybody
        self._always_active: set[int] = set()
        self._parked: set[int] = set()
        self._need_more: set[int] = set()  # the rows of `_far`
        self.unmatched: dict[model.NodeName, Sequence[int]] = {}
        self._earliest_s = math.inf

    # Rows

    def admit(self, queued: QueuedClass, before: QueuedClass | None) -> None:
        """Give a class a row: that of what it was before, whose state it takes over, or an empty one."""
        if before is not None:
            queued.row = before.row
        else:
            if not self._vacant:
                self._grow(max(16, len(self._who)))
            queued.row = self._vacant.pop()
        self._who[queued.row] = queued

    def remove(self, row: int) -> None:
        """The class does not exist any more."""
        self.leave(row)
        self.look(row, active=False, always_active=False)
        self._who[row] = self._sizes[row] = None
        self._vacant.append(row)

    def _grow(self, more: int) -> None:
        rows = len(self._who)
        self._least = np.pad(self._least, ((0, 0), (0, more)))
        self._helps, self._until_s = np.pad(self._helps, (0, more)), np.pad(self._until_s, (0, more))
        self._needs_room, self._needs_more = np.pad(self._needs_room, (0, more)), np.pad(self._needs_more, (0, more))
        self.active, self.always_active = np.pad(self.active, (0, more)), np.pad(self.always_active, (0, more))
        self.matches_freed = np.pad(self.matches_freed, (0, more))
        self._who += [None] * more
        self._verdicts += [None] * more
        self._sizes += [None] * more
        self._vacant += range(rows + more - 1, rows - 1, -1)

    def look(self, row: int, *, active: bool | None = None, always_active: bool | None = None) -> None:
        """Say whether a class looks at all nodes in the next cycle, or in every one."""
        self.changes += 1
        for looks, column, rows in (
            (active, self.active, self._active),
            (always_active, self.always_active, self._always_active),
        ):
            if looks is not None:
                column[row] = looks
                (rows.add if looks else rows.discard)(row)

    # Parking

    def enter(
        self, queued: QueuedClass, least: model.IntVector, verdict: model.Verdict, now_s: float, until_s: float | None
    ) -> None:
        """Park a class, or park it anew, at the latest until `until_s`."""
        row = queued.row
        helps = _HELPS[verdict.code]
        if self._sizes[row] is not least:
            self._measure(row, least)
        if self._helps[row] & _QUEUE:
            self._limited[queued.job.queue].pop(row, None)
        if helps & _QUEUE:
            self._limited.setdefault(queued.job.queue, {})[row] = None
        self._verdicts[row] = verdict
        self._helps[row] = helps
        self._parked.add(row)
        near = verdict.code is model.Code.UNSCHEDULABLE and queued.is_plain
        self._needs_room[row], self._needs_more[row] = near, helps & _ROOM and not near
        (self._need_more.add if self._needs_more[row] else self._need_more.discard)(row)
        self.look(row, active=False)
        self.matches_freed[row] = False
        until_s = now_s + FLUSH_S if until_s is None else min(until_s, now_s + FLUSH_S)
        self._until_s[row] = until_s
        self._earliest_s = min(self._earliest_s, until_s)

    def _measure(self, row: int, least: model.IntVector) -> None:
        if len(self._axis) != len(self._least):
            self._least = np.pad(self._least, ((0, len(self._axis) - len(self._least)), (0, 0)))
            self._most += [0] * (len(self._axis) - len(self._most))
        self._sizes[row] = least
        self._least[:, row] = 0
        self._least[: len(least), row] = least
        self._most = list(map(max, self._most, self._least[:, row].tolist()))

    def leave(self, row: int) -> None:
        """The class is not parked any more; nothing happens if it was not."""
        if row not in self._parked:
            return
        if self._helps[row] & _QUEUE:
            for limited in self._limited.values():
                limited.pop(row, None)
        self._helps[row] = 0
        self._parked.discard(row)
        self._needs_room[row] = self._needs_more[row] = self.matches_freed[row] = False
        self._need_more.discard(row)
        self._verdicts[row] = None
        self.changes += 1

    def settled(self, now_s: float) -> None:
        """A cycle looked at whom room had stirred: who is parked still is so from now on, for the same reason."""
        if self.freed:
            self._until_s[self.matches_freed] = now_s + FLUSH_S
            self.matches_freed[:] = False
            self.freed.clear()
            self.changes += 1

    # Reading

    def verdicts(self) -> Mapping[model.ClassId, model.Verdict]:
        """Why each is parked."""
        unschedulable = (
            (self._who[row], self._verdicts[row]) for row in _rows((self._helps != 0) & ~self.matches_freed)
        )
        return {one.task_class.id: verdict for one, verdict in unschedulable if one is not None and verdict is not None}

    def looking(self) -> bool:
        """Whether somebody is worth a cycle."""
        return bool(self._active) or bool(self.freed and np.count_nonzero(self.matches_freed))

    def none_stands(self) -> bool:
        """Whether nobody is to be looked at in every cycle."""
        return not self._always_active

    def only_stirred(self) -> bool:
        """Whether nobody looks at more than the nodes of `freed`."""
        return not self._active and not self._always_active

    def looks(self, row: int) -> bool:
        """Whether the next cycle looks at a class."""
        return bool(self.active[row] or self.matches_freed[row])

    def next_s(self) -> float:
        """When `woken_by_time` may have somebody, at the earliest."""
        return self._earliest_s if self._parked else math.inf

    def _some(self, mask: model.BoolVector) -> list[QueuedClass]:
        return [one for row in _rows(mask) if (one := self._who[row]) is not None]

    # Waking

    def woken_by(self, what: Wake) -> list[QueuedClass]:
        """Who may be helped by an event of this kind."""
        return self._some(self._helps & int(what) != 0)

    def held_by_limit(self, queue: model.QueueName | None) -> list[QueuedClass]:
        """Who waits for its queue's usage to fall."""
        limited = self._limited.get(queue) if self._limited and queue is not None else None
        return [one for row in limited if (one := self._who[row]) is not None] if limited else []

    def room_on(self, node: model.NodeName, free: Sequence[int]) -> None:
        """Room came free on a node: remembered, and compared with all sizes at once when somebody wants to know."""
        self.unmatched[node] = free

    def match_freed(self) -> list[QueuedClass]:
        """Compare the room that came free since the last call with the sizes of all.

        Of several nodes the most of each resource counts: one comparison, which now and then lets somebody look for
        whom no single node has room. Who is plain is `stirred`: of the nodes, it need only look at those of `freed`.

        Returns:
            The others whom the room fits: they may go elsewhere too by now.
        """
        rooms, self.unmatched = self.unmatched, {}
        if not rooms or not self._parked:
            return []
        self.freed.update(rooms)
        # Requests of 0 fit where a resource is over-committed, as in kube-scheduler. The shortest vector ends the list:
        # newer resources are in the longer ones alone.
        room = list(map(max, _ZEROS, *rooms.values()))
        self.matches_freed |= self._fitting(room, self._needs_room)
        self.changes += 1
        return self._some(self._fitting(room, self._needs_more)) if self._need_more else []

    def _fitting(self, room: Sequence[int], among: model.BoolVector) -> model.BoolVector:
        """Whose size is not above this room; what there is enough of for everybody is not compared."""
        for row, (most, amount) in enumerate(zip(self._most, room, strict=False)):
            if amount < most:
                among = among & (self._least[row] <= amount)
        return among

    def woken_by_time(self, now_s: float) -> list[QueuedClass]:
        """Whose hold ends, or who is parked for long."""
        if now_s < self._earliest_s:
            return []
        unschedulable = self._helps != 0
        due = unschedulable & (self._until_s <= now_s)
        self._earliest_s = float(self._until_s[unschedulable & ~due].min(initial=math.inf))
        return self._some(due)


_ZEROS = itertools.repeat(0)


def _rows(mask: model.BoolVector) -> list[int]:
    rows: list[int] = mask.nonzero()[0].tolist()
    return rows
