"""Builders: what a test does not name does not matter to it."""

from boathouse_sim.reproduce import figures, study
from boathouse_sim.reproduce.claim import Claim, Relation


def claim(relation="ge", paper_value=0.5, value=0.6, interval=None, **others) -> Claim:
    return Claim(
        paper="toy",
        claim="The toy is faster",
        figure="Figure 1",
        relation=Relation(relation),
        paper_value=paper_value,
        value=value,
        interval=interval,
        **others,
    )


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


class Toy:
    """A study of one claim: the mean of seeds' squares."""

    paper = "toy"
    title = "A toy, 2026"

    def run(self, scale: study.Scale, runner: study.Runner) -> study.Findings:
        squares = runner.map("toy", square, range(scale.seeds))
        return study.Findings(claims=(claim(value=float(sum(squares)), seeds=scale.seeds),), figures=(figure(),))


def square(number: int) -> int:
    return number * number
