"""Plain choices: which job (FIFO, fair sharing, least memory, shortest remaining), and which node.

Nodes are chosen to spread load, to fill one after the other, or by the distance to the input. In a profile that is an
order and nothing else, what does not fit lets others pass (backfill).
"""

import dataclasses
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import CycleState, JobOrder, Layout, Observer, PendingClass, Profile, Score, Where
from boathouse_policies.framework.questions import ShapeScore


class LeastLoaded(ShapeScore):
    """The mean free share of CPU and memory after placement, as kube-scheduler's LeastAllocated: 0..1."""

    def of_shapes(self, sizes: Any, free: Any, inverse: Any) -> Any:
        """Return scores that are higher for emptier nodes."""
        return ((free[_CPU] - sizes[_CPU]) * inverse[_CPU] + (free[_MEMORY] - sizes[_MEMORY]) * inverse[_MEMORY]) * 0.5


class Packed(LeastLoaded):
    """The opposite: the fullest node that still fits, as kube-scheduler's MostAllocated: -1..0."""

    def of_shapes(self, sizes: Any, free: Any, inverse: Any) -> Any:
        """Return scores that are higher for fuller nodes."""
        return -super().of_shapes(sizes, free, inverse)


@dataclasses.dataclass(frozen=True, slots=True)
class Closest(Score):
    """The node closest to the input of a pending task; a level counts more than the whole range of the other score."""

    base: Score
    level: float

    def key(self, pending: PendingClass) -> Hashable:
        """Return the class where its input is in blocks; else what the other score depends on."""
        return pending.task_class.id if pending.queued.pool.located else self.base.key(pending)

    def score(self, pending: PendingClass, state: CycleState, where: Where) -> model.FloatVector:
        """Return the other score, less so much for each level of distance."""
        score = self.base.score(pending, state, where)
        return score - self.level * pending.levels[where] if pending.queued.pool.located else score

    def score_on(self, pending: PendingClass, state: CycleState, node: int) -> float:
        """Return the score of one node."""
        score = self.base.score_on(pending, state, node)
        return score - self.level * int(pending.levels[node]) if pending.queued.pool.located else score


def fitting(room: model.IntMatrix, need: model.IntVector) -> model.FloatVector:
    """Return how many of `need` would fit, not rounded, by the scarcest resource: shape [N] of [R, N] and [R]."""
    rows = need.nonzero()[0]
    ratios: model.FloatVector = (room[rows] / need[rows, None]).min(axis=0, initial=np.inf)
    return ratios


LEAST_LOADED, PACKED = LeastLoaded(), Packed()
_CPU, _MEMORY = model.CPU, model.MEMORY


class Fifo(JobOrder):
    """The job submitted first."""

    keyed_by_usage = constant = True

    def key(self, job: model.Job, usage: Sequence[int], layout: Layout) -> float:  # noqa: ARG002 - the protocol's
        """Return the time of submission."""
        return job.submitted_s


class FairShare(JobOrder):
    """The job with the least dominant share over weight first (Ghodsi et al., "Dominant Resource Fairness", 4.3)."""

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
    """The job with the least run time left to place, in seconds; classes of unknown duration count as no work."""

    def __init__(self) -> None:
        self._left: dict[model.JobId, dict[model.ClassId, tuple[int, float]]] = {}

    def observe(self, event: model.Event) -> None:
        """Count what is left."""
        if isinstance(event, model.Submitted):
            durations_s = {own.id: own.estimates.duration_s(own.resources) or 0.0 for own in event.classes}
            self._left[event.job.id] = {own: (event.tasks.get(own, 0), each_s) for own, each_s in durations_s.items()}
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
