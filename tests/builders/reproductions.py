"""Builders: what a test does not name does not matter to it."""

from collections.abc import Sequence
from typing import Protocol

from boathouse_lab.reproduce import figures, sources, stored, study
from boathouse_lab.reproduce.claim import Claim, Kind, Relation


class Part(Protocol):
    """An experiment of a study."""

    def findings(self, seen) -> study.Findings: ...


def claim(relation="ge", paper_value=0.5, value=0.6, interval=None, **others) -> Claim:
    fields = {
        "paper": "toy",
        "id": "toy-faster",
        "sentence": "our toy is faster",
        "line": 7,
        "kind": Kind.FIGURE,
        "calibrated": False,
        "claim": "The toy is faster",
        "figure": "Figure 1",
    }
    return Claim(
        relation=Relation(relation), paper_value=paper_value, value=value, interval=interval, **{**fields, **others}
    )


def assert_catalogued(study: str, claims: Sequence[Claim]) -> None:
    """The claims are those of the study's catalogue, and no two have one text."""
    assert sorted(row.id for row in claims) == sorted(sources.catalogue(study).sources)
    assert not stored.repeated(row.claim for row in claims)


def rows(part: Part, seen: object) -> dict[str, Claim]:
    """The rows of a part of a study from given measurements, by their claim."""
    return {row.claim: row for row in part.findings(seen).claims}


def row(part: Part, seen: object, words: str) -> Claim:
    """The only row whose claim has these words."""
    (found,) = [row for claim, row in rows(part, seen).items() if words in claim]
    return found


def figure(*panels: figures.Panel) -> figures.Figure:
    return figures.Figure(
        name="Figure 1", title="Toys", panels=panels or (panel(),), paper_shape="It falls.", our_shape="It falls too."
    )


def panel(*marks: figures.Mark, categories=()) -> figures.Panel:
    return figures.Panel(
        title="Toys",
        x=figures.Axis(label="Toys"),
        y=figures.Axis(label="Time [s]"),
        marks=marks or (figures.Line(label="ours", x=(1, 2), y=(2.0, 1.0)),),
        categories=categories,
    )


class Given(study.Runner):
    """A runner that gives one result for every case."""

    def __init__(self, result: object) -> None:
        super().__init__(workers=1)
        self._result = result

    def map(self, what, simulate, cases, *, cost=None):  # noqa: ARG002  it simulates nothing
        return [self._result for _ in cases]


class Toy:
    """A study of one claim: the mean of seeds' squares."""

    paper = "toy"
    title = "A toy, 2026"

    def run(self, scale: study.Scale, runner: study.Runner) -> study.Findings:
        squares = runner.map("toy", square, range(scale.seeds))
        return study.Findings(claims=(claim(value=float(sum(squares)), seeds=scale.seeds),), figures=(figure(),))


def square(number: int) -> int:
    return number * number
