"""Section 5.5: maps where their blocks are (Figure 11), local or shrunk (Figure 6), delay scheduling (Figure 13b)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from boathouse_lab.reproduce import figures, interval
from boathouse_lab.reproduce.claim import Relation
from boathouse_lab.reproduce.ikayak import alone, case, pictures, rows
from boathouse_lab.reproduce.ikayak.runs import Run
from boathouse_lab.reproduce.ikayak.setting import GREP, TERASORT, WORDCOUNT, Setting
from boathouse_lab.reproduce.ikayak.variants import IKAYAK, LOCALISING, STOCK
from boathouse_lab.reproduce.study import Findings
from boathouse_lab.reproduce.words import signed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boathouse_lab.reproduce.claim import Claim
    from boathouse_lab.reproduce.ikayak.case import Seen
    from boathouse_lab.reproduce.ikayak.rows import Sweep
    from boathouse_lab.reproduce.ikayak.runs import Runs

WAIT_S: Final = 3.0
"""spark.locality.wait."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Localising:
    """Locality-aware assignment.

    Attributes:
        setting: The load.
        seeds: Independent runs.
        sweep: Assumptions varied.
        small: The load of Figure 13b.
        few: Its seeds.
    """

    setting: Setting
    seeds: int
    sweep: Sweep
    small: Setting
    few: int

    @property
    def _ours(self) -> Run:
        return Run(setting=self.setting, variant=LOCALISING, seeds=self.seeds)

    @property
    def _whole(self) -> Run:
        return Run(setting=self.setting, variant=IKAYAK, seeds=self.seeds)

    @property
    def _stock(self) -> Run:
        return Run(setting=self.setting, variant=STOCK, seeds=self.seeds)

    def _delayed(self, *, maps: bool, spark: bool) -> Run:
        setting = dataclasses.replace(self.small, wait_s=WAIT_S if spark else 0.0)
        return Run(setting=setting, variant=dataclasses.replace(STOCK, delay=maps), seeds=self.few)

    def runs(self) -> Iterable[Run]:
        """Return locality alone; delay scheduling of either, both and none."""
        yield from (self._ours, self._stock, self._whole)
        for maps in (False, True):
            for spark in (False, True):
                yield self._delayed(maps=maps, spark=spark)
        yield from self.sweep.runs((LOCALISING, STOCK))

    def findings(self, runs: Runs) -> Findings:
        """Return Figures 6, 11 and 13b."""
        claims = (*self._local(runs), *self._shrunk(), *self._delays(runs))
        return Findings(
            claims=claims, figures=(alone.figure(self.setting), self._figure(runs), self._delay_figure(runs))
        )

    def _local(self, runs: Runs) -> Iterable[Claim]:
        yield rows.row(
            "figure-11a",
            "Locality alone: share of local maps higher than under YARN-cluster, relative",
            "Figure 11a",
            0.27,
            runs.rise(self._ours, self._stock, case.local_maps),
            baseline=runs.mean(self._stock, case.local_maps).value,
            baseline_name="yarn-cluster: share of maps that are local",
            assumptions=self.sweep.higher(runs, LOCALISING, STOCK, case.local_maps),
        )
        share = runs.mean(self._ours, lambda seen: seen.shrunk).value
        yield rows.row(
            "figure-11b",
            f"Locality alone: mean time of maps at most 9 % longer ({100 * share:.1f} % of the maps were shrunk)",
            "Figure 11b",
            0.09,
            runs.rise(self._ours, self._stock, lambda seen: seen.map_s),
            relation=Relation.LE,
            baseline=runs.mean(self._stock, lambda seen: seen.map_s).value,
            baseline_name="yarn-cluster [s]",
        )
        yield rows.row(
            "figure-11c",
            "Locality alone: MapReduce jobs end earlier all the same",
            "Figure 11c",
            0.0,
            runs.gain(self._ours, self._stock, case.mapreduce_s),
            baseline=runs.mean(self._stock, case.mapreduce_s).value,
            baseline_name="yarn-cluster [s]",
            assumptions=self.sweep.lower(runs, LOCALISING, STOCK, case.mapreduce_s),
        )

    def _shrunk(self) -> Iterable[Claim]:
        for program in (GREP, TERASORT, WORDCOUNT):
            whole, less, remote = alone.times_s(program, self.setting)
            yield rows.row(
                f"figure-6-{program}-shrunk",
                f"{program}: a local map with 80 % is slower than with 100 %, by",
                "Figure 6",
                0.0,
                interval.mean([less / whole - 1]),
            )
            yield rows.row(
                f"figure-6-{program}-remote",
                f"{program}: a remote map with 100 % is slower than a local one with 80 %, by",
                "Figure 6",
                0.0,
                interval.mean([remote / less - 1]),
            )

    def _delays(self, runs: Runs) -> Iterable[Claim]:
        neither = self._delayed(maps=False, spark=False)
        for who, one in (
            ("MapReduce", self._delayed(maps=True, spark=False)),
            ("Spark", self._delayed(maps=False, spark=True)),
        ):
            yield rows.row(
                f"figure-13b-{who.lower()}",
                f"Delay scheduling of {who} alone: share of local reads higher, relative",
                "Figure 13b",
                (0.12, 0.15),
                runs.rise(one, neither, _local),
                relation=Relation.BETWEEN,
                baseline=runs.mean(neither, _local).value,
                baseline_name="without delay: share of maps and Spark tasks that are local",
            )
        yield rows.row(
            "figure-13b-both",
            "Delay scheduling of both: share of local reads as without, relative",
            "Figure 13b",
            0.0,
            runs.rise(self._delayed(maps=True, spark=True), neither, _local),
            relation=Relation.EQ,
            tolerance=0.03,
        )

    def _figure(self, runs: Runs) -> figures.Figure:
        names = {"locality": self._ours, "YARN-cluster": self._stock}
        local = runs.rise(self._ours, self._stock, case.local_maps).value
        map_s = runs.rise(self._ours, self._stock, lambda seen: seen.map_s).value
        jobs = runs.rise(self._ours, self._stock, case.mapreduce_s).value
        shares = pictures.bars(runs, names, lambda seen: {name: 100 * one for name, one in seen.local_maps.items()})
        return figures.Figure(
            name="Figure 11",
            title="Maps where their blocks are, iKayak's other parts off",
            panels=(
                pictures.panel("Local maps", "Share [%]", shares),
                pictures.panel("Maps", "Mean time [s]", pictures.bars(runs, names, lambda seen: {"": seen.map_s})),
                pictures.panel("Jobs", "Mean time [s]", pictures.bars(runs, names, lambda seen: seen.mapreduce_s)),
            ),
            paper_shape="Local maps +27 %, map time +9 %, and jobs are faster.",
            our_shape=f"Local maps {signed(local)}, map time {signed(map_s)}, job time {signed(jobs)}.",
        )

    def _delay_figure(self, runs: Runs) -> figures.Figure:
        names = {
            f"MapReduce {'delay' if maps else 'none'}, Spark {'delay' if spark else 'none'}": self._delayed(
                maps=maps, spark=spark
            )
            for maps in (False, True)
            for spark in (False, True)
        }
        values = {name: runs.mean(one, _local).value for name, one in names.items()}
        return figures.Figure(
            name="Figure 13b",
            title="Delay scheduling of MapReduce and of Spark",
            panels=(
                pictures.panel(
                    "Local reads", "Share [%]", pictures.bars(runs, names, lambda seen: {"": 100 * seen.local})
                ),
            ),
            paper_shape="+12 to +15 % where one of them waits for its blocks; as without where both do.",
            our_shape="; ".join(f"{name}: {100 * value:.0f} %" for name, value in values.items()) + ".",
        )


def _local(seen: Seen) -> float:
    return seen.local
