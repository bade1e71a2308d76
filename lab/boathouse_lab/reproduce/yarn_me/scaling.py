"""Section 6.2: weak scaling (Figure 6b)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from boathouse_lab.reproduce import figures, interval
from boathouse_lab.reproduce.claim import Assumption, Claim, Relation, measured
from boathouse_lab.reproduce.sources import sourced
from boathouse_lab.reproduce.study import Findings
from boathouse_lab.reproduce.words import per_cent
from boathouse_lab.reproduce.yarn_me import table2_cases as table2
from boathouse_lab.reproduce.yarn_me.case import ELASTIC, YARN
from boathouse_lab.reproduce.yarn_me.experiment import PAPER, gains, mean_of
from boathouse_lab.table2 import Law

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boathouse_lab.reproduce.yarn_me.case import Case, Seen

PENALTY: Final = 1.5
HOLDS: Final = 0.05
"""The benefits "hold" while the gain falls by at most so much."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """As many jobs as nodes.

    Attributes:
        seeds: For each size, smallest first, the traces that are simulated.
    """

    seeds: tuple[tuple[int, int], ...]

    def cases(self) -> Iterable[Case]:
        """Return the middle of the uniform ranges at each size."""
        for size, seeds in self.seeds:
            yield from self._cases(YARN, size, seeds)
            yield from self._cases(ELASTIC, size, seeds)

    @staticmethod
    def _cases(profile: str, size: int, seeds: int) -> list[Case]:
        return table2.cases(table2.middle(Law.UNIFORM, PENALTY), profile, size=size, seeds=seeds)

    def _gain(self, seen: Mapping[Case, Seen], size: int, seeds: int) -> interval.Estimate:
        return interval.mean(gains(seen, self._cases(ELASTIC, size, seeds), self._cases(YARN, size, seeds)))

    def findings(self, seen: Mapping[Case, Seen]) -> Findings:
        """Return the findings: a row for each size but the first, and the picture."""
        first = self._gain(seen, *self.seeds[0])
        claims = tuple(
            Claim(
                **sourced(PAPER, f"figure-6b-size-{i + 2}"),
                claim=f"Benefits hold with {size:,} jobs on {size:,} nodes: gain over YARN, against "
                f"{per_cent(first.value)} with {self.seeds[0][0]} on {self.seeds[0][0]}",
                figure="Figure 6b",
                relation=Relation.GE,
                paper_value=first.value - HOLDS,
                **measured(self._gain(seen, size, seeds)),
                baseline=mean_of(seen, self._cases(YARN, size, seeds)),
                baseline_name="yarn: mean job time [s]",
                unit="%",
                assumptions=(
                    Assumption(
                        name="which uniform trace, which penalty",
                        value="the middle of Table 2's ranges, 1.5x",
                        effect="gains by size: "
                        + "; ".join(f"{n:,}: {per_cent(self._gain(seen, n, s).value)}" for n, s in self.seeds),
                    ),
                    Assumption(
                        name='"hold"',
                        value=f"the gain falls by at most {100 * HOLDS:.0f} points",
                        effect=f"it moves by {100 * (self._gain(seen, size, seeds).value - first.value):+.1f} points",
                    ),
                ),
            )
            for i, (size, seeds) in enumerate(self.seeds[1:])
        )
        return Findings(claims=claims, figures=(self._figure(seen),))

    def _figure(self, seen: Mapping[Case, Seen]) -> figures.Figure:
        found = [self._gain(seen, size, seeds) for size, seeds in self.seeds]
        spans = [gain.interval or (gain.value, gain.value) for gain in found]
        ratio = figures.Line(
            label="YARN-ME / YARN",
            x=tuple(float(size) for size, _ in self.seeds),
            y=tuple(1 - gain.value for gain in found),
            low=tuple(1 - high for _, high in spans),
            high=tuple(1 - low for low, _ in spans),
            markers=True,
        )
        return figures.Figure(
            name="Figure 6b",
            title="Weak scaling: as many jobs as nodes",
            panels=(
                figures.Panel(
                    title="Uniform, 1.5x",
                    x=figures.Axis(label="Jobs and nodes", log=True),
                    y=figures.Axis(label="Ratio of mean job times", low=0, high=1),
                    marks=(ratio,),
                ),
            ),
            paper_shape="Flat from 100 to 3,000.",
            our_shape="Ratios "
            + ", ".join(f"{1 - e.value:.2f} at {size:,}" for e, (size, _) in zip(found, self.seeds, strict=True))
            + ".",
        )
