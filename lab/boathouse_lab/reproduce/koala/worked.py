"""VI.B's worked example: what 30 transient nodes send to 10 core nodes, and how long it takes."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_lab.reproduce import interval
from boathouse_lab.reproduce.claim import Assumption, Claim, Relation, measured
from boathouse_lab.reproduce.koala.case import Case
from boathouse_lab.reproduce.koala.setting import DISKS, MAPS, NETWORK_MB_PER_S, PAPER, SORT, Setting
from boathouse_lab.reproduce.sources import sourced
from boathouse_lab.reproduce.study import Findings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boathouse_lab.reproduce.koala.case import Seen

REPLICAS = 3
_GBIT = 8 / 1000  # of a MB
_ROUNDED = 0.5
"""The paper gives whole numbers."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """The three formulas.

    Attributes:
        core: n_c.
        transient: n_t.
        output_gbit: D_out, replicas counted.
        bandwidth_gbit_per_s: bw.
        write_gbit_per_s: s_write, of each of the two disks of a node.
    """

    core: int
    transient: int
    output_gbit: float
    bandwidth_gbit_per_s: float
    write_gbit_per_s: float

    @property
    def sent_gbit(self) -> float:
        """D_t."""
        return self.transient * self.output_gbit / (self.core + self.transient)

    @property
    def sending_s(self) -> float:
        """T_t."""
        return self.sent_gbit / self.bandwidth_gbit_per_s

    @property
    def writing_s(self) -> float:
        """T_w."""
        return self.sent_gbit / (2 * self.core * self.write_gbit_per_s)


def example() -> Example:
    """Return the paper's numbers, from the study's own constants."""
    maps, block_mb = MAPS[1]
    return Example(
        core=10,
        transient=30,
        output_gbit=maps * block_mb * REPLICAS * _GBIT,
        bandwidth_gbit_per_s=NETWORK_MB_PER_S * _GBIT,
        write_gbit_per_s=DISKS.write_mb_per_s / 2 * _GBIT,
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """The example by its formulas, and what the simulation sends."""

    seeds: int

    def _cases(self, base: Setting) -> list[Case]:
        cluster = base.alone(SORT, 1, core=10, transient=30)
        return [Case(clusters=(cluster,), nodes=40, seed=seed) for seed in range(self.seeds)]

    def cases(self) -> Iterable[Case]:
        """Sort with 75 % transient nodes, with one link for them and with a link for each."""
        return [*self._cases(Setting()), *self._cases(Setting(own_links=True))]

    def findings(self, seen: Mapping[Case, Seen]) -> Findings:
        """Return four rows."""
        one = example()
        exact = (
            ("d-t", "D_t [Gbit]: output of 30 of 40 nodes, 50 GiB with 3 replicas", 922.0, one.sent_gbit, "Gbit"),
            ("t-t", "T_t [s]: sending it at 10 Gb/s", 92.0, one.sending_s, "s"),
            ("t-w", "T_w [s]: writing it on 20 disks at 900 Mb/s", 51.0, one.writing_s, "s"),
        )
        rows = tuple(
            Claim(
                **sourced(PAPER, f"example-{name}"),
                claim=f"Worked example, {words}",
                figure="Section VI.B",
                relation=Relation.EQ,
                paper_value=paper,
                value=value,
                tolerance=_ROUNDED,
                unit=unit,
            )
            for name, words, paper, value, unit in exact
        )
        return Findings(claims=(*rows, self._sent(seen)), figures=())

    def _sent(self, seen: Mapping[Case, Seen]) -> Claim:
        own = interval.mean([seen[case].only.stored_mb * _GBIT for case in self._cases(Setting(own_links=True))])
        shared = interval.mean([seen[case].only.stored_mb * _GBIT for case in self._cases(Setting())])
        return Claim(
            **sourced(PAPER, "example-sent"),
            claim="What the 30 transient nodes send of Sort's output in the simulation [Gbit]",
            figure="Section VI.B",
            relation=Relation.EQ,
            paper_value=922.0,
            **measured(shared),
            tolerance=50.0,
            unit="Gbit",
            assumptions=(
                Assumption(
                    name="10 Gb/s",
                    value="one link for all transient nodes, as in T_t",
                    effect=f"a link for each node: {own.value:.0f} Gbit",
                ),
            ),
            reason="D_t gives every node the same number of reducers. 144 reducers are 1.8 waves, and the JobTracker "
            "gives the second to whoever is free: core nodes, which write at home, end their first ones sooner and "
            f"take most of it. With a link for each node all end alike, and the simulation sends {own.value:.0f} Gbit.",
        )
