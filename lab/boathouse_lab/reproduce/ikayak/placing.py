"""Sections 5.2 and 5.3: executors placed by iKayak alone (Figure 8), and what wrong predictions cost (Figure 9b)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from boathouse_lab.reproduce import figures, interval
from boathouse_lab.reproduce.claim import Relation
from boathouse_lab.reproduce.ikayak import case, pictures, rows
from boathouse_lab.reproduce.ikayak.runs import Run
from boathouse_lab.reproduce.ikayak.setting import APPLICATIONS, INDEX, KMEANS, PAGERANK
from boathouse_lab.reproduce.ikayak.variants import PACKED, PLACING, STOCK
from boathouse_lab.reproduce.study import Findings
from boathouse_lab.reproduce.words import per_cent, signed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from boathouse_lab.reproduce.claim import Claim
    from boathouse_lab.reproduce.ikayak.case import Seen
    from boathouse_lab.reproduce.ikayak.rows import Sweep
    from boathouse_lab.reproduce.ikayak.runs import Measure, Runs
    from boathouse_lab.reproduce.ikayak.setting import Setting
    from boathouse_lab.reproduce.ikayak.variants import Variant

    ByProgram = Callable[[Seen], Mapping[str, float]]

BASES: Final = {"NonspreadOut": PACKED, "SpreadOut": STOCK}
"""YARN-cluster places as SpreadOut."""

PAPER_COST: Final = {0.10: 0.075, 0.35: 0.34}
"""Error of predictions: how much longer Spark runs (L396)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Placing:
    """Reservation-aware placement alone.

    Attributes:
        setting: The load.
        seeds: Independent runs.
        sweep: Assumptions varied.
        errors: Coefficients of variation added to predictions, ascending.
        few: Seeds of the errors.
    """

    setting: Setting
    seeds: int
    sweep: Sweep
    errors: tuple[float, ...]
    few: int

    def _run(self, variant: Variant, seeds: int | None = None) -> Run:
        return Run(setting=self.setting, variant=variant, seeds=seeds or self.seeds)

    def _wrong(self, error: float) -> Run:
        return self._run(dataclasses.replace(PLACING, error=error), self.few)

    def runs(self) -> Iterable[Run]:
        """Return the runs of iKayak's placement, both strategies, and wrong predictions."""
        yield from (self._run(one) for one in (PLACING, *BASES.values()))
        yield from (self._wrong(error) for error in self.errors)
        yield from self.sweep.runs((PLACING, STOCK))

    def findings(self, runs: Runs) -> Findings:
        """Return Figures 8 and 9b."""
        claims = (*self._times(runs), *self._reservations(runs), *self._cpu(runs), *self._errors(runs))
        return Findings(claims=claims, figures=(self._figure(runs), self._sensitivity(runs)))

    def _best(self, runs: Runs, base: Variant, measure: ByProgram) -> tuple[str, interval.Estimate]:
        """Return the program that gains most: the paper says "up to"."""
        found = {}
        for name in APPLICATIONS:
            ours, theirs = (runs.values(self._run(one), lambda seen: measure(seen)[name]) for one in (PLACING, base))  # noqa: B023  called at once
            found[name] = interval.gain(ours, theirs)
        best = max(found, key=lambda name: (found[name].value, name))
        return best, found[best]

    def _times(self, runs: Runs) -> Iterable[Claim]:
        means = {name: runs.mean(self._run(base), case.spark_s).value for name, base in BASES.items()}
        better = min(means, key=lambda name: (means[name], name))
        yield rows.row(
            "figure-8a-mean",
            f"Placement alone: Spark's mean completion time lower than under the better of the two ({better})",
            "Figure 8a",
            0.37,
            runs.gain(self._run(PLACING), self._run(BASES[better]), case.spark_s),
            baseline=means[better],
            baseline_name=f"{better} [s]",
            assumptions=self.sweep.lower(runs, PLACING, STOCK, case.spark_s),
        )
        for (name, base), paper in zip(BASES.items(), (0.55, 0.37), strict=True):
            program, found = self._best(runs, base, lambda seen: seen.spark_s)
            yield rows.row(
                f"figure-8a-{name.lower()}",
                f"Placement alone: completion time lower than under {name}, of the program that gains most ({program})",
                "Figure 8a",
                paper,
                found,
            )
        yield rows.row(
            "figure-8a-strategies",
            "NonspreadOut completes Spark applications earlier than SpreadOut",
            "Figure 8a",
            0.0,
            runs.gain(self._run(PACKED), self._run(STOCK), case.spark_s),
        )

    def _reservations(self, runs: Runs) -> Iterable[Claim]:
        for (name, base), paper in zip(BASES.items(), (0.67, 0.53), strict=True):
            program, found = self._best(runs, base, lambda seen: seen.reservation_s)
            mean = runs.gain(self._run(PLACING), self._run(base), case.reservation_s).value
            yield rows.row(
                f"figure-8b-{name.lower()}",
                f"Placement alone: reservation time lower than under {name}, of the program that gains most "
                f"({program}); of all {per_cent(mean)}",
                "Figure 8b",
                paper,
                found,
                baseline=runs.mean(self._run(base), case.reservation_s).value,
                baseline_name=f"{name}: mean reservation time [s]",
                assumptions=self.sweep.lower(runs, PLACING, STOCK, case.reservation_s) if base == STOCK else (),
            )
        yield rows.row(
            "figure-8b-strategies",
            "SpreadOut's reservations are shorter than NonspreadOut's",
            "Figure 8b",
            0.0,
            runs.gain(self._run(STOCK), self._run(PACKED), case.reservation_s),
        )
        yield rows.row(
            "figure-8b-k-means",
            "K-means' reservations (fewer resources) are shorter than PageRank's and Index's, under SpreadOut",
            "Figure 8b",
            0.0,
            interval.gain(
                runs.values(self._run(STOCK), lambda seen: seen.reservation_s[KMEANS]),
                runs.values(
                    self._run(STOCK), lambda seen: (seen.reservation_s[PAGERANK] + seen.reservation_s[INDEX]) / 2
                ),
            ),
        )

    def _cpu(self, runs: Runs) -> Iterable[Claim]:
        yield rows.row(
            "figure-8c-spreadout",
            "Placement alone: CPU utilisation higher than under SpreadOut, relative",
            "Figure 8c",
            0.10,
            runs.rise(self._run(PLACING), self._run(STOCK), case.cpu),
            baseline=runs.mean(self._run(STOCK), case.cpu).value,
            baseline_name="SpreadOut",
            assumptions=self.sweep.higher(runs, PLACING, STOCK, case.cpu),
        )
        yield rows.row(
            "figure-8c-strategies",
            "SpreadOut's CPU utilisation is higher than NonspreadOut's, relative",
            "Figure 8c",
            0.0,
            runs.rise(self._run(STOCK), self._run(PACKED), case.cpu),
        )

    def _errors(self, runs: Runs) -> Iterable[Claim]:
        base = self._run(PLACING, self.few)
        for error, paper in PAPER_COST.items():
            if error in self.errors:
                yield rows.row(
                    f"figure-9b-error-{100 * error:.0f}",
                    f"Predictions wrong by {per_cent(error)} more: Spark runs longer",
                    "Figure 9b",
                    paper,
                    runs.rise(self._wrong(error), base, case.spark_s),
                    relation=Relation.EQ,
                    tolerance=0.05,
                    baseline=runs.mean(base, case.spark_s).value,
                    baseline_name="with the model's own error [s]",
                )

    def _figure(self, runs: Runs) -> figures.Figure:
        names = {"iKayak's placement": self._run(PLACING), **{name: self._run(base) for name, base in BASES.items()}}
        waits = {
            name: runs.gain(self._run(PLACING), self._run(base), case.reservation_s) for name, base in BASES.items()
        }
        times = {name: runs.gain(self._run(PLACING), self._run(base), case.spark_s) for name, base in BASES.items()}
        told = "; ".join(
            f"against {name}: time {signed(-times[name].value)}, reservation {signed(-waits[name].value)}"
            for name in BASES
        )
        return figures.Figure(
            name="Figure 8",
            title="Executors placed by iKayak, its other parts off",
            panels=(
                pictures.panel("Completion time", "Time [s]", pictures.bars(runs, names, lambda seen: seen.spark_s)),
                pictures.panel("Reservation", "Time [s]", pictures.bars(runs, names, lambda seen: seen.reservation_s)),
                pictures.panel(
                    "CPU utilisation",
                    "CPUs busy [%]",
                    pictures.bars(runs, names, lambda seen: {kind: 100 * seen.cpu[kind] for kind in case.MACHINES}),
                ),
            ),
            paper_shape="iKayak is lowest for each program: up to -55 and -37 % in completion, -67 and -53 % in "
            "reservation, against NonspreadOut and SpreadOut; K-means reserves shortest; utilisation rises by 10 %.",
            our_shape=told + ".",
        )

    def _sensitivity(self, runs: Runs) -> figures.Figure:
        base = self._run(PLACING, self.few)
        points = {0.0: interval.mean([0.0] * self.few)}
        measure: Measure = case.spark_s
        for error in self.errors:
            one = runs.rise(self._wrong(error), base, measure)
            span = None if one.interval is None else (100 * one.interval[0], 100 * one.interval[1])
            points[100 * error] = interval.Estimate(value=100 * one.value, interval=span, count=one.count)
        told = ", ".join(f"{x:.0f} %: {one.value:+.0f} %" for x, one in points.items() if x)
        return figures.Figure(
            name="Figure 9b",
            title="What errors of predicted remaining times cost",
            panels=(
                figures.Panel(
                    title="Spark completion time",
                    x=figures.Axis(label="Error added to predictions [%]", low=0),
                    y=figures.Axis(label="Longer by [%]"),
                    marks=(
                        figures.line("iKayak's placement", points),
                        figures.Line(
                            label="paper",
                            x=tuple(100 * error for error in PAPER_COST),
                            y=tuple(100 * cost for cost in PAPER_COST.values()),
                            markers=True,
                            paper=True,
                        ),
                    ),
                ),
            ),
            paper_shape="From 7.5 % longer at an error of 10 % to 34 % longer at 35 %.",
            our_shape=told + ".",
        )
