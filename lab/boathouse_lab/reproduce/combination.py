"""The profile `boathouse` against each policy alone, on mixed loads of MapReduce and Spark from light to heavy.

No paper's: the claim is ours, that who takes all five loses to none of them by more than 5 % in mean job time. The
cluster and the loads are those of the iKayak study; only the time between arrivals differs.
"""

from __future__ import annotations

import dataclasses
import itertools
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from boathouse_lab.reproduce import claim, figures, interval
from boathouse_lab.reproduce.claim import Assumption, Claim, Relation
from boathouse_lab.reproduce.ikayak.setting import Setting
from boathouse_lab.reproduce.sources import sourced
from boathouse_lab.reproduce.study import Findings
from boathouse_sim import simulation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_lab.reproduce.study import Runner, Scale

PAPER: Final = "boathouse"
ALONE: Final = ("fair", "fspy", "ikayak", "ila", "yarn-me")
MOST: Final = 1.05

LOADS: Mapping[str, float] = MappingProxyType({"light": 90.0, "medium": 40.0, "heavy": 15.0})
"""Mean time between two arrivals of a job and an application, s."""

_CALM, _STEEP = "no interference in the ground truth", "maps with less memory run 1.5 times as long, not 1.1 times"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One simulation."""

    profile: str
    setting: Setting
    seed: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is looked at of it: times from submission to end, s."""

    mapreduce_s: tuple[float, ...]
    spark_s: tuple[float, ...]

    @property
    def mean_s(self) -> float:
        """Of all jobs."""
        times = self.mapreduce_s + self.spark_s
        return sum(times) / len(times)


def carry_out(case: Case) -> Run:
    """Simulate."""
    workload = case.setting.workload(case.seed)
    found = simulation.simulate(workload, case.profile, seed=case.seed)
    of = dict(zip((app.id for app in workload.apps), found.job_times_s, strict=True))
    return Run(
        mapreduce_s=tuple(time_s for name, time_s in of.items() if name.startswith("m")),
        spark_s=tuple(time_s for name, time_s in of.items() if name.startswith("s")),
    )


class Found:
    """All runs."""

    def __init__(self, runs: Mapping[Case, Run], seeds: int) -> None:
        self._runs, self._seeds = runs, seeds

    def means_s(self, profile: str, setting: Setting) -> list[float]:
        """Return mean job times, one for each seed."""
        return [run.mean_s for run in self.of(profile, setting)]

    def of(self, profile: str, setting: Setting) -> list[Run]:
        """Return the runs of a profile, by seed."""
        return [self._runs[Case(profile=profile, setting=setting, seed=seed)] for seed in range(self._seeds)]

    def ratio(self, alone: str, setting: Setting) -> interval.Estimate:
        """Return the mean job time of the profile `boathouse` over that of a policy alone."""
        return interval.ratio(self.means_s(PAPER, setting), self.means_s(alone, setting))

    def worst(self, setting: Setting) -> str:
        """Return the policy against which the profile `boathouse` does worst, with the ratio."""
        value, name = max((self.ratio(alone, setting).value, alone) for alone in ALONE)
        return f"{value:.2f} against {name}, its best rival"


@dataclasses.dataclass(frozen=True, slots=True)
class Combination:
    """The study.

    Attributes:
        pairs: Jobs and applications of a load; as the form has it if None.
    """

    pairs: int | None = None
    paper: str = PAPER
    title: str = "The profile boathouse: all five policies as one, against each alone"

    def run(self, scale: Scale, runner: Runner) -> Findings:
        """Simulate, and judge."""
        pairs = self.pairs or scale.pick(quick=8, full=24)
        loads = {name: Setting(pairs=pairs, gap_s=gap_s) for name, gap_s in LOADS.items()}
        medium = loads["medium"]
        sweeps = {_CALM: dataclasses.replace(medium, calm=True), _STEEP: dataclasses.replace(medium, penalty=1.5)}
        varied = scale.pick(quick={}, full=sweeps)
        cases = [
            Case(profile=profile, setting=setting, seed=seed)
            for setting in (*loads.values(), *varied.values())
            for profile in (PAPER, *ALONE)
            for seed in range(scale.seeds)
        ]
        runs = runner.map(PAPER, carry_out, cases, cost=lambda case: case.profile == PAPER)
        found = Found(dict(zip(cases, runs, strict=True)), scale.seeds)
        effects = [Assumption(name=name, value="swept", effect=found.worst(one)) for name, one in varied.items()]
        rows = [
            _row(found, load, setting, alone, effects if load == "medium" else ())
            for load, setting in loads.items()
            for alone in ALONE
        ]
        return Findings(claims=tuple(rows), figures=(_means(found, loads), _spread(found, loads)))


def _row(found: Found, load: str, setting: Setting, alone: str, assumptions: Sequence[Assumption]) -> Claim:
    theirs = interval.mean(found.means_s(alone, setting))
    return Claim(
        **sourced(PAPER, f"{load}-{alone}"),
        claim=f"{load} load (a pair of jobs each {setting.gap_s:g} s): mean job time over that of {alone}",
        figure="Mean job times",
        relation=Relation.LE,
        paper_value=MOST,
        **claim.measured(found.ratio(alone, setting)),
        baseline=theirs.value,
        baseline_name=f"{alone}: mean job time [s]",
        assumptions=tuple(assumptions),
    )


def _means(found: Found, loads: Mapping[str, Setting]) -> figures.Figure:
    marks = tuple(
        figures.bars(profile, [interval.mean(found.means_s(profile, setting)) for setting in loads.values()])
        for profile in (PAPER, *ALONE)
    )
    ratios = {load: found.worst(setting) for load, setting in loads.items()}
    return figures.Figure(
        name="Mean job times",
        title="The profile boathouse and each policy alone",
        panels=(
            figures.Panel(
                title="MapReduce and Spark together",
                x=figures.Axis(label="Load"),
                y=figures.Axis(label="Mean job time [s]", low=0),
                marks=marks,
                categories=tuple(loads),
            ),
        ),
        paper_shape="No paper's. Aimed at: nowhere more than 5 % above the lowest bar.",
        our_shape="; ".join(f"{load}: {text}" for load, text in ratios.items()) + ".",
    )


def _spread(found: Found, loads: Mapping[str, Setting]) -> figures.Figure:
    heavy = loads["heavy"]
    panels = []
    for kind in ("MapReduce", "Spark"):
        curves = []
        for profile in (PAPER, *ALONE):
            runs = found.of(profile, heavy)
            times_s = [run.mapreduce_s if kind == "MapReduce" else run.spark_s for run in runs]
            curves.append(figures.cdf(profile, list(itertools.chain(*times_s))))
        x, y = figures.Axis(label="Job time [s]", log=True), figures.Axis(label="Share of jobs")
        panels.append(figures.Panel(title=kind, x=x, y=y, marks=tuple(curves)))
    return figures.Figure(
        name="Job times",
        title="Under heavy load, by kind",
        panels=tuple(panels),
        paper_shape="No paper's.",
        our_shape="Who gains and who pays, by kind of job.",
    )
