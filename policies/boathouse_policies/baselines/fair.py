"""Fair sharing between jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies.baselines.placement import Placement, scorer
from boathouse_policies.framework import Profile
from boathouse_policies.framework.questions import JobOrder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_policies import model
    from boathouse_policies.framework import Layout


class FairShare(JobOrder):
    """Weighted max-min fairness of dominant shares (Ghodsi et al., "Dominant Resource Fairness", NSDI 2011, 4.1, 4.3).

    The job with the least dominant share over weight goes first, with backfill.
    """

    lasts = True

    def key(self, job: model.Job, usage: Sequence[int], layout: Layout) -> float:
        """The dominant share over the job's weight."""
        return layout.dominant_share(usage) / job.weight


def build(placement: Placement = Placement.LEAST_LOADED) -> Profile:
    """The profile `fair`."""
    return Profile(name="fair", order=FairShare(), score=scorer(placement))
