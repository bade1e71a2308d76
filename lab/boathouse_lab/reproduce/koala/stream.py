"""VI.C: a stream of 50 jobs on 20 core nodes with a pool of 20, by policy (Figure 5b): its simulations."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_lab.reproduce.koala.case import Case
from boathouse_lab.reproduce.koala.part import times_faster
from boathouse_lab.reproduce.koala.setting import CORE, POOL, Setting
from boathouse_policies.koala import Config, Policy, Reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boathouse_lab.reproduce.interval import Estimate
    from boathouse_lab.reproduce.koala.case import Seen

STATIC, GSP, GGP, GGDP = (Config(policy=one) for one in (Policy.STATIC, Policy.GSP, Policy.GGP, Policy.GGDP))
GROWING: Mapping[str, Config] = {"GGP": GGP, "GGDP": GGDP, "GSP": GSP}
GSP_FREE = Config(policy=Policy.GSP, reading=Reading.FREE)

FAST: Mapping[str, Config] = {
    name: Config(policy=one.policy, offer_nodes=GSP.grow_by, greedy_every_s=GSP.gsp_every_s)
    for name, one in (("GGP", GGP), ("GGDP", GGDP))
}
"""At GSP's pace: 5 nodes each 30 s."""
SLOW_GSP = Config(policy=Policy.GSP, grow_by=GGP.offer_nodes, gsp_every_s=GGP.greedy_every_s)
"""At the greedy policies' pace: 2 nodes each 120 s."""

BASE = Setting()
SORTS = (0.0, 0.75, 1.0)
SWEPT: Mapping[str, Mapping[str, Setting]] = {
    "share of Sort": {f"{share:.0%}": Setting(sort_share=share) for share in SORTS},
    "job types": {
        "small ones more often (weight 1 / maps)": Setting(small=1.0),
        "large ones more often (weight of maps)": Setting(small=-0.5),
    },
    "computing": {f"{work:g} times": Setting(work=work) for work in (0.75, 1.5)},
    "boot time": {f"{boot_s:g} s": Setting(boot_s=boot_s) for boot_s in (0.0, 120.0)},
    "reducers of large jobs": {"never by the rule of thumb": Setting(thumb_share=0.0)},
    "map slots": {"8": Setting(map_slots=8)},
    "bandwidth": {"10 Gb/s for each node": Setting(own_links=True)},
    "writing output": {"while it is sent": Setting(pipelined=True)},
}
"""By what is assumed, what else it could be."""
FEW: Mapping[str, Mapping[str, Setting]] = {"share of Sort": {"100%": Setting(sort_share=1.0)}}
"""What the quick form sweeps: reasons quote it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Which simulations there are.

    Attributes:
        seeds: Of the paper's four policies, and of both readings of F.
        varied: Of each other one.
        swept: `SWEPT`, or less.
    """

    seeds: int
    varied: int
    swept: Mapping[str, Mapping[str, Setting]] = dataclasses.field(default_factory=lambda: SWEPT)

    @staticmethod
    def of(config: Config, seeds: int, setting: Setting = BASE, *, transient: int = 0) -> list[Case]:
        """Return a policy's cases, by seed."""
        return [
            Case(
                clusters=(setting.cluster(setting.stream(seed), transient=transient),),
                nodes=CORE + POOL,
                config=config,
                seed=seed,
            )
            for seed in range(seeds)
        ]

    def cases(self) -> Iterable[Case]:
        """Return all cases."""
        for config in (STATIC, GSP_FREE, *GROWING.values()):
            yield from self.of(config, self.seeds)
        for config in (*FAST.values(), SLOW_GSP):
            yield from self.of(config, self.varied)
        yield from self.of(STATIC, self.varied, transient=POOL)
        for settings in self.swept.values():
            for setting in settings.values():
                for config in (STATIC, *GROWING.values()):
                    yield from self.of(config, self.varied, setting)

    def faster(self, seen: Mapping[Case, Seen], config: Config, setting: Setting = BASE, seeds: int = 0) -> Estimate:
        """Return by what factor static clusters' mean response time is longer."""
        count = seeds or (self.seeds if setting == BASE else self.varied)
        return times_faster(seen, self.of(config, count, setting), self.of(STATIC, count, setting))

    def grown(self, seen: Mapping[Case, Seen]) -> Estimate:
        """Return the estimate for a static cluster that has the pool as transient nodes."""
        ours = self.of(STATIC, self.varied, transient=POOL)
        return times_faster(seen, ours, self.of(STATIC, self.varied))
