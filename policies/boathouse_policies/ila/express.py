"""Cycles in which only maps and reducers wait: the decisions of the general way, from columns that classes share.

The general way asks filters and scores class by class, and mends what each of them has seen. Here classes of one size
and demand have one column of ranks (`Moment.ranks`), mended for the hosts that took tasks.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import PREDICATES, Left, Plan, Scratch, Want, neutral
from boathouse_policies.framework.attempt import refusal
from boathouse_policies.framework.want import Spot
from boathouse_policies.ila.demand import STAGES

if TYPE_CHECKING:
    from boathouse_policies.framework import ClusterView, Profile, WaitingRoom
    from boathouse_policies.framework.lineup import Lineup
    from boathouse_policies.ila.interference import Interference
    from boathouse_policies.ila.moment import Ranks
    from boathouse_policies.ila.schedule import Acceptance, LookAgain, Nearest


class Express:
    """Plans such cycles.

    Args:
        interference: Algorithm 1.
        nearest: Ranks nodes.
        acceptance: Algorithms 2 and 3.
        look_again: Who is refused everywhere.
    """

    def __init__(
        self, interference: Interference, nearest: Nearest, acceptance: Acceptance, look_again: LookAgain
    ) -> None:
        self.interference = interference
        self.nearest = nearest
        self.acceptance = acceptance
        self.look_again = look_again
        self._known: tuple[Lineup, bool] | None = None

    def plan(self, queue: WaitingRoom, profile: Profile, view: ClusterView) -> Plan | None:
        """The cycle's plan; None where anything else might decide."""
        lineup = queue.lineup()
        if lineup.orphans or queue.kept or not view.layout.nodes or not self._is_usual(profile, view):
            return None
        if self._known is None or self._known[0] is not lineup:
            self._known = lineup, self._is_plain(lineup, queue)
        if not self._known[1]:
            return None
        turns = _Turns(self, lineup, profile, Scratch(view))
        turns.run()
        return Plan(tuple(turns.decisions), lambda: turns.left, profile, lambda: turns.scratch)

    def _is_usual(self, profile: Profile, view: ClusterView) -> bool:
        """Whether nothing was put between: a shell may add filters of its own, or offer nodes one by one."""
        return (
            view.offered is None
            and view.max_per_node is None
            and profile.filters == (*PREDICATES, self.interference)
            and profile.patience is self.acceptance
            and profile.reserve is self.look_again
            and profile.sizer is neutral.IDEAL_SIZE
            and not profile.controllers
            and not hasattr(profile.order, "generation")
        )

    @staticmethod
    def _is_plain(lineup: Lineup, queue: WaitingRoom) -> bool:
        """Whether room alone decides where each class may go, and one queue without limits has them all."""
        if len(lineup.bands) != 1 or queue.queues[lineup.bands[0].queue].limits:
            return False
        return all(
            one.is_plain and one.task_class.stage in STAGES and not one.pool.order[-1].expected  # the last if any
            for one in lineup.waiting
        )


class _Turns:
    """One cycle.

    Attributes:
        scratch: The state.
        decisions: So far.
        left: Who waits, and why.
    """

    def __init__(self, policy: Express, lineup: Lineup, profile: Profile, scratch: Scratch) -> None:
        self.scratch = scratch
        self.decisions: list[model.Decision] = []
        self.left: dict[model.ClassId, Left] = {}
        self._policy = policy
        self._lineup = lineup
        self._profile = profile
        self._wants: dict[int, Want] = {}
        self._ranks: dict[int, Ranks] = {}
        self._open: list[bool] = lineup.open.tolist()
        jobs = lineup.open_jobs(lineup.open).nonzero()[0].tolist()
        keys = profile.order.keys([lineup.jobs[job] for job in jobs], scratch)
        self._heap = [(float(key), job) for key, job in zip(keys, jobs, strict=True)]
        heapq.heapify(self._heap)

    def run(self) -> None:
        """Turn by turn, until nothing more can be placed."""
        heap = self._heap
        while heap:
            job = heap[0][1]
            want = self._first(job)
            if want is None:
                heapq.heappop(heap)
                continue
            node = self._best(want)
            if node is None:
                self._refused(want)
            elif (hold := self._policy.acceptance.wait(want, node, self.scratch)) is not None:
                self._leave(want, hold.verdict, hold)
            else:
                self._place(want, node)
                heapq.heapreplace(heap, (float(self._profile.order.keys((want.job,), self.scratch)[0]), job))

    def _first(self, job: int) -> Want | None:
        """The first class of a job that is open."""
        start, stop = self._lineup.first[job : job + 2]
        for place in range(start, stop):
            if self._open[place]:
                return self._want(place)
        return None

    def _want(self, place: int) -> Want:
        want = self._wants.get(place)
        if want is None:
            want = self._wants[place] = Want(self._lineup.waiting[place], self._profile, self.scratch)
            want.place = place
        return want

    def _best(self, want: Want) -> int | None:
        """The best node that may be used, the first of equals."""
        known = self._ranks.get(want.place)
        if known is None:
            known = self._ranks[want.place] = self._policy.interference.ranks(want, self.scratch)
        ranks = self._policy.nearest.nearer(want, known.column())
        if not want.eligibility.everywhere:
            ranks = np.where(want.eligibility.mask, ranks, -np.inf)
        node = int(ranks.argmax())
        return node if ranks[node] != -np.inf else None

    def _place(self, want: Want, node: int) -> None:
        layout, size = self.scratch.view.layout, want.task_class.resources
        pick = want.picker.closest(layout.nodes[node])
        assert pick is not None
        want.take(pick)
        self.scratch.place(Spot(want, pick, node, size, want.least))
        self.decisions.append(want.waiting.placement(pick, layout.names[node], size))
        if not want.left:
            self._open[want.place] = False

    def _refused(self, want: Want) -> None:
        """No node takes it: who else will find none is seen at once."""
        verdict = refusal(want, self._profile, self.scratch)
        self._leave(want, verdict)
        if verdict.code is model.Code.NEVER_FITS:
            return
        for hold in self._policy.look_again.keep(want, self.scratch):
            self._leave(want, hold.verdict, hold)
        rest = [self._want(place) for place, is_open in enumerate(self._open) if is_open]
        for other, why, until in self._policy.look_again.refused(rest, self.scratch):
            self._leave(other, why, until)

    def _leave(self, want: Want, verdict: model.Verdict, hold: model.Hold | None = None) -> None:
        self._open[want.place] = False
        self.left[want.task_class.id] = Left(want, verdict, want.left)
        if hold is not None:
            self.decisions.append(hold)
