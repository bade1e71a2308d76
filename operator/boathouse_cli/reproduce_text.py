"""A study's claims in words, for the table and the page. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box, markup, table

from boathouse_sim.reproduce import values
from boathouse_sim.reproduce.values import number, span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_sim.reproduce.claim import Claim

HOLDS, FAILS = "\N{HEAVY CHECK MARK}", "\N{HEAVY BALLOT X}"  # told apart by shape, whatever the colour


def asked(one: Claim) -> str:
    """The paper's value, with the relation."""
    return values.asked(one.relation, one.paper_value, one.unit, one.tolerance)


def kind(one: Claim) -> str:
    """What it is in its paper, and whether the setting was chosen for it."""
    return values.class_of(one.kind, calibrated=one.calibrated)


def baseline(one: Claim) -> str:
    """The baseline and its value."""
    if one.baseline is None:
        return one.baseline_name
    return f"{one.baseline_name} {one.baseline:,.4g}".strip()


def verdict(one: Claim) -> str:
    """Whether it holds, by sign and word."""
    return f"{HOLDS} holds" if one.holds else f"{FAILS} does not hold"


def claims(found: Sequence[Claim]) -> table.Table:
    """One line for each claim, with its id and class, and the reason below what does not hold."""
    drawn = table.Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column, fold in (
        ("FIGURE", False),
        ("CLAIM", True),
        ("CLASS", True),
        ("PAPER", False),
        ("OURS", False),
        ("95 %", False),
    ):
        drawn.add_column(column, no_wrap=not fold, overflow="fold")
    drawn.add_column("BASELINE", overflow="fold")
    drawn.add_column("HOLDS", no_wrap=True)
    for one in found:
        why = f"\n[dim]{markup.escape(one.why)}[/dim]" if one.why and not one.holds else ""
        drawn.add_row(
            one.figure,
            f"{markup.escape(one.claim)}\n[dim]{one.id}[/dim]{why}",
            kind(one),
            asked(one),
            number(one.value, one.unit),
            span(one.interval, one.unit),
            markup.escape(baseline(one)),
            f"[{'blue' if one.holds else 'yellow'}]{verdict(one)}",
        )
    return drawn
