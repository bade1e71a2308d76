"""The study: all simulations of all parts at once, each of them once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_lab.reproduce.koala.apart import Apart
from boathouse_lab.reproduce.koala.case import cost, simulate
from boathouse_lab.reproduce.koala.levels import Levels
from boathouse_lab.reproduce.koala.setting import PAPER
from boathouse_lab.reproduce.koala.single import Single
from boathouse_lab.reproduce.koala.stream import FEW, SWEPT, Runs
from boathouse_lab.reproduce.koala.stream_rows import Stream
from boathouse_lab.reproduce.koala.usage import Usage
from boathouse_lab.reproduce.koala.worked import Worked

if TYPE_CHECKING:
    from boathouse_lab.reproduce.koala.part import Part
    from boathouse_lab.reproduce.study import Findings, Runner, Scale


class Koala:
    """Dynamic MapReduce clusters."""

    paper = PAPER
    title = (
        "Ghiţ, Yigitbasi, Epema, Resource Management for Dynamic MapReduce Clusters in Multicluster Systems (Koala), "
        "MTAGS 2012"
    )

    def run(self, scale: Scale, runner: Runner) -> Findings:
        """Simulate and judge."""
        return runner.carry_out(PAPER, self.parts(scale), simulate, cost=cost)

    @staticmethod
    def parts(scale: Scale) -> tuple[Part, ...]:
        """Return the parts of the form."""
        seeds, one = scale.seeds, 1
        few = min(seeds, 3)
        quick: tuple[Part, ...] = (
            Usage(seeds=one),
            Worked(seeds=one),
            Single(seeds=one, varied=one),
            Stream(Runs(seeds=seeds, varied=one, swept=FEW)),
            Apart(seeds=one, jobs=25),
            Levels(seeds=one),
        )
        full: tuple[Part, ...] = (
            Usage(seeds=few),
            Worked(seeds=seeds),
            Single(seeds=seeds, varied=few),
            Stream(Runs(seeds=seeds, varied=few, swept=SWEPT)),
            Apart(seeds=seeds),
            Levels(seeds=seeds),
        )
        return scale.pick(quick=quick, full=full)
