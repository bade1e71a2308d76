"""Section 5: the applications of Table 1 on 50 nodes, alone (Figures 4, 5a, 5b) and mixed (Figure 5c)."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

from boathouse_lab.reproduce import interval
from boathouse_lab.reproduce.claim import Assumption, Claim, Relation, measured
from boathouse_lab.reproduce.sources import sourced
from boathouse_lab.reproduce.study import Findings
from boathouse_lab.reproduce.words import per_cent
from boathouse_lab.reproduce.yarn_me import cluster_pictures
from boathouse_lab.reproduce.yarn_me.case import ELASTIC, YARN
from boathouse_lab.reproduce.yarn_me.cluster_cases import (
    TAKEN,
    VARIANT_SEEDS,
    Variant,
    cases,
    job_time_s,
    makespan_s,
    phase_s,
)
from boathouse_lab.reproduce.yarn_me.experiment import PAPER, gains, mean_of
from boathouse_lab.reproduce.yarn_me.table1 import PAGERANK, RECOMMENDER, TABLE1, WORDCOUNT, alike, mixed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from boathouse_lab.reproduce.yarn_me.case import Case, Seen
    from boathouse_lab.reproduce.yarn_me.table1 import Runs


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The experiments of section 5.

    Attributes:
        seeds: Iterations with other task durations; the paper has 3.
        counts: Concurrent runs of each application, ascending; with 1, and with 3 for WordCount's row.
        variants: Assumptions varied.
        part: A part of the nodes, with the same part of the tasks.
    """

    seeds: int
    counts: tuple[int, ...]
    variants: tuple[Variant, ...]
    part: float = 1.0

    @property
    def _most(self) -> int:
        return self.counts[-1]

    def _alike(self, name: str, count: int) -> Runs:
        return alike(name, count, self.part)

    @property
    def _mixed(self) -> Runs:
        return mixed(self.part)

    @property
    def _varied(self) -> int:
        return min(self.seeds, VARIANT_SEEDS)

    def cases(self) -> Iterable[Case]:
        """Return each application with each number of runs, the mix, and both with each assumption varied."""
        alone = (self._alike(name, count) for name in TABLE1 for count in self.counts)
        for recipe, profile in itertools.product((*alone, self._mixed), (YARN, ELASTIC)):
            yield from cases(recipe, profile, self.seeds)
        most = (self._alike(name, self._most) for name in TABLE1)
        for recipe, profile, variant in itertools.product((*most, self._mixed), (YARN, ELASTIC), self.variants):
            yield from cases(recipe, profile, self._varied, variant)

    def findings(self, seen: Mapping[Case, Seen]) -> Findings:
        """Return rows and pictures."""
        claims = (*self._alone(seen), *self._utilisation(seen), *self._mix(seen))
        pictures = cluster_pictures.pictures(seen, self.seeds, self.counts, self.part)
        return Findings(claims=claims, figures=pictures)

    def gains(
        self, seen: Mapping[Case, Seen], recipe: Runs, measure: Callable[[Seen], float] = job_time_s
    ) -> list[float]:
        """Return the gains seed by seed."""
        return gains(seen, cases(recipe, ELASTIC, self.seeds), cases(recipe, YARN, self.seeds), measure)

    def assumptions(
        self, seen: Mapping[Case, Seen], recipe: Runs, measure: Callable[[Seen], float] = job_time_s
    ) -> tuple[Assumption, ...]:
        """Return how the gain moves when each assumption varies."""
        effects: dict[str, list[str]] = {}
        for variant in self.variants:
            ours, base = (cases(recipe, profile, self._varied, variant) for profile in (ELASTIC, YARN))
            gain = interval.mean(gains(seen, ours, base, measure)).value
            effects.setdefault(variant.name, []).append(f"{variant.value}: {per_cent(gain)}")
        return _told(effects)

    def _row(
        self,
        seen: Mapping[Case, Seen],
        recipe: Runs,
        name: str,
        claim: str,
        figure: str,
        paper: float,
        measure: Callable[[Seen], float] = job_time_s,
        *,
        varied: Runs | None = None,
    ) -> Claim:
        return Claim(
            **sourced(PAPER, name),
            claim=claim,
            figure=figure,
            relation=Relation.GE,
            paper_value=paper,
            **measured(interval.mean(self.gains(seen, recipe, measure))),
            baseline=mean_of(seen, cases(recipe, YARN, self.seeds), measure),
            baseline_name="yarn [s]",
            unit="%",
            assumptions=self.assumptions(seen, varied or recipe, measure),
        )

    def _alone(self, seen: Mapping[Case, Seen]) -> Iterable[Claim]:
        most = f"of {', '.join(str(n) for n in self.counts)} runs, the number with most"
        for name, figure, paper in ((PAGERANK, "4c", 0.39), (WORDCOUNT, "5a", 0.41), (RECOMMENDER, "5b", 0.48)):
            best = self.best(seen, name)
            yield self._row(
                seen,
                self._alike(name, best),
                f"figure-{figure}-{name.lower()}",
                f"{name} alone: lower mean job run time ({most}: {best})",
                f"Figure {figure}",
                paper,
                varied=self._alike(name, self._most),
            )
        yield self._row(
            seen,
            self._alike(PAGERANK, 1),
            "figure-4c-single",
            "Pagerank, a single run: lower job run time",
            "Figure 4c",
            0.30,
            varied=self._alike(PAGERANK, self._most),
        )
        yield self._row(
            seen,
            self._alike(WORDCOUNT, 3),
            "figure-5a-maps",
            "WordCount, 3 runs: shorter map phases",
            "Figure 5a",
            0.46,
            phase_s("map"),
            varied=self._alike(WORDCOUNT, self._most),
        )
        yield self._least_map(seen)

    def best(self, seen: Mapping[Case, Seen], name: str) -> int:
        """Return the number of runs with which the mean gain is most; the fewest of equals."""
        return max(self.counts, key=lambda n: (interval.mean(self.gains(seen, self._alike(name, n))).value, -n))

    def _least_map(self, seen: Mapping[Case, Seen]) -> Claim:
        by_app = [self.gains(seen, self._alike(name, n), phase_s("map")) for name in TABLE1 for n in self.counts]
        least = [min(seed_gains) for seed_gains in zip(*by_app, strict=True)]
        return Claim(
            **sourced(PAPER, "least-maps"),
            claim="Mappers always benefit noticeably: least gain in map phases of all applications and numbers of runs",
            figure="Figures 4c, 5a, 5b",
            relation=Relation.GE,
            paper_value=0.05,
            **measured(interval.mean(least)),
            unit="%",
            assumptions=(
                Assumption(
                    name='"noticeably"',
                    value="at least 5 %",
                    effect="; ".join(
                        f"{name}, {n} runs: {per_cent(interval.mean(app_gains).value)}"
                        for (name, n), app_gains in zip(itertools.product(TABLE1, self.counts), by_app, strict=True)
                        if n in {1, self._most}
                    ),
                ),
            ),
        )

    def _utilisation(self, seen: Mapping[Case, Seen]) -> Iterable[Claim]:
        recipe = self._alike(PAGERANK, self._most)
        yarn, ours = (
            [seen[one].memory_utilisation for one in cases(recipe, profile, self.seeds)] for profile in (YARN, ELASTIC)
        )
        yield Claim(
            **sourced(PAPER, "figure-4a-yarn"),
            claim=f"{self._most} Pagerank runs: YARN's mean memory utilisation",
            relation=Relation.EQ,
            paper_value=0.77,
            tolerance=0.05,
            **measured(interval.mean(yarn)),
            assumptions=self._levels(seen, recipe, YARN),
            figure="Figure 4a",
            unit="%",
        )
        yield Claim(
            **sourced(PAPER, "figure-4a-yarn-me"),
            claim=f"{self._most} Pagerank runs: YARN-ME's mean memory utilisation",
            relation=Relation.GE,
            paper_value=0.95,
            **measured(interval.mean(ours)),
            baseline=interval.mean(yarn).value,
            baseline_name="yarn",
            assumptions=self._levels(seen, recipe, ELASTIC),
            figure="Figure 4a",
            unit="%",
        )
        yield self._row(
            seen,
            recipe,
            "figure-4a-makespan",
            f"{self._most} Pagerank runs: shorter makespan",
            "Figure 4a",
            0.39,
            makespan_s,
        )
        more = [b / a - 1 for a, b in zip(yarn, ours, strict=True)]
        job = self.gains(seen, recipe)
        yield Claim(
            **sourced(PAPER, "figure-4a-in-proportion"),
            claim=f"{self._most} Pagerank runs: gain in job run time over gain in memory utilisation (both relative)",
            relation=Relation.GE,
            paper_value=1.0,
            **measured(interval.mean([g / max(m, 0.01) for g, m in zip(job, more, strict=True)])),
            unit="times",
            figure="Figure 4a",
        )

    def _levels(self, seen: Mapping[Case, Seen], recipe: Runs, profile: str) -> tuple[Assumption, ...]:
        effects: dict[str, list[str]] = {}
        for variant in self.variants:
            found = [seen[one].memory_utilisation for one in cases(recipe, profile, self._varied, variant)]
            effects.setdefault(variant.name, []).append(f"{variant.value}: {per_cent(interval.mean(found).value)}")
        return _told(effects)

    def _mix(self, seen: Mapping[Case, Seen]) -> Iterable[Claim]:
        recipe = self._mixed
        yield self._row(seen, recipe, "figure-5c-jobs", "Mix of Table 1: lower mean job run time", "Figure 5c", 0.60)
        yield self._row(
            seen, recipe, "figure-5c-maps", "Mix of Table 1: shorter map phases", "Figure 5c", 0.67, phase_s("map")
        )
        letter = TABLE1[RECOMMENDER].letter
        yield self._row(
            seen,
            recipe,
            "figure-5c-maps-recommender",
            "Mix of Table 1: shorter map phases of Recommender",
            "Figure 5c",
            0.72,
            phase_s("map", letter),
        )


def _told(effects: Mapping[str, Sequence[str]]) -> tuple[Assumption, ...]:
    return tuple(
        Assumption(name=name, value=value, effect="; ".join(effects.get(name, ["not varied in this form"])))
        for name, value in TAKEN.items()
    )
