"""Format a study's claims for the table and the HTML page. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box, markup, table

from boathouse_lab.reproduce import values
from boathouse_lab.reproduce.values import number, span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_lab.reproduce.claim import Claim

HOLDS, FAILS = "\N{HEAVY CHECK MARK}", "\N{HEAVY BALLOT X}"  # distinguishable by shape, without colour


def asked(claim: Claim) -> str:
    """Return the paper's value, with the relation."""
    return values.asked(claim.relation, claim.paper_value, claim.unit, claim.tolerance)


def kind(claim: Claim) -> str:
    """Return the claim's class, and whether its setting was calibrated."""
    return values.class_of(claim.kind, calibrated=claim.calibrated)


def baseline(claim: Claim) -> str:
    """Return the baseline and its value."""
    if claim.baseline is None:
        return claim.baseline_name
    return f"{claim.baseline_name} {claim.baseline:,.4g}".strip()


def verdict(claim: Claim) -> str:
    """Return whether the claim holds, as a sign and a word."""
    return f"{HOLDS} holds" if claim.holds else f"{FAILS} does not hold"


def claims(found: Sequence[Claim]) -> table.Table:
    """Return a table with a row for each claim, and the reason below each claim that does not hold."""
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
