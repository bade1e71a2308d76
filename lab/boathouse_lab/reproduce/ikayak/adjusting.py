"""Sections 5.4 and 5.6: suspended reducers (Figure 10), v and θ (Figure 12), and when reducers start (Figure 13a)."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

from boathouse_lab.reproduce import figures, interval
from boathouse_lab.reproduce.ikayak import case, pictures, rows
from boathouse_lab.reproduce.ikayak.runs import Run
from boathouse_lab.reproduce.ikayak.setting import TERASORT, WORDCOUNT
from boathouse_lab.reproduce.ikayak.variants import ADJUSTING, IKAYAK, STOCK
from boathouse_lab.reproduce.study import Findings
from boathouse_lab.reproduce.words import signed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boathouse_lab.reproduce.claim import Claim
    from boathouse_lab.reproduce.ikayak.case import Seen
    from boathouse_lab.reproduce.ikayak.rows import Sweep
    from boathouse_lab.reproduce.ikayak.runs import Runs
    from boathouse_lab.reproduce.ikayak.setting import Setting
    from boathouse_lab.reproduce.ikayak.variants import Variant

V, THETA = "weight", "overhead"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Adjusting:
    """Dependency-aware resource adjustment.

    Attributes:
        setting: The load.
        seeds: Independent runs.
        sweep: Assumptions varied.
        small: The load of Figures 12 and 13a.
        few: Their seeds.
        weights: Values of v, ascending, the paper's 1 among them.
        overheads: Of θ, ascending, the paper's 0.15 among them.
        starts: Shares of maps after which reducers start, ascending.
    """

    setting: Setting
    seeds: int
    sweep: Sweep
    small: Setting
    few: int
    weights: tuple[float, ...]
    overheads: tuple[float, ...]
    starts: tuple[float, ...]

    def _run(self, variant: Variant) -> Run:
        return Run(setting=self.setting, variant=variant, seeds=self.seeds)

    def _with(self, constant: str, value: float) -> Run:
        default = {V: 1.0, THETA: 0.15}[constant]
        constants = () if value == default else ((constant, value),)
        return Run(setting=self.small, variant=dataclasses.replace(IKAYAK, constants=constants), seeds=self.few)

    def _start(self, variant: Variant, start: float, program: str = "") -> Run:
        setting = dataclasses.replace(self.small, slow_start=start, program=program)
        return Run(setting=setting, variant=variant, seeds=self.few)

    def runs(self) -> Iterable[Run]:
        """Yield suspension alone; constants; starts, of the mix and of two programs."""
        yield from (self._run(one) for one in (ADJUSTING, STOCK))
        yield from (self._with(V, one) for one in self.weights)
        yield from (self._with(THETA, one) for one in self.overheads)
        yield from (self._start(one, start) for one in (IKAYAK, STOCK) for start in self.starts)
        for program, start in itertools.product((TERASORT, WORDCOUNT), (self.starts[0], self.starts[-1])):
            yield self._start(STOCK, start, program)
        yield from self.sweep.runs((ADJUSTING, STOCK))

    def findings(self, runs: Runs) -> Findings:
        """Return Figures 10, 12 and 13a."""
        claims = (*self._suspended(runs), *self._shapes(runs), *self._starts(runs))
        return Findings(claims=claims, figures=(self._figure(runs), self._constants(runs), self._early(runs)))

    def _suspended(self, runs: Runs) -> Iterable[Claim]:
        ours, base = self._run(ADJUSTING), self._run(STOCK)
        count = runs.mean(ours, lambda seen: float(seen.suspensions)).value
        yield rows.row(
            "figure-10a",
            f"Adjustment alone: throughput of map tasks on desktops higher than stock YARN's ({count:.0f} suspensions)",
            "Figure 10a",
            0.17,
            runs.rise(ours, base, _throughput),
            baseline=runs.mean(base, _throughput).value,
            baseline_name="yarn-cluster [maps/min]",
            assumptions=self.sweep.higher(runs, ADJUSTING, STOCK, _throughput),
        )
        yield rows.row(
            "figure-10b",
            "Adjustment alone: reducers on desktops take less time than on stock YARN",
            "Figure 10b",
            0.08,
            runs.gain(ours, base, _reduce_s),
            baseline=runs.mean(base, _reduce_s).value,
            baseline_name="yarn-cluster [s]",
            assumptions=self.sweep.lower(runs, ADJUSTING, STOCK, _reduce_s),
        )

    def _shapes(self, runs: Runs) -> Iterable[Claim]:
        for constant, values, figure in ((V, self.weights, "12a"), (THETA, self.overheads, "12b")):
            times = [runs.values(self._with(constant, one), case.mapreduce_s) for one in values]
            inner = [min(seed_times) for seed_times in zip(*times[1:-1], strict=True)]
            ends = [min(seed_times) for seed_times in zip(times[0], times[-1], strict=True)]
            name = {V: "v", THETA: "θ"}[constant]
            yield rows.row(
                f"figure-{figure}",
                f"U-shape in {name}: mean MapReduce time at the better end over the best value between",
                f"Figure {figure}",
                0.0,
                interval.mean([end / best - 1 for end, best in zip(ends, inner, strict=True)]),
            )

    def _starts(self, runs: Runs) -> Iterable[Claim]:
        gains = [
            interval.gain(*(runs.values(self._start(one, start), case.mapreduce_s) for one in (IKAYAK, STOCK)))
            for start in self.starts
        ]
        by_seed = [
            [runs.values(self._start(one, start), case.mapreduce_s) for start in self.starts] for one in (IKAYAK, STOCK)
        ]
        ours, base = ([sum(seed_times) for seed_times in zip(*one, strict=True)] for one in by_seed)
        told = ", ".join(f"{start:g}: {signed(-gain.value)}" for start, gain in zip(self.starts, gains, strict=True))
        yield rows.row(
            "figure-13a-all",
            f"MapReduce time lower than on stock YARN, over all slow starts (by start: {told})",
            "Figure 13a",
            0.07,
            interval.gain(ours, base),
        )
        for program, sign, what in ((TERASORT, 1, "a small"), (WORDCOUNT, -1, "a large")):
            early, late = (
                runs.values(self._start(STOCK, start, program), case.mapreduce_s)
                for start in (self.starts[0], self.starts[-1])
            )
            yield rows.row(
                f"figure-13a-{program}",
                f"{program} prefers {what} slow start: time saved, of {self.starts[0]:g} and {self.starts[-1]:g}",
                "Figure 13a",
                0.0,
                interval.mean([sign * (1 - a / b) for a, b in zip(early, late, strict=True)]),
            )

    def _figure(self, runs: Runs) -> figures.Figure:
        names = {"adjustment": self._run(ADJUSTING), "stock YARN": self._run(STOCK)}
        maps = runs.rise(names["adjustment"], names["stock YARN"], _throughput).value
        reduces = runs.rise(names["adjustment"], names["stock YARN"], _reduce_s).value
        return figures.Figure(
            name="Figure 10",
            title="Suspended reducers, iKayak's other parts off, on desktops",
            panels=(
                pictures.panel(
                    "Map tasks", "Throughput [1/min]", pictures.bars(runs, names, lambda seen: {"": _throughput(seen)})
                ),
                pictures.panel("Reducers", "Time [s]", pictures.bars(runs, names, lambda seen: {"": _reduce_s(seen)})),
            ),
            paper_shape="Throughput of maps +17 %, time of reducers -8 %.",
            our_shape=f"Throughput of maps {signed(maps)}, time of reducers {signed(reduces)}.",
        )

    def _constants(self, runs: Runs) -> figures.Figure:
        panels, told = [], []
        for name, constant, values in (("v", V, self.weights), ("θ", THETA, self.overheads)):
            points = {one: runs.mean(self._with(constant, one), case.mapreduce_s) for one in values}
            told.append(f"{name}: " + ", ".join(f"{x:g} {one.value:.0f} s" for x, one in points.items()))
            panels.append(
                figures.Panel(
                    title=f"Suspension's {name}",
                    x=figures.Axis(label=name, low=0),
                    y=figures.Axis(label="Mean MapReduce time [s]"),
                    marks=(figures.line("iKayak", points),),
                )
            )
        return figures.Figure(
            name="Figure 12",
            title="Length of suspensions",
            panels=tuple(panels),
            paper_shape="Job time falls and rises again with v (best near 1), and so with θ (best near 0.15).",
            our_shape="; ".join(told) + ".",
        )

    def _early(self, runs: Runs) -> figures.Figure:
        lines = [
            figures.line(name, {start: runs.mean(self._start(one, start), case.mapreduce_s) for start in self.starts})
            for name, one in (("iKayak", IKAYAK), ("stock YARN", STOCK))
        ]
        return figures.Figure(
            name="Figure 13a",
            title="When reducers start",
            panels=(
                figures.Panel(
                    title="The mix",
                    x=figures.Axis(label="Share of maps that ended", low=0, high=1),
                    y=figures.Axis(label="Mean MapReduce time [s]"),
                    marks=tuple(lines),
                ),
            ),
            paper_shape="iKayak is about 7 % below YARN whenever reducers start.",
            our_shape="; ".join(
                f"{one.label}: " + ", ".join(f"{x:g} {y:.0f} s" for x, y in zip(one.x, one.y, strict=True))
                for one in lines
            )
            + ".",
        )


def _throughput(seen: Seen) -> float:
    return seen.maps_per_minute


def _reduce_s(seen: Seen) -> float:
    return seen.reduce_s
