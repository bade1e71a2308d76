"""What a cycle hands to its shell."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_policies.framework import diagnosis

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from boathouse_policies import model
    from boathouse_policies.framework.cycle_state import CycleState, PendingClass
    from boathouse_policies.framework.scheduling_profile import Profile


@dataclasses.dataclass(frozen=True, slots=True)
class Left:
    """A class of which tasks are left waiting.

    Attributes:
        pending: The class as the cycle left it.
        verdict: Why.
        count: Its tasks left waiting.
    """

    pending: PendingClass
    verdict: model.Verdict
    count: int

    @property
    def least(self) -> model.IntVector:
        """The smallest size that would have been placed, shape [R]."""
        return self.pending.least


class Plan:
    """Decisions, in the order in which they were made, and what is left waiting.

    Attributes:
        decisions: For the shell to assume and carry out.
        released: Nodes that were kept for somebody before and are not any more, sorted.
    """

    def __init__(
        self,
        decisions: Sequence[model.Decision],
        news: Callable[[], Mapping[model.ClassId, Left]],
        profile: Profile,
        state: Callable[[], CycleState],
        *,
        still: Callable[[], Mapping[model.ClassId, Left]] | None = None,
        released: Sequence[model.NodeName] = (),
    ) -> None:
        self.decisions = decisions
        self.released = released
        self._news: Mapping[model.ClassId, Left] | None = None
        self._left: Mapping[model.ClassId, Left] | None = None
        self._work_out_news = news
        self._work_out_still = still
        self._profile = profile
        self._state = state

    @property
    def news(self) -> Mapping[model.ClassId, Left]:
        """Who had a turn, or is parked for the first time.

        Worked out when first asked for, which must be before the scheduling queue takes placed tasks out.
        """
        if self._news is None:
            self._news = self._work_out_news()
        return self._news

    @property
    def left(self) -> Mapping[model.ClassId, Left]:
        """All that is left waiting of what the cycle looked at, by class: the news, and who still waits as before."""
        if self._left is None:
            self._left = self.news if self._work_out_still is None else {**self.news, **self._work_out_still()}
        return self._left

    def diagnosis(self, task_class: model.ClassId) -> model.Diagnosis | None:
        """Why a class waits; None if it does not. Worked out when asked for, from the cycle's last state."""
        left = self.left.get(task_class)
        return None if left is None else _explain(left, self._profile, self._state())

    def diagnoses(self) -> Sequence[model.Diagnosis]:
        """One for each class left waiting."""
        return [_explain(one, self._profile, self._state()) for one in self.left.values()]


def _explain(left: Left, profile: Profile, state: CycleState) -> model.Diagnosis:
    return diagnosis.explain(left.pending, left.verdict, left.count, profile, state)
