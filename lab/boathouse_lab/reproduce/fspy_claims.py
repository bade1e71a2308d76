"""The claims on responsiveness and fairness (IV.C), row by row."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING

from boathouse_lab.reproduce.claim import Claim, Relation, measured
from boathouse_lab.reproduce.fspy_runs import FAIR, FSPY
from boathouse_lab.reproduce.sources import sourced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_lab.reproduce.claim import Assumption, Span
    from boathouse_lab.reproduce.fspy_found import Found, Groups, Measure

PAPER = "fspy"
LIGHT, HEAVY, MOST = 3, 6, 99
_SHORT_S, _MIDDLE_S, _LONG_S = 15.0, 40.0, 64.0
_SLOW = 4.0
_SAME = 1.0 + 1e-9
_LATER = 1.5


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """A claim that is measured over seeds.

    Attributes:
        name: Its id without the study's name.
        claim: In a sentence.
        figure: Of the paper.
        relation: How ours must stand to the paper's.
        paper_value: The paper's.
        measure: Ours.
        baseline: Fair's, where it has one.
        unit: Of both.
        tolerance: For `eq`.
        groups: Those that it speaks of.
    """

    name: str
    claim: str
    figure: str
    relation: Relation
    paper_value: float | Span
    measure: Measure
    baseline: Measure | None = None
    unit: str = ""
    tolerance: float = 0.0
    groups: tuple[int, int] = (HEAVY, MOST)


def share_below(policy: str, group: int, limit_s: float) -> Measure:
    """Return share of jobs whose response is below a time."""
    return lambda found, seed: float((found.responses_s(policy, found.segments(group, group), seed) < limit_s).mean())


def share_slow(policy: str, group: int) -> Measure:
    """Return share of jobs with a common slowdown below 4."""
    return lambda found, seed: float((found.slowdowns(policy, found.segments(group, group), seed) < _SLOW).mean())


def most_slow(policy: str, group: int) -> Measure:
    """Return the largest common slowdown."""
    return lambda found, seed: float(found.slowdowns(policy, found.segments(group, group), seed).max())


def share_fair(group: int, limit: float) -> Measure:
    """Return share of jobs with at most this fair slowdown."""
    return lambda found, seed: float((found.fair_slowdowns(found.segments(group, group), seed) <= limit).mean())


def most_unfair(group: int) -> Measure:
    """Return the largest fair slowdown."""
    return lambda found, seed: float(found.fair_slowdowns(found.segments(group, group), seed).max())


def gain(least: int, most: int) -> Measure:
    """Return mean response of Fair over FSPY's, all jobs of the groups together."""
    return lambda found, seed: found.gain(found.segments(least, most), seed)


def best_gain(found: Found, seed: int) -> float:
    """Return the largest gain of a group of 6 or more."""
    groups = [one for one in found.by_group if one >= HEAVY]
    return max(found.gain(found.segments(one, one), seed) for one in groups)


def widening(found: Found, seed: int) -> float:
    """Return the gap of mean responses in the highest group over that in group 6."""
    gaps = [
        found.mean_s(FAIR, of, seed) - found.mean_s(FSPY, of, seed)
        for of in (found.segments(HEAVY, HEAVY), found.segments(max(found.by_group), MOST))
    ]
    return gaps[1] / gaps[0] if gaps[0] else 1.0


def gap_at(limit_s: float) -> Measure:
    """Return |difference of both ECDFs| at a response time, RCP 6."""
    return lambda found, seed: abs(
        share_below(FSPY, HEAVY, limit_s)(found, seed) - share_below(FAIR, HEAVY, limit_s)(found, seed)
    )


def later_but_short(found: Found, seed: int) -> float:
    """Return, of the jobs that end later than under Fair, RCP 6, the share with a response below 64 s under Fair."""
    of = found.segments(HEAVY, HEAVY)
    fair_s = found.responses_s(FAIR, of, seed)
    later = found.fair_slowdowns(of, seed) > _SAME
    return float((fair_s[later] < _LONG_S).mean()) if later.any() else 1.0


def rows(top: int) -> Sequence[Row]:
    """Return the rows measured over seeds; `top` is the highest group."""
    ge, le, eq = Relation.GE, Relation.LE, Relation.EQ
    fast, figure7, figure9 = "Share of jobs with a response below", "Figure 7 (RCP 6)", "Figure 9 (RCP 6)"
    table = [
        Row(
            "gain-light",
            "RCP ≤ 3: mean response under Fair over FSPY's",
            "Figure 6",
            eq,
            1.0,
            gain(0, LIGHT),
            tolerance=0.05,
            groups=(0, LIGHT),
        ),
        Row(
            "gain-heavy",
            "RCP ≥ 6: mean response under Fair over FSPY's; `dramatically less` is read as half",
            "Figure 6",
            ge,
            2.0,
            gain(HEAVY, MOST),
        ),
        Row(
            "gain-best",
            "Largest gain of a group: mean response under Fair over FSPY's",
            "Figure 6, abstract",
            ge,
            10.0,
            best_gain,
        ),
        Row(
            "gap-widens",
            "The gap widens: Fair − FSPY in the highest group over that at RCP 6",
            "Figure 6",
            ge,
            1.0,
            widening,
            groups=(HEAVY + 1, MOST),
        ),
        Row(
            "response-40s",
            f"{fast} 40 s",
            figure7,
            ge,
            0.80,
            share_below(FSPY, 6, _MIDDLE_S),
            share_below(FAIR, 6, _MIDDLE_S),
            "%",
            groups=(6, 6),
        ),
        Row(
            "response-40s-fair",
            f"{fast} 40 s under Fair",
            figure7,
            le,
            0.50,
            share_below(FAIR, 6, _MIDDLE_S),
            unit="%",
            groups=(6, 6),
        ),
        Row(
            "response-15s",
            "The curves meet below 15 s: difference of the ECDFs there",
            figure7,
            le,
            0.05,
            gap_at(_SHORT_S),
            groups=(6, 6),
        ),
        Row(
            "response-64s",
            "The curves meet again above 64 s: difference of the ECDFs there",
            figure7,
            le,
            0.05,
            gap_at(_LONG_S),
            groups=(6, 6),
        ),
    ]
    for group, place in ((HEAVY, "caption"), (top, "text")):
        table += _common_slowdowns(group, place)
    return (
        *table,
        Row(
            "fair-slowdown-1",
            "Share of jobs with a fair slowdown of at most 1",
            figure9,
            ge,
            0.75,
            share_fair(6, _SAME),
            unit="%",
            groups=(6, 6),
        ),
        Row(
            "fair-slowdown-1-5",
            "Share of jobs with a fair slowdown below 1.5",
            figure9,
            ge,
            0.98,
            share_fair(6, _LATER),
            unit="%",
            groups=(6, 6),
        ),
        Row(
            "fair-slowdown-most",
            "Largest fair slowdown",
            figure9,
            le,
            1.7,
            most_unfair(6),
            groups=(6, 6),
        ),
        Row(
            "later-are-small",
            "Of the jobs that are later than under Fair, share with a response below 64 s",
            "Figure 10",
            ge,
            0.5,
            later_but_short,
            unit="%",
            groups=(6, 6),
        ),
    )


def _common_slowdowns(group: int, place: str) -> Sequence[Row]:
    """Plot Figure 8 of one group: its caption says that it shows RCP 6, the text says RCP 10."""
    where = {"caption": "Figure 8 (caption: RCP 6)", "text": "Figure 8 (text: RCP 10)"}[place]
    words = f"RCP {group}, which the {place} names"
    return (
        Row(
            f"slowdown-4-{place}",
            f"{words}: share of jobs with a common slowdown below 4",
            where,
            Relation.GE,
            0.95,
            share_slow(FSPY, group),
            share_slow(FAIR, group),
            "%",
            groups=(group, group),
        ),
        Row(
            f"slowdown-4-fair-{place}",
            f"{words}: share of jobs with a common slowdown below 4 under Fair",
            where,
            Relation.LE,
            0.65,
            share_slow(FAIR, group),
            unit="%",
            groups=(group, group),
        ),
        Row(
            f"slowdown-most-{place}",
            f"{words}: largest common slowdown",
            where,
            Relation.EQ,
            5.0,
            most_slow(FSPY, group),
            most_slow(FAIR, group),
            tolerance=1.0,
            groups=(group, group),
        ),
        Row(
            f"slowdown-most-fair-{place}",
            f"{words}: largest common slowdown under Fair",
            where,
            Relation.EQ,
            10.0,
            most_slow(FAIR, group),
            tolerance=2.0,
            groups=(group, group),
        ),
    )


def judged(found: Found, top: int, assumptions: tuple[Assumption, ...]) -> list[Claim]:
    """Return each row with its value; one whose groups were not simulated has none."""
    return [_judged(one, found, assumptions) for one in rows(top)]


def _judged(row: Row, found: Found, assumptions: tuple[Assumption, ...]) -> Claim:
    make = functools.partial(
        Claim,
        **sourced(PAPER, row.name),
        claim=row.claim,
        figure=row.figure,
        relation=row.relation,
        paper_value=row.paper_value,
        tolerance=row.tolerance,
        unit=row.unit,
        assumptions=assumptions,
    )
    if not found.segments(*row.groups):
        return make(value=None, reason="its group is too large for the quick form")
    seeds = found.over_seeds(row.measure)
    baseline = None if row.baseline is None else found.over_seeds(row.baseline).value
    return make(**measured(seeds), baseline=baseline, baseline_name="" if baseline is None else "fair")


def counted(groups: Groups, assumptions: tuple[Assumption, ...]) -> list[Claim]:
    """Return Figure 5: what α and β were fitted to, and what they were not."""

    def make(name: str, claim: str, paper_value: float, value: float) -> Claim:
        return Claim(
            **sourced(PAPER, name),
            claim=claim,
            figure="Figure 5",
            relation=Relation.EQ,
            paper_value=paper_value,
            value=value,
            assumptions=assumptions,
        )

    above = sum(groups.count(one) for one in groups.names if one >= HEAVY)
    mode = make("largest-group", "The group of most segments", 5.0, float(groups.mode))
    return [
        make("groups", "Groups (α and β were fitted to it)", 7.0, float(len(groups.names))),
        make("segments-from-6", "Segments of RCP ≥ 6 (α and β were fitted to it)", 19.0, float(above)),
        mode if mode.holds else dataclasses.replace(mode, reason=_why_mode(groups)),
    ]


def _why_mode(groups: Groups) -> str:
    """Return why the group of most segments is another."""
    counted = ", ".join(f"{one}: {groups.count(one)}" for one in groups.names)
    return (
        f"with 7 groups and 19 segments at 6 and above, no α from 0.2 to 6 makes 5 the largest ({counted}); "
        "the loads follow the tasks' model, which the paper does not state"
    )
