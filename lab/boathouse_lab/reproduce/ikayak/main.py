"""Section 5.1: iKayak against YARN-client, YARN-cluster and Spark's dynamic allocation (Figure 7)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from boathouse_lab.reproduce import figures, interval
from boathouse_lab.reproduce.claim import Relation
from boathouse_lab.reproduce.ikayak import case, pictures, rows
from boathouse_lab.reproduce.ikayak.runs import Run
from boathouse_lab.reproduce.ikayak.setting import INDEX, KMEANS, PAGERANK
from boathouse_lab.reproduce.ikayak.variants import IKAYAK, IN_CLIENT, STOCK
from boathouse_lab.reproduce.study import Findings
from boathouse_lab.reproduce.words import per_cent, signed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boathouse_lab.reproduce.claim import Claim
    from boathouse_lab.reproduce.ikayak.rows import Sweep
    from boathouse_lab.reproduce.ikayak.runs import Measure, Runs
    from boathouse_lab.reproduce.ikayak.setting import Setting
    from boathouse_lab.reproduce.ikayak.variants import Variant

BASES: Final = {"YARN-client": IN_CLIENT, "YARN-cluster": STOCK}
BIG: Final = ("T420", "T620")
"""The servers of 24 cores and 32 GB."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Main:
    """The whole of iKayak.

    Attributes:
        setting: The load.
        seeds: Independent runs.
        sweep: Assumptions varied.
    """

    setting: Setting
    seeds: int
    sweep: Sweep

    def _run(self, variant: Variant, *, dynamic: bool = False) -> Run:
        setting = dataclasses.replace(self.setting, dynamic=dynamic)
        return Run(setting=setting, variant=variant, seeds=self.seeds)

    @property
    def _dynamic(self) -> Run:
        return self._run(STOCK, dynamic=True)

    def runs(self) -> Iterable[Run]:
        """Yield the runs of the three schedulers, and of dynamic allocation on YARN-cluster."""
        yield from (self._run(one) for one in (IKAYAK, *BASES.values()))
        yield self._dynamic
        yield from self.sweep.runs()

    def findings(self, runs: Runs) -> Findings:
        """Return Figure 7."""
        claims = (*self._times(runs), *self._utilisation(runs), *self._implied(runs))
        return Findings(claims=claims, figures=(self._figure(runs),))

    def _times(self, runs: Runs) -> Iterable[Claim]:
        papers: tuple[tuple[str, str, Measure, tuple[float, float]], ...] = (
            ("7a", "Spark applications", case.spark_s, (0.50, 0.30)),
            ("7b", "MapReduce jobs", case.mapreduce_s, (0.14, 0.19)),
        )
        for figure, what, measure, values in papers:
            for (name, base), paper in zip(BASES.items(), values, strict=True):
                yield rows.row(
                    f"figure-{figure}-{name.lower()}",
                    f"{what}: mean completion time lower than under {name}",
                    f"Figure {figure}",
                    paper,
                    runs.gain(self._run(IKAYAK), self._run(base), measure),
                    baseline=runs.mean(self._run(base), measure).value,
                    baseline_name=f"{name} [s]",
                    assumptions=self.sweep.lower(runs, IKAYAK, base, measure),
                )
        gains = {name: self._gain_of(runs, name) for name in (KMEANS, PAGERANK, INDEX)}
        cpu_bound = [(a + b) / 2 for a, b in zip(gains[KMEANS], gains[INDEX], strict=True)]
        more = [a - b for a, b in zip(cpu_bound, gains[PAGERANK], strict=True)]
        yield rows.row(
            "figure-7a-programs",
            "More effective for K-means and Index than for PageRank: difference of the gains over YARN-cluster",
            "Figure 7a",
            0.0,
            interval.mean(more),
        )

    def _gain_of(self, runs: Runs, program: str) -> list[float]:
        ours, base = (runs.values(self._run(one), lambda seen: seen.spark_s[program]) for one in (IKAYAK, STOCK))
        return [1 - a / b for a, b in zip(ours, base, strict=True)]

    def _utilisation(self, runs: Runs) -> Iterable[Claim]:
        compared = (
            ("ikayak", "iKayak", self._run(IKAYAK), (0.22, 0.15)),
            ("dynamic", "Spark's dynamic allocation on YARN-cluster", self._dynamic, (0.16, 0.09)),
        )
        for short, who, ours, values in compared:
            for (name, base), paper in zip(BASES.items(), values, strict=True):
                yield rows.row(
                    f"figure-7c-{short}-{name.lower()}",
                    f"{who}: CPU utilisation higher than under {name}, relative",
                    "Figure 7c",
                    paper,
                    runs.rise(ours, self._run(base), case.cpu),
                    baseline=runs.mean(self._run(base), case.cpu).value,
                    baseline_name=f"{name}: CPUs busy until the last submission",
                    assumptions=self.sweep.higher(runs, IKAYAK, base, case.cpu) if ours == self._run(IKAYAK) else (),
                )
        yield rows.row(
            "figure-7c-ikayak-dynamic",
            "iKayak's CPU utilisation is higher than dynamic allocation's, relative",
            "Figure 7c",
            0.0,
            runs.rise(self._run(IKAYAK), self._dynamic, case.cpu),
        )
        pairs = zip(runs.values(self._run(IKAYAK), _others), runs.values(self._run(STOCK), _others), strict=True)
        large = zip(runs.values(self._run(IKAYAK), _big), runs.values(self._run(STOCK), _big), strict=True)
        yield rows.row(
            "figure-7c-machines",
            "Utilisation rises less on T420 and T620 than on the others: difference of the rises over YARN-cluster",
            "Figure 7c",
            0.0,
            interval.mean([(a / b) - (c / d) for (a, b), (c, d) in zip(pairs, large, strict=True)]),
        )

    def _implied(self, runs: Runs) -> Iterable[Claim]:
        implied: tuple[tuple[str, Measure, float], ...] = (
            ("Spark", case.spark_s, 0.71),
            ("MapReduce", case.mapreduce_s, 1.06),
        )
        for what, measure, paper in implied:
            values = (runs.values(self._run(one), measure) for one in (STOCK, IN_CLIENT))
            yield rows.row(
                f"figure-7-models-{what.lower()}",
                f"YARN-cluster's mean {what} completion time over YARN-client's (follows from Figure 7)",
                "Figures 7a, 7b",
                paper,
                interval.ratio(*values),
                relation=Relation.EQ,
                tolerance=0.05,
                unit="times",
            )

    def _figure(self, runs: Runs) -> figures.Figure:
        names = {"iKayak": self._run(IKAYAK), **{name: self._run(base) for name, base in BASES.items()}}
        spark = pictures.bars(runs, names, lambda seen: seen.spark_s)
        jobs = pictures.bars(runs, names, lambda seen: seen.mapreduce_s)
        busy = pictures.bars(
            runs,
            {**names, "dynamic allocation": self._dynamic},
            lambda seen: {kind: 100 * seen.cpu[kind] for kind in case.MACHINES},
        )
        gains = {
            name: runs.gain(self._run(IKAYAK), self._run(base), case.spark_s).value for name, base in BASES.items()
        }
        lower = {
            name: runs.gain(self._run(IKAYAK), self._run(base), case.mapreduce_s).value for name, base in BASES.items()
        }
        higher = {name: runs.rise(self._run(IKAYAK), self._run(base), case.cpu).value for name, base in BASES.items()}
        return figures.Figure(
            name="Figure 7",
            title="Completion times by program, and busy CPUs by kind of machine",
            panels=(
                pictures.panel("Spark completion time", "Time [s]", spark),
                pictures.panel("MapReduce completion time", "Time [s]", jobs),
                pictures.panel("CPU utilisation", "CPUs busy [%]", busy),
            ),
            paper_shape="iKayak is lowest everywhere: Spark -50 and -30 %, MapReduce -14 and -19 % against YARN-client "
            "and YARN-cluster; its CPU utilisation is highest, by 22 and 15 %, dynamic allocation's lies between.",
            our_shape=f"Spark {_listed({k: -v for k, v in gains.items()})}; MapReduce "
            f"{_listed({k: -v for k, v in lower.items()})}; CPU {_listed(higher)}. YARN-cluster's own CPU utilisation: "
            f"{per_cent(runs.mean(self._run(STOCK), case.cpu).value)}.",
        )


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{signed(value)} against {name}" for name, value in values.items())


def _others(seen: case.Seen) -> float:
    return sum(seen.cpu[kind] for kind in case.MACHINES if kind not in BIG)


def _big(seen: case.Seen) -> float:
    return sum(seen.cpu[kind] for kind in BIG)
