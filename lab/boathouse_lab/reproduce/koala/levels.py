"""IV.B, IV.C: two levels of scheduling: several clusters, and the provider between them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from boathouse_lab.reproduce import interval
from boathouse_lab.reproduce.claim import Assumption, Claim, Relation, measured
from boathouse_lab.reproduce.koala.case import Case
from boathouse_lab.reproduce.koala.setting import CORE, PAPER, POOL, Setting
from boathouse_lab.reproduce.sources import sourced
from boathouse_lab.reproduce.study import Findings
from boathouse_policies import model
from boathouse_policies.koala import Config, Partition, Policy
from boathouse_policies.koala.cluster import Cluster
from boathouse_policies.koala.controller import Pool, split

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boathouse_lab.reproduce.koala.case import Seen

GSP, GGP, GGDP = (Config(policy=one) for one in (Policy.GSP, Policy.GGP, Policy.GGDP))
EACH = CORE // 2
COMES_S = 630
"""When a third cluster is submitted: the pool is given away."""
_FAIR = (0.8, 1.25)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """Several clusters at once.

    Attributes:
        seeds: Of each.
    """

    seeds: int

    @staticmethod
    def _pair(config: Config, seed: int) -> Case:
        """Return two clusters with equal streams, and a third one later."""
        setting = Setting(jobs=40, small=1.0)
        jobs = setting.stream(seed)
        pair = [setting.cluster(jobs, id=name, core=EACH) for name in ("a", "b")]
        third = setting.cluster(jobs[:2], id="z", core=EACH, submit_ms=COMES_S * 1000)
        return Case(clusters=(*pair, third), nodes=CORE + POOL, config=config, seed=seed)

    def cases(self) -> Iterable[Case]:
        """Return the cases under each policy."""
        for seed in range(self.seeds):
            yield from (self._pair(config, seed) for config in (GSP, GGP, GGDP))

    def findings(self, seen: Mapping[Case, Seen]) -> Findings:
        """Return rows."""
        claims = (self._never_below(seen), *(parted(one) for one in Partition), self._fair(seen), self._reclaimed(seen))
        return Findings(claims=claims, figures=())

    def _never_below(self, seen: Mapping[Case, Seen]) -> Claim:
        least = min(
            size.core + size.transient - ran.first
            for config in (GSP, GGP, GGDP)
            for seed in range(self.seeds)
            for ran in seen[self._pair(config, seed)].clusters.values()
            for size in ran.sizes
            if size.at_ms > ran.ready_s * 1000
        )
        return Claim(
            **sourced(PAPER, "never-below-core"),
            claim="Least nodes of any cluster at any time, beyond its first core nodes, under GSP, GGP and GGDP",
            figure="Section IV.B",
            relation=Relation.GE,
            paper_value=0.0,
            value=float(least),
        )

    def _fair(self, seen: Mapping[Case, Seen]) -> Claim:
        found = [self._shares(seen, GSP, seed) for seed in range(self.seeds)]
        greedy = interval.mean([self._shares(seen, GGP, seed) for seed in range(self.seeds)]).value
        row = Claim(
            **sourced(PAPER, "equipartition-equal-jobs"),
            claim="Equipartition: extra node-seconds of one of two clusters with equal jobs over the other's (fair: "
            "within a "
            "quarter)",
            figure="Section IV.C",
            relation=Relation.BETWEEN,
            paper_value=_FAIR,
            **measured(interval.mean(found)),
            assumptions=(Assumption(name="policy", value="GSP", effect=f"GGP, which takes every offer: {greedy:.2f}"),),
        )
        if row.holds:
            return row
        return dataclasses.replace(
            row,
            reason=f"The provider's parts are equal: clusters that take every offer hold {greedy:.2f} times as much. "
            "GSP's answers are each cluster's own, by its load at that moment, and the same jobs fare a little "
            "differently.",
        )

    def _shares(self, seen: Mapping[Case, Seen], config: Config, seed: int) -> float:
        clusters = seen[self._pair(config, seed)].clusters
        return clusters["a"].extra_node_s / max(1.0, clusters["b"].extra_node_s)

    def _wait_s(self, seen: Mapping[Case, Seen], config: Config) -> list[float]:
        third = [seen[self._pair(config, seed)].clusters["z"] for seed in range(self.seeds)]
        return [one.ready_s - one.submitted_s for one in third]

    def _reclaimed(self, seen: Mapping[Case, Seen]) -> Claim:
        waits = {name: interval.mean(self._wait_s(seen, one)).value for name, one in (("GGP", GGP), ("GGDP", GGDP))}
        return Claim(
            **sourced(PAPER, "reclaims"),
            claim="Reclaims for new submissions: how long a cluster of 10 nodes waits under GGP, which ignores "
            "them, over "
            "under GSP",
            figure="Section IV.B",
            relation=Relation.GE,
            paper_value=1.0,
            **measured(interval.ratio(self._wait_s(seen, GGP), self._wait_s(seen, GSP))),
            baseline=waits["GGP"],
            baseline_name="GGP: from submission until it takes jobs [s]",
            assumptions=(
                Assumption(
                    name="reclaims",
                    value="each 30 s while nodes are missing; GSP declines where F would rise above 1.5",
                    effect=f"under GGDP, which never gives back, it waits {waits['GGDP']:.0f} s: until a cluster ends",
                ),
            ),
        )


def parted(partition: Partition) -> Claim:
    """Split offers drawn at random: parts of all sites together, or of each site, are equal but for what is left."""
    random = np.random.default_rng(_SALT)
    found = [_uneven(partition, random) for _ in range(OFFERS)]
    where, name = {
        Partition.ALL: ("All: of all sites together", "equipartition-all"),
        Partition.PER_SITE: ("PerSite: of each site", "equipartition-per-site"),
    }[partition]
    return Claim(
        **sourced(PAPER, name),
        claim=f"Equipartition-{where}, no cluster is offered more than one node more than another: most in {OFFERS} "
        "offers of up to 4 sites to up to 5 clusters",
        figure="Section IV.C",
        relation=Relation.LE,
        paper_value=1.0,
        value=float(max(found)),
    )


def _uneven(partition: Partition, random: np.random.Generator) -> int:
    idle = {f"site{i}": int(random.integers(0, _MOST_IDLE)) for i in range(int(random.integers(1, _MOST_SITES + 1)))}
    names = [model.JobId(f"c{i}") for i in range(int(random.integers(2, _MOST_CLUSTERS + 1)))]
    clusters = [
        Cluster(name=one, core_nodes=EACH, first_core_nodes=EACH, transient_nodes=int(random.integers(0, EACH)))
        for one in names
    ]
    pools = [Pool(site=site, nodes=nodes, users=frozenset(names)) for site, nodes in idle.items()]
    parts = split(pools, clusters, partition)
    if partition is Partition.ALL:
        totals = [sum(part.values()) for part in parts.values()]
        return max(totals) - min(totals)
    by_site = [[part.get(site, 0) for part in parts.values()] for site in idle]
    return max(max(one) - min(one) for one in by_site)


OFFERS = 500
_MOST_SITES, _MOST_CLUSTERS, _MOST_IDLE, _SALT = 4, 5, 13, 0xE9
