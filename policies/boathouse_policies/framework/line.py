"""Whose turn it is: fair sharing between queues, then the profile's order of jobs, then the job's order of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.extension import Regrouping
from boathouse_policies.framework.want import Want

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boathouse_policies.framework.policy import Profile
    from boathouse_policies.framework.scratch import Scratch
    from boathouse_policies.framework.waiting import WaitingRoom


class _Turn:
    """A job in the line: its open classes in order."""

    __slots__ = ("band", "job", "place", "wants")

    def __init__(self, job: model.Job) -> None:
        self.job = job
        self.wants: list[Want] = []
        self.band: _Band | None = None
        self.place = 0


class _Band:
    """Jobs of one queue and one priority, with their keys; infinite for a job with no open class."""

    __slots__ = ("keys", "open", "turns")

    def __init__(self, turns: Sequence[_Turn], keys: Sequence[float] | model.FloatVector) -> None:
        self.turns = turns
        self.keys = np.array(keys, np.float64)
        self.open = len(turns)
        for place, turn in enumerate(turns):
            turn.band, turn.place = self, place

    def close(self, turn: _Turn) -> None:
        self.keys[turn.place] = np.inf
        self.open -= 1

    def first(self) -> _Turn:
        return self.turns[int(self.keys.argmin())]


class _QueueLine:
    """The bands of one queue, the highest priority first."""

    __slots__ = ("bands", "limits", "queue", "share")

    def __init__(self, queue: model.Queue, bands: list[_Band], axis: model.Axis) -> None:
        self.queue = queue
        self.bands = bands
        self.limits = [(name, axis.row(name), most) for name, most in queue.limits]
        self.share = 0.0

    def first(self) -> _Turn | None:
        while self.bands and not self.bands[0].open:
            self.bands.pop(0)
        return self.bands[0].first() if self.bands else None


class Line:
    """The classes of a cycle in the order of their turns.

    Queues go by dominant share over weight, the least first (Ghodsi et al., "Dominant Resource Fairness", NSDI 2011,
    with weights as in 4.3), ties by name. Within a queue: the higher priority, then the profile's key, then submission.
    Before all: gangs that have begun and are short of their minimum, for what they hold is of no use without it; and as
    long as every node on offer is kept for somebody, those whom they are kept for.

    Attributes:
        orphans: Classes of jobs whose queue does not exist.
    """

    def __init__(self, room: WaitingRoom, profile: Profile, scratch: Scratch) -> None:
        self._profile = profile
        self._scratch = scratch
        self._turns: dict[model.JobId, _Turn] = {}
        self._wants: list[Want] = []
        self._first: list[Want] = []
        self._owners: list[Want] = []
        self._sizes: tuple[model.IntMatrix, list[Want]] | None = None
        self._closed: set[model.ClassId] = set()
        self.orphans: list[Want] = []
        self._queues: dict[model.QueueName, _QueueLine] = {}
        self._fill(room)
        order = profile.order
        self._regrouping = order if isinstance(order, Regrouping) else None
        self._generation = 0 if self._regrouping is None else self._regrouping.generation(scratch)

    def _fill(self, room: WaitingRoom) -> None:
        for waiting in room.active():
            want = Want(waiting, self._profile, self._scratch)
            if want.job.queue not in room.queues:
                self.orphans.append(want)
                continue
            turn = self._turns.get(want.job.id)
            if turn is None:
                turn = self._turns[want.job.id] = _Turn(want.job)
            turn.wants.append(want)
            self._wants.append(want)
            if want.task_class.gang_min and self._begun(want, room):
                self._first.append(want)
        by_queue: dict[model.QueueName, dict[int, list[_Turn]]] = {}
        for turn in self._turns.values():
            by_queue.setdefault(turn.job.queue, {}).setdefault(-turn.job.priority, []).append(turn)
        for name in sorted(by_queue):
            bands = [_Band(turns, self._keys(turns)) for _, turns in sorted(by_queue[name].items(), key=_rank)]
            line = _QueueLine(room.queues[name], bands, self._scratch.view.axis)
            self._queues[name] = line
        for line in self._queues.values():
            self._share(line)
        if self._scratch.all_kept:
            owners = self._scratch.owners()
            self._owners = [want for want in self._wants if want.task_class.id in owners]

    def _begun(self, want: Want, room: WaitingRoom) -> bool:
        classes = (waiting.task_class for waiting in room.classes_of(want.job.id))
        return any(one.gang_min and self._scratch.placed(one.id) for one in classes)

    def _keys(self, turns: Sequence[_Turn]) -> Sequence[float] | model.FloatVector:
        return self._profile.order.keys([turn.job for turn in turns], self._scratch)

    def _share(self, line: _QueueLine) -> None:
        if len(self._queues) > 1:
            usage = self._scratch.queue_usage(line.queue.name)
            line.share = self._scratch.dominant_share(usage) / line.queue.weight

    def next_class(self) -> Want | None:
        """The class whose turn it is; None when all are closed."""
        while self._first:
            want = self._first[0]
            if (
                want.task_class.id not in self._closed
                and self._scratch.placed(want.task_class.id) < want.task_class.gang_min
            ):
                return want
            self._first.pop(0)
        while self._owners and self._scratch.all_kept:
            if self._owners[0].task_class.id not in self._closed:
                return self._owners[0]
            self._owners.pop(0)
        best: tuple[float, _Turn] | None = None
        for line in self._queues.values():  # in the order of names, so the first of equals wins
            if best is None or line.share < best[0]:
                turn = line.first()
                if turn is not None:
                    best = (line.share, turn)
        return None if best is None else best[1].wants[0]

    def classes_of(self, job: model.JobId) -> Sequence[Want]:
        """The open classes of a job, in its order."""
        return tuple(self._turns[job].wants)

    def over_limit(self, want: Want, size: model.IntVector) -> model.Verdict | None:
        """Whether one more task of this size would exceed the limits of the class' queue."""
        line = self._queues[want.job.queue]
        if not line.limits:
            return None
        usage = self._scratch.queue_usage(line.queue.name)
        for name, row, most in line.limits:
            need = int(size[row]) if row < len(size) else 0
            if need and usage[row] + need > most:
                held = f"queue {line.queue.name!r} holds {int(usage[row])} of its limit of {most} {name}"
                return model.Verdict(code=model.Code.QUEUE_LIMIT, message=f"{held}; one task asks for {need}")
        return None

    def placed(self, want: Want) -> None:
        """A task of the class was placed: its job's key and its queue's share are mended."""
        if not want.left:
            self.close(want)
        self.taken_back(want)

    def taken_back(self, want: Want) -> None:
        """What the class' job holds changed: mend its key and its queue's share."""
        turn = self._turns[want.job.id]
        self._share(self._queues[want.job.queue])
        if turn.band is not None and (turn.wants or self._regrouping is not None):
            key = self._keys((turn,))[0]
            if turn.wants:
                turn.band.keys[turn.place] = key
        if self._regrouping is not None and self._regrouping.generation(self._scratch) != self._generation:
            self._generation = self._regrouping.generation(self._scratch)
            self._ask_again()

    def _ask_again(self) -> None:
        for line in self._queues.values():
            for band in line.bands:
                turns = [turn for turn in band.turns if turn.wants]
                if turns:
                    band.keys[[turn.place for turn in turns]] = self._keys(turns)

    def close(self, want: Want) -> None:
        """The class has no turn any more in this cycle."""
        turn = self._turns[want.job.id]
        if want not in turn.wants:
            return
        turn.wants.remove(want)
        self._closed.add(want.task_class.id)
        if not turn.wants and turn.band is not None:
            turn.band.close(turn)

    def rest(self) -> Sequence[Want]:
        """All open classes."""
        return [want for want in self._wants if want.task_class.id not in self._closed]

    def hopeless(self, failed: Want) -> Iterable[Want]:
        """Open classes that fit nowhere either, because this one did not: seen at once, not one by one.

        Room only shrinks within a cycle. So what asks for at least as much under the same constraints fails too, and
        what asks for more of something than any node has free.
        """
        if not self._profile.monotone:
            return ()
        if self._sizes is None:
            wants = [want for want in self._wants if want.task_class.id not in self._closed]
            self._sizes = (np.array([want.least for want in [failed, *wants]]).T[:, 1:], wants)
        sizes, wants = self._sizes
        if not wants:
            return ()
        scratch, rows = self._scratch, len(sizes)
        most = scratch.free[:rows, scratch.offered].max(axis=1, initial=0)
        too_large = (sizes > most[:, None]).any(axis=0)
        as_large = (sizes >= failed.least[:rows, None]).all(axis=0)
        constraints = failed.task_class.constraints
        candidates = (too_large | as_large).nonzero()[0].tolist()
        return [
            want
            for i in candidates
            if not (want := wants[i]).task_class.gang_min
            and want.task_class.id not in self._closed
            and (too_large[i] or want.task_class.constraints == constraints)
        ]


def _rank(band: tuple[int, list[_Turn]]) -> int:
    return band[0]
