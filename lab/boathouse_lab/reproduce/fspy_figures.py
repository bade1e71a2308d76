"""A picture for each figure of FSPY's evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boathouse_lab.reproduce import figures, interval
from boathouse_lab.reproduce.figures import Axis, Bars, Figure, Level, Line, Panel, Points, cdf
from boathouse_lab.reproduce.fspy_runs import FAIR, FSPY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_lab.reproduce.figures import Mark
    from boathouse_lab.reproduce.fspy_found import Found, Groups
    from boathouse_lab.reproduce.fspy_workload import Accuracy, HeldOut

RESPONSE = "Response time [s]"
_SHARE = Axis(label="Share of jobs", low=0.0, high=1.0)
_NAMES = {FSPY: "FSPY", FAIR: "Fair"}


def predictions(found: HeldOut, rows: Sequence[Accuracy], noise: float) -> list[Figure]:
    """Return Figures 2a to 2c, and R² over noise."""
    parts = (
        ("Figure 2a", "Total map time", "s", found.map_s, [one.map_r2 for one in rows], 0.942),
        ("Figure 2b", "Total reduce time", "s", found.reduce_s, [one.reduce_r2 for one in rows], 0.918),
        ("Figure 2c", "Job size", "GiB·s", found.size_gib_s, [one.job_r2 for one in rows], 0.970),
    )
    return [
        Figure(
            name=name,
            title=f"{what}: predicted and actual",
            panels=(_scatter(what, unit, pairs, noise), _over_noise(rows, values, paper)),
            paper_shape=f"Points close to the diagonal, R² {paper}.",
            our_shape=f"Close to the diagonal; R² {values[_at(rows, noise)]:.3f} at a noise of {noise:.0%}.",
        )
        for name, what, unit, pairs, values, paper in parts
    ]


def _at(rows: Sequence[Accuracy], noise: float) -> int:
    return min(range(len(rows)), key=lambda i: abs(rows[i].noise - noise))


def _scatter(what: str, unit: str, pairs: Sequence[tuple[float, float]], noise: float) -> Panel:
    predicted, actual = zip(*((max(1e-3, one), other) for one, other in pairs), strict=True)
    ends = (min(actual), max(actual))
    marks = (
        Points(label="held-out jobs", x=actual, y=predicted),
        Line(label="equal", x=ends, y=ends),
    )
    axes = [Axis(label=f"{kind} {what.lower()} [{unit}]", log=True) for kind in ("Actual", "Predicted")]
    return Panel(title=f"200 jobs, noise {noise:.0%}", x=axes[0], y=axes[1], marks=marks)


def _over_noise(rows: Sequence[Accuracy], values: Sequence[float], paper: float) -> Panel:
    marks = (
        Line(label="ours", x=tuple(one.noise for one in rows), y=tuple(values), markers=True),
        Level(label="paper", at=paper, paper=True),
    )
    return Panel(title="Over noise", x=Axis(label="Noise"), y=Axis(label="R²", low=0.0, high=1.0), marks=marks)


def counts(groups: Groups) -> Figure:
    """Return Figure 5."""
    names = list(range(min(groups.names), max(groups.names) + 1))
    bars = Bars(label="ours", values=tuple(float(groups.count(one)) for one in names))
    panel = Panel(
        title="Segments of 200 jobs",
        x=Axis(label="RCP"),
        y=Axis(label="Segments"),
        marks=(bars,),
        categories=tuple(str(one) for one in names),
    )
    words = ", ".join(f"{one}: {groups.count(one)}" for one in groups.names)
    return Figure(
        name="Figure 5",
        title="Segments in each RCP group",
        panels=(panel,),
        paper_shape="7 groups; most segments at 5, fewer on both sides; 19 at 6 and above.",
        our_shape=f"{len(groups.names)} groups, most segments at {groups.mode} ({words}).",
    )


def means(found: Found) -> Figure:
    """Return Figure 6."""
    groups = sorted(found.by_group)
    bars = []
    for policy in (FSPY, FAIR):
        estimates = [
            interval.mean([found.mean_s(policy, found.segments(one, one), seed) for seed in found.seeds])
            for one in groups
        ]
        bars.append(figures.bars(_NAMES[policy], estimates))
    gains = {one: np.mean([found.gain(found.segments(one, one), seed) for seed in found.seeds]) for one in groups}
    panel = Panel(
        title="Mean response time",
        x=Axis(label="RCP"),
        y=Axis(label="Mean response time [s]", log=True),
        marks=tuple(bars),
        categories=tuple(str(one) for one in groups),
    )
    return Figure(
        name="Figure 6",
        title="Mean response time by RCP group",
        panels=(panel,),
        paper_shape="Equal up to RCP 3, far lower under FSPY from 6 on, the gap widening sharply; up to 10 times.",
        our_shape="Fair over FSPY: " + ", ".join(f"{one}: {gain:.2f}" for one, gain in gains.items()) + ".",
    )


def jobs(found: Found, top: int) -> list[Figure]:
    """Plot Figures 7 to 10, of all seeds together."""
    six = found.segments(6, 6)
    figures = [
        _ecdf(
            "Figure 7",
            "Response times, RCP 6",
            RESPONSE,
            _both(found, six, "responses_s"),
            "Equal below 15 s and above 64 s; at 40 s more than 80 % under FSPY, fewer than 50 % under Fair.",
            40.0,
        ),
        _ecdf(
            "Figure 8",
            "Common slowdown, RCP 6",
            "Common slowdown",
            _both(found, six, "slowdowns"),
            "Below 4 for more than 95 % of the jobs under FSPY and fewer than 65 % under Fair.",
            4.0,
        ),
    ]
    if found.segments(top, top):
        both = _both(found, found.segments(top, top), "slowdowns")
        figures.append(
            _ecdf("Figure 8 (text)", f"Common slowdown, RCP {top}", "Common slowdown", both, "As above.", 4.0)
        )
    slow = np.concatenate([found.fair_slowdowns(six, seed) for seed in found.seeds])
    figures += [
        _ecdf(
            "Figure 9",
            "Fair slowdown, RCP 6",
            "Fair slowdown",
            {"FSPY": slow},
            "At most 1 for more than 75 % of the jobs, below 1.5 for more than 98 %, 1.7 at most.",
            1.5,
        ),
        _diagonal(found, six),
    ]
    return figures


def _both(found: Found, segments: Sequence[int], what: str) -> dict[str, np.ndarray]:
    return {
        _NAMES[policy]: np.concatenate([getattr(found, what)(policy, segments, seed) for seed in found.seeds])
        for policy in (FSPY, FAIR)
    }


def _ecdf(name: str, title: str, label: str, values: dict[str, np.ndarray], paper: str, limit: float) -> Figure:
    said = ", ".join(f"{one}: {np.mean(of < limit):.0%}" for one, of in values.items())
    largest = ", ".join(f"{one}: {of.max():.1f}" for one, of in values.items())
    marks: tuple[Mark, ...] = (
        *(cdf(one, of.tolist()) for one, of in values.items()),
        Level(label="as claimed at", at=limit, upright=True, paper=True),
    )
    panel = Panel(title=title, x=Axis(label=label, log=True), y=_SHARE, marks=marks)
    return Figure(
        name=name,
        title=title,
        panels=(panel,),
        paper_shape=paper,
        our_shape=f"Below {limit:g}: {said}. Largest: {largest}.",
    )


def _diagonal(found: Found, segments: Sequence[int]) -> Figure:
    seed = found.seeds[0]
    fair_s, ours_s = (found.responses_s(policy, segments, seed) for policy in (FAIR, FSPY))
    ends = (float(fair_s.min()), float(fair_s.max()))
    marks = (
        Points(label="jobs", x=tuple(fair_s.tolist()), y=tuple(ours_s.tolist())),
        Line(label="equal", x=ends, y=ends),
    )
    axes = [Axis(label=f"{RESPONSE[:-4]} under {name} [s]", log=True) for name in ("Fair", "FSPY")]
    lower, higher = (float(np.mean(one)) for one in (ours_s < fair_s, ours_s > fair_s))
    return Figure(
        name="Figure 10",
        title="Each job under FSPY and under Fair, RCP 6",
        panels=(Panel(title=f"Seed {seed}", x=axes[0], y=axes[1], marks=marks),),
        paper_shape="Most points below the diagonal; those above it are small jobs.",
        our_shape=f"{lower:.0%} below the diagonal, {higher:.0%} above, the rest on it.",
    )
