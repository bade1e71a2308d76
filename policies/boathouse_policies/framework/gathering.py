"""Room that is kept for a gang that waits, so that what comes free there adds up until it fits: for whom, how long.

* Room is kept only if the whole gang would fit beside the pods that nobody expects to end.
* It counts as held by the gang's namespace and queue, in fair sharing (`TurnOrder`) and for limits.
* It is kept for `GATHER_S` at most. Then none is kept for as long, while others wait.
* Above the fair part of its namespace it may be one gang at a time, for `ABOVE_PART_S` at most.

A profile whose reserve reserves nodes for gangs keeps whole nodes (`Gathering`). Every other profile uses each node as
soon as something fits, so a stream of small tasks would keep a large gang pending. There one gang is drained for that
has been pending for `PATIENCE_S` (`Draining`): one at a time, because two could wait for each other, the highest
priority, then the longest pending. Each cycle tries it first. If it does not fit whole, nobody else gets the room that
its members found, nor what is free where the others will have room soonest (`Attempt`).
"""

import dataclasses
import itertools
import math
import operator
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.cycle_state import CycleState, PendingClass
from boathouse_policies.framework.questions import Hooks
from boathouse_policies.framework.queue import KeptPart, SchedulingQueue
from boathouse_policies.framework.view import ClusterView, combined

GATHER_S = 600.0
ABOVE_PART_S = 60.0
PATIENCE_S = 30.0
ASKED_AGAIN_S = 10.0  # how long a gang that waits for its turn is not asked about


@dataclasses.dataclass(slots=True)
class Round:
    """A gang for which nodes are kept, or were kept and are not for a while."""

    since_s: float | None = None  # since when nodes are kept; None while none are
    above_s: float | None = None  # since when it is above the fair part of its namespace; None while it is not
    rests_until_s: float = 0.0  # until when no node is kept for it while others wait
    held_s: float = 0.0  # for how long nodes were kept before

    def note(self, now_s: float, *, is_above: bool) -> None:
        """Note whether it is above the fair part of its namespace."""
        self.above_s = None if not is_above else now_s if self.above_s is None else self.above_s

    def began_s(self, now_s: float) -> float:
        """Return since when nodes are kept for it, if they are from now on."""
        return now_s if self.since_s is None else self.since_s

    def ends_s(self, now_s: float) -> float:
        """Return when nodes are kept for it no longer, if others wait then."""
        ends_s = self.began_s(now_s) + GATHER_S
        return ends_s if self.above_s is None else min(ends_s, self.above_s + ABOVE_PART_S)

    def end(self, now_s: float) -> None:
        """Keep nothing for it for as long as something was kept."""
        assert self.since_s is not None
        self.held_s = now_s - self.since_s
        self.rests_until_s = now_s + max(self.held_s, ABOVE_PART_S)
        self.since_s = self.above_s = None


class Rounds(dict["model.JobId", Round]):
    """The rounds of gangs."""

    def resting(self, job: model.JobId, queue: SchedulingQueue, now_s: float) -> model.Verdict | None:
        """Return why nothing is kept for a gang because others wait; None if it does not rest."""
        round_ = self.get(job)
        if round_ is None or now_s >= round_.rests_until_s or not others_wait(queue, job):
            return None
        return verdict(
            f"nodes were kept for it for {round_.held_s:.0f} s and it could not start; none are kept for another "
            f"{math.ceil((round_.rests_until_s - now_s) / _ROUNDED_S) * _ROUNDED_S} s while others wait"
        )


class Gathering(Hooks):
    """Decides for which gangs nodes may be kept, and releases those that were kept for too long."""

    def __init__(self) -> None:
        self._rounds = Rounds()
        self._queue: SchedulingQueue | None = None

    def begins(self, queue: SchedulingQueue, state: CycleState) -> None:
        """End the rounds that are due."""
        self._queue = queue
        if not self._rounds and not state.reserved:
            return
        now_s, kept = state.view.now_s, nodes_of_gangs(queue, state)
        for job in [job for job in self._rounds if not queue.classes_of(job)]:
            del self._rounds[job]
        for job, round_ in self._rounds.items():
            if job not in kept:
                round_.since_s = round_.above_s = None
        above_s = {job: round_.above_s for job, round_ in self._rounds.items() if round_.above_s is not None}
        above = min(above_s, key=lambda job: (above_s[job], job), default=None)
        rounds = {job: self._rounds.setdefault(job, Round()) for job in kept}
        for job, round_ in sorted(rounds.items(), key=lambda item: (item[1].began_s(now_s), item[0])):
            nodes, owner = kept[job], queue.classes_of(job)[0].job
            round_.since_s = round_.began_s(now_s)
            is_above = is_above_part(queue, state.view, owner, idle(queue, job, nodes, state))
            round_.note(now_s, is_above=is_above)
            above = job if above is None and is_above else above
            if ((is_above and above != job) or now_s >= round_.ends_s(now_s)) and others_wait(queue, job):
                round_.end(now_s)
                for node in nodes:
                    state.release(node)

    def refusal(self, job: model.Job, state: CycleState) -> model.Verdict | None:
        """Return why no node may be kept for a gang now; None if one may."""
        if (queue := self._queue) is None:
            return None
        rests = self._rounds.resting(job.id, queue, state.view.now_s)
        return rests or (None if fits_in_time(queue, job.id, state) else NEVER_IN_TIME)

    def until_s(self, job: model.JobId, now_s: float) -> float:
        """Return when the answer for a gang may change without an event."""
        if (round_ := self._rounds.get(job)) is None:
            return now_s + ABOVE_PART_S
        return round_.rests_until_s if now_s < round_.rests_until_s else round_.ends_s(now_s)


class Draining:
    """Chooses the gang for which room is kept, and ends that. What the last cycle kept for it is `kept`."""

    def __init__(self) -> None:
        self.job: model.JobId | None = None
        self.kept: Sequence[KeptPart] = ()
        self._queue: SchedulingQueue  # of the last cycle that began
        self._since_s: dict[model.JobId, float] = {}  # gangs that have not begun, and since when they wait
        self._rounds = Rounds()

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
        is_above = is_above_part(queue, state.view, queue.classes_of(job)[0].job, held)
        round_.note(now_s, is_above=is_above)
        if now_s < round_.ends_s(now_s) or not others_wait(queue, job):
            return False
        round_.end(now_s)
        return True

    def _next(self, state: CycleState) -> model.JobId | None:
        """Return the gang of the highest priority that has waited for longest, and could start once others ended."""
        queue, in_order, now_s = self._queue, self._queue.sorted_classes(), state.view.now_s
        jobs = {in_order.queued[place].job for place in in_order.gangs if in_order.open[place]}
        due = [job for job in jobs if self._due_s(job.id) <= now_s and not self._rounds.resting(job.id, queue, now_s)]
        for job in sorted(due, key=lambda job: (-job.priority, self._due_s(job.id), job.id)):
            if fits_in_time(queue, job.id, state):
                self._rounds.setdefault(job.id, Round()).since_s = now_s
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
            most = f"for {GATHER_S:.0f} s at most"
            if round_.above_s is not None:
                most = f"above the fair part of its namespace for {ABOVE_PART_S:.0f} s at most"
            kept = f"room is kept for it as it comes free, {most} while others wait"
            return _with_rule(why, kept), _in_time(round_.ends_s(now_s), now_s)
        if round_ is not None and (rests := self._rounds.resting(job, self._queue, now_s)) is not None:
            return _with_rule(why, rests.message), round_.rests_until_s
        if now_s < since_s + PATIENCE_S:
            return why, since_s + PATIENCE_S
        if self.job is None or (ahead := self._rounds.get(self.job)) is None:
            return _with_rule(why, NEVER_IN_TIME.message), now_s + ASKED_AGAIN_S
        until_s = _in_time(ahead.ends_s(now_s), now_s)
        return _with_rule(why, "room is kept for another gang that is ahead"), min(until_s, now_s + ASKED_AGAIN_S)


def parts(member: PendingClass, count: int, state: CycleState) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield the nodes that lack least for so many members, which fit nowhere, and how much to take before the next."""
    if count <= 0:
        return
    rows, need = member.shape.rows, member.shape.need
    could_fit = state.reservable(member) & (beside_long_running(state.view)[rows] >= need).all(axis=0)
    for _ in range(count):
        share = (state.free[rows].clip(0) / need).min(axis=0, initial=np.inf)
        share = np.where(could_fit & (share < 1.0), share, 0.0)
        if not share.any():
            return
        node = int(share.argmax())
        yield node, tuple(max(0, min(pair)) for pair in zip(member.shape.sizes, state.free_on(node), strict=False))


def fits_in_time(queue: SchedulingQueue, job: model.JobId, state: CycleState) -> bool:
    """Return whether a gang fits beside the pods that nobody expects to end."""
    view, members = state.view, list[Member]()
    for queued in queue.classes_of(job):
        if (count := queued.task_class.gang_min - state.placed(queued.task_class.id)) > 0:
            mask = view.eligibilities.of(queued.task_class.constraints, view.layout).mask
            members.append(Member(view.axis.vector(queued.task_class.resources), mask, count))
    return fits_whole(members, beside_long_running(view))


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """So many equal tasks of a gang."""

    need: model.IntVector
    mask: model.BoolVector
    count: int


def fits_whole(members: Sequence[Member], room: model.IntMatrix) -> bool:
    """Return whether all members fit in the room, shape [R, N]: exact for equal tasks beside one other, the driver."""
    beside = most_beside(members, room) if members else 0
    return beside is not None and beside >= max((member.count for member in members), default=0)


def most_beside(members: Sequence[Member], room: model.IntMatrix) -> int | None:
    """Return how many of the most numerous members fit beside the others; None if one of the others fits nowhere.

    Each of the others goes where it takes least from them. On each node no more are counted than there are.
    """
    ordered = sorted(members, key=lambda member: member.count)
    room, last = room.copy(), ordered[-1]
    for member in ordered[:-1]:
        for _ in range(member.count):
            before = how_many(last, room)
            loss = before - how_many(last, room - member.need[:, None])
            fits = how_many(member, room) > 0
            if not fits.any():
                return None
            room[:, int(np.where(fits, loss, before.sum() + 1).argmin())] -= member.need
    return int(how_many(last, room).sum())


def how_many(member: Member, room: model.IntMatrix) -> model.IntVector:
    """Return how many of a member fit on each node, shape [N]; counted no further than its count."""
    rows = member.need.nonzero()[0]
    counts = np.minimum(room[rows] // member.need[rows, None], member.count).min(axis=0, initial=member.count)
    return np.where(member.mask, counts.clip(0), 0)


def beside_long_running(view: ClusterView) -> model.IntMatrix:
    """Return what pods that nobody expects to end leave of each node, shape [R, N]."""
    room = view.layout.allocatable.copy()
    for name, amounts in view.long_running.items():
        if (place := view.layout.index.get(name)) is not None:
            room[: len(amounts), place] -= np.minimum(amounts, model.LARGEST)
    return room


def nodes_of_gangs(queue: SchedulingQueue, state: CycleState) -> dict[model.JobId, list[int]]:
    """Return the places of the nodes that are kept for each gang."""
    found, in_order = dict[model.JobId, list[int]](), queue.sorted_classes()
    for node, owner in state.reserved.items():
        if (place := in_order.places.get(owner)) is not None and in_order.queued[place].task_class.gang_min:
            found.setdefault(in_order.queued[place].job.id, []).append(node)
    return found


def idle(queue: SchedulingQueue, job: model.JobId, nodes: Iterable[int], state: CycleState) -> model.Amounts:
    """Return what is free on nodes together of the resources that a gang requests, by row; pods are not counted."""
    axis, total = state.view.axis, [0] * state.view.axis.width
    sizes = [axis.amounts(queued.task_class.resources) for queued in queue.classes_of(job)]
    rows = {row for size in sizes for row, amount in enumerate(size) if amount} - {model.PODS}
    for node in nodes:
        free = state.free_on(node)
        for row in rows:
            total[row] += max(0, free[row])
    return tuple(total)


def is_above_part(queue: SchedulingQueue, view: ClusterView, job: model.Job, more: Sequence[int]) -> bool:
    """Return whether the jobs of a namespace hold more than its fair part of the nodes, with more amounts by row.

    The parts are those of the queues in which tasks are pending by weight, and within a queue of its namespaces.
    """
    shares = {(band.queue, band.namespace) for band in queue.sorted_classes().bands} | {(job.queue, job.namespace)}
    weights = {name: queue.queues[name].weight for name, _ in shares if name in queue.queues}
    if job.queue not in weights:
        return False
    part = weights[job.queue] / sum(weights.values()) / sum(name == job.queue for name, _ in shares)
    held = combined(operator.add, view.share_usage((job.queue, job.namespace)), more)
    return view.layout.dominant_share(held) > part + _ROUNDING


def others_wait(queue: SchedulingQueue, job: model.JobId) -> bool:
    """Return whether tasks of other jobs are pending."""
    return any(queued.pool.count and queued.job.id != job for queued in queue.sorted_classes().queued)


def verdict(message: str) -> model.Verdict:
    """Return why a gang waits."""
    return model.Verdict(code=model.Code.GANG, message=message)


def _in_time(until_s: float, now_s: float) -> float:
    """Return when to ask again: once a time is over that nobody else waits for, now and then."""
    return until_s if until_s > now_s else now_s + ASKED_AGAIN_S


def _with_rule(why: model.Verdict, rule: str) -> model.Verdict:
    return verdict(f"{why.message}; {rule}")


NEVER_IN_TIME = verdict("no node is kept for it: it does not fit beside pods that nobody expects to end")
_ROUNDING = 1e-9
_ROUNDED_S = 10  # so that a status that has the message is not written often
