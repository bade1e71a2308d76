"""The meta scheduler (4.4, Algorithm 3) as pieces of a profile.

Jobs come in the order of the fair scheduler; interference is judged first (the filter), then locality. The node is the
closest one of those without interference, of equals the one where the task is slowed down least. A class that is
refused lets the next one try.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies import model
from boathouse_policies.framework import ALL, Patience, Reserve, Score
from boathouse_policies.ila.demand import STAGES

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from boathouse_policies.framework import CycleState, PendingClass, Where
    from boathouse_policies.ila.delay import AdaptiveDelay
    from boathouse_policies.ila.interference import Interference
    from boathouse_policies.model import FloatVector


class Nearest(Score):
    """A score: the closest node first; of equals the one with the least predicted slowdown, or the one a base prefers.

    Args:
        interference: Predicts slowdowns; None to rank by the base.
        base: Ranks where nothing else does.
        by_distance: Whether closeness matters; if not, that is left to whichever task is closest to the chosen node.
    """

    def __init__(self, interference: Interference | None, base: Score, *, by_distance: bool = True) -> None:
        self._interference = interference
        self._base = base
        self._by_distance = by_distance

    def key(self, pending: PendingClass) -> Hashable:
        """The class where its input is in blocks; else what slowdowns depend on."""
        if self._by_distance and pending.queued.pool.located:
            return pending.task_class.id
        return self._base.key(pending) if self._interference is None else self._interference.key(pending)

    def score(self, pending: PendingClass, state: CycleState, where: Where) -> FloatVector:
        """Higher is better."""
        if self._interference is not None:
            score = -self._interference.slowdown(pending, state, where)
        else:
            score = self._base.score(pending, state, where)
        return self.nearer(pending, score, where)

    def score_on(self, pending: PendingClass, state: CycleState, node: int) -> float:
        """The score of one node."""
        if self._interference is not None:
            score = -self._interference.slowdown_at(pending, state, node)
        else:
            score = self._base.score_on(pending, state, node)
        if not self._by_distance or not pending.queued.pool.located:
            return score
        return score - _LEVEL * int(pending.levels[node])

    def nearer(self, pending: PendingClass, score: FloatVector, where: Where = ALL) -> FloatVector:
        """A score below any span of it for each level of distance."""
        if not self._by_distance or not pending.queued.pool.located:
            return score
        return score - _LEVEL * pending.levels[where]


class Acceptance(Patience):
    """Patience: the last word on a node (Algorithm 3, lines 10 to 15).

    Args:
        delay: Algorithm 2.
    """

    def __init__(self, delay: AdaptiveDelay) -> None:
        self._delay = delay

    def wait(self, pending: PendingClass, node: int, state: CycleState) -> model.Wait | None:
        """Until when the class waits for a closer node; None takes this one."""
        if pending.task_class.stage in STAGES and pending.queued.pool.located:
            found = model.Distance(pending.levels[node])
            until_s = self._delay.until_s(pending, found, state.view.now_s)
            if until_s is not None:
                return self._wait(pending, found, until_s)
        return None

    @staticmethod
    def _wait(pending: PendingClass, found: model.Distance, until_s: float) -> model.Wait:
        message = f"the closest free node is {_FAR[found]} its input: it waits for a closer one"
        verdict = model.Verdict(code=model.Code.PATIENCE, message=message)
        return model.Wait(task_class=pending.task_class, job=pending.job, verdict=verdict, until_s=until_s)


class LookAgain(Reserve):
    """A Reserve that keeps no node: what interference refused everywhere looks again after a while.

    No event tells that a host has had idle slots for long enough.

    Args:
        interference: Knows when that is.
    """

    def __init__(self, interference: Interference) -> None:
        self._interference = interference

    def concerns(self, pending: PendingClass) -> bool:  # noqa: ARG002 - the protocol's
        """No class: it keeps no node."""
        return False

    def is_idle(self, state: CycleState) -> bool:  # noqa: ARG002 - the protocol's
        """Always: a class without room waits for room."""
        return True

    def reserve(self, pending: PendingClass, state: CycleState) -> Sequence[model.Reservation | model.Wait]:
        """When to look again."""
        _, again_s = self._interference.refused(pending, state)
        return () if again_s is None else (_again(pending, again_s),)

    def refused(
        self, pending_classes: Iterable[PendingClass], state: CycleState
    ) -> Iterator[tuple[PendingClass, model.Verdict, model.Wait | None]]:
        """Of these, the maps and reducers for which no node has room, or none of those that have."""
        for pending in pending_classes:
            one = pending.task_class
            if one.stage not in STAGES or one.gang_min:
                continue
            has_room, again_s = self._interference.refused(pending, state)
            if not has_room:
                fits = state.view.layout.could_hold(pending.least)
                yield pending, _NO_ROOM if fits else _NEVER, None
            elif again_s is not None:
                wait = _again(pending, again_s)
                yield pending, wait.verdict, wait


def _again(pending: PendingClass, again_s: float) -> model.Wait:
    return model.Wait(task_class=pending.task_class, job=pending.job, verdict=_SLOWED, until_s=again_s)


_SLOWED = model.Verdict(
    code=model.Code.PATIENCE, message="every node with room is on a host whose tasks it would slow down, or they it"
)
_NO_ROOM = model.Verdict(code=model.Code.UNSCHEDULABLE)
_NEVER = model.Verdict(code=model.Code.NEVER_FITS, message="no node is large enough, even empty")


_LEVEL = 1e6  # above any slowdown: closeness comes first
_FAR = {
    model.Distance.NODE: "the node of",
    model.Distance.SERVER: "on the host of",
    model.Distance.RACK: "in the rack of",
    model.Distance.ANYWHERE: "in another rack than",
}
