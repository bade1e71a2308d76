"""A study's claims in words, for the table and the page. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box, markup, table

from boathouse_sim.reproduce.claim import Claim, Relation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_sim.reproduce.claim import Span

_SAYS = {Relation.GE: "at least ", Relation.LE: "at most ", Relation.EQ: "", Relation.BETWEEN: ""}
HOLDS, FAILS = "\N{HEAVY CHECK MARK}", "\N{HEAVY BALLOT X}"  # told apart by shape, whatever the colour


def number(value: float | None, unit: str) -> str:
    """A value with its unit; `%` shows a share of 1 in per cent."""
    if value is None:
        return "none"
    if unit == "%":
        return f"{100 * value:.1f} %"
    shown = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"  # noqa: PLR2004  three digits from there on
    return f"{shown} {unit}".rstrip()


def span(value: Span | None, unit: str) -> str:
    """An interval, or nothing."""
    return "" if value is None else f"{number(value[0], unit)} to {number(value[1], unit)}"


def asked(one: Claim) -> str:
    """The paper's value, with the relation."""
    if isinstance(one.paper_value, tuple):
        return span(one.paper_value, one.unit)
    around = f" ± {number(one.tolerance, one.unit)}" if one.tolerance else ""
    return f"{_SAYS[one.relation]}{number(one.paper_value, one.unit)}{around}"


def baseline(one: Claim) -> str:
    """The baseline and its value."""
    if one.baseline is None:
        return one.baseline_name
    return f"{one.baseline_name} {one.baseline:,.4g}".strip()


def verdict(one: Claim) -> str:
    """Whether it holds, by sign and word."""
    return f"{HOLDS} holds" if one.holds else f"{FAILS} does not hold"


def claims(found: Sequence[Claim]) -> table.Table:
    """One line for each claim, with the reason below what does not hold."""
    drawn = table.Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column, fold in (("FIGURE", False), ("CLAIM", True), ("PAPER", False), ("OURS", False), ("95 %", False)):
        drawn.add_column(column, no_wrap=not fold, overflow="fold")
    drawn.add_column("BASELINE", overflow="fold")
    drawn.add_column("HOLDS", no_wrap=True)
    for one in found:
        why = f"\n[dim]{markup.escape(one.why)}[/dim]" if one.why and not one.holds else ""
        drawn.add_row(
            one.figure,
            markup.escape(one.claim) + why,
            asked(one),
            number(one.value, one.unit),
            span(one.interval, one.unit),
            baseline(one),
            f"[{'blue' if one.holds else 'yellow'}]{verdict(one)}",
        )
    return drawn
