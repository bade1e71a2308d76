"""ILA: interference- and locality-aware scheduling of maps and reducers on virtual machines.

X. Bu, J. Rao, C.-Z. Xu, "Interference and Locality-Aware Task Scheduling for MapReduce Applications in Virtual
Clusters", HPDC 2013.

| module | section |
|---|---|
| `metrics` | 4.1: Table 2 |
| `families`, `fitting`, `gauss_newton`, `stepwise`, `learning` | 4.1, 5.4: eqs 1-3, training, online adaptation |
| `delay` | 4.2, 4.4: eq. 4, Algorithm 2 (LASM) |
| `cover` | 4.2, appendix A: eqs 5, 6, .11 |
| `demand`, `alone`, `book` | 4.3: eq. 7, system monitoring |
| `interference`, `moment`, `thresholds` | 4.4: Algorithm 1 (IASM), H and H_d |
| `schedule` | 4.4: Algorithm 3 |

Each module lists its readings and deviations with their reasons.
"""

from __future__ import annotations

import dataclasses
from types import MappingProxyType
from typing import TYPE_CHECKING

from boathouse_policies import model
from boathouse_policies.baselines.fair import FairShare
from boathouse_policies.baselines.placement import Placement, scorer
from boathouse_policies.framework import PREDICATES, Profile, neutral
from boathouse_policies.ila.book import Running
from boathouse_policies.ila.config import Config, Family, static
from boathouse_policies.ila.delay import AdaptiveDelay
from boathouse_policies.ila.interference import Interference
from boathouse_policies.ila.learning import Learner
from boathouse_policies.ila.schedule import Acceptance, LookAgain, Nearest

if TYPE_CHECKING:
    from boathouse_policies.framework import JobOrder

__all__ = [
    "Acceptance",
    "AdaptiveDelay",
    "Config",
    "Family",
    "Interference",
    "Learner",
    "LookAgain",
    "Nearest",
    "Running",
    "build",
    "build_iao",
    "build_lao",
    "static",
]

_PAPER = Config()


def build(
    placement: Placement = Placement.LEAST_LOADED,
    config: Config = _PAPER,
    *,
    name: str = "ila",
    order: JobOrder | None = None,
) -> Profile:
    """The profile `ila`. Each call builds a policy with a state of its own.

    Args:
        placement: Which node, for stages other than maps and reducers and where interference does not matter.
        config: The constants; the paper's by default.
        name: Of the profile.
        order: Of jobs; fair sharing by default, as in the paper.
    """
    base = scorer(placement)
    interference = Interference(config) if config.threshold is not None else None
    delay = AdaptiveDelay(config) if config.locality else None
    nearest = Nearest(interference, base, by_distance=config.locality)
    look_again = None if interference is None else LookAgain(interference)
    return Profile(
        name=name,
        order=order or FairShare(),
        filters=PREDICATES if interference is None else (*PREDICATES, interference),
        score=base,
        scores=MappingProxyType({model.Stage.MAP: nearest, model.Stage.REDUCE: nearest}),
        patience=neutral.NO_PATIENCE if delay is None else Acceptance(delay),
        reserve=look_again or neutral.NO_RESERVE,
        observers=tuple(one for one in (interference, delay) if one is not None),
        hooks=() if interference is None else (interference,),
    )


def build_iao(placement: Placement = Placement.LEAST_LOADED, config: Config = _PAPER) -> Profile:
    """The profile `iao`: interference-aware only, with greedy locality (5.1)."""
    return build(placement, dataclasses.replace(config, locality=False), name="iao")


def build_lao(placement: Placement = Placement.LEAST_LOADED, config: Config = _PAPER) -> Profile:
    """The profile `lao`: locality-aware only (5.1)."""
    return build(placement, dataclasses.replace(config, threshold=None), name="lao")
