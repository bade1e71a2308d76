"""Pictures as plain data: what is to be seen, not how it is drawn."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_lab.reproduce.interval import Estimate


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis: its label with the unit in brackets, as `Job time [s]`.

    Attributes:
        label: What is measured, and its unit.
        log: Logarithmic.
        low: Where it begins, where that matters.
        high: Where it ends, where that matters.
    """

    label: str
    log: bool = False
    low: float | None = None
    high: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Values over x, shapes [N].

    Attributes:
        label: In the legend.
        x: Ascending.
        y: Shape as x.
        low: Lower ends of the intervals, or empty.
        high: Upper ends.
        step: A value lasts until the next one, as over time.
        markers: Show each value.
        paper: The paper's own, as far as its text gives it.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    step: bool = False
    markers: bool = False
    paper: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Single values, shapes [N]."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    paper: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cdf:
    """The share of values that are at most x."""

    label: str
    values: tuple[float, ...]
    paper: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """One bar for each of the panel's categories, beside those of other `Bars`; None leaves a gap.

    Attributes:
        label: In the legend.
        values: As many as the panel has categories.
        low: Lower ends of the intervals, or empty.
        high: Upper ends.
        paper: The paper's own.
    """

    label: str
    values: tuple[float | None, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    paper: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A line across the panel: a bound, or a paper's value; at a y, or at an x if `upright`."""

    label: str
    at: float
    upright: bool = False
    paper: bool = False


Mark: TypeAlias = Line | Points | Cdf | Bars | Level


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: Above it.
        x: Its axis.
        y: Its axis.
        marks: What is shown; equal labels in one panel share a colour.
        categories: Of bars, in order.
    """

    title: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    categories: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of the paper.

    Attributes:
        name: As the paper calls it: `Figure 6a`.
        title: What it shows.
        panels: Beside each other, at most three in a row.
        paper_shape: What the paper's looks like, in words.
        our_shape: What ours looks like, in words with numbers.
    """

    name: str
    title: str
    panels: tuple[Panel, ...]
    paper_shape: str
    our_shape: str


def cdf(label: str, values: Sequence[float], *, paper: bool = False) -> Cdf:
    """Return the CDF of values in any order."""
    return Cdf(label=label, values=tuple(sorted(values)), paper=paper)


def bars(label: str, found: Sequence[Estimate]) -> Bars:
    """Return means with their intervals, one for each category."""
    low, high = _ends(found)
    return Bars(label=label, values=tuple(one.value for one in found), low=low, high=high)


def line(label: str, points: Mapping[float, Estimate]) -> Line:
    """Return means with their intervals over x, in the order of the points."""
    found = tuple(points.values())
    low, high = _ends(found)
    y = tuple(one.value for one in found)
    return Line(label=label, x=tuple(points), y=y, low=low, high=high, markers=True)


def _ends(found: Sequence[Estimate]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    spans = [one.interval or (one.value, one.value) for one in found]
    return tuple(low for low, _ in spans), tuple(high for _, high in spans)
