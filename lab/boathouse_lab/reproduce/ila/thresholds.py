"""Figure 12: the dynamic threshold against static ones and none, for mixed, pure CPU and pure I/O loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_lab.reproduce import figures
from boathouse_lab.reproduce.claim import Relation
from boathouse_lab.reproduce.figures import bars
from boathouse_lab.reproduce.ila import schedulers
from boathouse_lab.reproduce.ila.experiment import Runs, faster, row
from boathouse_lab.reproduce.ila.programs import PAPER as ASSUMED
from boathouse_lab.reproduce.ila.setting import Load
from boathouse_lab.reproduce.study import Findings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from boathouse_lab.reproduce.claim import Claim
    from boathouse_lab.reproduce.ila.case import Case, Seen
    from boathouse_lab.reproduce.interval import Estimate

LOADS = {Load.MIX: "mixed", Load.CPU: "pure CPU", Load.IO: "pure I/O"}
POLICIES = (*schedulers.STATIC, schedulers.LAO, schedulers.ILA)
LABELS = ("H = 1", "H = 2", "H = 4", "H = 6", "H = 8", "none", "dynamic")


class Thresholds:
    """The experiment. No threshold is LAO: the same delays, and every slowdown is accepted."""

    def __init__(self, *, seeds: int, part: float) -> None:
        self._runs = {load: Runs(load, seeds, part, ASSUMED) for load in LOADS}

    def cases(self) -> Iterable[Case]:
        """Return each threshold and load."""
        for runs in self._runs.values():
            for policy in POLICIES:
                yield from runs.cases(policy)

    def findings(self, seen: Mapping[Case, Seen]) -> Findings:
        """Return rows and the picture."""
        return Findings(claims=tuple(self._claims(seen)), figures=(self._picture(seen),))

    def _gain(self, seen: Mapping[Case, Seen], load: Load, over: str) -> Estimate:
        return self._runs[load].over(seen, schedulers.ILA, over, faster)

    def _claims(self, seen: Mapping[Case, Seen]) -> Iterator[Claim]:
        others = [one for one in POLICIES if one != schedulers.ILA]
        for load, words in LOADS.items():
            name = f"figure-12-{load.value}"
            gains = {one: self._gain(seen, load, one) for one in others}
            best = min(others, key=lambda one: gains[one].value)
            yield row(
                f"{name}-best",
                f"{words}: throughput with the dynamic threshold over that with the best other [×]",
                "Figure 12",
                Relation.GE,
                1.0,
                gains[best],
                note=f"the best other: {LABELS[POLICIES.index(best)]}",
            )
            worst = max(schedulers.STATIC, key=lambda one: gains[one].value)
            yield row(
                f"{name}-worst",
                f"{words}: throughput with the dynamic threshold over that with the worst static one, less 1",
                "Figure 12",
                Relation.BETWEEN,
                (0.4, 1.0),
                self._runs[load].over(seen, schedulers.ILA, worst, lambda a, b: faster(a, b) - 1),
                share=True,
                note=f"the worst static: {LABELS[POLICIES.index(worst)]}",
            )
            yield row(
                f"{name}-none",
                f"{words}: throughput without a threshold over that with the worst static one [×]",
                "Figure 12",
                Relation.LE,
                1.0,
                self._runs[load].over(seen, schedulers.LAO, worst, faster),
            )
        first = schedulers.STATIC[0]
        yield row(
            "figure-12-first-cpu",
            "pure CPU: what H = 1 loses of the dynamic threshold's throughput",
            "Figure 12",
            Relation.EQ,
            0.4,
            self._runs[Load.CPU].over(seen, first, schedulers.ILA, lambda a, b: 1 - faster(a, b)),
            share=True,
            tolerance=0.1,
        )
        yield row(
            "figure-12-first-mix",
            'mixed: throughput with H = 1 over the dynamic threshold\'s ("nearly highest") [×]',
            "Figure 12",
            Relation.GE,
            0.9,
            self._runs[Load.MIX].over(seen, first, schedulers.ILA, faster),
        )

    def _picture(self, seen: Mapping[Case, Seen]) -> figures.Figure:
        panel = figures.Panel(
            title="By load",
            x=figures.Axis(label="Load"),
            y=figures.Axis(label="Throughput over that of the dynamic threshold", low=0),
            categories=tuple(LOADS.values()),
            marks=tuple(
                bars(label, [self._runs[load].over(seen, one, schedulers.ILA, faster) for load in LOADS])
                for one, label in zip(POLICIES, LABELS, strict=True)
            ),
        )
        said = ", ".join(
            f"{words} {self._runs[load].over(seen, schedulers.LAO, schedulers.ILA, faster).value:.2f}"
            for load, words in LOADS.items()
        )
        return figures.Figure(
            name="Figure 12",
            title="Throughput by threshold",
            panels=(panel,),
            paper_shape="Dynamic is best for all loads, none is worst; H = 1 is good for a mix, 40 % lower on CPU.",
            our_shape=f"Without a threshold, as a multiple of the dynamic one's: {said}.",
        )
