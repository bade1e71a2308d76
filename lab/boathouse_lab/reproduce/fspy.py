"""FSPY's evaluation, claim by claim.

Y. Liu, Y. Zeng, X. Piao, "High-Responsive Scheduling with MapReduce Performance Prediction on Hadoop YARN".

| module | of the paper |
|---|---|
| `fspy_setting` | IV.A: the cluster, the trace's segments, and what is assumed of them |
| `fspy_runs` | a segment under a policy; predictions at some noise |
| `fspy_found` | responses and slowdowns by RCP group |
| `fspy_claims`, `fspy_predicted` | IV.C, IV.B: each claim with its value |
| `fspy_sweeps` | how the claims move with what is assumed |
| `fspy_oracle` | the order against theory |
| `fspy_figures` | Figures 2 and 5 to 10 |
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_lab.reproduce import (
    fspy_claims as claims,
    fspy_figures as pictures,
    fspy_found,
    fspy_oracle,
    fspy_predicted,
    fspy_sweeps,
)
from boathouse_lab.reproduce.fspy_found import Found
from boathouse_lab.reproduce.fspy_predicted import Predicted
from boathouse_lab.reproduce.fspy_runs import FAIR, FSPY, Case, Prediction, Run, carry_out
from boathouse_lab.reproduce.fspy_setting import Setting
from boathouse_lab.reproduce.fspy_workload import HeldOut
from boathouse_lab.reproduce.study import Findings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_lab.reproduce.fspy_found import Groups
    from boathouse_lab.reproduce.fspy_sweeps import Sweeps
    from boathouse_lab.reproduce.study import Runner, Scale

SETTING = Setting()
_QUICK_MOST_TASKS = 16_000
_QUICK_EACH = 2
_TASKS_OF_A_PREDICTION = 1000  # its cost, roughly


@dataclasses.dataclass(frozen=True, slots=True)
class Fspy:
    """The study."""

    paper: str = claims.PAPER
    title: str = "Liu et al., High-Responsive Scheduling with MapReduce Performance Prediction on Hadoop YARN (FSPY)"

    def run(self, scale: Scale, runner: Runner) -> Findings:
        """Simulate, and judge each of the paper's claims."""
        groups = fspy_found.groups(SETTING)
        by_group = chosen(groups, scale)
        sweeps = fspy_sweeps.plan(groups, scale)
        cases: list[Case | Prediction] = [
            Case(segment=one, policy=policy, seed=seed, setting=SETTING)
            for of in by_group.values()
            for one in of
            for policy in (FAIR, FSPY)
            for seed in range(scale.seeds)
        ]
        predictions = fspy_predicted.cases(scale)
        cases = list(dict.fromkeys([*cases, *sweeps.cases, *predictions]))
        results = runner.map(self.paper, carry_out, cases, cost=lambda case: _cost(case, groups))
        done = list(zip(cases, results, strict=True))
        runs = {case: run for case, run in done if isinstance(case, Case) and isinstance(run, Run)}
        held_out = {case: one for case, one in done if isinstance(case, Prediction) and isinstance(one, HeldOut)}
        found = Found(runs, SETTING, by_group, scale.seeds)
        return _findings(groups, found, sweeps, runs, Predicted(held_out))


def chosen(groups: Groups, scale: Scale) -> dict[int, Sequence[int]]:
    """Return segments to simulate, by group: all, or the small ones of each."""
    return {
        group: scale.pick(
            full=members, quick=[one for one in members if groups.tasks[one] <= _QUICK_MOST_TASKS][:_QUICK_EACH]
        )
        for group in groups.names
        for members in [groups.members(group)]
    }


def _cost(case: Case | Prediction, groups: Groups) -> float:
    return groups.tasks[case.segment] if isinstance(case, Case) else _TASKS_OF_A_PREDICTION


def _findings(
    groups: Groups,
    found: Found,
    sweeps: Sweeps,
    runs: Mapping[Case, Run],
    predicted: Predicted,
) -> Findings:
    assumptions, top = sweeps.assumptions(runs), max(groups.names)
    rows = (
        *predicted.claims(claims.PAPER),
        *claims.counted(groups, assumptions),
        *claims.judged(found, top, assumptions),
        *fspy_oracle.claims(claims.PAPER),
    )
    drawn = (
        *pictures.predictions(predicted.at(fspy_predicted.NOISE)[0], predicted.rows, fspy_predicted.NOISE),
        pictures.counts(groups),
        pictures.means(found),
        *pictures.jobs(found, top),
    )
    return Findings(claims=rows, figures=drawn)
