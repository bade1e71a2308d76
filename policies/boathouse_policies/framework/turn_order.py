"""Whose turn it is.

Fair sharing between queues, then between the namespaces in a queue, then the profile's order of jobs, then the job's
order of classes.
"""

import bisect
import collections
import dataclasses
import math
import operator
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import heappop, heappush, heapreplace
from typing import TypeAlias

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import gathering
from boathouse_policies.framework.candidates import FewNodes, candidates
from boathouse_policies.framework.cycle_state import Assignment, CycleState, PendingClass
from boathouse_policies.framework.queue import Band, SchedulingQueue
from boathouse_policies.framework.ranking import Rankings
from boathouse_policies.framework.scheduling_profile import Profile
from boathouse_policies.framework.view import Share, Step, combined

_Heap: TypeAlias = list[tuple[float, int]]  # jobs by key: the open jobs of a band


@dataclasses.dataclass(slots=True)
class _QueueTurns:
    """A queue that has turns in this cycle, with the dominant shares of it over its weight, and of its namespaces."""

    queue: model.Queue
    namespaces: int  # that share it, those that have no turn in this cycle included
    heaps: dict[model.NamespaceName, list[_Heap]] = dataclasses.field(
        default_factory=dict
    )  # the highest priority first
    share: float = 0.0
    shares: dict[model.NamespaceName, float] = dataclasses.field(default_factory=dict)  # infinite once none is open


class TurnOrder:
    """The classes of a cycle in the order of their turns.

    Queues go by dominant share over weight, the least first (Ghodsi et al., "Dominant Resource Fairness", NSDI 2011,
    with weights as in 4.3), ties by name. Within a queue namespaces go by dominant share of what their jobs hold of it,
    with equal weights. Within a namespace: the higher priority, then the profile's key, then submission.
    Before all: gangs that have begun and are short of their minimum, for what they hold is of no use without it; the
    gang for which room is kept as it comes free; and as long as every node on offer is reserved, the classes for which
    they are reserved.
    """

    def __init__(self, queue: SchedulingQueue, profile: Profile, state: CycleState) -> None:
        self._queue, self._profile, self._state = queue, profile, state
        self._sorted = in_order = queue.sorted_classes()
        in_order.note_usage(state.view)
        if profile.counts_pods:
            in_order.declare(state.view.tallies)
            state.count_pods()
        self._pending: dict[int, PendingClass] = {}
        self._allowed: Collection[model.ClassId] | None = None
        self._asks_again = False  # nodes were reserved since, so that others may be allowed
        self._queues: dict[model.QueueName, _QueueTurns] = {}
        self._usage: dict[model.QueueName | Share, model.Amounts] = {}  # where it decides whose turn it is
        self._heaps: dict[Band, _Heap] = {}
        self._reserved: collections.Counter[Share] = collections.Counter()
        self._kept: dict[model.QueueName | Share, model.Amounts] = {}  # what is free on nodes kept for gangs
        self.has_limits = in_order.has_limits
        # Classes of jobs whose queue does not exist or does not accept them.
        self.orphans = [PendingClass(queued, profile, state) for queued in in_order.orphans]
        self._candidates = candidates(in_order, profile, state, queue.freed)
        self.rankings = Rankings(self._candidates, profile, state)
        # A reserve that does nothing for a class without room: then such a class needs no turn.
        self._skips = profile.reserve.is_idle(state)
        self._no_room, self._passed_over, self._owners = list[int](), list[int](), list[int]()
        self._dropped: _Heap = []
        self._open: list[bool] = []  # the classes that may have turns, once the jobs are lined up
        self._is_over = False  # no node has room for anything
        # Where each job has one class, and none a gang, the place of the job is that of its class.
        is_of_class = in_order.single and not in_order.gangs
        self._has_room = self._candidates.has_room if is_of_class else self._has_room_for_job
        self._first: list[PendingClass] = []
        # The gang for which room is kept as it comes free.
        self.drained = None if profile.reserve.reserves_for_gangs else profile.draining.job
        self._keys: list[float] = []
        self._only: list[_Heap] | None = None  # where one namespace has turns: no shares to compare

    # Before the first turn

    def _before_all(self) -> list[PendingClass]:
        """Return the open classes that go first: what gangs that have begun lack, their others, the drained gang's."""
        in_order = self._sorted
        short = [self._pending_class(place) for place in in_order.short if self._open[place]]
        gangs = [place for place in in_order.gangs if self._open[place]]
        begun = {place for place in gangs if self._has_begun(place)}
        drained = [place for place in gangs if place not in begun and in_order.queued[place].job.id == self.drained]
        return [
            *sorted(short, key=lambda pending: (-pending.job.priority, pending.queued.rank)),
            *sorted(map(self._pending_class, begun), key=lambda pending: pending.queued.rank),
            *map(self._pending_class, drained),
        ]

    def short(self) -> list[PendingClass]:
        """Return the open classes of which started gangs are short, with all jobs lined up; none for most cycles."""
        if not self._sorted.short:
            return []
        if not self._open:
            self._join()
        return [pending for pending in self._first if pending.task_class.is_short]

    def _has_begun(self, place: int) -> bool:
        classes = (queued.task_class for queued in self._queue.classes_of(self._sorted.queued[place].job.id))
        return any(task_class.gang_min and self._state.placed(task_class.id) for task_class in classes)

    def _join(self) -> None:
        """Line the open jobs up, and find the classes that go before them: begun gangs, owners of reserved nodes."""
        in_order, turns = self._sorted, self._sorted.open
        if self._skips and (without_room := self._candidates.without_room()) is not None:
            turns = in_order.open & ~(without_room & ~in_order.in_gang)
            self._no_room += (in_order.open & ~turns).nonzero()[0].tolist()
        self._open = turns.tolist()
        if in_order.gangs or in_order.short:
            self._first = self._before_all()
        self._release_forbidden()
        if not self._state.reserved:
            self._join_all(turns)
        elif max(in_order.namespaces.values(), default=0) > 1:
            self._join_all(turns)
            self._give_reserved_nodes_back()
            self._find_owners()
        else:
            self._find_owners()
            if self._allowed is not None:
                turns = np.zeros(len(self._open), np.bool_)
                turns[[place for place in self._places(self._allowed) if self._open[place]]] = True
            self._join_all(turns)
        self._generation = self._profile.order.generation(self._state)

    def _find_owners(self) -> None:
        """Find the owners of the reserved nodes; once none of the first has room, only those that may pass matter."""
        if self._state.all_reserved:
            places = [place for place in self._places(self._state.owners()) if self._open[place]]
            self._owners = sorted(places, key=lambda place: self._sorted.queued[place].rank)
            if not self._first:
                self._next_owner()

    def _places(self, classes: Iterable[model.ClassId]) -> Sequence[int]:
        places = self._sorted.places
        return [places[task_class] for task_class in classes if task_class in places]

    def _join_all(self, turns: model.BoolVector) -> None:
        """Ask for the keys of the open jobs, and line them up by queue, namespace and priority."""
        state, in_order = self._state, self._sorted
        jobs: list[int] = in_order.open_jobs(turns).nonzero()[0].tolist()
        self._find_keys(jobs)
        if len(jobs) == len(in_order.jobs) and len(in_order.bands) == 1 and self._profile.order.keyed_by_usage:
            self._heaps[in_order.bands[0]] = in_order.heap()
        else:
            self._line_up(jobs)
        if not in_order.is_shared and not in_order.has_limits:
            self._only = list(self._heaps.values())
            return
        for band, heap in self._heaps.items():
            if band.queue not in self._queues:
                self._queues[band.queue] = _QueueTurns(self._queue.queues[band.queue], in_order.namespaces[band.queue])
            self._queues[band.queue].heaps.setdefault(band.namespace, []).append(heap)
            self._queues[band.queue].shares[band.namespace] = 0.0
        self._count_kept()
        for name, mine in self._queues.items():
            if mine.queue.limits or len(self._queues) > 1:
                self._usage[name] = state.view.queue_usage(name)
            for namespace in mine.heaps:
                if mine.namespaces > 1:
                    self._usage[name, namespace] = state.view.share_usage((name, namespace))
                self._share_out(mine, namespace)

    def _find_keys(self, jobs: Sequence[int]) -> None:
        """Find the keys of jobs, before the first turn; those of other jobs do not matter."""
        if self._profile.order.keyed_by_usage:
            self._keys = self._sorted.keys(self._profile.order, self._state.view).copy()
        else:
            self._keys = [_NO_TURN] * len(self._sorted.jobs)
            self._ask(jobs)

    def _ask(self, jobs: Sequence[int]) -> None:
        asked = self._profile.order.keys([self._sorted.jobs[job] for job in jobs], self._state)
        for job, key in zip(jobs, asked, strict=True):
            self._keys[job] = float(key)

    def _line_up(self, jobs: list[int]) -> None:
        first, keys = 0, self._keys
        for band in self._sorted.bands:
            last = bisect.bisect_left(jobs, band.stop, first)
            if last > first or band in self._heaps:
                heap, mine = self._heaps.setdefault(band, []), jobs[first:last]
                heap[:] = sorted(zip(map(keys.__getitem__, mine), mine, strict=True))
            first = last

    def _share_out(self, turns: _QueueTurns, namespace: model.NamespaceName) -> None:
        """Work out the share of a queue, and that of a namespace in it, where there are others."""
        dominant_share, name = self._state.view.layout.dominant_share, turns.queue.name
        if len(self._queues) > 1:
            turns.share = dominant_share(self._held(name)) / turns.queue.weight
        if turns.namespaces > 1:
            turns.shares[namespace] = dominant_share(self._held((name, namespace)))

    def _count_kept(self) -> None:
        """Count what is free on nodes that are kept for gangs as held by their queues and namespaces."""
        for job, nodes in gathering.nodes_of_gangs(self._queue, self._state).items() if self._state.reserved else ():
            owner, idle = self._queue.classes_of(job)[0].job, gathering.idle(self._queue, job, nodes, self._state)
            for key in (owner.queue, (owner.queue, owner.namespace)):
                self._kept[key] = combined(operator.add, self._kept.get(key, ()), idle)

    def _held(self, key: model.QueueName | Share) -> Sequence[int]:
        usage = self._usage[key]
        return combined(operator.add, usage, self._kept[key]) if key in self._kept else usage

    def _pending_class(self, place: int) -> PendingClass:
        if (pending := self._pending.get(place)) is None:
            pending = self._pending[place] = PendingClass(self._sorted.queued[place], self._profile, self._state, place)
        return pending

    # Reserved nodes

    def _give_reserved_nodes_back(self) -> None:
        """Release the nodes of namespaces while one that has a turn holds less of the queue: that one goes first.

        Those that are kept for gangs end otherwise (`gathering`): counted as held, they would end at once.
        """
        reserved = self._state.reserved
        behind = {owner for owner in set(reserved.values()) if self._is_behind(owner)}
        for node in [node for node, owner in reserved.items() if owner in behind]:
            self._state.release(node)
        owners = [self._sorted.queued[place].job for place in self._places(reserved.values())]
        self._reserved.update((job.queue, job.namespace) for job in owners)

    def _release_forbidden(self) -> None:
        """Release the nodes that other pods keep their owner from by now."""
        reserved, pod_counts = self._state.reserved, self._state.pod_counts
        for place in self._places(set(reserved.values())) if pod_counts is not None else ():
            owner = self._pending_class(place)
            if (may := self._state.beside_pods(owner)) is not None:
                own = owner.task_class.id
                for node in [node for node, name in reserved.items() if name == own and not may[node]]:
                    self._state.release(node)

    def _is_behind(self, owner: model.ClassId) -> bool:
        if owner not in self._sorted.places:
            return False
        queued = self._sorted.queued[self._sorted.places[owner]]
        share, turns = (queued.job.queue, queued.job.namespace), self._queues.get(queued.job.queue)
        if turns is None or queued.task_class.gang_min:
            return False
        usage = self._usage.get(share) or self._state.view.share_usage(share)
        return self._state.view.layout.dominant_share(usage) > min(turns.shares.values())

    def most_reserved(self, pending: PendingClass) -> int | None:
        """Return how many more nodes may be reserved for a class; None for any number.

        Where namespaces share a queue, each reserves an equal part of the nodes at most, and no more than it has tasks:
        otherwise the others would wait until a node is empty.
        """
        job, namespaces = pending.job, self._sorted.namespaces[pending.job.queue]
        part = max(1, len(self._state.view.layout) // namespaces)
        left = max(0, min(pending.left, part - self._reserved[job.queue, job.namespace]))
        return None if namespaces == 1 else left

    def reserved(self, pending: PendingClass) -> None:
        """Record that a node was reserved for a class."""
        self._asks_again = self._profile.reserve.passing_changes
        self._reserved[pending.job.queue, pending.job.namespace] += 1

    def _next_owner(self) -> PendingClass | None:
        """Return the owners while every node on offer is reserved; after them, only those that may pass."""
        reserve = self._profile.reserve
        if self._owners and reserve.idle_once_all_reserved:
            self._candidates.renew()
        while self._owners:
            place = self._owners[0]
            if self._open[place]:
                if not reserve.idle_once_all_reserved or self._candidates.has_room(place):
                    return self._pending_class(place)
                self.close(place)
                self._passed_over.append(place)
                self.confine()
            self._owners.pop(0)
        self.confine()
        return None

    def confine(self) -> None:
        """Give turns, once every node on offer is reserved, only to classes that may still be placed."""
        if (self._allowed is not None and not self._asks_again) or not self._state.all_reserved:
            return
        self._asks_again = False
        self._allowed = self._profile.reserve.passing(self._state)
        if self._allowed is not None and self._keys:
            jobs = {self._sorted.job_of[place] for place in self._places(self._allowed) if self._open[place]}
            keys, self._keys = self._keys, [_NO_TURN] * len(self._keys)
            for job in jobs:
                self._keys[job] = keys[job]
            self._line_up(sorted(job for job in jobs if not math.isnan(keys[job])))

    # Turns

    def next_class(self) -> PendingClass | None:
        """Return the class whose turn it is; None when all are closed."""
        state = self._state
        if not self._open:
            if not state.reserved and self._nothing_fits():
                return None
            self._join()
        if self._first and (begun := self._next_begun()) is not None:
            return begun
        if state.reserved and state.all_reserved and (owner := self._next_owner()) is not None:
            return owner
        if self._nothing_fits():
            return None
        job = self._next_job() if self._only is None else self._first_in(self._only)
        if job is None:
            return None
        place = self._sorted.first[job]
        while not self._open[place] or (self._allowed is not None and not self._may(place)):
            place += 1
        return self._pending.get(place) or self._pending_class(place)

    def quick_turns(self) -> list[Assignment]:
        """Give the turns of a cycle on few nodes that asks no question, as `next_class` and `Attempt` would.

        In one loop: ADR 9 has the reason. What it leaves goes on as usual.
        """
        found: list[Assignment] = []
        few, in_order, state, order = self._candidates, self._sorted, self._state, self._profile.order
        if not in_order.is_plain or state.reserved or not isinstance(few, FewNodes) or self._nothing_fits():
            return found
        self._join()
        layout, shapes, keys = state.view.layout, few.shapes, self._keys
        usage: dict[int, model.Amounts] = {}
        for heap in self._only or ():
            turn = 0  # the jobs before it have no turn any more: what is left is a sorted list, and so a heap
            while turn < len(heap) and few.rooms:
                job = heap[turn][1]
                shape = shapes[job]
                if shape.memory > few.most or not (fits := few.with_room(shape)):
                    turn += 1
                    continue
                pending = self._pending.get(job) or self._pending_class(job)
                node = few.best_of(shape, fits, state.beside_pods(pending))
                if node is None or (pick := pending.take_closest(node)) is None:
                    break
                assignment = Assignment(pending, pick, node, pending.ideal.resources, shape.sizes)
                state.place(assignment)
                found.append(assignment)
                few.update(node)
                if not pending.left:
                    self.close(job)
                    turn += 1
                elif not order.constant:
                    before = usage.get(job) or state.view.job_usage(pending.job.id)
                    usage[job] = combined(operator.add, before, shape.sizes)
                    keys[job] = key = order.key(pending.job, usage[job], layout)
                    del heap[turn]
                    bisect.insort(heap, (key, job), turn)
            self._dropped += heap[:turn]
            del heap[:turn]
            if heap:
                break
        return found

    def _nothing_fits(self) -> bool:
        self._is_over = self._skips and not self._candidates.anything_fits and not self._sorted.gangs
        return self._is_over

    def _next_begun(self) -> PendingClass | None:
        """Return the first class of a gang that goes before all others, and is short of its minimum."""
        while self._first:
            pending = self._first[0]
            own = pending.task_class
            if self._open[pending.place] and (own.is_short or self._state.placed(own.id) < own.gang_min):
                return pending
            self._first.pop(0)
        return None

    def _next_job(self) -> int | None:
        """Return the first job of the queue with the lowest usage; ties by name."""
        best, least = None, math.inf
        for turns in self._queues.values():
            if (best is None or turns.share < least) and (first := self._first_of(turns)) is not None:
                best, least = first, turns.share
        return best

    def _first_of(self, turns: _QueueTurns) -> int | None:
        """Return the first job of the namespace with the lowest usage; ties by name."""
        shares = turns.shares
        while shares[namespace := min(shares, key=shares.__getitem__)] != math.inf:
            if (job := self._first_in(turns.heaps[namespace])) is not None:
                return job
            shares[namespace] = math.inf
        return None

    def _first_in(self, heaps: list[_Heap]) -> int | None:
        """Return the first job of the highest priority; an entry with another key than the job's is out of date."""
        keys, has_room = self._keys, self._has_room
        while heaps:
            heap = heaps[0]
            while heap:
                key, job = heap[0]
                if keys[job] == key:
                    if not self._skips or has_room(job):
                        return job
                    self._dropped.append(heap[0])
                heappop(heap)
            heaps.pop(0)
        return None

    def _has_room_for_job(self, job: int) -> bool:
        """Return whether some node has room for a class of the job; close those before it for which none has."""
        in_order, has_room = self._sorted, self._candidates.has_room
        for place in range(in_order.first[job], in_order.first[job + 1]):
            if self._open[place]:
                if has_room(place) or in_order.in_gang[place]:
                    return True
                self._open[place] = False
                self._no_room.append(place)
        return False

    def _may(self, place: int) -> bool:
        return self._allowed is None or self._sorted.queued[place].task_class.id in self._allowed

    def classes_of(self, job: model.JobId) -> Sequence[PendingClass]:
        """Return the open classes of a job, in its order."""
        return [self._pending_class(place) for place in self._open_of(self._sorted.job_places[job])]

    def _open_of(self, job: int) -> list[int]:
        start, stop = self._sorted.first[job : job + 2]
        return [place for place in range(start, stop) if self._open[place] and self._may(place)]

    def over_limit(self, pending: PendingClass, size: Sequence[int]) -> model.Verdict | None:
        """Return whether one more task of this size would exceed the limits of the class' queue."""
        queue = pending.job.queue
        for name, most in self._queues[queue].queue.limits if self.has_limits else ():
            row, usage = self._state.view.axis.row(name), self._usage[queue]
            need, holds = (amounts[row] if row < len(amounts) else 0 for amounts in (size, usage))
            if need and holds + need > most:
                held = f"queue {queue!r} holds {holds} of its limit of {most} {name}"
                return model.Verdict(code=model.Code.QUEUE_LIMIT, message=f"{held}; one task asks for {need}")
        return None

    # What happens in a turn

    def placed(self, assignment: Assignment) -> None:
        """Record that a task was placed."""
        if not assignment.pending.left:
            self.close(assignment.pending.place)
        if self._only is None or not self._profile.order.constant:
            self.charge(assignment.pending, assignment.amounts, operator.add)

    def charge(self, pending: PendingClass, amounts: Sequence[int], step: Step) -> None:
        """Update a job's key and the shares of its queue and namespace after its usage changed."""
        job, state, order = pending.job, self._state, self._profile.order
        if self._only is None:
            for key in (job.queue, (job.queue, job.namespace)):
                if key in self._usage:
                    self._usage[key] = combined(step, self._usage[key], amounts)
            self._share_out(self._queues[job.queue], job.namespace)
        if order.constant:
            return
        place = self._sorted.job_of[pending.place]
        if order.keyed_by_usage:
            self._move(place, order.key(job, state.job_usage(job.id), state.view.layout))
            return
        self._move(place, float(order.keys((job,), state)[0]))
        if (generation := order.generation(state)) != self._generation:
            self._generation = generation
            jobs = [job for job, key in enumerate(self._keys) if not math.isnan(key)]
            self._ask(jobs)
            self._line_up(jobs)

    def _move(self, job: int, key: float) -> None:
        before = self._keys[job]
        if key == before or before != before:  # noqa: PLR0124 - it has no turn any more
            return
        self._keys[job] = key
        heap = self._heaps[self._sorted.band_of[job]]
        push = heapreplace if heap and heap[0] == (before, job) else heappush
        push(heap, (key, job))

    def close(self, place: int) -> None:
        """Close a class for the rest of the cycle."""
        self._open[place] = False
        job = self._sorted.job_of[place]
        if self._keys and (self._sorted.single or not self._open_of(job)):
            self._keys[job] = _NO_TURN

    # Who had no turn

    def _close_dropped(self) -> None:
        first = self._sorted.first
        if not self._open:
            self._open = self._sorted.open.tolist()
        for job in range(len(self._sorted.jobs)) if self._is_over else [job for _, job in self._dropped]:
            for place in range(first[job], first[job + 1]):
                if self._open[place]:
                    self._open[place] = False
                    self._no_room.append(place)
        self._dropped.clear()

    def rest(self) -> Iterator[PendingClass]:
        """Return all open classes that may have turns."""
        if self._is_over:
            return
        self._close_dropped()
        for place, is_open in enumerate(self._open):
            if is_open and self._may(place):
                yield self._pending_class(place)

    def passed_over(self) -> Sequence[PendingClass]:
        """Return the classes that had no turn because every node is reserved for others."""
        turns = () if self._allowed is None else self._open
        closed = [place for place, is_open in enumerate(turns) if is_open and not self._may(place)]
        return [self._pending_class(place) for place in (*self._passed_over, *closed)]

    def without_room(self, *, as_before: bool) -> Sequence[PendingClass]:
        """Return the classes that had no turn because no node has room: those known to wait for that, or the others."""
        in_order = self._sorted
        if not as_before and in_order.only_matched:
            return ()
        self._close_dropped()
        return [self._pending_class(place) for place in self._no_room if in_order.matched[place] == as_before]


_NO_TURN = math.nan  # the key of a job that has no turn any more: it equals no key
