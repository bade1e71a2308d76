"""The timeline generator (3.2): when will a job have ended, if from now on all tasks are placed regularly?

The paper adds up task durations on each node and merges the nodes. Here the same is done by playing the future on a
heap of ends: tasks that run end, and their nodes take what the order gives them next, regularly and with node
reservations. Nothing is copied but the book's heap and numbers, and no further is played than somebody asks: whether an
elastic task would be its job's last is settled as soon as one of the job's tasks is known to end as late, which is
mostly soon. What was played stays, and is played on from there for the next question.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING

from boathouse_policies import model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from boathouse_policies.framework import ClusterView
    from boathouse_policies.yarn_me.book import Book, End, JobBook


class _Ahead:
    """A job in the future that is played."""

    __slots__ = ("held", "last_end_s", "longest_s", "pending_classes", "rank", "standing")

    def __init__(self, book: JobBook, now_s: float, standing: float) -> None:
        self.standing = standing
        self.rank = (book.job.submitted_s, book.job.id)
        self.held = book.held_bytes
        last_end_s = book.last_end_s
        self.last_end_s = max(last_end_s, now_s) if last_end_s > -math.inf else last_end_s  # overdue: any moment now
        # The first is the last of the list, to be popped.
        self.pending_classes = [
            _Wanted(one, left, seconds)
            for one, seconds in zip(book.classes[::-1], book.seconds[::-1], strict=True)
            if (left := book.left.get(one.id, 0)) > 0
        ]
        self.longest_s = max([pending.seconds for pending in self.pending_classes], default=0.0)


class _Wanted:
    """Tasks of a class that are left to place."""

    __slots__ = ("class_id", "cpu", "left", "memory", "seconds")

    def __init__(self, one: model.TaskClass, left: int, seconds: float) -> None:
        self.class_id = one.id
        self.left = left
        self.memory = one.resources.memory_bytes
        self.cpu = one.resources.cpu_milli
        self.seconds = seconds


class Timeline:
    """One future, played as far as somebody asked.

    Args:
        book: What is left and what runs.
        view: What is free, and the time.
        reserved: Reservations.
        standing: Of a job in the profile's order, the least first; jobs of equal standing by the memory that they hold.
    """

    def __init__(
        self,
        book: Book,
        view: ClusterView,
        reserved: Mapping[model.NodeName, model.ClassId],
        standing: Callable[[model.JobId], float] = lambda _: 0.0,
    ) -> None:
        self._now_s = self._time_s = view.now_s
        names, free = view.layout.names, view.layout.allocatable - view.requested
        self._memory: dict[model.NodeName, int] = dict(zip(names, free[model.MEMORY].tolist(), strict=True))
        self._cpu: dict[model.NodeName, int] = dict(zip(names, free[model.CPU].tolist(), strict=True))
        self._jobs = {job: _Ahead(one, view.now_s, standing(job)) for job, one in book.jobs.items()}
        self._ends = book.ends()
        self._ends.reverse()  # the first is the last of the list, to be popped
        self._new_ends: list[End] = []  # a heap: of tasks that are placed in the future
        self._made = 0
        self._order = [(one.standing, one.held, one.rank, one) for one in self._jobs.values() if one.pending_classes]
        heapq.heapify(self._order)
        self._moved: set[_Ahead] = set()  # those whose place in the order is not that of the heap any more
        owners = (
            {pending.class_id: one for one in self._jobs.values() for pending in one.pending_classes}
            if reserved
            else {}
        )
        self._reserved = {name: owners[one] for name, one in reserved.items() if one in owners and name in self._memory}
        self._begun = False

    def reaches(self, job: model.JobId, time_s: float) -> bool:
        """Whether the job will still run at a time: whether it ends then or later."""
        one = self._jobs.get(job)
        if one is None:
            return False
        if one.last_end_s >= time_s:
            return True
        if not self._begun:
            self._begun = True
            for node in self._memory:
                self._fill(node)
        self._play(one, time_s)
        return bool(one.pending_classes) or one.last_end_s >= time_s

    def _play(self, asked: _Ahead, until_s: float) -> None:
        """End after end, as long as that may show that the job will not still run at a time."""
        while asked.last_end_s < until_s and asked.pending_classes and self._until_placed(until_s - asked.longest_s):
            pass

    def _until_placed(self, before_s: float) -> bool:
        """End after end until something is placed; False if there is none before that time."""
        known, new, moved, reserved = self._ends, self._new_ends, self._moved, self._reserved
        jobs, memory, cpu = self._jobs, self._memory, self._cpu
        while known or new:
            is_known = not new or (bool(known) and known[-1][0] <= new[0][0])  # of equals, what runs now goes first
            time_s, _, node, bytes_freed, cpu_freed, job, _ = known[-1] if is_known else new[0]
            if time_s >= before_s:
                return False
            if is_known:
                known.pop()
            else:
                heapq.heappop(new)
            one = jobs.get(job)
            if one is None or node not in memory:
                continue
            self._time_s = max(self._time_s, time_s)
            memory[node] = free = memory[node] + bytes_freed
            cpu[node] += cpu_freed
            one.held -= bytes_freed
            if one.pending_classes:
                moved.add(one)
            owner = reserved.get(node)
            if owner is None or not owner.pending_classes or owner.pending_classes[-1].memory <= free:
                made = self._made
                self._fill(node)
                if self._made > made:
                    return True
        return False

    def _fill(self, node: model.NodeName) -> None:
        """What the node takes now: for its owner, else for the head of the order, which it is kept for if it fails."""
        while True:
            owner = self._reserved.get(node)
            if owner is not None and not owner.pending_classes:
                del self._reserved[node]
                owner = None
            one = owner or self._head()
            if one is None:
                return
            pending = one.pending_classes[-1]
            if pending.memory > self._memory[node] or pending.cpu > self._cpu[node]:
                self._reserved[node] = one
                return
            if owner is not None:
                del self._reserved[node]
            self._place(one, pending, node)

    def _place(self, one: _Ahead, pending: _Wanted, node: model.NodeName) -> None:
        self._memory[node] -= pending.memory
        self._cpu[node] -= pending.cpu
        one.held += pending.memory
        end_s = self._time_s + pending.seconds
        self._made += 1
        heapq.heappush(self._new_ends, (end_s, self._made, node, pending.memory, pending.cpu, one.rank[1], None))
        one.last_end_s = max(one.last_end_s, end_s)
        pending.left -= 1
        if not pending.left:
            one.pending_classes.pop()
            one.longest_s = max((other.seconds for other in one.pending_classes), default=0.0)
        if one.pending_classes:
            self._moved.add(one)

    def _head(self) -> _Ahead | None:
        """The first job in the order; entries of the heap that are out of date are dropped."""
        for one in self._moved:
            heapq.heappush(self._order, (one.standing, one.held, one.rank, one))
        self._moved.clear()
        while self._order:
            _, held, _, one = self._order[0]
            if one.pending_classes and held == one.held:
                return one
            heapq.heappop(self._order)
        return None
