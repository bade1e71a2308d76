"""Bars and lines of this study's figures, with intervals over seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_lab.reproduce import figures, interval

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from boathouse_lab.reproduce.ikayak.case import Seen
    from boathouse_lab.reproduce.ikayak.runs import Run, Runs

    ByName = Callable[[Seen], Mapping[str, float]]


def bars(runs: Runs, names: Mapping[str, Run], measure: ByName) -> tuple[tuple[str, ...], tuple[figures.Bars, ...]]:
    """Return a group of bars for each name in the measure: the names, and one `Bars` for each scheduler."""
    groups: tuple[str, ...] = ()
    found = []
    for label, run in names.items():
        groups = tuple(runs.mapped(run, measure)[0])
        estimates = [interval.mean([one[group] for one in runs.mapped(run, measure)]) for group in groups]
        found.append(figures.bars(label, estimates))
    return groups, tuple(found)


def panel(title: str, label: str, found: tuple[tuple[str, ...], Sequence[figures.Bars]]) -> figures.Panel:
    """Return a panel of bars."""
    groups, marks = found
    return figures.Panel(
        title=title, x=figures.Axis(label=""), y=figures.Axis(label=label), marks=tuple(marks), categories=groups
    )
