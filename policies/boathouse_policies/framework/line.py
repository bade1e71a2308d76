"""Whose turn it is: fair sharing between queues, then the profile's order of jobs, then the job's order of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.want import Want

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from boathouse_policies.framework.extension import Regrouping
    from boathouse_policies.framework.lineup import Band
    from boathouse_policies.framework.policy import Profile
    from boathouse_policies.framework.scratch import Scratch
    from boathouse_policies.framework.waiting import Waiting, WaitingRoom


class _Turn:
    """A job whose turn came: its open classes in order."""

    __slots__ = ("band", "job", "place", "wants")

    def __init__(self, job: model.Job, wants: list[Want], band: _Band, place: int) -> None:
        self.job = job
        self.wants = wants
        self.band = band
        self.place = place


class _Band:
    """Jobs of one queue and one priority, with their keys; infinite for a job with no open class."""

    __slots__ = ("keys", "members", "open")

    def __init__(self, members: Band, keys: Sequence[float] | model.FloatVector) -> None:
        self.members = members
        self.keys = np.array(keys, np.float64)
        self.open = len(members.jobs)

    def close(self, place: int) -> None:
        self.keys[place] = np.inf
        self.open -= 1

    def confine(self, places: list[int]) -> None:
        keys = np.full(len(self.keys), np.inf)
        keys[places] = self.keys[places]
        self.keys = keys
        self.open = int(np.isfinite(keys).sum())


class _QueueLine:
    """The bands of one queue, the highest priority first."""

    __slots__ = ("bands", "limits", "queue", "share")

    def __init__(self, queue: model.Queue, axis: model.Axis) -> None:
        self.queue = queue
        self.bands: list[_Band] = []
        self.limits = [(name, axis.row(name), most) for name, most in queue.limits]
        self.share = 0.0

    def first(self) -> _Band | None:
        while self.bands and not self.bands[0].open:
            self.bands.pop(0)
        return self.bands[0] if self.bands else None


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
        self._lineup = room.lineup()
        self._turns: dict[model.JobId, _Turn] = {}
        self._wants: dict[model.ClassId, Want] = {}
        self._closed: set[model.ClassId] = set()
        self._allowed: Collection[model.ClassId] | None = None
        self._queues: dict[model.QueueName, _QueueLine] = {}
        self._bands = [self._band(members, room) for members in self._lineup.bands]
        for line in self._queues.values():
            self._share(line)
        self._monotone = profile.monotone_in(scratch)
        self.orphans = [self._want(one) for one in self._lineup.orphans]
        self._first = [self._want(one) for one in self._lineup.gangs if self._begun(one, room)]
        self._owners: list[Want] = []
        if scratch.all_kept:
            owners = scratch.owners()
            self._owners = [self._want(one) for one in self._lineup.waiting if one.task_class.id in owners]
        # Not isinstance: for a protocol that costs as much as a small cycle.
        self._regrouping = cast("Regrouping", profile.order) if hasattr(profile.order, "generation") else None
        self._generation = 0 if self._regrouping is None else self._regrouping.generation(scratch)

    def _band(self, members: Band, room: WaitingRoom) -> _Band:
        band = _Band(members, self._profile.order.keys(members.jobs, self._scratch))
        line = self._queues.get(members.queue)
        if line is None:
            line = self._queues[members.queue] = _QueueLine(room.queues[members.queue], self._scratch.view.axis)
        line.bands.append(band)
        return band

    def _want(self, waiting: Waiting) -> Want:
        want = self._wants.get(waiting.task_class.id)
        if want is None:
            want = self._wants[waiting.task_class.id] = Want(waiting, self._profile, self._scratch)
        return want

    def _turn(self, job: model.JobId) -> _Turn:
        turn = self._turns.get(job)
        if turn is None:
            number, place = self._lineup.places[job]
            band = self._bands[number]
            wants = [
                self._want(one)
                for one in band.members.classes[place]
                if self._allowed is None or one.task_class.id in self._allowed
            ]
            turn = self._turns[job] = _Turn(band.members.jobs[place], wants, band, place)
        return turn

    def _begun(self, waiting: Waiting, room: WaitingRoom) -> bool:
        classes = (one.task_class for one in room.classes_of(waiting.job.id))
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
        best: tuple[float, _Band] | None = None
        for line in self._queues.values():  # in the order of names, so the first of equals wins
            if best is None or line.share < best[0]:
                band = line.first()
                if band is not None:
                    best = (line.share, band)
        if best is None:
            return None
        return self._turn(best[1].members.jobs[int(best[1].keys.argmin())].id).wants[0]

    def classes_of(self, job: model.JobId) -> Sequence[Want]:
        """The open classes of a job, in its order."""
        return tuple(self._turn(job).wants)

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
        turn = self._turn(want.job.id)
        self._share(self._queues[want.job.queue])
        if turn.wants or self._regrouping is not None:
            key = self._keys((turn,))[0]
            if turn.wants:
                turn.band.keys[turn.place] = key
        if self._regrouping is not None and self._regrouping.generation(self._scratch) != self._generation:
            self._generation = self._regrouping.generation(self._scratch)
            self._ask_again()

    def _ask_again(self) -> None:
        for band in self._bands:
            turns = [turn for job in band.members.jobs if (turn := self._turn(job.id)).wants]
            if turns:
                band.keys[[turn.place for turn in turns]] = self._keys(turns)

    def close(self, want: Want) -> None:
        """The class has no turn any more in this cycle."""
        self._closed.add(want.task_class.id)
        turn = self._turn(want.job.id)
        if want not in turn.wants:
            return
        turn.wants.remove(want)
        if not turn.wants:
            turn.band.close(turn.place)

    def confine(self, classes: Collection[model.ClassId]) -> None:
        """Only these classes have turns from now on; the others stay open, for another cycle."""
        self._allowed = classes
        for turn in self._turns.values():
            turn.wants = [want for want in turn.wants if want.task_class.id in classes]
        jobs = {self._lineup.jobs[one] for one in classes if one in self._lineup.jobs and one not in self._closed}
        places = [self._lineup.places[job] for job in jobs]
        for number, band in enumerate(self._bands):
            band.confine([place for i, place in places if i == number])

    def rest(self) -> Sequence[Want]:
        """All open classes."""
        return [self._want(one) for one in self._lineup.waiting if one.task_class.id not in self._closed]

    def hopeless(self, failed: Want) -> Iterable[Want]:
        """Open classes that fit nowhere either, because this one did not: seen at once, not one by one.

        Room only shrinks within a cycle. So what asks for at least as much under the same constraints fails too, and
        what asks for more of something than any node has free.
        """
        if not self._monotone:
            return ()
        waiting, sizes = self._lineup.waiting, self._lineup.sizes(self._profile.sizer, self._scratch.view.axis)
        scratch, rows = self._scratch, len(sizes)
        most = scratch.free[:rows, scratch.offered].max(axis=1, initial=0)
        too_large = (sizes > most[:, None]).any(axis=0)
        as_large = (sizes >= failed.least[:rows, None]).all(axis=0)
        constraints = failed.task_class.constraints
        candidates = (too_large | as_large).nonzero()[0].tolist()
        return [
            self._want(waiting[i])
            for i in candidates
            if not (one := waiting[i].task_class).gang_min
            and one.id not in self._closed
            and (too_large[i] or one.constraints == constraints)
        ]
