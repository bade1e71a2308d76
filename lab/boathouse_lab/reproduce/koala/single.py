"""VI.B: one job on static clusters, by number of core nodes (Figure 4) and share of transient nodes (Figure 5a)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from boathouse_lab.reproduce import figures, interval
from boathouse_lab.reproduce.claim import Assumption, Claim, Relation, measured
from boathouse_lab.reproduce.koala.case import Case
from boathouse_lab.reproduce.koala.part import mean_s
from boathouse_lab.reproduce.koala.setting import PAPER, SORT, WORDCOUNT, Setting
from boathouse_lab.reproduce.sources import sourced
from boathouse_lab.reproduce.study import Findings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boathouse_lab.reproduce.interval import Estimate
    from boathouse_lab.reproduce.koala.case import Seen

SIZES, ALL = (10, 20, 30, 40), 40
TRANSIENT = (0, 10, 20, 30)
KIND = {WORDCOUNT: 2, SORT: 1}
BASE = Setting()
VARIANTS: Mapping[str, Setting] = {
    "10 Gb/s for each node": Setting(own_links=True),
    "sending and writing overlap": Setting(pipelined=True),
    "8 map slots": Setting(map_slots=8),
    "half the computing": Setting(work=0.5),
    "twice the computing": Setting(work=2.0),
}
_LINEAR = 0.8
_SIMILAR = 1.1
_APART = 0.35


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Single:
    """Figures 4 and 5a.

    Attributes:
        seeds: Of each; the paper has 3 runs.
        varied: Of each variant of what is assumed.
    """

    seeds: int
    varied: int

    def _of(self, program: str, transient: int, setting: Setting, seeds: int) -> list[Case]:
        cluster = setting.alone(program, KIND[program], core=ALL - transient, transient=transient)
        return [Case(clusters=(cluster,), nodes=ALL, seed=seed) for seed in range(seeds)]

    def _sized(self, program: str, nodes: int) -> list[Case]:
        cluster = BASE.alone(program, 0, core=nodes)
        return [Case(clusters=(cluster,), nodes=nodes, seed=seed) for seed in range(self.seeds)]

    def cases(self) -> Iterable[Case]:
        """Return each program at each size, each share, and both ends of the shares in each variant."""
        for program in KIND:
            for nodes in SIZES:
                yield from self._sized(program, nodes)
            for transient in TRANSIENT:
                yield from self._of(program, transient, BASE, self.seeds)
            for setting in VARIANTS.values():
                yield from self._of(program, TRANSIENT[0], setting, self.varied)
                yield from self._of(program, TRANSIENT[-1], setting, self.varied)

    def findings(self, seen: Mapping[Case, Seen]) -> Findings:
        """Return rows and pictures."""
        rows = [self._speed_up_row(seen, program) for program in KIND]
        rows += [self._similar(seen), *self._slower(seen)]
        return Findings(claims=tuple(rows), figures=(self._figure_4(seen), self._figure_5a(seen)))

    # Figure 4

    def _speed_up(self, seen: Mapping[Case, Seen], program: str, nodes: int) -> Estimate:
        ours, base = self._sized(program, nodes), self._sized(program, SIZES[0])
        return interval.ratio([seen[one].only.mean_s for one in base], [seen[one].only.mean_s for one in ours])

    def _speed_up_row(self, seen: Mapping[Case, Seen], program: str) -> Claim:
        return Claim(
            **sourced(PAPER, f"figure-4-{program}"),
            claim=f"{program.capitalize()}, 100 GB: speed-up of 40 core nodes over 10, close to linear (at least "
            f"{_LINEAR:.0%} of 4)",
            figure="Figure 4",
            relation=Relation.GE,
            paper_value=4 * _LINEAR,
            **measured(self._speed_up(seen, program, ALL)),
            baseline=mean_s(seen, self._sized(program, SIZES[0])).value,
            baseline_name="10 core nodes: run time [s]",
            assumptions=(
                Assumption(
                    name='"close to linear"',
                    value=f"at least {_LINEAR:.0%}",
                    effect="speed-ups: "
                    + ", ".join(f"{nodes}: {self._speed_up(seen, program, nodes).value:.2f}" for nodes in SIZES),
                ),
            ),
        )

    def _figure_4(self, seen: Mapping[Case, Seen]) -> figures.Figure:
        marks: list[figures.Mark] = []
        x = tuple(float(nodes) for nodes in SIZES)
        for program in KIND:
            found = [self._speed_up(seen, program, nodes) for nodes in SIZES]
            marks.append(figures.line(program, dict(zip(x, found, strict=True))))
        marks.append(figures.Line(label="linear", x=x, y=tuple(nodes / SIZES[0] for nodes in x), paper=True))
        panel = figures.Panel(
            title="100 GB, core nodes only",
            x=figures.Axis(label="Nodes"),
            y=figures.Axis(label="Speed-up over 10 nodes", low=0),
            marks=tuple(marks),
        )
        return figures.Figure(
            name="Figure 4",
            title="Speed-up with core nodes",
            panels=(panel,),
            paper_shape="Both close to linear up to 40 nodes.",
            our_shape=", ".join(f"{one} {self._speed_up(seen, one, ALL).value:.2f} at 40 nodes" for one in KIND) + ".",
        )

    # Figure 5a

    def _slowdown(
        self, seen: Mapping[Case, Seen], program: str, transient: int, setting: Setting = BASE, seeds: int = 0
    ) -> Estimate:
        count = seeds or self.seeds
        ours, base = (self._of(program, of, setting, count) for of in (transient, 0))
        return interval.ratio([seen[one].only.mean_s for one in ours], [seen[one].only.mean_s for one in base])

    def _varied(self, seen: Mapping[Case, Seen], program: str) -> tuple[Assumption, ...]:
        effects = {
            name: self._slowdown(seen, program, TRANSIENT[-1], setting, self.varied).value
            for name, setting in VARIANTS.items()
        }
        return (
            Assumption(
                name="bandwidth, overlap, slots, speed",
                value="one link of 10 Gb/s for all transient nodes; sent, then written; 6 map slots; see Figure 3",
                effect="; ".join(f"{name}: {value:.2f}" for name, value in effects.items()),
            ),
        )

    def _row(self, seen: Mapping[Case, Seen], name: str, program: str, claim: str) -> dict[str, Any]:
        return {
            **sourced(PAPER, f"figure-5a-{name}"),
            "claim": f"{program.capitalize()}: run time with 75 % transient nodes over none, {claim}",
            "figure": "Figure 5a",
            "baseline": mean_s(seen, self._of(program, 0, BASE, self.seeds)).value,
            "baseline_name": "40 core nodes: run time [s]",
            "assumptions": self._varied(seen, program),
        }

    def _similar(self, seen: Mapping[Case, Seen]) -> Claim:
        found = self._slowdown(seen, WORDCOUNT, TRANSIENT[-1])
        row = self._row(seen, "wordcount", WORDCOUNT, f"similar (at most {_SIMILAR:g})")
        return Claim(relation=Relation.LE, paper_value=_SIMILAR, **measured(found), **row)

    def _slower(self, seen: Mapping[Case, Seen]) -> Sequence[Claim]:
        found = measured(self._slowdown(seen, SORT, TRANSIENT[-1]))
        doubles = self._row(seen, "sort-doubles", SORT, '"doubles"')
        higher = self._row(seen, "sort-2-7", SORT, '"2.7 higher"')
        twice = Claim(relation=Relation.GE, paper_value=2.0, **found, **doubles)
        more = Claim(relation=Relation.EQ, paper_value=2.7, tolerance=_APART, **found, **higher)
        return twice, more

    def _figure_5a(self, seen: Mapping[Case, Seen]) -> figures.Figure:
        marks: list[figures.Mark] = []
        x = tuple(100 * one / ALL for one in TRANSIENT)
        for program in KIND:
            found = [mean_s(seen, self._of(program, one, BASE, self.seeds)) for one in TRANSIENT]
            marks.append(figures.line(program, dict(zip(x, found, strict=True))))
        panel = figures.Panel(
            title="40 nodes, Wordcount 40 GB, Sort 50 GB",
            x=figures.Axis(label="Transient nodes [%]"),
            y=figures.Axis(label="Run time [s]", low=0),
            marks=tuple(marks),
        )
        ratios = ", ".join(f"{self._slowdown(seen, SORT, one).value:.2f} at {one}" for one in TRANSIENT[1:])
        return figures.Figure(
            name="Figure 5a",
            title="One job by share of transient nodes",
            panels=(panel,),
            paper_shape="Wordcount flat; Sort doubles from 0 to 30 transient nodes (2.7 times, says the explanation).",
            our_shape=f"Wordcount {self._slowdown(seen, WORDCOUNT, TRANSIENT[-1]).value:.2f} times; Sort {ratios} "
            "transient nodes.",
        )
