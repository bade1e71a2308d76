"""Whose turn it is.

Fair sharing between queues, then between the namespaces in a queue, then the profile's order of jobs, then the job's
order of classes.
"""

from __future__ import annotations

import bisect
import collections
import heapq
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.candidates import candidates
from boathouse_policies.framework.cycle_state import Want
from boathouse_policies.framework.ranking import Rankings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from boathouse_policies.framework.accounts import Share
    from boathouse_policies.framework.cycle_state import Scratch
    from boathouse_policies.framework.lineup import Band
    from boathouse_policies.framework.policy import Profile
    from boathouse_policies.framework.waiting import WaitingRoom


class _QueueLine:
    """The bands of one queue.

    Attributes:
        bands: Those of each namespace, the highest priority first; the namespaces in the order of their names.
        namespaces: How many share the queue, those that have no turn in this cycle included.
        places: The place of each namespace.
        counts: Whether other queues have turns too, so that its share counts.
        share: The dominant share of the queue over its weight.
        shares: The dominant share of each namespace; infinite once nothing of it is open.
    """

    __slots__ = ("_turns", "bands", "counts", "limits", "namespaces", "places", "queue", "share", "shares")

    def __init__(self, queue: model.Queue, axis: model.Axis, namespaces: int) -> None:
        self.queue = queue
        self.namespaces = namespaces
        self.bands: list[list[_Turns]] = []
        self.places: dict[model.NamespaceName, int] = {}
        self.limits = [(name, axis.row(name), most) for name, most in queue.limits]
        self.counts = False
        self.share = 0.0
        self.shares: list[float] = []
        self._turns: dict[tuple[model.NamespaceName, int], _Turns] = {}

    @property
    def is_shared(self) -> bool:
        """Whether several namespaces have pending tasks here."""
        return self.namespaces > 1

    def add(self, turns: _Turns) -> None:
        """Append a band."""
        band = turns.band
        if band.namespace not in self.places:
            self.places[band.namespace] = len(self.bands)
            self.bands.append([])
        self.bands[-1].append(turns)
        self._turns[band.namespace, band.priority] = turns

    def turns_of(self, job: model.Job) -> list[tuple[float, int]]:
        """The heap of a job's band."""
        return self._turns[job.namespace, job.priority].heap


class _Turns:
    """The open jobs of a band, the least key first: a heap, in which entries with an earlier key are out of date."""

    __slots__ = ("band", "heap")

    def __init__(self, band: Band, keys: Sequence[float], jobs: Sequence[int]) -> None:
        self.band = band
        self.heap = list(zip(keys, jobs, strict=True))
        heapq.heapify(self.heap)


class Line:
    """The classes of a cycle in the order of their turns.

    Queues go by dominant share over weight, the least first (Ghodsi et al., "Dominant Resource Fairness", NSDI 2011,
    with weights as in 4.3), ties by name. Within a queue namespaces go by dominant share of what their jobs hold of it,
    with equal weights. Within a namespace: the higher priority, then the profile's key, then submission.
    Before all: gangs that have begun and are short of their minimum, for what they hold is of no use without it; and as
    long as every node on offer is kept for somebody, those whom they are kept for.

    Attributes:
        rankings: Where each class may go.
        has_limits: Whether any queue has limits.
        orphans: Classes of jobs whose queue does not exist or does not accept them.
    """

    def __init__(self, room: WaitingRoom, profile: Profile, scratch: Scratch) -> None:
        self._profile = profile
        self._scratch = scratch
        self._lineup = lineup = room.lineup()
        self._wants: dict[int, Want] = {}
        self._allowed: Collection[model.ClassId] | None = None
        self._queues: dict[model.QueueName, _QueueLine] = {}
        self._kept: collections.Counter[Share] = collections.Counter()
        self.has_limits = lineup.has_limits
        self.orphans = [Want(one, profile, scratch) for one in lineup.orphans]
        self._candidates = candidates(lineup, profile, scratch, room.freed)
        self.rankings = Rankings(self._candidates, profile, scratch)
        # A reserve that does nothing for a class without room: then such a class needs no turn.
        self._skips = profile.reserve.is_idle(scratch)
        self._no_room: list[int] = []
        self._passed_over: list[int] = []
        self._dropped: list[int] = []
        self._is_over = False  # no node has room for anything
        # Where each job has one class, and none a gang, the place of the job is that of its class.
        self._has_room = self._candidates.has_room if lineup.single and not lineup.gangs else self._has_room_for_one
        looked_at = lineup.open
        if self._skips and (without_room := self._candidates.without_room()) is not None:
            looked_at = lineup.open & ~(without_room & ~lineup.in_gang)
            self._no_room += (lineup.open & ~looked_at).nonzero()[0].tolist()
        self._open: list[bool] = looked_at.tolist()
        self._keys: dict[int, float] = {}
        begun = [self._want(i) for i in lineup.gangs if self._open[i] and self._begun(i, room)]
        self._first = sorted(begun, key=_rank)
        self._owners: list[int] = []
        if scratch.kept and max(lineup.namespaces.values(), default=0) > 1:
            self._join_all(room, looked_at)
            self._give_kept_nodes_back()
            self._find_owners()
        else:
            self._find_owners()
            self._join_all(room, self._with_turns(looked_at))
        self._generation = profile.order.generation(scratch)

    def _find_owners(self) -> None:
        """Find those whom the nodes are kept for; once none of the first has room, only those that may pass matter."""
        if self._scratch.all_kept:
            lineup = self._lineup
            places = [lineup.places[owner] for owner in self._scratch.owners() if owner in lineup.places]
            self._owners = sorted([i for i in places if self._open[i]], key=lambda i: lineup.waiting[i].rank)
            if not self._first:
                self._next_owner()

    def _with_turns(self, looked_at: model.BoolVector) -> model.BoolVector:
        """The open classes that may have turns, shape [C]."""
        if self._allowed is None:
            return looked_at
        turns = np.zeros(len(self._open), np.bool_)
        places = [self._lineup.places.get(one) for one in self._allowed]
        turns[[place for place in places if place is not None and self._open[place]]] = True
        return turns

    def _join_all(self, room: WaitingRoom, looked_at: model.BoolVector) -> None:
        """Ask for the keys of the open jobs, and line them up by queue, namespace and priority."""
        lineup, scratch = self._lineup, self._scratch
        jobs = lineup.open_jobs(looked_at).nonzero()[0]
        keys = self._keys_of(jobs)
        if not keys:
            return
        self._keys = dict(zip(jobs.tolist(), keys, strict=True))
        first, listed = 0, jobs.tolist()
        for band in lineup.bands:
            last = bisect.bisect_left(listed, band.stop, first)
            if last > first:
                self._join(_Turns(band, keys[first:last], listed[first:last]), room)
            first = last
        several = len(self._queues) > 1
        for line in self._queues.values():
            line.counts = several
            if several or line.limits:
                scratch.count_queue(line.queue.name)
            if several:
                self._share(line)
            if line.is_shared:
                line.shares = [self._dominant_share(line, namespace) for namespace in line.places]
            else:
                line.shares = [0.0] * len(line.bands)

    def _keys_of(self, jobs: npt.NDArray[np.intp]) -> list[float]:
        order, lineup = self._profile.order, self._lineup
        if order.lasts:
            listed: list[float] = lineup.keys(order, self._scratch.view)[jobs].tolist()
            return listed
        return list(map(float, order.keys([lineup.jobs[job] for job in jobs.tolist()], self._scratch)))

    def _join(self, turns: _Turns, room: WaitingRoom) -> None:
        name = turns.band.queue
        line = self._queues.get(name)
        if line is None:
            axis = self._scratch.view.axis
            line = self._queues[name] = _QueueLine(room.queues[name], axis, self._lineup.namespaces[name])
        line.add(turns)
        if line.is_shared:
            self._scratch.count_share((name, turns.band.namespace))

    def _want(self, place: int) -> Want:
        want = self._wants.get(place)
        if want is None:
            want = self._wants[place] = Want(self._lineup.waiting[place], self._profile, self._scratch)
            want.place = place
        return want

    def _begun(self, place: int, room: WaitingRoom) -> bool:
        classes = (one.task_class for one in room.classes_of(self._lineup.waiting[place].job.id))
        return any(one.gang_min and self._scratch.placed(one.id) for one in classes)

    def _share(self, line: _QueueLine) -> None:
        usage = self._scratch.queue_usage(line.queue.name)
        line.share = self._scratch.dominant_share(usage) / line.queue.weight

    def _dominant_share(self, line: _QueueLine, namespace: model.NamespaceName) -> float:
        return self._scratch.dominant_share(self._scratch.share_usage((line.queue.name, namespace)))

    def _give_kept_nodes_back(self) -> None:
        """Keep no node for a namespace while another that has a turn holds less of the queue: the other goes first."""
        kept = self._scratch.kept
        behind = {owner for owner in set(kept.values()) if self._is_behind(owner)}
        for node in [node for node, owner in kept.items() if owner in behind]:
            self._scratch.release(node)
        places, waiting = self._lineup.places, self._lineup.waiting
        jobs = (waiting[places[owner]].job for owner in kept.values() if owner in places)
        self._kept.update((job.queue, job.namespace) for job in jobs)

    def _is_behind(self, owner: model.ClassId) -> bool:
        place = self._lineup.places.get(owner)
        if place is None:
            return False
        job = self._lineup.waiting[place].job
        line = self._queues.get(job.queue)
        return line is not None and self._dominant_share(line, job.namespace) > min(line.shares)

    def most_kept(self, want: Want) -> int | None:
        """How many more nodes may be kept for a class; None for any number.

        Where namespaces share a queue, one keeps an equal part of the nodes at most, and no more than it has tasks for:
        otherwise the others would stand still until a node is empty.
        """
        line = self._queues[want.job.queue]
        if not line.is_shared:
            return None
        part = max(1, len(self._scratch.offered) // line.namespaces)
        return max(0, min(want.left, part - self._kept[line.queue.name, want.job.namespace]))

    def kept(self, want: Want) -> None:
        """A node was kept for a class."""
        self._kept[want.job.queue, want.job.namespace] += 1

    def next_class(self) -> Want | None:
        """The class whose turn it is; None when all are closed."""
        while self._first:
            want = self._first[0]
            if self._open[want.place] and self._scratch.placed(want.task_class.id) < want.task_class.gang_min:
                return want
            self._first.pop(0)
        if self._scratch.all_kept and (owner := self._next_owner()) is not None:
            return owner
        if self._skips and not self._candidates.anything_fits and not self._lineup.gangs:
            self._is_over = True
            return None
        job = self._next_job()
        if job is None:
            return None
        place = self._lineup.first[job]
        while not self._open[place] or not self._may(place):
            place += 1
        return self._wants.get(place) or self._want(place)

    def _next_owner(self) -> Want | None:
        """While every node on offer is kept: those whom they are kept for; after them, only those that may pass."""
        reserve = self._profile.reserve
        if self._owners and reserve.idle_once_all_kept:
            self._candidates.renew()
        while self._owners:
            place = self._owners[0]
            if self._open[place]:
                if not reserve.idle_once_all_kept or self._candidates.has_room(place):
                    return self._want(place)
                self._close(place)
                self._passed_over.append(place)
                self.confine()
            self._owners.pop(0)
        self.confine()
        return None

    def _has_room_for_one(self, job: int) -> bool:
        """Whether some node has room for a class of the job; those before it, for which none has, are closed."""
        lineup, has_room = self._lineup, self._candidates.has_room
        for place in range(lineup.first[job], lineup.first[job + 1]):
            if self._open[place]:
                if has_room(place) or lineup.in_gang[place]:
                    return True
                self._open[place] = False
                self._no_room.append(place)
        return False

    def _next_job(self) -> int | None:
        """The first job of the queue that holds least; in the order of names, so that the first of equals wins."""
        if len(self._queues) == 1:
            (line,) = self._queues.values()
            return self._first_of(line)
        best: tuple[float, int] | None = None
        for line in self._queues.values():
            if best is None or line.share < best[0]:
                first = self._first_of(line)
                if first is not None:
                    best = (line.share, first)
        return None if best is None else best[1]

    def _first_of(self, line: _QueueLine) -> int | None:
        """The first job of the namespace that holds least; in the order of names, so the first of equals wins."""
        shares = line.shares
        if len(shares) == 1:
            return self._first_in(line.bands[0])
        while shares:
            least = shares.index(min(shares))
            if shares[least] == math.inf:
                return None
            job = self._first_in(line.bands[least])
            if job is not None:
                return job
            shares[least] = math.inf
        return None

    def _first_in(self, bands: list[_Turns]) -> int | None:
        """The first job of the highest priority."""
        keys, dropped = self._keys, self._dropped
        while bands:
            heap = bands[0].heap
            while heap:
                key, job = heap[0]
                if keys.get(job) == key:
                    if not self._skips or self._has_room(job):
                        return job
                    dropped.append(job)
                heapq.heappop(heap)
            bands.pop(0)
        return None

    def _may(self, place: int) -> bool:
        return self._allowed is None or self._lineup.waiting[place].task_class.id in self._allowed

    def classes_of(self, job: model.JobId) -> Sequence[Want]:
        """The open classes of a job, in its order."""
        return [self._want(place) for place in self._open_of(self._lineup.job_places[job])]

    def _open_of(self, job: int) -> list[int]:
        start, stop = self._lineup.first[job : job + 2]
        return [place for place in range(start, stop) if self._open[place] and self._may(place)]

    def over_limit(self, want: Want, size: model.IntVector) -> model.Verdict | None:
        """Whether one more task of this size would exceed the limits of the class' queue."""
        line = self._queues[want.job.queue]
        if not line.limits:
            return None
        usage = self._scratch.queue_usage(line.queue.name)
        for name, row, most in line.limits:
            need = int(size[row]) if row < len(size) else 0
            holds = usage[row] if row < len(usage) else 0
            if need and holds + need > most:
                held = f"queue {line.queue.name!r} holds {holds} of its limit of {most} {name}"
                return model.Verdict(code=model.Code.QUEUE_LIMIT, message=f"{held}; one task asks for {need}")
        return None

    def placed(self, want: Want) -> None:
        """A task of the class was placed: its job's key and the shares of its queue and namespace are mended."""
        if not want.left:
            self.close(want)
        self.taken_back(want)

    def taken_back(self, want: Want) -> None:
        """What the class' job holds changed: mend its key and the shares of its queue and namespace."""
        line = self._queues[want.job.queue]
        if line.counts:
            self._share(line)
        if line.is_shared:
            line.shares[line.places[want.job.namespace]] = self._dominant_share(line, want.job.namespace)
        order = self._profile.order
        if order.constant:
            return
        job, scratch = self._lineup.job_of[want.place], self._scratch
        if order.lasts:
            if job in self._keys:
                self._move(
                    want.job, job, order.key(want.job, scratch.job_usage(want.job.id), scratch.view.layout), line
                )
            return
        key = float(order.keys((want.job,), scratch)[0])
        if job in self._keys:
            self._move(want.job, job, key, line)
        generation = order.generation(scratch)
        if generation != self._generation:
            self._generation = generation
            self._ask_again()

    def _move(self, owner: model.Job, job: int, key: float, line: _QueueLine) -> None:
        """The job has another key."""
        before = self._keys[job]
        if key == before:
            return
        self._keys[job] = key
        heap = line.turns_of(owner)
        if heap and heap[0] == (before, job):
            heapq.heapreplace(heap, (key, job))
        else:
            heapq.heappush(heap, (key, job))

    def _ask_again(self) -> None:
        """Keys of other jobs have changed too."""
        jobs = sorted(self._keys)
        keys = self._profile.order.keys([self._lineup.jobs[job] for job in jobs], self._scratch)
        self._keys = dict(zip(jobs, keys, strict=True))
        self._sort()

    def _sort(self) -> None:
        """Line the jobs up anew."""
        jobs = sorted(self._keys)
        for turns in itertools.chain.from_iterable(
            itertools.chain.from_iterable(line.bands for line in self._queues.values())
        ):
            band = turns.band
            first, last = bisect.bisect_left(jobs, band.start), bisect.bisect_left(jobs, band.stop)
            turns.heap = [(self._keys[job], job) for job in jobs[first:last]]
            heapq.heapify(turns.heap)

    def close(self, want: Want) -> None:
        """The class has no turn any more in this cycle."""
        self._close(want.place)

    def _close(self, place: int) -> None:
        self._open[place] = False
        job = self._lineup.job_of[place]
        if self._lineup.single or not self._open_of(job):
            self._keys.pop(job, None)

    def confine(self) -> None:
        """Once every node on offer is kept: give turns to those classes alone that may be placed all the same."""
        if self._allowed is not None or not self._scratch.all_kept:
            return
        self._allowed = self._profile.reserve.passing(self._scratch)
        if self._allowed is None:
            return
        places = [self._lineup.places[one] for one in self._allowed if one in self._lineup.places]
        jobs = {self._lineup.job_of[place] for place in places if self._open[place]}
        self._keys = {job: self._keys[job] for job in jobs if job in self._keys}
        if self._queues:
            self._sort()

    def _close_dropped(self) -> None:
        """No node had room for what is open of these jobs."""
        first = self._lineup.first
        for job in range(len(self._lineup.jobs)) if self._is_over else self._dropped:
            for place in range(first[job], first[job + 1]):
                if self._open[place]:
                    self._open[place] = False
                    self._no_room.append(place)
        self._dropped.clear()

    def rest(self) -> Iterator[Want]:
        """All open classes that may have turns."""
        if self._is_over:
            return
        self._close_dropped()
        for place, is_open in enumerate(self._open):
            if is_open and self._may(place):
                yield self._want(place)

    def passed_over(self) -> Sequence[Want]:
        """The classes that had no turn because every node is kept for others."""
        places = list(self._passed_over)
        if self._allowed is not None:
            places += [place for place, is_open in enumerate(self._open) if is_open and not self._may(place)]
        return [self._want(place) for place in places]

    def skipped(self) -> Sequence[Want]:
        """The classes that had no turn because no node has room for them, and that were not known to wait for that."""
        if self._lineup.open is self._lineup.narrow:
            return ()
        self._close_dropped()
        return [self._want(place) for place in self._no_room if not self._lineup.narrow[place]]

    def counts(self) -> Mapping[int, int]:
        """How many tasks are left of the classes that had a turn, by place: before the room takes placed ones out."""
        return {place: want.left for place, want in self._wants.items()}

    def still(self) -> Sequence[Want]:
        """The others that had no turn because no node has room for them."""
        self._close_dropped()
        return [self._want(place) for place in self._no_room if self._lineup.narrow[place]]


def _rank(want: Want) -> tuple[float, model.JobId, int]:
    return want.waiting.rank
