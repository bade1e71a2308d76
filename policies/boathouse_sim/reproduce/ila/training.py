"""Offline training (4.1): ILA begins with what was seen on the very hosts, of random combinations of the programs."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from boathouse_policies import ila
from boathouse_sim.reproduce.ila import modelling

if TYPE_CHECKING:
    from boathouse_policies.framework import Profile
    from boathouse_policies.ila import fitting
    from boathouse_sim.reproduce.ila.programs import Assumed

SEED = 1000
"""Of the training: no schedule that is judged has it."""

JOBS = 120
"""Combinations; the paper's 200 change nothing that shows."""


@functools.cache
def samples(assumed: Assumed) -> fitting.Samples:
    """What was seen, of the truth that is assumed; a memo, for many simulations of a process begin with it."""
    return modelling.samples(modelling.Case(seed=SEED, jobs=JOBS, assumed=assumed), 0)


def train(profile: Profile, assumed: Assumed) -> None:
    """Train whatever predicts interference in a profile."""
    for observer in profile.observers:
        if isinstance(observer, ila.Interference):
            observer.learner.train(samples(assumed))
