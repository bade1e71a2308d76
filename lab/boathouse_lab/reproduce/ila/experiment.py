"""What every experiment of the study is, and arithmetic that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from boathouse_lab.reproduce import interval
from boathouse_lab.reproduce.claim import Claim, Relation, measured
from boathouse_lab.reproduce.ila import schedulers
from boathouse_lab.reproduce.ila.case import Case
from boathouse_lab.reproduce.sources import sourced

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from boathouse_lab.reproduce import study
    from boathouse_lab.reproduce.claim import Assumption
    from boathouse_lab.reproduce.ila.case import Seen
    from boathouse_lab.reproduce.ila.programs import Assumed
    from boathouse_lab.reproduce.ila.setting import Load
    from boathouse_lab.reproduce.interval import Estimate

Experiment: TypeAlias = "study.Experiment[Case, Seen]"

PAPER: Final = "ila"


class Runs:
    """The simulations of one load: by scheduler, seed by seed.

    Args:
        load: What is run.
        seeds: How many.
        part: Of the larger jobs.
        assumed: What the paper does not state.
    """

    def __init__(self, load: Load, seeds: int, part: float, assumed: Assumed) -> None:
        self.load, self.seeds, self.part, self.assumed = load, seeds, part, assumed

    def cases(self, scheduler: str) -> tuple[Case, ...]:
        """Return one for each seed."""
        return tuple(
            Case(load=self.load, scheduler=scheduler, seed=seed, assumed=self.assumed, part=self.part)
            for seed in range(self.seeds)
        )

    def samples(self, seen: Mapping[Case, Seen], scheduler: str, measure: Callable[[Seen], float]) -> list[float]:
        """Return a measure, seed by seed."""
        return [measure(seen[case]) for case in self.cases(scheduler)]

    def mean(self, seen: Mapping[Case, Seen], scheduler: str, measure: Callable[[Seen], float]) -> Estimate:
        """Return its mean."""
        return interval.mean(self.samples(seen, scheduler, measure))

    def over(self, seen: Mapping[Case, Seen], one: str, other: str, measure: Callable[[Seen, Seen], float]) -> Estimate:
        """Return the mean of a comparison of two schedulers, seed by seed."""
        pairs = zip(self.cases(one), self.cases(other), strict=True)
        return interval.mean([measure(seen[a], seen[b]) for a, b in pairs])


def slower(kinds: Sequence[str]) -> Callable[[Seen, Seen], float]:
    """Return how many times longer jobs take in the first: the mean over kinds of jobs."""

    def compare(one: Seen, other: Seen) -> float:
        return sum(one.job_time_s(kind) / other.job_time_s(kind) for kind in kinds) / len(kinds)

    return compare


def faster(one: Seen, other: Seen) -> float:
    """Return the throughput of the first over that of the second."""
    return one.throughput / other.throughput


def local(kinds: Sequence[str]) -> Callable[[Seen], float]:
    """Return the measure of maps with local input: the mean over kinds of jobs, as the bars of a figure."""

    def measure(seen: Seen) -> float:
        return sum(seen.local[kind] for kind in kinds) / len(kinds)

    return measure


def row(
    name: str,
    claim: str,
    figure: str,
    relation: Relation,
    paper: float | tuple[float, float],
    found: Estimate,
    *,
    share: bool = False,
    tolerance: float = 0.0,
    baseline: tuple[str, Estimate] | None = None,
    assumptions: tuple[Assumption, ...] = (),
    note: str = "",
) -> Claim:
    """Return a row of the study.

    Args:
        name: Its id without the study's name.
        claim: What is measured.
        figure: Where in the paper.
        relation: How ours must stand to the paper's.
        paper: The paper's value.
        found: Ours.
        share: Whether values are shares, shown in per cent.
        tolerance: As `Claim.tolerance`.
        baseline: What the baseline is, and its own value.
        assumptions: As `Claim.assumptions`.
        note: What a reader must know in any case.
    """
    return Claim(
        **sourced(PAPER, name),
        claim=claim,
        figure=figure,
        relation=relation,
        paper_value=paper,
        tolerance=tolerance,
        baseline=None if baseline is None else baseline[1].value,
        baseline_name="" if baseline is None else baseline[0],
        unit="%" if share else "",
        assumptions=assumptions,
        reason=note,
        **measured(found),
    )


def title(scheduler: str) -> str:
    """Return the title as the paper writes it."""
    return schedulers.TITLES.get(scheduler, scheduler)
