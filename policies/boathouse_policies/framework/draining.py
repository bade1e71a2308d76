"""Draining: keep room as it comes free for one gang that has been pending for `PATIENCE_S`.

Every profile uses each node as soon as something fits, so a stream of small tasks would keep a large gang pending. Each
cycle tries the gang first. If it does not fit whole, nobody else gets the room that its members found, nor what is free
where the others will have room soonest (`Attempt`).

* One gang at a time, because two could wait for each other: the highest priority, then the longest pending.
* It is chosen only if the whole gang would fit beside the pods that nobody expects to end.
* What is kept counts as held by the gang's namespace and queue, in fair sharing and for limits.
* Room is kept for `gathering.GATHER_S` at most, and for `ABOVE_PART_S` above the fair part of the namespace. Then none
  is kept for as long, while others wait.

A profile whose reserve reserves nodes for gangs replaces draining: the two would wait for each other's reservations.
"""

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import gathering
from boathouse_policies.framework.cycle_state import CycleState, PendingClass
from boathouse_policies.framework.queue import KeptPart, SchedulingQueue

PATIENCE_S = 30.0
ASKED_AGAIN_S = 10.0  # how long a gang that waits for its turn is not asked about


class Draining:
    """Chooses the gang for which room is kept, and ends that. What the last cycle kept for it is `kept`."""

    def __init__(self) -> None:
        self.job: model.JobId | None = None
        self.kept: Sequence[KeptPart] = ()
        self._queue: SchedulingQueue  # of the last cycle that began
        self._since_s: dict[model.JobId, float] = {}  # gangs that have not begun, and since when they wait
        self._rounds = gathering.Rounds()

    def begins(self, queue: SchedulingQueue, state: CycleState) -> None:
        """Begin a cycle: note pending gangs, end the round that is due, and choose a gang if there is none."""
        self._queue = queue
        if not (queue.sorted_classes().gangs or self._since_s) or state.offers < len(state.view.layout):
            return
        self._note(state)
        if self.job is not None and self._is_over(self.job, state):
            self.job = None
        self.kept = ()
        if self.job is None:
            self.job = self._next(state)

    def _note(self, state: CycleState) -> None:
        in_order, now_s = self._queue.sorted_classes(), state.view.now_s
        classes = [in_order.queued[place] for place in in_order.gangs]
        waiting = dict.fromkeys(queued.job.id for queued in classes)
        for job in self._rounds.keys() - waiting.keys():
            del self._rounds[job]
        for queued in classes:
            if state.placed(queued.task_class.id):
                waiting.pop(queued.job.id, None)
        self._since_s = {job: self._since_s.get(job, now_s) for job in waiting}

    def _is_over(self, job: model.JobId, state: CycleState) -> bool:
        if job not in self._since_s:
            return True
        round_, queue, now_s = self._rounds[job], self._queue, state.view.now_s
        held = tuple(map(sum, itertools.zip_longest(*[kept.amounts for kept in self.kept], fillvalue=0)))
        is_above = gathering.is_above_part(queue, state.view, queue.classes_of(job)[0].job, held)
        round_.note(now_s, is_above=is_above)
        if now_s < round_.ends_s(now_s) or not gathering.others_wait(queue, job):
            return False
        round_.end(now_s)
        return True

    def _next(self, state: CycleState) -> model.JobId | None:
        """Return the gang of the highest priority that has waited for longest, and could start once others ended."""
        queue, now_s = self._queue, state.view.now_s
        in_order = queue.sorted_classes()
        jobs = {in_order.queued[place].job for place in in_order.gangs if in_order.open[place]}
        due = [job for job in jobs if self._due_s(job.id) <= now_s and not self._rounds.resting(job.id, queue, now_s)]
        for job in sorted(due, key=lambda job: (-job.priority, self._due_s(job.id), job.id)):
            if gathering.fits_in_time(queue, job.id, state):
                self._rounds.setdefault(job.id, gathering.Round()).since_s = now_s
                return job.id
        return None

    def _due_s(self, job: model.JobId) -> float:
        """Return when a gang may have its turn; infinity once it has begun. Who has rested goes behind the others."""
        rests_until_s = self._rounds[job].rests_until_s if job in self._rounds else -math.inf
        return max(self._since_s.get(job, math.inf) + PATIENCE_S, rests_until_s)

    def explain(self, job: model.JobId, why: model.Verdict, now_s: float) -> tuple[model.Verdict, float]:
        """Return why a gang waits that no nodes have room for, and until when that holds without an event."""
        round_, since_s = self._rounds.get(job), self._since_s.get(job, now_s)
        if job == self.job and round_ is not None:
            most = f"for {gathering.GATHER_S:.0f} s at most"
            if round_.above_s is not None:
                most = f"above the fair part of its namespace for {gathering.ABOVE_PART_S:.0f} s at most"
            kept = f"room is kept for it as it comes free, {most} while others wait"
            return _with_rule(why, kept), _in_time(round_.ends_s(now_s), now_s)
        if round_ is not None and (rests := self._rounds.resting(job, self._queue, now_s)) is not None:
            return _with_rule(why, rests.message), round_.rests_until_s
        if now_s < since_s + PATIENCE_S:
            return why, since_s + PATIENCE_S
        if self.job is None or (ahead := self._rounds.get(self.job)) is None:
            return _with_rule(why, gathering.NEVER_IN_TIME.message), now_s + ASKED_AGAIN_S
        until_s = _in_time(ahead.ends_s(now_s), now_s)
        return _with_rule(why, "room is kept for another gang that is ahead"), min(until_s, now_s + ASKED_AGAIN_S)


def parts(member: PendingClass, count: int, state: CycleState) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield the nodes that lack least for so many members, which fit nowhere, and how much to take before the next."""
    if count <= 0:
        return
    rows, need = member.shape.rows, member.shape.need
    could_fit = state.reservable(member) & (gathering.beside_long_running(state.view)[rows] >= need).all(axis=0)
    for _ in range(count):
        share = (state.free[rows].clip(0) / need).min(axis=0, initial=np.inf)
        share = np.where(could_fit & (share < 1.0), share, 0.0)
        if not share.any():
            return
        node = int(share.argmax())
        yield node, tuple(max(0, min(pair)) for pair in zip(member.shape.sizes, state.free_on(node), strict=False))


def _in_time(until_s: float, now_s: float) -> float:
    """Return when to ask again: once a time is over that nobody else waits for, now and then."""
    return until_s if until_s > now_s else now_s + ASKED_AGAIN_S


def _with_rule(why: model.Verdict, rule: str) -> model.Verdict:
    return gathering.verdict(f"{why.message}; {rule}")
