"""The study: all simulations of all experiments at once, each of them once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_lab.reproduce.ila import modelling, placing
from boathouse_lab.reproduce.ila.benefits import Calm, Isolated
from boathouse_lab.reproduce.ila.case import dearest, simulate
from boathouse_lab.reproduce.ila.exact import Exact
from boathouse_lab.reproduce.ila.experiment import PAPER
from boathouse_lab.reproduce.ila.models import Models
from boathouse_lab.reproduce.ila.stream import Stream
from boathouse_lab.reproduce.ila.thresholds import Thresholds
from boathouse_lab.reproduce.study import Findings

if TYPE_CHECKING:
    from boathouse_lab.reproduce.ila.experiment import Experiment
    from boathouse_lab.reproduce.study import Runner, Scale


class Ila:
    """Interference and locality."""

    paper = PAPER
    title = (
        "Bu, Rao and Xu, Interference and locality-aware task scheduling for MapReduce applications in virtual "
        "clusters, HPDC 2013"
    )

    def run(self, scale: Scale, runner: Runner) -> Findings:
        """Simulate and judge."""
        found = runner.carry_out(PAPER, self.experiments(scale), simulate, cost=dearest)
        models = self.models(scale)
        evaluated = runner.map(PAPER, modelling.evaluate, models.cases)
        size = scale.pick(quick=placing.Size(hosts=40, jobs=10), full=placing.Size(hosts=400, jobs=100))
        (rate,) = runner.map(PAPER, placing.placed_a_second, [size])
        cost = Findings(claims=(placing.claim(size, rate),), figures=())
        return Findings.joined([found, models.findings(evaluated), cost])

    @staticmethod
    def models(scale: Scale) -> Models:
        """Return Table 5 and Figure 11."""
        return scale.pick(quick=Models(seeds=1, jobs=100), full=Models(seeds=scale.seeds, jobs=200))

    @staticmethod
    def experiments(scale: Scale) -> tuple[Experiment, ...]:
        """Return the experiments of the form: the paper's sizes, or what ends within a minute."""
        seeds = scale.seeds
        quick: tuple[Experiment, ...] = (
            Stream(seeds=seeds),
            Isolated(seeds=seeds, part=1.0),
            Calm(seeds=seeds, part=0.3),
            Thresholds(seeds=seeds, part=0.25),
            Exact(seeds=seeds),
        )
        full: tuple[Experiment, ...] = (
            Stream(seeds=seeds, swept=min(seeds, 3)),
            Isolated(seeds=seeds, part=1.0),
            Calm(seeds=seeds, part=1.0, replicas=(1, 2)),
            Thresholds(seeds=seeds, part=1.0),
            Exact(seeds=seeds),
        )
        return scale.pick(quick=quick, full=full)
