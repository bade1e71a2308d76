"""ILA: interference- and locality-aware scheduling of maps and reducers on virtual machines.

X. Bu, J. Rao, C.-Z. Xu, "Interference and Locality-Aware Task Scheduling for MapReduce Applications in Virtual
Clusters", HPDC 2013.

| module | section |
|---|---|
| `exponential`, `fitting`, `learning` | 4.1: eqs 1-3, training, online adaptation |
| `locality` | 4.2, 4.4: eq. 4, Algorithm 2 (LASM) |
| `profiling`, `monitoring` | 4.1: Table 2; 4.3: eq. 7, system monitoring |
| `interference`, `iasm` | 4.4: Algorithm 1 (IASM), H and H_d |
| `build` | 4.4: Algorithm 3, the meta scheduler |

Algorithm 3 as pieces of a profile: jobs come in the order of the fair scheduler; interference is judged first (the
filter), then locality. The node is the closest one of those without interference, of equals the one where the task is
slowed down least. A class that is refused lets the next one try. Equations 5 and 6, and the linear and
quadratic models of 5.4, decide nothing: they are with what reproduces the paper (`cover` and `polynomials` in
`boathouse_lab.reproduce.ila`).

Each module lists its readings and deviations with their reasons.
"""

import dataclasses
from types import MappingProxyType

from boathouse_policies.baselines import LEAST_LOADED, Closest, FairShare
from boathouse_policies.framework import PREDICATES, JobOrder, Profile, Score, questions
from boathouse_policies.ila.config import Config, static
from boathouse_policies.ila.interference import Interference, Retry
from boathouse_policies.ila.learning import Learner, Learners
from boathouse_policies.ila.locality import LEVEL, AdaptiveDelay
from boathouse_policies.ila.profiling import STAGES

_PAPER = Config()


def build(
    score: Score = LEAST_LOADED, config: Config = _PAPER, *, name: str = "ila", order: JobOrder | None = None
) -> Profile:
    """Return the profile `ila`, with a state of its own; order (default: fair) and score are for what it leaves."""
    interference = None if config.threshold is None else Interference(config)
    delay = AdaptiveDelay(config) if config.locality else None
    judge = () if interference is None else (interference,)
    ranked = score if interference is None else interference
    closest = Closest(ranked, LEVEL) if config.locality else ranked
    learning = judge if delay is None else (*judge, delay)
    return Profile(
        name=name,
        order=order or FairShare(),
        filters=(*PREDICATES, *judge),
        score=score,
        scores=MappingProxyType(dict.fromkeys(STAGES, closest)),
        patience=delay or questions.NO_PATIENCE,
        reserve=questions.NO_RESERVE if interference is None else Retry(interference),
        observers=learning,
        hooks=learning,
        figures=judge,
    )


def build_iao(score: Score = LEAST_LOADED, config: Config = _PAPER) -> Profile:
    """Return the profile `iao`: interference-aware only, with greedy locality (5.1)."""
    return build(score, dataclasses.replace(config, locality=False), name="iao")


def build_lao(score: Score = LEAST_LOADED, config: Config = _PAPER) -> Profile:
    """Return the profile `lao`: locality-aware only (5.1)."""
    return build(score, dataclasses.replace(config, threshold=None), name="lao")
