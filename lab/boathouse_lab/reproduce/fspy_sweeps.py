"""How FSPY's claims move with what the paper does not state."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from boathouse_lab.reproduce.claim import Assumption
from boathouse_lab.reproduce.fspy_runs import FAIR, FIFO, FSPY, FSPY_RESERVING, SRJF, YARN, Case
from boathouse_lab.reproduce.fspy_setting import Setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_lab.reproduce.fspy_found import Groups
    from boathouse_lab.reproduce.fspy_runs import Run
    from boathouse_lab.reproduce.study import Scale

SETTING = Setting()
_GROUP = 6
_SLOW, _SAME, _LATER = 4.0, 1.0 + 1e-9, 1.5


@dataclasses.dataclass(frozen=True, slots=True)
class Other:
    """What is compared with what, under which setting."""

    label: str
    setting: Setting = SETTING
    ours: str = FSPY
    baseline: str = FAIR


@dataclasses.dataclass(frozen=True, slots=True)
class Sweep:
    """One assumption and its other values."""

    name: str
    value: float | str
    others: tuple[Other, ...]
    quick: bool = False


def _with(label: str, **fields: float | bool) -> Other:
    return Other(label, dataclasses.replace(SETTING, **fields))  # type: ignore[arg-type]  # fields of Setting


SWEEPS = (
    Sweep(
        "Fair reserves nodes",
        "no (profile fair: max-min with backfill)",
        (
            Other("Fair with reservations (profile yarn)", baseline=YARN),
            Other("both with reservations", ours=FSPY_RESERVING, baseline=YARN),
        ),
        quick=True,
    ),
    Sweep("Other baselines", "fair", (Other("fifo", baseline=FIFO), Other("srjf, exact times", baseline=SRJF))),
    Sweep(
        "Scaling of the trace: bytes, gaps",
        "1, 1",
        (
            _with("0.1, 0.1", data=0.1, gaps=0.1),
            _with("8/600, 1 (SWIM for 8 machines)", data=8 / 600),
            _with("8/600, 0.05", data=8 / 600, gaps=0.05),
        ),
        quick=True,
    ),
    Sweep(
        "Containers: a master of 2 GB (1.5 GB in steps of 1 GB), tasks of 1 GB",
        "2 GB, 1 GB",
        (_with("1 GB, 1 GB", master_mb=1024), _with("no masters but for uber jobs", masters=False)),
        quick=True,
    ),
    Sweep(
        "Noise of run times and probes",
        SETTING.noise,
        (_with("0", noise=0.0), _with("0.3", noise=0.3), _with("0.5", noise=0.5), _with("exact sizes", told=True)),
    ),
    Sweep(
        "A job's run time from one run to another",
        "the same",
        (_with("varies by 10 %", rerun=0.1), _with("by 30 %", rerun=0.3)),
    ),
    Sweep(
        "Start of a master [s]",
        SETTING.master_start_s,
        (_with("1", master_start_s=1.0), _with("8", master_start_s=8.0)),
    ),
    Sweep("Bytes for each reduce", "64 MB", (_with("1 GB", reduce_bytes=10**9),)),
    Sweep(
        "Function time [s/MB]",
        SETTING.function_s_per_mb,
        (_with("0.005", function_s_per_mb=0.005), _with("0.1", function_s_per_mb=0.1)),
    ),
    Sweep("Probing queue's share", 0.1, (_with("0.02", probing_share=0.02), _with("0.3", probing_share=0.3))),
    Sweep("Jobs learnt from before", SETTING.history, (_with("20", history=20), _with("50", history=50))),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Sweeps:
    """What is to be simulated, and what it says."""

    chosen: tuple[Sweep, ...]
    segments: tuple[int, ...]
    seeds: int

    @property
    def cases(self) -> list[Case]:
        """All simulations."""
        others = [Other(""), *(other for sweep in self.chosen for other in sweep.others)]
        return [
            Case(segment=segment, policy=policy, seed=seed, setting=other.setting)
            for other in others
            for policy in (other.ours, other.baseline)
            for segment in self.segments
            for seed in range(self.seeds)
        ]

    def assumptions(self, runs: Mapping[Case, Run]) -> tuple[Assumption, ...]:
        """Return each assumption with its effect."""
        where = f"segments {', '.join(map(str, self.segments))} of RCP {_GROUP}, seeds: {self.seeds}"
        begun = f"as assumed: {self._effect(runs, Other(''))} ({where})"
        return tuple(
            Assumption(
                name=sweep.name,
                value=sweep.value,
                effect="; ".join([*([begun] if not i else []), *self._effects(runs, sweep)]),
            )
            for i, sweep in enumerate(self.chosen)
        )

    def _effects(self, runs: Mapping[Case, Run], sweep: Sweep) -> list[str]:
        return [f"{other.label}: {self._effect(runs, other)}" for other in sweep.others]

    def _effect(self, runs: Mapping[Case, Run], other: Other) -> str:
        by_seed = [self._of(runs, other, seed) for seed in range(self.seeds)]
        gain, fair, late, ours, theirs = np.mean(by_seed, axis=0).tolist()
        return (
            f"mean response {gain:.2f} times lower, fair slowdown ≤ 1 for {fair:.0%} and < 1.5 for {late:.0%}, "
            f"slowdown < 4 for {ours:.0%} against {theirs:.0%}"
        )

    def _of(self, runs: Mapping[Case, Run], other: Other, seed: int) -> list[float]:
        def all_of(policy: str, what: str) -> np.ndarray:
            cases = [Case(segment=one, policy=policy, seed=seed, setting=other.setting) for one in self.segments]
            return np.concatenate([getattr(runs[case], what) for case in cases])

        ours_s, theirs_s = (all_of(policy, "response_s") for policy in (other.ours, other.baseline))
        alone_s = all_of(other.ours, "ideal_s")
        fair = ours_s / theirs_s
        return [
            theirs_s.mean() / ours_s.mean(),
            (fair <= _SAME).mean(),
            (fair < _LATER).mean(),
            (ours_s / alone_s < _SLOW).mean(),
            (theirs_s / alone_s < _SLOW).mean(),
        ]


def plan(groups: Groups, scale: Scale) -> Sweeps:
    """Return the sweeps: the small segments of RCP 6."""
    most = scale.pick(quick=1, full=3)
    return Sweeps(
        chosen=tuple(one for one in SWEEPS if one.quick) if scale.pick(quick=True, full=False) else SWEEPS,
        segments=tuple(groups.members(_GROUP)[:most]),
        seeds=min(scale.seeds, scale.pick(quick=1, full=2)),
    )
