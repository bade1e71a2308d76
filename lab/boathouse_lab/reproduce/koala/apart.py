"""III: what clusters of one's own isolate: performance, data, failures, versions."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_lab.reproduce import interval
from boathouse_lab.reproduce.claim import Assumption, Claim, Relation, measured
from boathouse_lab.reproduce.koala.case import Case
from boathouse_lab.reproduce.koala.setting import CORE, PAPER, POOL, Setting
from boathouse_lab.reproduce.sources import sourced
from boathouse_lab.reproduce.study import Findings
from boathouse_policies.koala import Config, Policy
from boathouse_sim.conditions import Outage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from boathouse_lab.koala import HadoopJob, JobRecord
    from boathouse_lab.reproduce.interval import Estimate
    from boathouse_lab.reproduce.koala.case import Seen

SMALL_MAPS = 80
"""Up to 5 GB: types 6 to 8."""
_GSP = Config(policy=Policy.GSP)
_FAILS = (Outage(node="n00", from_s=330.0, to_s=630.0),)
"""A node of the first cluster, for five minutes."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """Isolation.

    Attributes:
        seeds: Of each.
        jobs: Of a stream.
    """

    seeds: int
    jobs: int = 50

    def _streams(self, seed: int) -> tuple[Sequence[HadoopJob], Sequence[HadoopJob]]:
        jobs = Setting(jobs=self.jobs).stream(seed)
        return [one for one in jobs if one.maps <= SMALL_MAPS], [one for one in jobs if one.maps > SMALL_MAPS]

    def _together(self, seed: int) -> Case:
        setting = Setting(jobs=self.jobs)
        return Case(clusters=(setting.cluster(setting.stream(seed), core=CORE + POOL),), nodes=CORE + POOL, seed=seed)

    def _apart(self, seed: int, *, core: int = CORE, outages: tuple[Outage, ...] = ()) -> Case:
        setting = Setting(jobs=self.jobs)
        small, large = self._streams(seed)
        clusters = (setting.cluster(large, id="large", core=core), setting.cluster(small, id="small", core=core))
        config = Config(policy=Policy.STATIC) if core == CORE else _GSP
        return Case(clusters=clusters, nodes=CORE + POOL, config=config, seed=seed, outages=outages)

    def _growing(self, seed: int) -> Case:
        return self._apart(seed, core=CORE // 2)

    def _failing(self, seed: int) -> Case:
        return self._apart(seed, outages=_FAILS)

    def cases(self) -> Iterable[Case]:
        """Return one cluster of 40, two of 20, two of 10 that grow, and two of which one loses a node."""
        for seed in range(self.seeds):
            yield from (self._together(seed), self._apart(seed), self._growing(seed), self._failing(seed))

    def findings(self, seen: Mapping[Case, Seen]) -> Findings:
        """Return rows."""
        return Findings(
            claims=(*self._performance(seen), *self._failures(seen), self._data(seen), _VERSIONS), figures=()
        )

    # Performance

    def _ratio(self, seen: Mapping[Case, Seen], ours: Callable[[int], Case], *, small: bool) -> Estimate:
        return interval.ratio(
            [_mean_s(seen[self._together(seed)], small=small) for seed in range(self.seeds)],
            [_mean_s(seen[ours(seed)], small=small) for seed in range(self.seeds)],
        )

    def _performance(self, seen: Mapping[Case, Seen]) -> Sequence[Claim]:
        whose = {True: "small jobs (up to 5 GB)", False: "large jobs"}
        base = {
            small: interval.mean([_mean_s(seen[self._together(seed)], small=small) for seed in range(self.seeds)])
            for small in whose
        }
        return [
            Claim(
                **sourced(PAPER, "isolation-small" if small else "isolation-large"),
                claim=f"Performance isolation, {name}: mean response time in one cluster of 40 nodes over that in "
                "two of "
                "20",
                figure="Section III.A",
                relation=Relation.GE,
                paper_value=1.0,
                **measured(self._ratio(seen, self._apart, small=small)),
                baseline=base[small].value,
                baseline_name="one FIFO cluster of 40 nodes: mean response time [s]",
                assumptions=(
                    Assumption(
                        name="sizes",
                        value="20 nodes each, static",
                        effect="10 core nodes each and 20 that GSP grows by: "
                        f"{self._ratio(seen, self._growing, small=small).value:.2f}",
                    ),
                ),
            )
            for small, name in whose.items()
        ]

    # Failures, data, versions

    def _failures(self, seen: Mapping[Case, Seen]) -> Sequence[Claim]:
        def most_later(cluster: str) -> list[float]:
            found = []
            for seed in range(self.seeds):
                calm, failing = (
                    _times(seen[case(seed)].clusters[cluster].jobs) for case in (self._apart, self._failing)
                )
                found.append(max(abs(failing[one] - calm[one]) for one in calm))
            return found

        hurt = interval.mean(most_later("large"))
        return [
            Claim(
                **sourced(PAPER, "isolation-failures"),
                claim="Failure isolation: most that any job's response time changes [s] when a node of the other "
                "cluster "
                "fails",
                figure="Section III.C",
                relation=Relation.EQ,
                paper_value=0.0,
                **measured(interval.mean(most_later("small"))),
                baseline=hurt.value,
                baseline_name="the same in the cluster whose node fails [s]",
                unit="s",
                assumptions=(
                    Assumption(
                        name="what fails",
                        value="a core node for 5 minutes; its tasks and map output are made again",
                        effect="the failure of a master is not simulated: its cluster would begin anew, and no other",
                    ),
                ),
            )
        ]

    def _data(self, seen: Mapping[Case, Seen]) -> Claim:
        shared = [
            float(len(frozenset.intersection(*(one.nodes for one in seen[self._apart(seed)].clusters.values()))))
            for seed in range(self.seeds)
        ]
        return Claim(
            **sourced(PAPER, "isolation-data"),
            claim="Data isolation: nodes that hold data or run tasks of both clusters",
            figure="Section III.B",
            relation=Relation.EQ,
            paper_value=0.0,
            **measured(interval.mean(shared)),
        )


_VERSIONS = Claim(
    **sourced(PAPER, "isolation-versions"),
    claim="Version isolation: clusters of different versions run side by side",
    figure="Section III.D",
    relation=Relation.GE,
    paper_value=1.0,
    value=None,
)


def _times(jobs: Iterable[JobRecord]) -> dict[str, float]:
    return {one.id: one.time_s for one in jobs}


def _mean_s(seen: Seen, *, small: bool) -> float:
    times = [job.time_s for ran in seen.clusters.values() for job in ran.jobs if (job.maps <= SMALL_MAPS) == small]
    return sum(times) / len(times)
