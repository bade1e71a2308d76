"""Section 6.2: sensitivity to mis-estimation (Figure 7)."""

from __future__ import annotations

import dataclasses
import statistics
from typing import TYPE_CHECKING, Final

from boathouse_lab.reproduce import figures, interval
from boathouse_lab.reproduce.claim import Assumption, Claim, Relation, measured
from boathouse_lab.reproduce.sources import sourced
from boathouse_lab.reproduce.study import Findings
from boathouse_lab.reproduce.words import per_cent
from boathouse_lab.reproduce.yarn_me.case import ELASTIC, YARN, Case
from boathouse_lab.reproduce.yarn_me.experiment import PAPER, gains, mean_of
from boathouse_lab.reproduce.yarn_me.table2_cases import Drawn
from boathouse_lab.table2 import Law, Table2
from boathouse_sim.workload import Errors, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boathouse_lab.reproduce.yarn_me.case import Seen

TABLE: Final = Table2(
    law=Law.EXPONENTIAL, tasks=(1, 100), memory_gb=(0.1, 10.0), duration_s=(50, 500), penalty_factor=3.0
)
SPANS: Final[tuple[Span, ...]] = ((-0.5, 0.0), (-0.15, 0.0), (0.0, 0.15), (0.0, 0.5))
KINDS: Final = ("duration", "memory", "penalty")
EXACT: Final = Errors()
TOGETHER: Final = (
    "it is YARN that gets faster once the tasks of a phase do not all end, and reserve nodes, at the same instant"
)
HEARTBEAT_S: Final = 1.0
"""DSS's, which the paper simulates with."""
HARDLY: Final[Span] = (0.0, 0.001)
"""Errors that say nothing, but that keep a phase's tasks from ending at the same instant."""
FEW: Final = 5
"""Traces of what is only varied."""
FALLS: Final = 0.01
"""A trace loses when its gain falls by more than a point."""


def errors(kind: str, span: Span) -> Errors:
    """Return errors of one kind. The truth is the estimate times 1 + error.

    The paper's (0, 0.5] of the penalty makes the scheduler "perceive elastic tasks as taking longer" than they do:
    there the estimate is too high, so that the truth is lower by 1/1.5; and the other way round.
    """
    if kind == "penalty":
        low, high = sorted(1 / (1 + end) - 1 for end in span)
        return Errors(penalty=(low, high))
    return Errors(duration=span) if kind == "duration" else Errors(memory=span)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """Estimates that are wrong.

    Attributes:
        traces: The paper has 20,000.
        jobs: Of each.
        nodes: Of the cluster.
        fewer: Other numbers of nodes, to see what the load does.
    """

    traces: int
    jobs: int
    nodes: int
    fewer: tuple[int, ...]

    def cases(self) -> Iterable[Case]:
        """Return the cases without errors, with each kind and span, and on other numbers of nodes."""
        for profile in (YARN, ELASTIC):
            yield from self._cases(profile, EXACT)
            for kind in KINDS:
                for span in SPANS:
                    yield from self._cases(profile, errors(kind, span))
            for nodes in self.fewer:
                for wrong in (EXACT, *self._worst()):
                    yield from self._cases(profile, wrong, nodes)
            for wrong in (EXACT, *self._slight()):
                yield from self._at_once(profile, wrong)

    @staticmethod
    def _worst() -> tuple[Errors, ...]:
        return errors("duration", SPANS[0]), errors("memory", SPANS[3]), errors("penalty", SPANS[3])

    @staticmethod
    def _slight() -> tuple[Errors, ...]:
        return errors("duration", HARDLY), errors("duration", SPANS[1])

    def _cases(self, profile: str, wrong: Errors, nodes: int | None = None) -> list[Case]:
        drawn = Drawn(table=TABLE, jobs=self.jobs, nodes=nodes or self.nodes)
        count = self.traces if nodes is None else min(self.traces, FEW)
        return [
            Case(recipe=drawn, seed=seed, profile=profile, errors=wrong, heartbeat_s=HEARTBEAT_S)
            for seed in range(count)
        ]

    def _at_once(self, profile: str, wrong: Errors) -> list[Case]:
        """Drop heartbeats: tasks start when they fit."""
        return [dataclasses.replace(one, heartbeat_s=None) for one in self._cases(profile, wrong)[:FEW]]

    def _gains(self, seen: Mapping[Case, Seen], wrong: Errors, nodes: int | None = None) -> list[float]:
        return gains(seen, self._cases(ELASTIC, wrong, nodes), self._cases(YARN, wrong, nodes))

    def _lost(self, seen: Mapping[Case, Seen], wrong: Errors, nodes: int | None = None) -> list[float]:
        """Return by how much each trace's gain falls, against the same trace without errors."""
        exact, found = self._gains(seen, EXACT, nodes), self._gains(seen, wrong, nodes)
        return [before - after for before, after in zip(exact, found, strict=True)]

    def findings(self, seen: Mapping[Case, Seen]) -> Findings:
        """Return rows and pictures."""
        return Findings(
            claims=(*self._durations(seen), *self._memory(seen), *self._penalties(seen)),
            figures=tuple(self._figure(seen, kind, place) for kind, place in zip(KINDS, "abc", strict=True)),
        )

    def _row(
        self,
        seen: Mapping[Case, Seen],
        name: str,
        claim: str,
        figure: str,
        paper: float,
        samples: Sequence[float] | float,
        wrong: Errors,
        *,
        relation: Relation = Relation.LE,
    ) -> Claim:
        found = (
            {"value": samples, "seeds": self.traces} if isinstance(samples, float) else measured(interval.mean(samples))
        )
        return Claim(
            **sourced(PAPER, name),
            claim=claim,
            figure=figure,
            relation=relation,
            paper_value=paper,
            **found,
            baseline=mean_of(seen, self._cases(YARN, wrong)),
            baseline_name="yarn: mean job time [s]",
            unit="%",
            assumptions=(
                Assumption(name="heartbeats", value="1 s, as DSS", effect=self._without(seen)),
                Assumption(
                    name="jobs and nodes of these traces",
                    value=f"{self.jobs} jobs on {self.nodes} nodes: YARN uses "
                    f"{per_cent(mean_of(seen, self._cases(YARN, EXACT), lambda one: one.memory_utilisation))} of the "
                    f"memory",
                    effect="; ".join(self._elsewhere(seen, nodes) for nodes in self.fewer) or "not varied",
                ),
            ),
        )

    def _without(self, seen: Mapping[Case, Seen]) -> str:
        """Say what duration errors do where nothing else keeps a phase's tasks from ending at the same instant."""
        exact = gains(seen, self._at_once(ELASTIC, EXACT), self._at_once(YARN, EXACT))
        lost = [
            interval.mean(exact).value - interval.mean(gains(seen, *self._pair(wrong))).value
            for wrong in self._slight()
        ]
        return (
            f"tasks start when they fit ({len(exact)} traces): durations wrong by at most 0.1 % lose {lost[0]:+.0%} of "
            f"the gain, by at most 15 % {lost[1]:+.0%}: {TOGETHER}"
        )

    def _pair(self, wrong: Errors) -> tuple[list[Case], list[Case]]:
        return self._at_once(ELASTIC, wrong), self._at_once(YARN, wrong)

    def _elsewhere(self, seen: Mapping[Case, Seen], nodes: int) -> str:
        used = mean_of(seen, self._cases(YARN, EXACT, nodes), lambda one: one.memory_utilisation)
        exact = interval.mean(self._gains(seen, EXACT, nodes)).value
        lost = [f"{max(self._lost(seen, wrong, nodes)):+.0%}" for wrong in self._worst()]
        return (
            f"{nodes} nodes ({per_cent(used)} used): gain {per_cent(exact)} without errors, most lost {lost[0]} by "
            f"durations, "
            f"{lost[1]} by memory, {lost[2]} by penalties"
        )

    def _durations(self, seen: Mapping[Case, Seen]) -> Iterable[Claim]:
        for span in SPANS[1:]:
            wrong = errors("duration", span)
            yield self._row(
                seen,
                f"figure-7a-{_slug(span)}",
                f"Durations wrong by {_span(span)}: gains similar to those without: mean loss of gain",
                "Figure 7a",
                0.05,
                self._lost(seen, wrong),
                wrong,
            )
        wrong = errors("duration", SPANS[0])
        lost = self._lost(seen, wrong)
        yield self._row(
            seen,
            "figure-7a-traces",
            f"Durations wrong by {_span(SPANS[0])}: traces whose gain falls (by more than a point)",
            "Figure 7a",
            0.35,
            [float(loss > FALLS) for loss in lost],
            wrong,
        )
        yield self._row(
            seen,
            "figure-7a-most",
            f"Durations wrong by {_span(SPANS[0])}: most that a trace's gain falls",
            "Figure 7a",
            0.10,
            max(lost),
            wrong,
        )

    def _memory(self, seen: Mapping[Case, Seen]) -> Iterable[Claim]:
        wrong = errors("memory", SPANS[3])
        yield self._row(
            seen,
            "figure-7b-most",
            f"Memory wrong by {_span(SPANS[3])}: YARN's tasks spill too; the trace that gains most",
            "Figure 7b",
            0.45,
            max(self._gains(seen, wrong)),
            wrong,
            relation=Relation.GE,
        )
        for span in SPANS[:2]:
            wrong = errors("memory", span)
            yield self._row(
                seen,
                f"figure-7b-{_slug(span)}",
                f"Memory wrong by {_span(span)}: negligible impact: mean loss of gain",
                "Figure 7b",
                0.05,
                self._lost(seen, wrong),
                wrong,
            )

    def _penalties(self, seen: Mapping[Case, Seen]) -> Iterable[Claim]:
        wrong = errors("penalty", SPANS[3])
        yield self._row(
            seen,
            "figure-7c-most",
            f"Penalty estimated too high, by {_span(SPANS[3])}: most that a trace's gain falls",
            "Figure 7c",
            0.04,
            max(self._lost(seen, wrong)),
            wrong,
        )
        for span in SPANS[:3]:
            wrong = errors("penalty", span)
            yield self._row(
                seen,
                f"figure-7c-{_slug(span)}",
                f"Penalty estimated wrongly, by {_span(span)}: no lower gains: mean loss of gain",
                "Figure 7c",
                0.01,
                self._lost(seen, wrong),
                wrong,
            )

    def _figure(self, seen: Mapping[Case, Seen], kind: str, place: str) -> figures.Figure:
        found = {"exact": EXACT, **{_span(span): errors(kind, span) for span in SPANS}}
        ratios = {label: [1 - gain for gain in self._gains(seen, wrong)] for label, wrong in found.items()}
        shapes = {
            "duration": "All curves lie together but for (-50 %, 0), where a third of the traces lose up to 10 %.",
            "memory": "With positive errors gains rise, up to 45 %; with negative ones nothing changes.",
            "penalty": "All curves lie together; (0, 50 %) loses at most 4 %.",
        }
        return figures.Figure(
            name=f"Figure 7{place}",
            title=f"Wrong estimates of the {kind}, 3x penalty",
            panels=(
                figures.Panel(
                    title=kind.capitalize(),
                    x=figures.Axis(label="YARN-ME / YARN, mean job time"),
                    y=figures.Axis(label="Share of traces", low=0, high=1.02),
                    marks=tuple(figures.cdf(label, values) for label, values in ratios.items()),
                ),
            ),
            paper_shape=shapes[kind],
            our_shape="Mean ratios: "
            + ", ".join(f"{label} {statistics.fmean(values):.2f}" for label, values in ratios.items())
            + ".",
        )


def _slug(span: Span) -> str:
    """Format for an id."""
    wide = max(span, key=abs)
    return f"{abs(wide):.0%}-{'below' if wide < 0 else 'above'}".replace("%", "")


def _span(span: Span) -> str:
    return f"({span[0]:+.0%}, {span[1]:+.0%})".replace("+0%", "0").replace("%", " %")
