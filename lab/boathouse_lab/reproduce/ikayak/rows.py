"""Rows of this study: what they share, and what was assumed for them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from boathouse_lab.reproduce.claim import Assumption, Claim, Relation, measured
from boathouse_lab.reproduce.ikayak.runs import Run
from boathouse_lab.reproduce.ikayak.setting import Setting
from boathouse_lab.reproduce.ikayak.variants import IKAYAK, IN_CLIENT, STOCK
from boathouse_lab.reproduce.sources import sourced
from boathouse_lab.reproduce.words import signed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boathouse_lab.reproduce.ikayak.runs import Measure, Runs
    from boathouse_lab.reproduce.ikayak.variants import Variant
    from boathouse_lab.reproduce.interval import Estimate

PAPER: Final = "ikayak"


def row(
    name: str, claim: str, figure: str, paper_value: float | tuple[float, float], found: Estimate, **others: Any
) -> Claim:
    """Make a claim that ours is at least the paper's, in per cent, unless `others` say otherwise."""
    fields: dict[str, Any] = {"relation": Relation.GE, "unit": "%", **measured(found), **others}
    return Claim(**sourced(PAPER, name), claim=claim, figure=figure, paper_value=paper_value, **fields)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Varied:
    """An assumption with another value.

    Attributes:
        name: What is assumed.
        value: The other value, for people.
        change: Of the setting.
        fair: Whether jobs are served by their dominant shares.
    """

    name: str
    value: str
    change: tuple[tuple[str, float | bool], ...] = ()
    fair: bool = False

    def apply(self, run: Run) -> Run:
        """Return the run with the variant applied."""
        changes: dict[str, Any] = dict(self.change)
        variant = dataclasses.replace(run.variant, fair=self.fair)
        return dataclasses.replace(run, setting=dataclasses.replace(run.setting, **changes), variant=variant)


_SETTING = Setting()

TAKEN: Final = {
    "mean gap between arrivals of a MapReduce job and a Spark application": f"{_SETTING.gap_s:.0f} s",
    "sizes of MapReduce jobs": "4 to 240 blocks, most small",
    "executors of a Spark application": f"4 to 8, {_SETTING.executors} on average",
    "number of reducers (the same work)": "one for each 1 to 3 blocks",
    "computing of reducers": "100 to 180 s each",
    "reading a remote block": f"{_SETTING.rack:g} times as long",
    "tasks on a machine slow each other down": "saturating CPU, disk and network",
    "order of jobs, of all schedulers": "of submission, Hadoop's default",
}

VARIED: Final = (
    Varied(
        name="mean gap between arrivals of a MapReduce job and a Spark application",
        value="30 s",
        change=(("gap_s", 30.0),),
    ),
    Varied(
        name="mean gap between arrivals of a MapReduce job and a Spark application",
        value="70 s",
        change=(("gap_s", 70.0),),
    ),
    Varied(name="sizes of MapReduce jobs", value="a quarter", change=(("size", 0.25), ("gap_s", 12.0))),
    Varied(name="executors of a Spark application", value="12 on average", change=(("executors", 12),)),
    Varied(name="number of reducers (the same work)", value="a third", change=(("reducing", 1 / 3),)),
    Varied(name="computing of reducers", value="a quarter", change=(("reduce_work", 0.25),)),
    Varied(name="reading a remote block", value="1.2 times as long", change=(("rack", 1.2),)),
    Varied(name="tasks on a machine slow each other down", value="not at all", change=(("calm", True),)),
    Varied(name="order of jobs, of all schedulers", value="by dominant share", fair=True),
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Assumptions varied, for rows that compare two schedulers.

    Attributes:
        varied: Which; none in the quick form.
        base: The load that they change.
        seeds: Of each.
    """

    varied: tuple[Varied, ...]
    base: Setting
    seeds: int

    def runs(self, variants: Sequence[Variant] = (IKAYAK, STOCK, IN_CLIENT)) -> Iterable[Run]:
        """Return all simulations."""
        for one in self.varied:
            for variant in variants:
                yield one.apply(Run(setting=self.base, variant=variant, seeds=self.seeds))

    def lower(self, runs: Runs, ours: Variant, base: Variant, measure: Measure) -> tuple[Assumption, ...]:
        """Return how much lower ours is than the base's, with each."""
        return self._told(runs, ours, base, measure, -1)

    def higher(self, runs: Runs, ours: Variant, base: Variant, measure: Measure) -> tuple[Assumption, ...]:
        """Return how much higher ours is than the base's."""
        return self._told(runs, ours, base, measure, +1)

    def _told(self, runs: Runs, ours: Variant, base: Variant, measure: Measure, sign: int) -> tuple[Assumption, ...]:
        effects: dict[str, list[str]] = {name: [] for name in TAKEN}
        for one in self.varied:
            a, b = (one.apply(Run(setting=self.base, variant=variant, seeds=self.seeds)) for variant in (ours, base))
            effects[one.name].append(f"{one.value}: {signed(sign * runs.rise(a, b, measure).value)}")
        return tuple(
            Assumption(name=name, value=TAKEN[name], effect="; ".join(told) or "varied in the full form")
            for name, told in effects.items()
        )
