"""VI.C: rows and picture of Figure 5b."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_lab.reproduce import figures, interval
from boathouse_lab.reproduce.claim import Assumption, Claim, Relation, measured
from boathouse_lab.reproduce.koala import stream
from boathouse_lab.reproduce.koala.part import mean_s
from boathouse_lab.reproduce.koala.setting import PAPER
from boathouse_lab.reproduce.koala.stream import FAST, GROWING, GSP, GSP_FREE, SLOW_GSP, STATIC
from boathouse_lab.reproduce.sources import sourced
from boathouse_lab.reproduce.study import Findings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from boathouse_lab.reproduce.interval import Estimate
    from boathouse_lab.reproduce.koala.case import Case, Ran, Seen
    from boathouse_lab.reproduce.koala.stream import Runs
    from boathouse_policies.koala import Config

_SMALL = 1.2
_SPEED = 1.7
_NEAR = 0.2
"""How heavy the stream is, is not stated: the factor goes with it. Chosen when the result was known."""


@dataclasses.dataclass(frozen=True, slots=True)
class Stream:
    """Figure 5b."""

    runs: Runs

    def cases(self) -> Iterable[Case]:
        """Return the cases of `stream`."""
        return self.runs.cases()

    def findings(self, seen: Mapping[Case, Seen]) -> Findings:
        """Return rows and picture."""
        found = _Found(self.runs, seen)
        return Findings(claims=tuple(found.rows()), figures=(found.figure(), found.sizes()))


class _Found:
    def __init__(self, runs: Runs, seen: Mapping[Case, Seen]) -> None:
        self._runs, self._seen = runs, seen
        self._fast = {name: self._at(config) for name, config in FAST.items()}
        self._slow_gsp = self._at(SLOW_GSP)

    def _at(self, config: Config) -> float:
        return self._runs.faster(self._seen, config, seeds=self._runs.varied).value

    # Rows

    def rows(self) -> Iterable[Claim]:
        """Return the rows in the paper's order."""
        small = f'GGP: a small improvement over static ("small": at most {_SMALL:g})'
        yield self._row("ggp", small, Relation.BETWEEN, (1.0, _SMALL), self._faster(GROWING["GGP"]), self._why_ggp())
        yield from self._factor("gsp", "GSP faster than static", GSP)
        free = "GSP faster than static, with F as running over free slots"
        yield from self._factor("gsp-free", free, GSP_FREE)
        whole = self._row(
            "gsp-makespan",
            "GSP: makespan of the stream shorter than static's by",
            Relation.GE,
            _SPEED,
            self._makespan(GSP),
            self._why_makespan(),
        )
        ends_s = interval.mean(self._by_seed(STATIC, lambda ran: ran.makespan_s)).value
        yield dataclasses.replace(whole, baseline=ends_s, baseline_name="static, 20 core nodes: makespan [s]")
        best = "GGDP is the best: best of the others' mean response time over its own"
        yield self._row("ggdp-best", best, Relation.GE, 1.0, self._best(GROWING), self._why_best())
        paced = "GGDP is the best where all are offered 5 nodes each 30 s: the same ratio"
        yield self._row("ggdp-best-paced", paced, Relation.GE, 1.0, self._best({"GSP": GSP, **FAST}, self._runs.varied))
        data = "GGDP over GGP: what storage on the new nodes is worth"
        yield self._row("ggdp-over-ggp", data, Relation.GE, 1.0, self._ratio(GROWING["GGP"], GROWING["GGDP"]))
        yield self._row("gsp-over-ggp", "GSP over GGP", Relation.GE, 1.0, self._ratio(GROWING["GGP"], GSP))

    def _factor(self, name: str, claim: str, config: Config) -> Iterable[Claim]:
        """Yield the relation that was written before the simulations, and the one that replaced it after them."""
        found = self._faster(config)
        least = self._row(f"{name}-at-least", f"{claim}: by a factor of {_SPEED} at least", Relation.GE, _SPEED, found)
        near = self._row(
            f"{name}-near", f"{claim}: by a factor of {_SPEED}, {_NEAR:g} more or less", Relation.EQ, _SPEED, found
        )
        for row in (least, dataclasses.replace(near, tolerance=_NEAR)):
            yield row if row.holds else dataclasses.replace(row, reason=self._why_factor(config))

    def _row(
        self,
        name: str,
        claim: str,
        relation: Relation,
        paper: float | tuple[float, float],
        found: Estimate,
        reason: str = "",
    ) -> Claim:
        return Claim(
            **sourced(PAPER, f"figure-5b-{name}"),
            claim=claim,
            figure="Figure 5b",
            relation=relation,
            paper_value=paper,
            **measured(found),
            baseline=mean_s(self._seen, self._runs.of(STATIC, self._runs.seeds)).value,
            baseline_name="static, 20 core nodes: mean response time [s]",
            assumptions=self._assumptions(),
            reason=reason,
        )

    def _assumptions(self) -> tuple[Assumption, ...]:
        base = {
            "share of Sort": "50 %",
            "job types": "types 3 to 8 alike",
            "computing": "see Figure 3",
            "boot time": "30 s",
            "reducers of large jobs": "half by the rule of thumb",
            "map slots": "6",
            "bandwidth": "one link of 10 Gb/s for all transient nodes",
            "writing output": "after it was sent",
        }
        return tuple(
            Assumption(
                name=name,
                value=base[name],
                effect="GGP, GGDP, GSP faster than static by "
                + "; ".join(f"{value}: {self._three(name, value)}" for value in settings),
            )
            for name, settings in self._runs.swept.items()
        )

    def _three(self, name: str, value: str) -> str:
        setting = self._runs.swept[name][value]
        return ", ".join(f"{self._runs.faster(self._seen, one, setting).value:.2f}" for one in GROWING.values())

    # Measures

    def _faster(self, config: Config) -> Estimate:
        return self._runs.faster(self._seen, config)

    def _by_seed(self, config: Config, measure: Callable[[Ran], float], seeds: int = 0) -> list[float]:
        return [measure(self._seen[one].only) for one in self._runs.of(config, seeds or self._runs.seeds)]

    def _makespan(self, config: Config) -> Estimate:
        return interval.ratio(*(self._by_seed(one, lambda ran: ran.makespan_s) for one in (STATIC, config)))

    def _ratio(self, base: Config, ours: Config) -> Estimate:
        return interval.ratio(*(self._by_seed(one, lambda ran: ran.mean_s) for one in (base, ours)))

    def _best(self, policies: Mapping[str, Config], seeds: int = 0) -> Estimate:
        times = {name: self._by_seed(one, lambda ran: ran.mean_s, seeds) for name, one in policies.items()}
        ours = times.pop("GGDP")
        return interval.ratio([min(seed_times) for seed_times in zip(*times.values(), strict=True)], ours)

    # Reasons

    def _why_ggp(self) -> str:
        whole = self._runs.grown(self._seen).value
        return (
            f"It is no small gain where half of the jobs are Wordcount, which transient nodes serve as well as any "
            f"(20 transient nodes from the start on: {whole:.2f}). With Sort alone GGP gives "
            f"{self._three('share of Sort', '100%').split(', ')[0]}, the paper's picture: the link and the core nodes' "
            "disks eat what the nodes add."
        )

    def _why_factor(self, config: Config) -> str:
        factors = ", ".join(
            f"{base / ours:.2f}"
            for base, ours in zip(
                *(self._by_seed(one, lambda ran: ran.mean_s) for one in (STATIC, config)), strict=True
            )
        )
        return f"The factor goes with how heavy the stream is for 20 nodes; stream by stream it is {factors}."

    def _why_makespan(self) -> str:
        jobs = self._runs.of(STATIC, self._runs.seeds)[0].clusters[0].jobs
        return (
            "The other reading of the figure's \"execution time\" cannot be meant, or the paper's stream was far "
            f"heavier: jobs come for {jobs[-1].submit_ms / 1000:.0f} s (50 gaps of 30 s), and no policy ends before "
            "that."
        )

    def _why_best(self) -> str:
        held = {
            name: interval.mean(self._by_seed(one, lambda ran: ran.extra_node_s / ran.makespan_s)).value
            for name, one in GROWING.items()
        }
        return (
            "GSP grows ten times as fast: 5 nodes each 30 s against 2 each 120 s, when jobs wait. At GSP's pace GGDP "
            f"is {self._fast['GGDP']:.2f} times faster than static and GGP {self._fast['GGP']:.2f}; at theirs GSP is "
            f"{self._slow_gsp:.2f} (extra nodes held on average: GSP {held['GSP']:.1f}, GGP {held['GGP']:.1f}, GGDP "
            f"{held['GGDP']:.1f}). With Sort alone GGDP is the best at the paper's paces too (GGP, GGDP, GSP: "
            f"{self._three('share of Sort', '100%')}): what it saves is output that transient nodes would send."
        )

    # Pictures

    def figure(self) -> figures.Figure:
        """Return Figure 5b."""
        names = {"static": STATIC, **GROWING}
        found = [mean_s(self._seen, self._runs.of(one, self._runs.seeds)) for one in names.values()]
        panel = figures.Panel(
            title="50 jobs, 20 core nodes, 20 to grow by",
            x=figures.Axis(label="Policy"),
            y=figures.Axis(label="Mean response time [s]", low=0),
            marks=(figures.bars("ours", found),),
            categories=tuple(names),
        )
        values = {name: self._faster(one).value for name, one in GROWING.items()}
        return figures.Figure(
            name="Figure 5b",
            title="A stream of jobs by policy",
            panels=(panel,),
            paper_shape="GGP a little below static, GSP lower by a factor of 1.7, GGDP the lowest.",
            our_shape="Faster than static by: " + ", ".join(f"{name} {one:.2f}" for name, one in values.items()) + ".",
        )

    def sizes(self) -> figures.Figure:
        """Return how the clusters grew, in one run."""
        marks = []
        for name, config in GROWING.items():
            ran = self._seen[stream.Runs.of(config, 1)[0]].only
            x = tuple(one.at_ms / 1000 for one in ran.sizes)
            y = tuple(float(one.core + one.transient) for one in ran.sizes)
            marks.append(figures.Line(label=name, x=x, y=y, step=True))
        panel = figures.Panel(
            title="One stream",
            x=figures.Axis(label="Time [s]"),
            y=figures.Axis(label="Nodes", low=0),
            marks=tuple(marks),
        )
        return figures.Figure(
            name="Figure 5b, sizes",
            title="Nodes of the cluster over time (not in the paper)",
            panels=(panel,),
            paper_shape="Not shown.",
            our_shape="GGP and GGDP climb by 2 and never shrink while jobs run; GSP follows the waiting tasks.",
        )
