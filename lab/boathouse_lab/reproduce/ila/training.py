"""Offline training (4.1): ILA begins with what was seen on the very hosts, of random combinations of the programs."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from boathouse_lab.reproduce.ila import modelling
from boathouse_policies import ila
from boathouse_policies.ila import additive, fitting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_lab.reproduce.ila.programs import Assumed
    from boathouse_policies.framework import Profile

SEED = 1000
"""Of the training: no schedule that is judged has it."""

JOBS = 120
"""Combinations, two thousand samples; with the paper's 200 every fit takes longer."""


@functools.cache
def _seen(assumed: Assumed) -> tuple[fitting.Samples, Mapping[str, Any]]:
    """Return samples and programs of the assumed truth; memoized, for many simulations of a process begin with them."""
    samples, watching = modelling.watched(modelling.Case(seed=SEED, jobs=JOBS, assumed=assumed), 0)
    return samples, watching.profiles.dump()


def train(profile: Profile, assumed: Assumed) -> None:
    """Train whatever predicts interference in a profile: the model, and what the applications' tasks use."""
    for observer in profile.observers:
        if isinstance(observer, ila.Interference):
            samples, programs = _seen(assumed)
            observer.profiles.load(programs)
            teach(observer.learners.first, samples)


def teach(learner: ila.Learner, samples: fitting.Samples) -> None:
    """Train offline (4.1) with samples of both kinds and of any load, which stay in every fit. Too few change nothing.

    They are instead of what stands for them where nobody trained.
    """
    if (found := fitting.fit(samples)) is not None:
        kept = np.arange(0, len(samples), max(1, len(samples) // _KEPT))
        offline = dataclasses.replace(samples.of(kept), counted=np.full(len(kept), _COUNTED))
        learner.begin_with(found, additive.fit(samples), offline)


_KEPT, _COUNTED = 400, 0.25  # arbitrary: of the samples; together as much as a hundred new ones
