"""Orders of jobs: FIFO, fair sharing, least memory first, and shortest remaining job first.

In a profile that is an order and nothing else, what does not fit lets others pass (backfill).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies import model
from boathouse_policies.baselines.placement import LEAST_LOADED
from boathouse_policies.framework import CycleState, JobOrder, Layout, Observer, Profile, Score

if TYPE_CHECKING:
    from collections.abc import Sequence


class Fifo(JobOrder):
    """The job submitted first."""

    keyed_by_usage = constant = True

    def key(self, job: model.Job, usage: Sequence[int], layout: Layout) -> float:  # noqa: ARG002 - the protocol's
        """Return the time of submission."""
        return job.submitted_s


class FairShare(JobOrder):
    """Weighted max-min fairness of dominant shares (Ghodsi et al., "Dominant Resource Fairness", NSDI 2011, 4.1, 4.3).

    The job with the least dominant share over weight goes first.
    """

    keyed_by_usage = True

    def key(self, job: model.Job, usage: Sequence[int], layout: Layout) -> float:
        """Return the dominant share over the job's weight."""
        return layout.dominant_share(usage) / job.weight


class MemoryHeld(JobOrder):
    """The job that holds the least memory first."""

    keyed_by_usage = True

    def key(self, job: model.Job, usage: Sequence[int], layout: Layout) -> float:  # noqa: ARG002 - the protocol's
        """Return the bytes held."""
        return float(usage[model.MEMORY])


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
                task_class.id: (
                    event.tasks.get(task_class.id, 0),
                    task_class.estimates.duration_s(task_class.resources) or 0.0,
                )
                for task_class in event.classes
            }
        elif isinstance(event, model.Placed) and event.task_class in self._left.get(event.job, {}):
            count, seconds = self._left[event.job][event.task_class]
            self._left[event.job][event.task_class] = (count - 1, seconds)
        elif isinstance(event, model.Ended):
            self._left.pop(event.job, None)

    def keys(self, jobs: Sequence[model.Job], state: CycleState) -> Sequence[float]:
        """Return the seconds of run time left to place, placements of this cycle deducted."""
        before = state.view.by_class
        return [
            sum(
                (count - state.placed(class_id) + before.get(class_id, 0)) * seconds
                for class_id, (count, seconds) in self._left.get(job.id, {}).items()
            )
            for job in jobs
        ]


def build(name: str, order: JobOrder, score: Score = LEAST_LOADED) -> Profile:
    """Build a profile that is an order of jobs and nothing else."""
    return Profile(name=name, order=order, score=score)


def build_srjf(score: Score = LEAST_LOADED) -> Profile:
    """Build the profile `srjf`."""
    order = ShortestRemaining()
    return Profile(name="srjf", order=order, score=score, observers=(order,))
