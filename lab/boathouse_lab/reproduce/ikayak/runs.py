"""What simulations gave, by load and scheduler, seed by seed."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Protocol

from boathouse_lab.reproduce import interval
from boathouse_lab.reproduce.ikayak.case import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from boathouse_lab.reproduce.ikayak.case import Seen
    from boathouse_lab.reproduce.ikayak.setting import Setting
    from boathouse_lab.reproduce.ikayak.variants import Variant
    from boathouse_lab.reproduce.interval import Estimate
    from boathouse_lab.reproduce.study import Findings

    Measure = Callable[[Seen], float]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A scheduler under a load, for a number of seeds."""

    setting: Setting
    variant: Variant
    seeds: int

    def cases(self) -> list[Case]:
        """Return one case for each seed."""
        return [Case(setting=self.setting, variant=self.variant, seed=seed) for seed in range(self.seeds)]


class Runs:
    """The results of cases."""

    def __init__(self, seen: Mapping[Case, Seen]) -> None:
        self._seen = seen

    def values(self, run: Run, measure: Measure) -> list[float]:
        """Return the values seed by seed."""
        return [measure(self._seen[one]) for one in run.cases()]

    def mapped(self, run: Run, measure: Callable[[Seen], Mapping[str, float]]) -> list[Mapping[str, float]]:
        """Return a measure by name, seed by seed."""
        return [measure(self._seen[one]) for one in run.cases()]

    def mean(self, run: Run, measure: Measure) -> Estimate:
        """Return the mean over seeds."""
        return interval.mean(self.values(run, measure))

    def gain(self, ours: Run, base: Run, measure: Measure) -> Estimate:
        """Return by how much ours is lower, as a share of the base."""
        return interval.gain(self.values(ours, measure), self.values(base, measure))

    def rise(self, ours: Run, base: Run, measure: Measure) -> Estimate:
        """Return by how much ours is higher, as a share of the base."""
        pairs = zip(self.values(ours, measure), self.values(base, measure), strict=True)
        return interval.mean([a / b - 1 for a, b in pairs])


class Experiment(Protocol):
    """A part of the evaluation."""

    def runs(self) -> Iterable[Run]:
        """Return its simulations; those that experiments share are run once."""
        ...

    def findings(self, runs: Runs) -> Findings:
        """Return its rows and pictures."""
        ...
