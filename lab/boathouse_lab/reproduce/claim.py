"""A paper's claim beside our value."""

from __future__ import annotations

import dataclasses
import enum
import re
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from boathouse_lab.reproduce.interval import Estimate

Span: TypeAlias = tuple[float, float]

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class Relation(enum.StrEnum):
    """How our value must stand to the paper's."""

    GE = "ge"
    LE = "le"
    EQ = "eq"
    BETWEEN = "between"


class Kind(enum.StrEnum):
    """What a claim is in its paper."""

    HEADLINE = "headline"
    """A result of the abstract, the introduction or the conclusion."""
    FIGURE = "figure"
    """A figure, a table or a sentence of the evaluation states the relation and its value."""
    DERIVED = "derived"
    """The paper's words give no such value: the threshold, the measure or the arithmetic is ours."""
    NOT_IN_THE_PAPER = "not-in-the-paper"
    """Ours alone, or another source's."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """What the paper does not state.

    Attributes:
        name: What was assumed.
        value: The value that was taken.
        effect: How the claim moves when it varies.
    """

    name: str
    value: float | str
    effect: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One row.

    Attributes:
        paper: The study's name.
        id: Its name, unique over all studies, in kebab case; it begins with the study's name.
        sentence: The paper's words; empty only if it is not in the paper.
        line: Where they begin, in the text that the study's catalogue names; None if it is not in the paper.
        kind: What it is in the paper.
        calibrated: Whether the setting was chosen so that it holds.
        claim: What is claimed, in a sentence, with its unit; unique within the study.
        figure: Where: a figure, table or section of the paper.
        relation: How `value` must stand to `paper_value`.
        paper_value: The paper's; both ends for `between`.
        value: Ours; None when it could not be had, with the reason.
        interval: Its 95 % interval over seeds; None for a single run or what is exact.
        tolerance: For `eq`: how far the paper's value may lie outside the interval (or from the value, where there is
            no interval); in the unit of the value.
        baseline: The baseline's own value of the same measure, or None.
        baseline_name: What the baseline is.
        unit: Of the values, for people: `%` shows a share of 1 in per cent.
        seeds: Independent runs that the value is a mean of.
        assumptions: What the paper does not state.
        reason: What the study found of why it does not hold, or of what a reader must know.
        explanation: Why it does not hold, as experiments showed; from the study's catalogue.
        note: What a reader must know in any case; from the catalogue too.
    """

    paper: str
    id: str
    sentence: str
    line: int | None
    kind: Kind
    calibrated: bool
    claim: str
    figure: str
    relation: Relation
    paper_value: float | Span
    value: float | None
    interval: Span | None = None
    tolerance: float = 0.0
    baseline: float | None = None
    baseline_name: str = ""
    unit: str = ""
    seeds: int = 1
    assumptions: tuple[Assumption, ...] = ()
    reason: str = ""
    explanation: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse what contradicts itself.

        Raises:
            ValueError: `between` without two values or another with them, a tolerance without `eq`, an id that is not
                the study's, or a sentence that is missing, has no line, or is not in the paper.
        """
        if not _ID.fullmatch(self.id) or not self.id.startswith(f"{self.paper}-"):
            raise ValueError(f"{self.id}: an id is in kebab case and begins with {self.paper}-")
        absent = self.kind is Kind.NOT_IN_THE_PAPER
        if (not self.sentence) != absent or (self.line is None) != absent:
            raise ValueError(f"{self.id}: a claim has a sentence and its line, or is {Kind.NOT_IN_THE_PAPER}")
        if isinstance(self.paper_value, tuple) != (self.relation is Relation.BETWEEN):
            raise ValueError(f"{self.claim}: `between` needs two values of the paper, any other relation one")
        if self.tolerance and self.relation is not Relation.EQ:
            raise ValueError(f"{self.claim}: only `eq` has a tolerance")

    @property
    def holds(self) -> bool:
        """Whether the relation is met by the whole interval, or by the value where there is none.

        `ge` and `le` are met when both ends meet them, `between` when both ends lie within the paper's two values (the
        ends count), and `eq` when the paper's value lies within the interval widened by the tolerance. Without a value
        nothing holds.
        """
        if self.value is None:
            return False
        low, high = self.interval or (self.value, self.value)
        if isinstance(self.paper_value, tuple):
            least, most = self.paper_value
            return least <= low and high <= most
        match self.relation:
            case Relation.GE:
                return low >= self.paper_value
            case Relation.LE:
                return high <= self.paper_value
            case _:
                return low - self.tolerance <= self.paper_value <= high + self.tolerance

    @property
    def why(self) -> str:
        """The note, the reason and, where it does not hold, the explanation, and whether only the interval misses."""
        parts = (self.note, self.reason, "" if self.holds else self.explanation)
        said = "; ".join(part for part in parts if part)
        if self.holds or not dataclasses.replace(self, interval=None).holds:
            return said
        spread = f"The mean meets it, the interval over {self.seeds} runs does not: what is drawn differs much."
        return f"{spread} {said}".rstrip()

    def as_json(self) -> dict[str, Any]:
        """Return the row for programs."""
        return {
            "paper": self.paper,
            "id": self.id,
            "kind": self.kind.value,
            "calibrated": self.calibrated,
            "sentence": self.sentence,
            "line": self.line,
            "claim": self.claim,
            "figure": self.figure,
            "relation": self.relation.value,
            "paper_value": _listed(self.paper_value),
            "value": self.value,
            "interval": _listed(self.interval),
            "tolerance": self.tolerance,
            "baseline": self.baseline,
            "baseline_name": self.baseline_name,
            "holds": self.holds,
            "reason": self.why,
            "seeds": self.seeds,
            "unit": self.unit,
            "assumptions": [dataclasses.asdict(one) for one in self.assumptions],
        }


def measured(found: Estimate) -> dict[str, Any]:
    """Return the fields of a claim that an estimate over seeds gives: `Claim(..., **measured(found))`."""
    return {"value": found.value, "interval": found.interval, "seeds": found.count}


def _listed(value: float | Span | None) -> float | list[float] | None:
    return list(value) if isinstance(value, tuple) else value
