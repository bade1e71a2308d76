"""Fair sharing between jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies.baselines.placement import Placement, scorer
from boathouse_policies.framework import Profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_policies import model
    from boathouse_policies.framework import Scratch


class FairShare:
    """Weighted max-min fairness of dominant shares (Ghodsi et al., "Dominant Resource Fairness", NSDI 2011, 4.1, 4.3).

    The job with the least dominant share over weight goes first, with backfill.
    """

    def keys(self, jobs: Sequence[model.Job], scratch: Scratch) -> Sequence[float] | model.FloatVector:
        """The dominant share over the job's weight."""
        if len(jobs) == 1:
            return (scratch.dominant_share(scratch.job_usage(jobs[0].id)) / jobs[0].weight,)
        inverse = scratch.view.layout.inverse_totals
        usage = np.array([scratch.job_usage(job.id) for job in jobs])[:, : len(inverse)]
        shares: model.FloatVector = (usage * inverse).max(axis=1, initial=0.0)
        weighted: model.FloatVector = shares / np.array([job.weight for job in jobs])
        return weighted


def build(placement: Placement = Placement.LEAST_LOADED) -> Profile:
    """The profile `fair`."""
    return Profile(name="fair", order=FairShare(), score=scorer(placement))
