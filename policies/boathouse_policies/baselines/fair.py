"""Fair sharing between jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies.baselines.placement import Placement, scorer
from boathouse_policies.framework import Profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_policies import model
    from boathouse_policies.framework import Layout, Scratch


class FairShare:
    """Weighted max-min fairness of dominant shares (Ghodsi et al., "Dominant Resource Fairness", NSDI 2011, 4.1, 4.3).

    The job with the least dominant share over weight goes first, with backfill.
    """

    def __init__(self) -> None:
        self._known: dict[model.JobId, tuple[model.IntVector, float, float]] = {}  # what it held, weight, key: a memo
        self._inverse: model.FloatVector = np.zeros(0)

    def keys(self, jobs: Sequence[model.Job], scratch: Scratch) -> Sequence[float]:
        """The dominant share over the job's weight."""
        inverse = scratch.view.layout.inverse_totals
        if inverse is not self._inverse or len(self._known) > _JOBS_KEPT:
            self._known, self._inverse = {}, inverse
        keys, known = [], self._known
        for job in jobs:
            usage = scratch.job_usage(job.id)
            one = known.get(job.id)
            if one is None or one[0] is not usage or one[1] != job.weight:  # usage is a new vector when it changes
                one = known[job.id] = (usage, job.weight, self.key(job, usage.tolist(), scratch.view.layout))
            keys.append(one[2])
        return keys

    def key(self, job: model.Job, usage: Sequence[int], layout: Layout) -> float:
        """The same from what the job holds."""
        return layout.dominant_share(usage) / job.weight


_JOBS_KEPT = 65_536  # arbitrary: jobs that are over are forgotten now and then


def build(placement: Placement = Placement.LEAST_LOADED) -> Profile:
    """The profile `fair`."""
    return Profile(name="fair", order=FairShare(), score=scorer(placement))
