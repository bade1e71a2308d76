"""What FSPY's study works out, case by case: a segment under a policy, or predictions at some noise."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_lab.reproduce import fspy_setting, fspy_workload
from boathouse_policies import fspy, profiles
from boathouse_policies.baselines import yarn
from boathouse_sim.simulation import Instant

if TYPE_CHECKING:
    from boathouse_lab.reproduce.fspy_setting import Setting
    from boathouse_policies import framework

FSPY, FAIR, YARN, FIFO, SRJF = "fspy", "fair", "yarn", "fifo", "srjf"
FSPY_RESERVING = "fspy with reservations"
"""FSPY's order, and YARN's node reservations for whoever does not fit."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One simulation.

    Attributes:
        segment: 0 to 36.
        policy: A profile's name.
        seed: Of all that is drawn.
        setting: What was assumed.
    """

    segment: int
    policy: str
    seed: int
    setting: Setting


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What it gave.

    Attributes:
        case: What was simulated.
        load: ΣS / (ΣI·CR).
        response_s: Response time of each job, shape [J].
        ideal_s: The same alone on the cluster, shape [J].
        uber: Whether each is an uber job, shape [J].
        probes: Probing jobs.
        probing_share: Their part of the memory that was used.
    """

    case: Case
    load: float
    response_s: tuple[float, ...]
    ideal_s: tuple[float, ...]
    uber: tuple[bool, ...]
    probes: int
    probing_share: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Predictions of held-out jobs at a noise."""

    noise: float
    seed: int


def carry_out(case: Case | Prediction) -> Run | fspy_workload.HeldOut:
    """Run the case."""
    if isinstance(case, Prediction):
        return fspy_workload.held_out(case.noise, case.seed)
    return simulate(case)


def _fspy(case: Case) -> framework.Profile:
    profile = fspy.build(fspy.Config(probing_share=case.setting.probing_share))
    if case.policy == FSPY_RESERVING:
        profile = dataclasses.replace(profile, reserve=yarn.LockedNodes(), node_driven=True)
    predictor = fspy_setting.learnt(case.segment, case.seed, case.setting)
    for observer in profile.observers:
        observer.load({"predictor": predictor.dump()})
    return profile


def simulate(case: Case) -> Run:
    """Run a segment under a policy."""
    setting, ours = case.setting, case.policy in (FSPY, FSPY_RESERVING)
    segment = fspy_setting.segment(case.segment, case.seed, setting, run=int(ours))
    profile = _fspy(case) if ours else profiles.build(case.policy)
    driver = Instant(segment.workload, profile, seed=case.seed)
    while driver.advance():
        pass
    found = driver.world.finished()
    return Run(
        case=case,
        load=segment.load,
        response_s=found.job_times_s,
        ideal_s=segment.ideal_s,
        uber=tuple(one.phases[0].kind == "uber" for one in segment.workload.jobs),
        probes=found.probes,
        probing_share=found.probing_share,
    )
