"""Values of claims in words, with their units."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_lab.reproduce.claim import Relation

if TYPE_CHECKING:
    from boathouse_lab.reproduce.claim import Kind, Span

_SAYS = {Relation.GE: "at least ", Relation.LE: "at most ", Relation.EQ: "", Relation.BETWEEN: ""}


def number(value: float | None, unit: str) -> str:
    """Return a value with its unit; `%` shows a share of 1 in per cent."""
    if value is None:
        return "none"
    shown = 100 * value if unit == "%" else value
    digits = f"{shown:,.0f}" if abs(shown) >= 1000 else f"{shown:.3g}"  # noqa: PLR2004  three digits from there on
    return f"{digits} {unit}".rstrip()


def span(value: Span | None, unit: str) -> str:
    """Return an interval in words, or nothing."""
    return "" if value is None else f"{number(value[0], unit)} to {number(value[1], unit)}"


def asked(relation: Relation, paper_value: float | Span, unit: str, tolerance: float = 0.0) -> str:
    """Return the paper's value with the relation."""
    if isinstance(paper_value, tuple):
        return span(paper_value, unit)
    around = f" ± {number(tolerance, unit)}" if tolerance else ""
    return f"{_SAYS[relation]}{number(paper_value, unit)}{around}"


def class_of(kind: Kind, *, calibrated: bool) -> str:
    """Return what a claim is in its paper, and whether the setting was calibrated on it."""
    return kind.value.replace("-", " ") + (", calibrated" if calibrated else "")
