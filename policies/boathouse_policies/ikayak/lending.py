"""CPU that suspended reducers gave back: it goes to the same job's maps first (3.2), then to others' maps.

It is lent: the reducer wants it back when its suspension ends. So only maps, which soon end, may take it. An executor
or another reducer would keep it, and the suspended one would not run again for long (ours).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.questions import Filter

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from boathouse_policies.framework import CycleState, PendingClass, Where
    from boathouse_policies.ikayak.book import Running

LENT = "node(s) whose free CPU is lent to maps by a suspended reducer"


class Lending(Filter):
    """A filter, and what is free for tasks that may not take lent CPU.

    Args:
        kept_milli: CPU that each suspended reducer keeps.

    Attributes:
        paused: Who is suspended in this cycle, decisions of its controllers included, and until when.
    """

    def __init__(self, kept_milli: int) -> None:
        self._kept_milli = kept_milli
        self.paused: Mapping[Running, float] = {}
        self._hungry: frozenset[model.JobId] = frozenset()
        self._seen: tuple[CycleState, model.IntVector] | None = None

    def lent(self, paused: Mapping[Running, float], hungry: frozenset[model.JobId]) -> None:
        """What the controller knows before a cycle: who is suspended until when, and whose maps wait."""
        self.paused, self._hungry, self._seen = paused, hungry, None

    def free(self, state: CycleState) -> model.IntMatrix:
        """What is free without lent CPU, shape [R, N]: not to be changed."""
        lent = self._all(state)
        if not lent.any():
            return state.free
        free = state.free.copy()
        free[model.CPU] -= lent
        return free

    def _all(self, state: CycleState) -> model.IntVector:
        if self._seen is None or self._seen[0] is not state:
            self._seen = (state, self._sum(self.paused, state))
        return self._seen[1]

    def _sum(self, lenders: Iterable[Running], state: CycleState) -> model.IntVector:
        """Lent CPU by node, shape [N]."""
        total = np.zeros(state.free.shape[1], np.int64)
        index, now_s = state.view.layout.index, state.view.now_s
        for one in lenders:
            place = index.get(one.node)
            if place is not None and self.paused[one] > now_s:
                total[place] += max(0, one.resources.cpu_milli - self._kept_milli)
        return total

    # Filter

    def concerns(self, pending: PendingClass) -> bool:  # noqa: ARG002 - the protocol's
        """All classes, where any CPU is lent."""
        return bool(self.paused)

    def key(self, pending: PendingClass) -> Hashable:
        """The job of maps, for its own reducers' CPU comes first."""
        is_map = pending.task_class.stage is model.Stage.MAP
        return is_map, pending.job.id if is_map else None

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Where the class fits without CPU that is lent to others."""
        if not self.paused:
            return None
        lent = self._not_for(pending, state)
        if not lent.any():
            return None
        passed: model.BoolVector = (state.free[model.CPU] - lent)[where] >= pending.least[model.CPU]
        nothing: model.BoolVector = lent[where] == 0
        return passed | nothing

    def _not_for(self, pending: PendingClass, state: CycleState) -> model.IntVector:
        if pending.task_class.stage is not model.Stage.MAP:
            return self._all(state)
        own = pending.job.id
        return self._sum([one for one in self.paused if one.job.job.id in self._hungry - {own}], state)

    def refusals(self, pending: PendingClass, state: CycleState, among: model.BoolVector) -> Sequence[model.Refusal]:
        """Nodes that would have room with it."""
        passed = self.mask(pending, state, slice(None))
        count = 0 if passed is None else int((among & ~passed).sum())
        return [model.Refusal(reason=LENT, nodes=count)] if count else []
