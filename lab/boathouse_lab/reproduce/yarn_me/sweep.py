"""Section 6.2 against YARN and Meganode: Table 2's sweep (Figures 6a and 6c)."""

from __future__ import annotations

import dataclasses
import statistics
from typing import TYPE_CHECKING, Final

from boathouse_lab.reproduce import figures, interval
from boathouse_lab.reproduce.claim import Assumption, Claim, Relation, measured
from boathouse_lab.reproduce.sources import sourced
from boathouse_lab.reproduce.study import Findings
from boathouse_lab.reproduce.words import per_cent
from boathouse_lab.reproduce.yarn_me import table2_cases as table2
from boathouse_lab.reproduce.yarn_me.case import ELASTIC, MEGANODE, UNRESERVED, YARN
from boathouse_lab.reproduce.yarn_me.experiment import PAPER, job_time_s, mean_of
from boathouse_lab.reproduce.yarn_me.table2_cases import PENALTIES
from boathouse_lab.table2 import Law

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boathouse_lab.reproduce.yarn_me.case import Case, Seen
    from boathouse_lab.table2 import Table2

CLEAR: Final = 0.7
"""The ratio that the paper counts configurations by."""
LIGHT: Final = 0.5
"""A cluster is lightly loaded when YARN uses less of its memory."""
SAME: Final = 0.95
"""YARN-ME "does not improve" on YARN above this ratio."""
SMALL_GB: Final = 2.0
VARIED_SEEDS: Final = 2
DISK_BYTES_PER_S: Final = 100e6
SHARES: Final = (0.25, 0.5, 1.0)
NOT_STATED: Final = "values between the ends of Table 2's ranges"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The sweep.

    Attributes:
        size: Jobs, and nodes: the paper has 100 of both.
        seeds: Traces of each combination; the paper has 100.
        levels: Values of each swept maximum: 2 are the ends, 3 the middle too.
    """

    size: int
    seeds: int
    levels: int

    def cases(self) -> Iterable[Case]:
        """Return the combinations under YARN, YARN-ME with both penalties and Meganode, and variants of the middle."""
        for law in Law:
            for penalty in PENALTIES:
                for one in table2.combinations(law, penalty, self.levels):
                    for profile in (YARN, ELASTIC, MEGANODE):
                        yield from self._cases(one, profile)
                yield from self._cases(table2.middle(law, penalty), UNRESERVED)
                for how in self._ways():
                    yield from self._varied(law, penalty, ELASTIC, how)
                yield from self._varied(law, penalty, YARN, {"heartbeat_s": 1.0})

    @staticmethod
    def _ways() -> list[dict[str, float]]:
        budgets = [{"disk_bytes_per_s": DISK_BYTES_PER_S, "disk_share": share} for share in SHARES]
        return [{"heartbeat_s": 1.0}, *budgets]

    def _cases(self, one: Table2, profile: str) -> list[Case]:
        return table2.cases(one, profile, size=self.size, seeds=self.seeds)

    def _varied(self, law: Law, penalty: float, profile: str, how: Mapping[str, float]) -> list[Case]:
        seeds = min(self.seeds, VARIED_SEEDS)
        return table2.cases(table2.middle(law, penalty), profile, size=self.size, seeds=seeds, **how)

    def findings(self, seen: Mapping[Case, Seen]) -> Findings:
        """Return rows and pictures."""
        claims = (
            *self._against_yarn(seen),
            *self._where_not(seen),
            *self._reservations(seen),
            *self._meganode(seen),
        )
        return Findings(claims=claims, figures=(self._figure_6a(seen), self._figure_6c(seen)))

    def ratios(
        self, seen: Mapping[Case, Seen], law: Law, penalty: float, baseline: str = YARN
    ) -> dict[Table2, list[float]]:
        """Return YARN-ME's mean job time over the baseline's: for each combination, seed by seed."""
        return {
            one: [
                job_time_s(seen[a]) / job_time_s(seen[b])
                for a, b in zip(self._cases(one, ELASTIC), self._cases(one, baseline), strict=True)
            ]
            for one in table2.combinations(law, penalty, self.levels)
        }

    # Against YARN

    def _against_yarn(self, seen: Mapping[Case, Seen]) -> Iterable[Claim]:
        found = {(law, penalty): self.ratios(seen, law, penalty) for law in Law for penalty in PENALTIES}
        uniform = found[Law.UNIFORM, 3.0]
        shares = [
            statistics.fmean(ratio <= CLEAR for ratio in seed_ratios)
            for seed_ratios in table2.by_seed(list(uniform.values()))
        ]
        yield self._claim(
            seen,
            "figure-6a-uniform-3x",
            "Uniform, 3x penalty: configurations whose mean job time is at most 0.7 of YARN's",
            Relation.GE,
            0.40,
            shares,
            law=Law.UNIFORM,
            penalty=3.0,
            unit="%",
        )
        best = [min(seed_ratios) for seed_ratios in table2.by_seed(list(found[Law.UNIFORM, 1.5].values()))]
        yield self._claim(
            seen,
            "figure-6a-most",
            "Uniform, 1.5x penalty: gain in the configuration that gains most",
            Relation.GE,
            0.60,
            [1 - ratio for ratio in best],
            law=Law.UNIFORM,
            penalty=1.5,
            unit="%",
        )
        means = {
            key: [statistics.fmean(e) for e in table2.by_seed(list(ratios.values()))] for key, ratios in found.items()
        }
        for law in Law:
            yield self._claim(
                seen,
                f"figure-6a-penalties-{law.value}",
                f"{law.value.capitalize()}: lower penalties gain more: mean gain at 1.5x less that at 3x",
                Relation.GE,
                0.0,
                [high - low for low, high in zip(means[law, 1.5], means[law, 3.0], strict=True)],
                law=law,
                penalty=1.5,
                unit="%",
            )
        for penalty in PENALTIES:
            yield self._claim(
                seen,
                f"figure-6a-laws-{_factor(penalty)}",
                f"Uniform traces gain more than exponential ones, {penalty:g}x: difference of the mean gains",
                Relation.GE,
                0.0,
                [
                    exponential - flat
                    for flat, exponential in zip(
                        means[Law.UNIFORM, penalty], means[Law.EXPONENTIAL, penalty], strict=True
                    )
                ],
                law=Law.EXPONENTIAL,
                penalty=penalty,
                unit="%",
            )

    def _claim(
        self,
        seen: Mapping[Case, Seen],
        name: str,
        claim: str,
        relation: Relation,
        paper: float | tuple[float, float],
        samples: Sequence[float],
        *,
        law: Law,
        penalty: float,
        unit: str,
        figure: str = "Figure 6a",
        baseline: str = YARN,
    ) -> Claim:
        return Claim(
            **sourced(PAPER, name),
            claim=claim,
            figure=figure,
            relation=relation,
            paper_value=paper,
            **measured(interval.mean(samples)),
            baseline=mean_of(seen, self._cases(table2.middle(law, penalty), baseline)),
            baseline_name=f"{baseline}: mean job time [s] in the middle of {law.value}",
            unit=unit,
            assumptions=self._assumptions(seen, law, penalty, baseline),
        )

    def _assumptions(
        self, seen: Mapping[Case, Seen], law: Law, penalty: float, baseline: str
    ) -> tuple[Assumption, ...]:
        middle = interval.mean(self.ratios(seen, law, penalty, baseline)[table2.middle(law, penalty)])
        beats = {profile: self._varied(law, penalty, profile, {"heartbeat_s": 1.0}) for profile in (ELASTIC, YARN)}
        told = [
            Assumption(
                name=NOT_STATED,
                value=f"{self.levels} values of each maximum, the middle of all: "
                f"{len(table2.combinations(law, penalty, self.levels))} configurations on {self.size} nodes",
                effect=f"the middle alone: {middle.value:.2f} of the baseline's mean job time",
            )
        ]
        if baseline == YARN:
            ratio = mean_of(seen, beats[ELASTIC]) / mean_of(seen, beats[YARN])
            told.append(
                Assumption(
                    name="heartbeats", value="none: tasks start when they fit", effect=f"1 s: the middle is {ratio:.2f}"
                )
            )
        plain = mean_of(seen, self._cases(table2.middle(law, penalty), ELASTIC)[: min(self.seeds, VARIED_SEEDS)])
        effect = "; ".join(
            f"{per_cent(share)} of 100 MB/s: {mean_of(seen, self._varied(law, penalty, ELASTIC, how)) / plain - 1:+.0%}"
            for share, how in zip(SHARES, self._ways()[1:], strict=True)
        )
        told.append(
            Assumption(name="disk budget", value="none, as in DSS", effect=f"mean job time in the middle: {effect}")
        )
        return tuple(told)

    # Where it does not gain

    def _where_not(self, seen: Mapping[Case, Seen]) -> Iterable[Claim]:
        named: list[bool] = []
        others: list[str] = []
        light: list[float] = []
        for law in Law:
            for penalty in PENALTIES:
                for one, found in self.ratios(seen, law, penalty).items():
                    used = [seen[case].memory_utilisation for case in self._cases(one, YARN)]
                    light += [ratio for ratio, share in zip(found, used, strict=True) if share < LIGHT]
                    if statistics.median(found) > SAME:
                        named.append(statistics.fmean(used) < LIGHT or one.memory_gb[1] <= SMALL_GB)
                        if not named[-1]:
                            others.append(_other(one, found, used))
        yield Claim(
            **sourced(PAPER, "figure-6a-where-not"),
            claim="Where YARN-ME does not improve, the cluster is little used or tasks need little memory: share "
            f"of the {len(named)} configurations with a median ratio above {SAME}",
            figure="Figure 6a",
            relation=Relation.GE,
            paper_value=1.0,
            value=statistics.fmean(named) if named else 1.0,
            seeds=self.seeds,
            unit="%",
            assumptions=(
                Assumption(
                    name='"very low utilisation" and "very small memory"',
                    value=f"YARN uses less than {per_cent(LIGHT)} of the memory; at most {SMALL_GB:g} GB a task",
                    effect="with a tenth for the utilisation the exponential corners with 20 tasks a job remain",
                ),
            ),
            reason="; ".join(others) and f"Neither: {'; '.join(others)}",
        )
        yield Claim(
            **sourced(PAPER, "figure-6a-never-worse"),
            claim=f"Never worse than YARN at low load (DSS: 0.18 to 1.00): worst ratio of {len(light)} traces where "
            f"YARN "
            f"uses less than {per_cent(LIGHT)} of the memory",
            figure="Figure 6a",
            relation=Relation.LE,
            paper_value=1.0,
            value=max(light, default=None),
            seeds=self.seeds,
            baseline=1.0,
            baseline_name="yarn",
            assumptions=(
                Assumption(
                    name="low load",
                    value=f"less than {per_cent(LIGHT)} of the memory",
                    effect=f"share of these traces that are worse by more than 1 %: "
                    f"{per_cent(statistics.fmean(r > 1.01 for r in light)) if light else 'none'}",  # noqa: PLR2004
                ),
            ),
            reason="" if light else "No trace of this form is so lightly loaded.",
        )

    # Reservations

    def _reservations(self, seen: Mapping[Case, Seen]) -> Iterable[Claim]:
        for law in Law:
            for penalty in PENALTIES:
                one = table2.middle(law, penalty)
                ours = [job_time_s(seen[case]) for case in self._cases(one, ELASTIC)]
                free = [job_time_s(seen[case]) for case in self._cases(one, UNRESERVED)]
                kept = [job_time_s(seen[case]) for case in self._cases(one, YARN)]
                with_them = interval.gain(ours, kept).value
                yield self._claim(
                    seen,
                    f"unreserved-{law.value}-{_factor(penalty)}",
                    f"Gain over YARN without node reservations, middle of {law.value}, {penalty:g}x (over YARN with "
                    f"them: {per_cent(with_them)})",
                    Relation.GE,
                    0.0,
                    [1 - a / b for a, b in zip(ours, free, strict=True)],
                    law=law,
                    penalty=penalty,
                    unit="%",
                    figure="Section 3.3",
                )

    # Meganode

    def _meganode(self, seen: Mapping[Case, Seen]) -> Iterable[Claim]:
        for law, relation, paper in (
            (Law.UNIFORM, Relation.BETWEEN, (0.4, 0.6)),
            (Law.EXPONENTIAL, Relation.EQ, 0.2),
        ):
            found = table2.by_seed(list(self.ratios(seen, law, 1.5, MEGANODE).values()))
            yield dataclasses.replace(
                self._claim(
                    seen,
                    f"figure-6c-{law.value}",
                    f"{law.value.capitalize()}, 1.5x penalty: traces where YARN-ME beats Meganode",
                    relation,
                    paper,
                    [statistics.fmean(ratio < 1 for ratio in seed_ratios) for seed_ratios in found],
                    law=law,
                    penalty=1.5,
                    unit="%",
                    figure="Figure 6c",
                    baseline=MEGANODE,
                ),
                tolerance=0.05 if relation is Relation.EQ else 0.0,
            )

    # Pictures

    def _figure_6a(self, seen: Mapping[Case, Seen]) -> figures.Figure:
        panels = []
        told = []
        for law in Law:
            marks: list[figures.Mark] = []
            for penalty in PENALTIES:
                found = self.ratios(seen, law, penalty).values()
                medians, worst = [statistics.median(ratios) for ratios in found], [max(ratios) for ratios in found]
                marks += [figures.cdf(f"{penalty:g}x median", medians), figures.cdf(f"{penalty:g}x worst", worst)]
                told.append(
                    f"{law.value} {penalty:g}x: median ratios {min(medians):.2f} to {max(medians):.2f}, "
                    f"{per_cent(statistics.fmean(m <= CLEAR for m in medians))} at most 0.7, worst {max(worst):.2f}"
                )
            if law is Law.UNIFORM:
                marks.append(figures.Points(label="paper: 40 % at 0.7 (3x)", x=(0.7,), y=(0.4,), paper=True))
            panels.append(
                figures.Panel(
                    title=law.value.capitalize(),
                    x=figures.Axis(label="YARN-ME / YARN, mean job time", low=0),
                    y=figures.Axis(label="Share of configurations", low=0, high=1.02),
                    marks=tuple(marks),
                )
            )
        return figures.Figure(
            name="Figure 6a",
            title="Table 2's sweep: median and worst ratio of each configuration",
            panels=tuple(panels),
            paper_shape="Uniform traces gain more than exponential ones, 1.5x more than 3x; with 3x and uniform traces "
            "40 % of the configurations are at most 0.7; few are at 1.",
            our_shape="; ".join(told) + ".",
        )

    def _figure_6c(self, seen: Mapping[Case, Seen]) -> figures.Figure:
        panels = []
        told = []
        for law in Law:
            marks: list[figures.Mark] = [figures.Level(label="equal", at=1.0, upright=True, paper=True)]
            for penalty in PENALTIES:
                every = [r for ratios in self.ratios(seen, law, penalty, MEGANODE).values() for r in ratios]
                marks.append(figures.cdf(f"{penalty:g}x", every))
                told.append(f"{law.value} {penalty:g}x: wins {per_cent(statistics.fmean(r < 1 for r in every))}")
            panels.append(
                figures.Panel(
                    title=law.value.capitalize(),
                    x=figures.Axis(label="YARN-ME / Meganode, mean job time", low=0),
                    y=figures.Axis(label="Share of traces", low=0, high=1.02),
                    marks=tuple(marks),
                )
            )
        return figures.Figure(
            name="Figure 6c",
            title="Against Meganode: all resources in one node, shortest remaining job first",
            panels=tuple(panels),
            paper_shape="At 1.5x YARN-ME wins 40 to 60 % of the uniform and 20 % of the exponential traces.",
            our_shape="; ".join(told) + ".",
        )


def _factor(penalty: float) -> str:
    return f"{penalty:g}x".replace(".", "-")


def _other(one: Table2, found: Sequence[float], used: Sequence[float]) -> str:
    """Describe a configuration where YARN-ME does not improve."""
    return (
        f"{one.law.value} {one.penalty_factor:g}x with up to {one.tasks[1]} tasks, {one.memory_gb[1]:g} GB, "
        f"{one.duration_s[1]} s: ratios {min(found):.2f} to {max(found):.2f}, YARN uses "
        f"{per_cent(statistics.fmean(used))}"
    )
