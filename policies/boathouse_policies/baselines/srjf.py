"""Shortest remaining job first: by the run time of the tasks that are not placed yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boathouse_policies import model
from boathouse_policies.baselines.placement import Placement, scorer
from boathouse_policies.framework import Profile
from boathouse_policies.framework.questions import JobOrder, Observer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_policies.framework import CycleState


class ShortestRemaining(JobOrder, Observer):
    """The job with the least work left to place, in seconds of run time; what runs does not count.

    It learns what is left from Submitted and Placed. Classes of unknown duration count as no work.
    """

    def __init__(self) -> None:
        self._left: dict[model.JobId, dict[model.ClassId, tuple[int, float]]] = {}

    def observe(self, event: model.Event) -> None:
        """Count what is left."""
        if isinstance(event, model.Submitted):
            self._left[event.job.id] = {
                one.id: (event.tasks.get(one.id, 0), one.estimates.duration_s(one.resources) or 0.0)
                for one in event.classes
            }
        elif isinstance(event, model.Placed) and event.task_class in self._left.get(event.job, {}):
            count, each_s = self._left[event.job][event.task_class]
            self._left[event.job][event.task_class] = (count - 1, each_s)

    def keys(self, jobs: Sequence[model.Job], state: CycleState) -> Sequence[float]:
        """Seconds of run time left to place, placements of this cycle deducted."""
        return [self._remaining_s(job.id, state) for job in jobs]

    def _remaining_s(self, job: model.JobId, state: CycleState) -> float:
        before = state.view.by_class
        return sum(
            (count - state.placed(one) + before.get(one, 0)) * each_s
            for one, (count, each_s) in self._left.get(job, {}).items()
        )

    def dump(self) -> Mapping[str, Any]:
        """Nothing: the shell submits every job again after a restart."""
        return {}

    def load(self, state: Mapping[str, Any]) -> None:
        """Nothing."""


def build(placement: Placement = Placement.LEAST_LOADED) -> Profile:
    """The profile `srjf`."""
    order = ShortestRemaining()
    return Profile(name="srjf", order=order, score=scorer(placement), observers=(order,))
