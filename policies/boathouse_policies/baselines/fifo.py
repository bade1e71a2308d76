"""First in, first out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies.baselines.placement import Placement, scorer
from boathouse_policies.framework import Profile
from boathouse_policies.framework.questions import JobOrder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_policies import model
    from boathouse_policies.framework import Layout


class Fifo(JobOrder):
    """The job submitted first, with backfill: what does not fit lets others pass."""

    lasts = constant = True

    def key(self, job: model.Job, usage: Sequence[int], layout: Layout) -> float:  # noqa: ARG002 - the protocol's
        """The time of submission."""
        return job.submitted_s


def build(placement: Placement = Placement.LEAST_LOADED) -> Profile:
    """The profile `fifo`."""
    return Profile(name="fifo", order=Fifo(), score=scorer(placement))
