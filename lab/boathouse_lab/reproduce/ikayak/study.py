"""The study: all simulations of all experiments at once, each of them once."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from boathouse_lab.reproduce.ikayak import case, rows
from boathouse_lab.reproduce.ikayak.adjusting import Adjusting
from boathouse_lab.reproduce.ikayak.localising import Localising
from boathouse_lab.reproduce.ikayak.main import Main
from boathouse_lab.reproduce.ikayak.overhead import Overhead
from boathouse_lab.reproduce.ikayak.placing import Placing
from boathouse_lab.reproduce.ikayak.remaining import Remaining
from boathouse_lab.reproduce.ikayak.runs import Runs
from boathouse_lab.reproduce.ikayak.setting import Setting
from boathouse_lab.reproduce.study import Findings

if TYPE_CHECKING:
    from boathouse_lab.reproduce.ikayak.runs import Experiment
    from boathouse_lab.reproduce.study import Runner, Scale


SPARK_HEAVY: Final = 20
"""Executors of an application where reducers are suspended: with few, λ seldom exceeds θ, and nothing happens."""


class IKayak:
    """Spark executors beside MapReduce."""

    paper = rows.PAPER
    title = "Cheng et al., Cross-platform Resource Scheduling for Spark and MapReduce on YARN"

    def run(self, scale: Scale, runner: Runner) -> Findings:
        """Simulate and judge."""
        parts = self.experiments(scale)
        cases = list(dict.fromkeys(one for part in parts for run in part.runs() for one in run.cases()))
        seen = dict(zip(cases, runner.map(rows.PAPER, case.simulate, cases, cost=case.cost), strict=True))
        found = [part.findings(Runs(seen)) for part in parts]
        found.append(self.remaining(scale).findings(runner))
        return Findings.joined(found)

    @staticmethod
    def remaining(scale: Scale) -> Remaining:
        """Return the model of remaining times."""
        return Remaining(seeds=min(scale.seeds, scale.pick(quick=1, full=5)), jobs=12)

    @staticmethod
    def experiments(scale: Scale) -> tuple[Experiment, ...]:
        """Return the experiments of the form."""
        large = Setting(pairs=scale.pick(quick=10, full=44))
        small = dataclasses.replace(large, pairs=scale.pick(quick=10, full=24))
        seeds = scale.seeds
        few = min(scale.seeds, scale.pick(quick=1, full=4))
        heavy, light = (dataclasses.replace(one, executors=SPARK_HEAVY) for one in (large, small))
        sweep = rows.Sweep(varied=scale.pick(quick=(), full=rows.VARIED), base=small, seeds=min(scale.seeds, 3))
        return (
            Main(setting=large, seeds=seeds, sweep=sweep),
            Placing(
                setting=large,
                seeds=seeds,
                sweep=sweep,
                errors=scale.pick(quick=(0.10, 0.35), full=(0.10, 0.20, 0.35, 1.0)),
                few=few,
            ),
            Adjusting(
                setting=heavy,
                seeds=seeds,
                sweep=dataclasses.replace(sweep, base=light),
                small=light,
                few=few,
                weights=scale.pick(quick=(0.5, 1.0, 4.0), full=(0.25, 0.5, 1.0, 2.0, 4.0)),
                overheads=scale.pick(quick=(0.0, 0.15, 0.5), full=(0.0, 0.15, 0.3, 0.5, 1.0)),
                starts=scale.pick(quick=(0.05, 0.8), full=(0.05, 0.3, 0.6, 0.9)),
            ),
            Localising(setting=large, seeds=seeds, sweep=sweep, small=small, few=few),
            Overhead(setting=small, seeds=few),
        )
