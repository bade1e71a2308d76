"""Algorithm 1 for the plain case, in which nothing but memory, CPU and the order decides.

The cycle's general machinery asks filters, scores and reservations class by class. With few nodes on offer, as whenever
a task ends, nearly all of its time goes into classes that cannot be placed. Here the same decisions are made from the
columns of the nodes on offer alone, with all classes that might pass seen at once (`Elasticity.placeable`). Where
anything else could matter (`cast.is_plain`) there is no plan, and the cycle goes its general way.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.baselines.yarn import MemoryHeld, keep_unkept
from boathouse_policies.framework import PREDICATES, Left, Plan, Scratch, Want, neutral
from boathouse_policies.framework.attempt import refusal
from boathouse_policies.framework.want import Spot
from boathouse_policies.yarn_me.cast import Cast, is_plain

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from boathouse_policies.framework import ClusterView, Profile, WaitingRoom
    from boathouse_policies.yarn_me.cast import One
    from boathouse_policies.yarn_me.decide import Elasticity
    from boathouse_policies.yarn_me.reserve import Waits

_NOBODY, _STRANGER = -1, -2
_ORDER = MemoryHeld()


class Express:
    """Plans plain cycles.

    Args:
        elasticity: The policy.
        waits: When kept nodes are free for their owners; None where nobody may pass.
    """

    def __init__(self, elasticity: Elasticity, waits: Waits | None) -> None:
        self._elasticity = elasticity
        self._waits = waits
        self._cast: tuple[Cast, bool] | None = None

    def plan(self, queue: WaitingRoom, profile: Profile, view: ClusterView) -> Plan | None:
        """The cycle's plan; None where the case is not plain."""
        cast = self._cast_of(queue, view) if self._is_usual(profile) else None
        if cast is None:
            return None
        self._elasticity.advise(queue, view)
        turns = _Turns(self._elasticity, self._waits, cast, profile, Scratch(view, queue.keeping))
        turns.run()
        return Plan(tuple(turns.decisions), turns.left, profile, lambda: turns.scratch)

    def _is_usual(self, profile: Profile) -> bool:
        """Whether nothing was put between: a shell may add filters of its own."""
        return (
            profile.controllers == (self._elasticity,)
            and profile.filters == (*PREDICATES, self._elasticity)
            and profile.patience is neutral.NO_PATIENCE
            and profile.gang is neutral.MINIMUM_TOGETHER
            and not profile.scores
            and not self._elasticity.has_budget
        )

    def _cast_of(self, queue: WaitingRoom, view: ClusterView) -> Cast | None:
        lineup, known = queue.lineup(), self._cast
        if known is None or not known[0].fits(lineup, view.layout):
            plain = is_plain(lineup, queue, view.layout, view.eligibilities, view.axis)
            before = None if known is None else known[0]
            known = self._cast = Cast(lineup, view.layout, self._elasticity, view.axis, before), plain
        return known[0] if known[1] else None


class _Turns:
    """One cycle.

    Attributes:
        scratch: The state.
        decisions: So far.
    """

    def __init__(
        self, elasticity: Elasticity, waits: Waits | None, cast: Cast, profile: Profile, scratch: Scratch
    ) -> None:
        self.scratch = scratch
        self.decisions: list[model.Decision] = []
        self._elasticity = elasticity
        self._waits = waits
        self._cast = cast
        self._profile = profile
        self._now_s = scratch.view.now_s
        self._wants: dict[int, Want] = {}
        self._room: list[int] | None = None  # of the only node on offer
        self._columns: _Columns | None = None
        self._closed: set[int] = set()
        self._allowed: set[model.ClassId] | None = None
        # Of nodes on offer: the owner's code, and how long others may stay, for ever where the node is kept for nobody.
        self._owner: dict[int, int] = {}
        self._gap_s: dict[int, float] = {}
        self._open = scratch.offered_places()
        for node in self._open:
            self._kept(node, changed=False)
        self._owners = cast.last_first(scratch.owners()) if scratch.all_kept else []
        self._held_by = cast.held(_ORDER, scratch.view)  # by job; infinite for those that have no turn any more

    def run(self) -> None:
        """Turn by turn, until nothing more can be placed."""
        while not self.scratch.exhausted and (one := self._next()) is not None:
            node = self._node_for(one) if self._left(one) else None
            if node is None:
                self._closed.add(one.code)
                self._refused(one)
            else:
                self._place(one, node)

    def _left(self, one: One) -> int:
        """Its tasks that wait."""
        want = self._wants.get(one.code)
        return one.waiting.pool.count if want is None else want.left

    def _next(self) -> One | None:
        """While all nodes on offer are kept, those whom they were kept for at first; then the job that holds least."""
        while self._owners and self.scratch.all_kept:
            if self._owners[-1].code not in self._closed:
                return self._owners[-1]
            self._owners.pop()
        held = self._held_by
        while len(held):
            job = int(held.argmin())
            if held[job] == np.inf:
                break
            one = self._first(job)
            if one is None:
                held[job] = np.inf
            elif one.waiting.job.id in self.scratch.jobs and held[job] != (now := self._held(one)):
                held[job] = now  # it got a task meanwhile: jobs only gain in a cycle
            else:
                return one
        return None

    def _first(self, job: int) -> One | None:
        allowed, closed = self._allowed, self._closed
        for one in self._cast.jobs[job]:
            if one.code not in closed and (allowed is None or one.id in allowed):
                return one
        return None

    def _held(self, one: One) -> int:
        return int(self.scratch.job_usage(one.waiting.job.id)[model.MEMORY])

    def _want(self, one: One) -> Want:
        want = self._wants.get(one.code)
        if want is None:
            want = self._wants[one.code] = Want(one.waiting, self._profile, self.scratch)
        return want

    # Where

    def _node_for(self, one: One) -> int | None:
        """Lines 5 to 9: the best node with room for the ideal, else the one on which it is fastest and in time."""
        if len(self._open) == 1:
            return self._open[0] if self._goes(one, self._open[0]) else None
        if self._columns is None:
            self._columns = _Columns(self._open, self.scratch.free, self._owner, self._gap_s)
        free, owner, gap_s = self._columns.free, self._columns.owner, self._columns.gap_s
        if not self._might_go(one, *self._columns.most(), owner):
            return None
        enough = np.logical_and.reduce(free[one.rows] >= one.need)
        if not np.count_nonzero(enough):
            return None
        seconds = self._seconds(one, free[model.MEMORY])
        passing = enough & ((owner == one.code) | (seconds <= gap_s))
        if one.elastic is not None and np.count_nonzero(passing):
            passing &= seconds <= self._allowance_s(one, seconds[passing])
        found = self._columns.places[passing]
        if len(found) <= 1:
            return int(found[0]) if len(found) else None
        score = self._profile.score_of(one.waiting.task_class.stage).score(self._want(one), self.scratch, found)
        return int(found[score.argmax()])

    def _goes(self, one: One, node: int) -> bool:
        """The same for the only node on offer, in plain numbers."""
        room = self._room
        if room is None:
            room = self._room = self.scratch.free[:, node].tolist()
        for row, amount in one.asks:
            if room[row] < amount:
                return False
        seconds = math.inf if one.elastic is None else one.elastic.fastest_s(room[model.MEMORY])
        if seconds > self._gap_s[node] and self._owner[node] != one.code:
            return False
        if one.elastic is None or seconds <= one.regular_s:
            return True
        return seconds < math.inf and self._elasticity.ends_in_time(one.id, self._now_s + seconds)

    def _might_go(self, one: One, most_bytes: int, longest_gap_s: float, owner: model.IntVector) -> bool:
        """Whether it might go to one of several nodes, judged by the most memory and the longest gap of any of them."""
        if one.elastic is None:
            return True
        seconds = one.elastic.fastest_s(most_bytes)
        if seconds > longest_gap_s and one.code not in owner:
            return False
        return seconds <= one.regular_s or (
            seconds < math.inf and self._elasticity.ends_in_time(one.id, self._now_s + seconds)
        )

    @staticmethod
    def _seconds(one: One, memory: model.IntVector) -> model.FloatVector:
        if one.elastic is None:
            return np.full(len(memory), np.inf)
        _, table = one.elastic.table()
        ideal = one.elastic.ideal_bytes
        steps = np.minimum(np.maximum(memory, 0), ideal) // one.elastic.step_bytes
        return np.where(memory >= ideal, one.regular_s, table[steps])

    def _allowance_s(self, one: One, seconds: model.FloatVector) -> float:
        slow = {s for s in set(seconds.tolist()) if one.regular_s < s < math.inf}
        for longest_s in sorted(slow, reverse=True):
            if self._elasticity.ends_in_time(one.id, self._now_s + longest_s):
                return float(longest_s)
        return one.regular_s

    # What follows

    def _place(self, one: One, node: int) -> None:
        want, scratch = self._want(one), self.scratch
        size = self._elasticity.size(want, node, scratch).resources
        pick = want.picker.closest(scratch.view.nodes[node])
        assert pick is not None
        want.picker.take(pick)
        scratch.place(Spot(want, pick, node, size, scratch.view.axis.vector(size)))
        if not want.left:
            self._closed.add(one.code)
        if scratch.kept.get(node) == one.id:
            scratch.release(node)
        self.decisions.append(one.waiting.placement(pick, scratch.view.layout.names[node], size))
        if not scratch.offered[node]:
            self._open, self._columns = scratch.offered_places(), None
        self._room = None
        self._kept(node, changed=True)

    def _refused(self, one: One) -> None:
        """Line 14; and once all nodes are kept, who may pass is known."""
        if one.never_fits:
            return
        all_kept = self.scratch.all_kept
        if not all_kept:
            self._columns = None
            for held in keep_unkept(self._want(one), self.scratch):
                assert held.node is not None
                self.decisions.append(held)
                self._kept(self.scratch.view.layout.index[held.node], changed=True)
            all_kept = self.scratch.all_kept
        if self._allowed is None and all_kept:
            places = self._open
            self._allowed = self.scratch.owners()
            if self._waits is not None:
                free, gaps_s = self.scratch.free[model.MEMORY, places].tolist(), [self._gap_s[node] for node in places]
                self._allowed |= self._elasticity.placeable(free, gaps_s, self._now_s)
            self._confine(self._allowed)

    def _confine(self, classes: Collection[model.ClassId]) -> None:
        """Only these have turns from now on."""
        job_of, held = self._cast.job_of, self._held_by
        jobs = [job_of[one] for one in classes if one in job_of]
        theirs = held[jobs]
        held.fill(np.inf)
        held[jobs] = theirs

    def _kept(self, node: int, *, changed: bool) -> None:
        """Note whom the node is kept for, and until when."""
        owner, free = self.scratch.kept.get(node), self.scratch.free[:, node]
        code, gap_s = _NOBODY, math.inf
        if owner is not None:
            one = self._cast.by_id.get(owner)
            code, gap_s = _STRANGER if one is None else one.code, -math.inf
            if self._waits is not None:
                name = self.scratch.view.layout.names[node]
                gap_s = self._waits.until_s(name, owner, free.tolist(), changed=changed) - self._now_s
        self._owner[node], self._gap_s[node] = code, gap_s
        if self._columns is not None:
            self._columns.mend(node, free, code, gap_s)

    def left(self) -> Mapping[model.ClassId, Left]:
        """What is left waiting, and why."""
        found = {}
        for one in self._cast.by_id.values():
            want = self._want(one)
            if want.left:
                found[one.id] = Left(want, refusal(want, self._profile, self.scratch), want.left)
        return found


class _Columns:
    """The nodes on offer as columns, where there are several.

    Attributes:
        places: Of the nodes, ascending.
        free: What is free there, shape [R, len(places)].
        owner: The code of whom each is kept for.
        gap_s: How long others may stay there.
    """

    def __init__(
        self, places: Sequence[int], free: model.IntMatrix, owner: Mapping[int, int], gap_s: Mapping[int, float]
    ) -> None:
        self.places = np.array(places, np.intp)
        self.free = free[:, self.places]
        self.owner = np.array([owner[node] for node in places], np.int64)
        self.gap_s = np.array([gap_s[node] for node in places])
        self._most: tuple[int, float] | None = None

    def mend(self, node: int, free: model.IntVector, owner: int, gap_s: float) -> None:
        """Something changed on a node."""
        i = int(self.places.searchsorted(node))
        self.free[:, i], self.owner[i], self.gap_s[i] = free, owner, gap_s
        self._most = None

    def most(self) -> tuple[int, float]:
        """Bytes free on any of them, and the longest gap."""
        if self._most is None:
            self._most = int(self.free[model.MEMORY].max()), float(self.gap_s.max())
        return self._most
