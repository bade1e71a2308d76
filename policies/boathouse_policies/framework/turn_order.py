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
from boathouse_policies.framework.cycle_state import PendingClass
from boathouse_policies.framework.ranking import Rankings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import numpy.typing as npt

    from boathouse_policies.framework.accounts import Share
    from boathouse_policies.framework.cycle_state import CycleState
    from boathouse_policies.framework.queue import Band, SchedulingQueue
    from boathouse_policies.framework.scheduling_profile import Profile


class _QueueTurns:
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
        self.bands: list[list[_BandHeap]] = []
        self.places: dict[model.NamespaceName, int] = {}
        self.limits = [(name, axis.row(name), most) for name, most in queue.limits]
        self.counts = False
        self.share = 0.0
        self.shares: list[float] = []
        self._turns: dict[tuple[model.NamespaceName, int], _BandHeap] = {}

    @property
    def is_shared(self) -> bool:
        """Whether several namespaces have pending tasks here."""
        return self.namespaces > 1

    def add(self, band_heap: _BandHeap) -> None:
        """Append a band."""
        band = band_heap.band
        if band.namespace not in self.places:
            self.places[band.namespace] = len(self.bands)
            self.bands.append([])
        self.bands[-1].append(band_heap)
        self._turns[band.namespace, band.priority] = band_heap

    def turns_of(self, job: model.Job) -> list[tuple[float, int]]:
        """The heap of a job's band."""
        return self._turns[job.namespace, job.priority].heap


class _BandHeap:
    """The open jobs of a band, the least key first: a heap, in which entries with an earlier key are out of date."""

    __slots__ = ("band", "heap")

    def __init__(self, band: Band, keys: Sequence[float], jobs: Sequence[int]) -> None:
        self.band = band
        self.heap = list(zip(keys, jobs, strict=True))
        heapq.heapify(self.heap)


class TurnOrder:
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

    def __init__(self, room: SchedulingQueue, profile: Profile, state: CycleState) -> None:
        self._profile = profile
        self._state = state
        self._sorted_classes = sorted_classes = room.sorted_classes()
        self._pending: dict[int, PendingClass] = {}
        self._allowed: Collection[model.ClassId] | None = None
        self._queues: dict[model.QueueName, _QueueTurns] = {}
        self._reserved: collections.Counter[Share] = collections.Counter()
        self.has_limits = sorted_classes.has_limits
        self.orphans = [PendingClass(one, profile, state) for one in sorted_classes.orphans]
        self._candidates = candidates(sorted_classes, profile, state, room.freed)
        self.rankings = Rankings(self._candidates, profile, state)
        # A reserve that does nothing for a class without room: then such a class needs no turn.
        self._skips = profile.reserve.is_idle(state)
        self._no_room: list[int] = []
        self._passed_over: list[int] = []
        self._dropped: list[int] = []
        self._is_over = False  # no node has room for anything
        # Where each job has one class, and none a gang, the place of the job is that of its class.
        self._has_room = (
            self._candidates.has_room if sorted_classes.single and not sorted_classes.gangs else self._has_room_for_one
        )
        looked_at = sorted_classes.open
        if self._skips and (without_room := self._candidates.without_room()) is not None:
            looked_at = sorted_classes.open & ~(without_room & ~sorted_classes.in_gang)
            self._no_room += (sorted_classes.open & ~looked_at).nonzero()[0].tolist()
        self._open: list[bool] = looked_at.tolist()
        self._keys: dict[int, float] = {}
        begun = [self._pending_class(i) for i in sorted_classes.gangs if self._open[i] and self._begun(i, room)]
        self._first = sorted(begun, key=_rank)
        self._owners: list[int] = []
        if state.reserved and max(sorted_classes.namespaces.values(), default=0) > 1:
            self._join_all(room, looked_at)
            self._give_kept_nodes_back()
            self._find_owners()
        else:
            self._find_owners()
            self._join_all(room, self._with_turns(looked_at))
        self._generation = profile.order.generation(state)

    def _find_owners(self) -> None:
        """Find those whom the nodes are kept for; once none of the first has room, only those that may pass matter."""
        if self._state.all_reserved:
            sorted_classes = self._sorted_classes
            places = [sorted_classes.places[owner] for owner in self._state.owners() if owner in sorted_classes.places]
            self._owners = sorted([i for i in places if self._open[i]], key=lambda i: sorted_classes.queued[i].rank)
            if not self._first:
                self._next_owner()

    def _with_turns(self, looked_at: model.BoolVector) -> model.BoolVector:
        """The open classes that may have turns, shape [C]."""
        if self._allowed is None:
            return looked_at
        band_heap = np.zeros(len(self._open), np.bool_)
        places = [self._sorted_classes.places.get(one) for one in self._allowed]
        band_heap[[place for place in places if place is not None and self._open[place]]] = True
        return band_heap

    def _join_all(self, room: SchedulingQueue, looked_at: model.BoolVector) -> None:
        """Ask for the keys of the open jobs, and line them up by queue, namespace and priority."""
        sorted_classes, state = self._sorted_classes, self._state
        jobs = sorted_classes.open_jobs(looked_at).nonzero()[0]
        keys = self._keys_of(jobs)
        if not keys:
            return
        self._keys = dict(zip(jobs.tolist(), keys, strict=True))
        first, listed = 0, jobs.tolist()
        for band in sorted_classes.bands:
            last = bisect.bisect_left(listed, band.stop, first)
            if last > first:
                self._join(_BandHeap(band, keys[first:last], listed[first:last]), room)
            first = last
        several = len(self._queues) > 1
        for turns in self._queues.values():
            turns.counts = several
            if several or turns.limits:
                state.count_queue(turns.queue.name)
            if several:
                self._share(turns)
            if turns.is_shared:
                turns.shares = [self._dominant_share(turns, namespace) for namespace in turns.places]
            else:
                turns.shares = [0.0] * len(turns.bands)

    def _keys_of(self, jobs: npt.NDArray[np.intp]) -> list[float]:
        order, sorted_classes = self._profile.order, self._sorted_classes
        if order.lasts:
            listed: list[float] = sorted_classes.keys(order, self._state.view)[jobs].tolist()
            return listed
        return list(map(float, order.keys([sorted_classes.jobs[job] for job in jobs.tolist()], self._state)))

    def _join(self, band_heap: _BandHeap, room: SchedulingQueue) -> None:
        name = band_heap.band.queue
        turns = self._queues.get(name)
        if turns is None:
            axis = self._state.view.axis
            turns = self._queues[name] = _QueueTurns(room.queues[name], axis, self._sorted_classes.namespaces[name])
        turns.add(band_heap)
        if turns.is_shared:
            self._state.count_share((name, band_heap.band.namespace))

    def _pending_class(self, place: int) -> PendingClass:
        pending = self._pending.get(place)
        if pending is None:
            pending = self._pending[place] = PendingClass(
                self._sorted_classes.queued[place], self._profile, self._state
            )
            pending.place = place
        return pending

    def _begun(self, place: int, room: SchedulingQueue) -> bool:
        classes = (one.task_class for one in room.classes_of(self._sorted_classes.queued[place].job.id))
        return any(one.gang_min and self._state.placed(one.id) for one in classes)

    def _share(self, turns: _QueueTurns) -> None:
        usage = self._state.queue_usage(turns.queue.name)
        turns.share = self._state.dominant_share(usage) / turns.queue.weight

    def _dominant_share(self, turns: _QueueTurns, namespace: model.NamespaceName) -> float:
        return self._state.dominant_share(self._state.share_usage((turns.queue.name, namespace)))

    def _give_kept_nodes_back(self) -> None:
        """Keep no node for a namespace while another that has a turn holds less of the queue: the other goes first."""
        reserved = self._state.reserved
        behind = {owner for owner in set(reserved.values()) if self._is_behind(owner)}
        for node in [node for node, owner in reserved.items() if owner in behind]:
            self._state.release(node)
        places, queued = self._sorted_classes.places, self._sorted_classes.queued
        jobs = (queued[places[owner]].job for owner in reserved.values() if owner in places)
        self._reserved.update((job.queue, job.namespace) for job in jobs)

    def _is_behind(self, owner: model.ClassId) -> bool:
        place = self._sorted_classes.places.get(owner)
        if place is None:
            return False
        job = self._sorted_classes.queued[place].job
        turns = self._queues.get(job.queue)
        return turns is not None and self._dominant_share(turns, job.namespace) > min(turns.shares)

    def most_reserved(self, pending: PendingClass) -> int | None:
        """How many more nodes may be kept for a class; None for any number.

        Where namespaces share a queue, one keeps an equal part of the nodes at most, and no more than it has tasks for:
        otherwise the others would stand still until a node is empty.
        """
        turns = self._queues[pending.job.queue]
        if not turns.is_shared:
            return None
        part = max(1, len(self._state.offered) // turns.namespaces)
        return max(0, min(pending.left, part - self._reserved[turns.queue.name, pending.job.namespace]))

    def reserved(self, pending: PendingClass) -> None:
        """A node was kept for a class."""
        self._reserved[pending.job.queue, pending.job.namespace] += 1

    def next_class(self) -> PendingClass | None:
        """The class whose turn it is; None when all are closed."""
        while self._first:
            pending = self._first[0]
            if self._open[pending.place] and self._state.placed(pending.task_class.id) < pending.task_class.gang_min:
                return pending
            self._first.pop(0)
        if self._state.reserved and self._state.all_reserved and (owner := self._next_owner()) is not None:
            return owner
        if self._skips and not self._candidates.anything_fits and not self._sorted_classes.gangs:
            self._is_over = True
            return None
        job = self._next_job()
        if job is None:
            return None
        place = self._sorted_classes.first[job]
        while not self._open[place] or not self._may(place):
            place += 1
        return self._pending.get(place) or self._pending_class(place)

    def _next_owner(self) -> PendingClass | None:
        """While every node on offer is kept: those whom they are kept for; after them, only those that may pass."""
        reserve = self._profile.reserve
        if self._owners and reserve.idle_once_all_kept:
            self._candidates.renew()
        while self._owners:
            place = self._owners[0]
            if self._open[place]:
                if not reserve.idle_once_all_kept or self._candidates.has_room(place):
                    return self._pending_class(place)
                self._close(place)
                self._passed_over.append(place)
                self.confine()
            self._owners.pop(0)
        self.confine()
        return None

    def _has_room_for_one(self, job: int) -> bool:
        """Whether some node has room for a class of the job; those before it, for which none has, are closed."""
        sorted_classes, has_room = self._sorted_classes, self._candidates.has_room
        for place in range(sorted_classes.first[job], sorted_classes.first[job + 1]):
            if self._open[place]:
                if has_room(place) or sorted_classes.in_gang[place]:
                    return True
                self._open[place] = False
                self._no_room.append(place)
        return False

    def _next_job(self) -> int | None:
        """The first job of the queue that holds least; in the order of names, so that the first of equals wins."""
        if len(self._queues) == 1:
            (turns,) = self._queues.values()
            return self._first_of(turns)
        best: tuple[float, int] | None = None
        for turns in self._queues.values():
            if best is None or turns.share < best[0]:
                first = self._first_of(turns)
                if first is not None:
                    best = (turns.share, first)
        return None if best is None else best[1]

    def _first_of(self, turns: _QueueTurns) -> int | None:
        """The first job of the namespace that holds least; in the order of names, so the first of equals wins."""
        shares = turns.shares
        if len(shares) == 1:
            return self._first_in(turns.bands[0])
        while shares:
            least = shares.index(min(shares))
            if shares[least] == math.inf:
                return None
            job = self._first_in(turns.bands[least])
            if job is not None:
                return job
            shares[least] = math.inf
        return None

    def _first_in(self, bands: list[_BandHeap]) -> int | None:
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
        return self._allowed is None or self._sorted_classes.queued[place].task_class.id in self._allowed

    def classes_of(self, job: model.JobId) -> Sequence[PendingClass]:
        """The open classes of a job, in its order."""
        return [self._pending_class(place) for place in self._open_of(self._sorted_classes.job_places[job])]

    def _open_of(self, job: int) -> list[int]:
        start, stop = self._sorted_classes.first[job : job + 2]
        return [place for place in range(start, stop) if self._open[place] and self._may(place)]

    def over_limit(self, pending: PendingClass, size: Sequence[int]) -> model.Verdict | None:
        """Whether one more task of this size would exceed the limits of the class' queue."""
        turns = self._queues[pending.job.queue]
        if not turns.limits:
            return None
        usage = self._state.queue_usage(turns.queue.name)
        for name, row, most in turns.limits:
            need = size[row] if row < len(size) else 0
            holds = usage[row] if row < len(usage) else 0
            if need and holds + need > most:
                held = f"queue {turns.queue.name!r} holds {holds} of its limit of {most} {name}"
                return model.Verdict(code=model.Code.QUEUE_LIMIT, message=f"{held}; one task asks for {need}")
        return None

    def placed(self, pending: PendingClass) -> None:
        """A task of the class was placed: its job's key and the shares of its queue and namespace are mended."""
        if not pending.left:
            self.close(pending)
        self.taken_back(pending)

    def taken_back(self, pending: PendingClass) -> None:
        """What the class' job holds changed: mend its key and the shares of its queue and namespace."""
        turns = self._queues[pending.job.queue]
        if turns.counts:
            self._share(turns)
        if turns.is_shared:
            turns.shares[turns.places[pending.job.namespace]] = self._dominant_share(turns, pending.job.namespace)
        order = self._profile.order
        if order.constant:
            return
        job, state = self._sorted_classes.job_of[pending.place], self._state
        if order.lasts:
            if job in self._keys:
                self._move(
                    pending.job, job, order.key(pending.job, state.job_usage(pending.job.id), state.view.layout), turns
                )
            return
        key = float(order.keys((pending.job,), state)[0])
        if job in self._keys:
            self._move(pending.job, job, key, turns)
        generation = order.generation(state)
        if generation != self._generation:
            self._generation = generation
            self._ask_again()

    def _move(self, owner: model.Job, job: int, key: float, turns: _QueueTurns) -> None:
        """The job has another key."""
        before = self._keys[job]
        if key == before:
            return
        self._keys[job] = key
        heap = turns.turns_of(owner)
        if heap and heap[0] == (before, job):
            heapq.heapreplace(heap, (key, job))
        else:
            heapq.heappush(heap, (key, job))

    def _ask_again(self) -> None:
        """Keys of other jobs have changed too."""
        jobs = sorted(self._keys)
        keys = self._profile.order.keys([self._sorted_classes.jobs[job] for job in jobs], self._state)
        self._keys = dict(zip(jobs, keys, strict=True))
        self._sort()

    def _sort(self) -> None:
        """Line the jobs up anew."""
        jobs = sorted(self._keys)
        for band_heap in itertools.chain.from_iterable(
            itertools.chain.from_iterable(turns.bands for turns in self._queues.values())
        ):
            band = band_heap.band
            first, last = bisect.bisect_left(jobs, band.start), bisect.bisect_left(jobs, band.stop)
            band_heap.heap = [(self._keys[job], job) for job in jobs[first:last]]
            heapq.heapify(band_heap.heap)

    def close(self, pending: PendingClass) -> None:
        """The class has no turn any more in this cycle."""
        self._close(pending.place)

    def _close(self, place: int) -> None:
        self._open[place] = False
        job = self._sorted_classes.job_of[place]
        if self._sorted_classes.single or not self._open_of(job):
            self._keys.pop(job, None)

    def confine(self) -> None:
        """Once every node on offer is kept: give turns to those classes alone that may be placed all the same."""
        if self._allowed is not None or not self._state.all_reserved:
            return
        self._allowed = self._profile.reserve.passing(self._state)
        if self._allowed is None:
            return
        places = [self._sorted_classes.places[one] for one in self._allowed if one in self._sorted_classes.places]
        jobs = {self._sorted_classes.job_of[place] for place in places if self._open[place]}
        self._keys = {job: self._keys[job] for job in jobs if job in self._keys}
        if self._queues:
            self._sort()

    def _close_dropped(self) -> None:
        """No node had room for what is open of these jobs."""
        first = self._sorted_classes.first
        for job in range(len(self._sorted_classes.jobs)) if self._is_over else self._dropped:
            for place in range(first[job], first[job + 1]):
                if self._open[place]:
                    self._open[place] = False
                    self._no_room.append(place)
        self._dropped.clear()

    def rest(self) -> Iterator[PendingClass]:
        """All open classes that may have turns."""
        if self._is_over:
            return
        self._close_dropped()
        for place, is_open in enumerate(self._open):
            if is_open and self._may(place):
                yield self._pending_class(place)

    def passed_over(self) -> Sequence[PendingClass]:
        """The classes that had no turn because every node is kept for others."""
        places = list(self._passed_over)
        if self._allowed is not None:
            places += [place for place, is_open in enumerate(self._open) if is_open and not self._may(place)]
        return [self._pending_class(place) for place in places]

    def skipped(self) -> Sequence[PendingClass]:
        """The classes that had no turn because no node has room for them, and that were not known to wait for that."""
        if self._sorted_classes.open is self._sorted_classes.matched:
            return ()
        self._close_dropped()
        return [self._pending_class(place) for place in self._no_room if not self._sorted_classes.matched[place]]

    def still(self) -> Sequence[PendingClass]:
        """The others that had no turn because no node has room for them."""
        self._close_dropped()
        return [self._pending_class(place) for place in self._no_room if self._sorted_classes.matched[place]]


def _rank(pending: PendingClass) -> tuple[float, model.JobId, int]:
    return pending.queued.rank
