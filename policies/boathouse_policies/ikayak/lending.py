"""CPU that suspended reducers gave back: it goes to the same job's maps first (3.2), then to others' maps.

It is lent: the reducer wants it back when its suspension ends. So only maps, which soon end, may take it. An executor
or another reducer would keep it, and the suspended one would not run again for long (ours).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.extension import Filter

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from boathouse_policies.framework import Scratch, Want, Where
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
        self._seen: tuple[Scratch, model.IntVector] | None = None

    def lent(self, paused: Mapping[Running, float], hungry: frozenset[model.JobId]) -> None:
        """What the controller knows before a cycle: who is suspended until when, and whose maps wait."""
        self.paused, self._hungry, self._seen = paused, hungry, None

    def free(self, scratch: Scratch) -> model.IntMatrix:
        """What is free without lent CPU, shape [R, N]: not to be changed."""
        lent = self._all(scratch)
        if not lent.any():
            return scratch.free
        free = scratch.free.copy()
        free[model.CPU] -= lent
        return free

    def _all(self, scratch: Scratch) -> model.IntVector:
        if self._seen is None or self._seen[0] is not scratch:
            self._seen = (scratch, self._sum(self.paused, scratch))
        return self._seen[1]

    def _sum(self, lenders: Iterable[Running], scratch: Scratch) -> model.IntVector:
        """Lent CPU by node, shape [N]."""
        total = np.zeros(scratch.free.shape[1], np.int64)
        index, now_s = scratch.view.layout.index, scratch.view.now_s
        for one in lenders:
            place = index.get(one.node)
            if place is not None and self.paused[one] > now_s:
                total[place] += max(0, one.resources.cpu_milli - self._kept_milli)
        return total

    # Filter

    def concerns(self, want: Want) -> bool:  # noqa: ARG002 - the protocol's
        """All classes, where any CPU is lent."""
        return bool(self.paused)

    def key(self, want: Want) -> Hashable:
        """The job of maps, for its own reducers' CPU comes first."""
        is_map = want.task_class.stage is model.Stage.MAP
        return is_map, want.job.id if is_map else None

    def mask(self, want: Want, scratch: Scratch, where: Where) -> model.BoolVector | None:
        """Where the class fits without CPU that is lent to others."""
        if not self.paused:
            return None
        lent = self._not_for(want, scratch)
        if not lent.any():
            return None
        passed: model.BoolVector = (scratch.free[model.CPU] - lent)[where] >= want.least[model.CPU]
        nothing: model.BoolVector = lent[where] == 0
        return passed | nothing

    def _not_for(self, want: Want, scratch: Scratch) -> model.IntVector:
        if want.task_class.stage is not model.Stage.MAP:
            return self._all(scratch)
        own = want.job.id
        return self._sum([one for one in self.paused if one.job.job.id in self._hungry - {own}], scratch)

    def refusals(self, want: Want, scratch: Scratch, among: model.BoolVector) -> Sequence[model.Refusal]:
        """Nodes that would have room with it."""
        passed = self.mask(want, scratch, slice(None))
        count = 0 if passed is None else int((among & ~passed).sum())
        return [model.Refusal(reason=LENT, nodes=count)] if count else []
