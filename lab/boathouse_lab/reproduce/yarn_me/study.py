"""The study: all simulations of all experiments at once, each of them once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_lab.reproduce.yarn_me.case import dearest, simulate
from boathouse_lab.reproduce.yarn_me.cluster import Cluster
from boathouse_lab.reproduce.yarn_me.cluster_cases import VARIANTS
from boathouse_lab.reproduce.yarn_me.experiment import PAPER
from boathouse_lab.reproduce.yarn_me.models import Models
from boathouse_lab.reproduce.yarn_me.peers import NAMES as PEERS, Peers
from boathouse_lab.reproduce.yarn_me.scaling import Scaling
from boathouse_lab.reproduce.yarn_me.sweep import Sweep
from boathouse_lab.reproduce.yarn_me.wrong import Wrong

if TYPE_CHECKING:
    from boathouse_lab.reproduce.study import Findings, Runner, Scale
    from boathouse_lab.reproduce.yarn_me.experiment import Experiment


class YarnMe:
    """Memory elasticity."""

    paper = PAPER
    title = (
        "Iorgulescu et al., Don't cry over spilled records: Memory elasticity of data-parallel applications and its "
        "application to cluster scheduling, USENIX ATC 2017"
    )

    def run(self, scale: Scale, runner: Runner) -> Findings:
        """Simulate and judge."""
        return runner.carry_out(PAPER, self.experiments(scale), simulate, cost=dearest)

    @staticmethod
    def experiments(scale: Scale) -> tuple[Experiment, ...]:
        """Return the experiments of the form: the paper's sizes, or what ends within a minute or two."""
        seeds = scale.seeds
        few, some = min(seeds, 2), min(seeds, 3)
        quick: tuple[Experiment, ...] = (
            Models(seeds=seeds),
            Cluster(seeds=few, counts=(1, 3), variants=(), part=0.1),
            Sweep(size=6, seeds=seeds, levels=2),
            Scaling(seeds=((6, seeds), (15, some), (30, 1))),
            Wrong(traces=seeds, jobs=30, nodes=30, fewer=()),
            Peers(names=PEERS[:1]),
        )
        full: tuple[Experiment, ...] = (
            Models(seeds=seeds),
            Cluster(seeds=seeds, counts=(1, 3, 5), variants=VARIANTS),
            Sweep(size=100, seeds=seeds, levels=2),
            Scaling(seeds=((100, seeds), (300, some), (1000, some), (3000, 1))),
            Wrong(traces=2 * seeds, jobs=100, nodes=100, fewer=(50, 30)),
            Peers(),
        )
        return scale.pick(quick=quick, full=full)
