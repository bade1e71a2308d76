"""Section 5.7: what a decision costs, and what suspending and resuming does."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Final

from boathouse_lab.reproduce import interval
from boathouse_lab.reproduce.claim import Assumption, Claim, Relation
from boathouse_lab.reproduce.ikayak import case, rows, variants
from boathouse_lab.reproduce.ikayak.runs import Run
from boathouse_lab.reproduce.ikayak.variants import IKAYAK
from boathouse_lab.reproduce.sources import sourced
from boathouse_lab.reproduce.study import Findings
from boathouse_lab.reproduce.words import signed
from boathouse_sim.live import Live

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boathouse_lab.reproduce.ikayak.runs import Runs
    from boathouse_lab.reproduce.ikayak.setting import Setting

PAPER_S: Final = 2.7
"""To suspend and resume a reducer (5.7)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """Costs.

    Attributes:
        setting: The load of both experiments.
        seeds: Independent runs.
    """

    setting: Setting
    seeds: int

    def _run(self, suspend_s: float) -> Run:
        setting = dataclasses.replace(self.setting, suspend_s=suspend_s)
        return Run(setting=setting, variant=IKAYAK, seeds=self.seeds)

    def runs(self) -> Iterable[Run]:
        """Return the runs with our time to suspend, and with the paper's."""
        return [self._run(self.setting.suspend_s), self._run(PAPER_S)]

    def findings(self, runs: Runs) -> Findings:
        """Return rows without pictures: the paper has none."""
        slower = runs.rise(self._run(PAPER_S), self._run(self.setting.suspend_s), case.mapreduce_s).value
        return Findings(
            claims=(
                rows.row(
                    "cost-of-placing",
                    "CPU time of a scheduling cycle that looks at waiting executors, on the 15 workers: at most",
                    "5.7",
                    0.120,
                    interval.mean(cycles_s(self.setting)),
                    relation=Relation.LE,
                    unit="s",
                ),
                Claim(
                    **sourced(rows.PAPER, "cost-of-suspending"),
                    claim="Suspending and resuming a reducer takes 2.7 s (here it must take well under 1 s)",
                    figure="5.7",
                    relation=Relation.LE,
                    paper_value=PAPER_S,
                    value=None,
                    unit="s",
                    assumptions=(
                        Assumption(
                            name="from the decision until the CPU is free",
                            value=f"{self.setting.suspend_s:g} s",
                            effect=f"{PAPER_S:g} s, as the paper measured: MapReduce time {signed(slower)}",
                        ),
                    ),
                ),
            ),
            figures=(),
        )


def cycles_s(setting: Setting) -> list[float]:
    """Return the mean CPU time of a simulation's instants that placed an executor: all cycles and their effects."""
    small = dataclasses.replace(setting, pairs=min(setting.pairs, _PAIRS))
    driver = Live(small.workload(0), variants.build(IKAYAK), seed=0)
    spent: list[float] = []
    placed, going = 0, True
    while going:
        began_s = time.process_time()
        going = driver.advance()
        took_s = time.process_time() - began_s
        now = sum(1 for pod in driver.world.pods.values() if pod.task_class.id.endswith("/executor"))
        if now > placed:
            spent.append(took_s)
        placed = now
    return [sum(spent) / max(1, len(spent))]


_PAIRS = 4
