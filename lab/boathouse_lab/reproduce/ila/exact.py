"""Equations 5 and 6: how many hosts hold a job's data, and how many fewer offers a job lets pass for that (4.2)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_lab.reproduce import interval
from boathouse_lab.reproduce.claim import Relation
from boathouse_lab.reproduce.ila import cover
from boathouse_lab.reproduce.ila.experiment import row
from boathouse_lab.reproduce.study import Findings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from boathouse_lab.reproduce.claim import Claim
    from boathouse_lab.reproduce.ila.case import Case, Seen

HOSTS, EACH = 12, 6
DRAWS = 20_000
"""Placements drawn to check the formula."""


class Exact:
    """The rows."""

    def __init__(self, *, seeds: int) -> None:
        self._seeds = seeds

    def cases(self) -> tuple[Case, ...]:
        """Return no simulations."""
        return ()

    def findings(self, seen: Mapping[Case, Seen]) -> Findings:  # noqa: ARG002  it simulates nothing
        """Return rows alone."""
        return Findings(claims=tuple(self._claims()), figures=())

    def _claims(self) -> Iterator[Claim]:
        for share, local, paper, exact in ((0.1, 0.99, 5.99, 6.232), (0.4, 0.95, 5.86, 6.293)):
            holding = round(share * HOSTS * EACH)
            hosts = cover.expected_hosts(HOSTS, EACH, holding)
            ratio = cover.skips_ratio(holding / (HOSTS * EACH), hosts / HOSTS)
            yield row(
                f"skips-{100 * local:.0f}",
                f"K_n / K_s for {local:.0%} local where {share:.0%} of nodes have input (P = {holding}), eqs 5 and 6",
                "Section 4.2",
                Relation.EQ,
                exact,
                _one(ratio),
                tolerance=0.001,
                note=f"exact; the printed {paper} comes of q = 1 - (1 - p)^M and rounding, as below",
            )
            yield row(
                f"skips-{100 * local:.0f}-printed",
                f"K_n / K_s by q = 1 - (1 - p)^M, in tenths of skips, one at least, for {local:.0%}",
                "Section 4.2",
                Relation.EQ,
                paper,
                _one(_printed(share, local)),
                tolerance=0.005,
            )
        holding = 7
        drawn = interval.mean([_drawn(holding, seed) for seed in range(max(self._seeds, 2))])
        yield row(
            "hosts-drawn",
            f"Hosts that {holding} of 72 nodes drawn at random are on, in {DRAWS} draws each seed",
            "Equation 6",
            Relation.EQ,
            round(cover.expected_hosts(HOSTS, EACH, holding), 4),
            drawn,
            tolerance=0.01,
        )


def _printed(share: float, local: float) -> float:
    """Format as the paper does: skips for hosts to a tenth, and one at least."""
    hosts = 1 - (1 - share) ** EACH
    for_hosts = max(1.0, round(math.log(1 - local) / math.log(1 - hosts), 1))
    return math.log(1 - local) / math.log(1 - share) / for_hosts


def _drawn(holding: int, seed: int) -> float:
    random = np.random.default_rng([seed, holding])
    ranks = random.random((DRAWS, HOSTS * EACH)).argpartition(holding, axis=1)[:, :holding] // EACH
    ranks.sort(axis=1)
    return float(((ranks[:, 1:] != ranks[:, :-1]).sum(axis=1) + 1).mean())


def _one(value: float) -> interval.Estimate:
    return interval.Estimate(value=value, interval=None, count=1)
