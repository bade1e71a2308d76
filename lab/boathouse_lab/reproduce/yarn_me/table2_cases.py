"""The simulations of section 6.2: Table 2's sweep and what grows out of it."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Final

import numpy as np

from boathouse_lab.reproduce.yarn_me.case import Case
from boathouse_lab.table2 import Law, Table2

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_sim.workload import Workload

PENALTIES: Final = (1.5, 3.0)
TASKS: Final[Mapping[Law, tuple[int, ...]]] = {Law.UNIFORM: (200, 400, 300), Law.EXPONENTIAL: (20, 220, 120)}
MEMORY_GB: Final = (2.0, 10.0, 6.0)
DURATION_S: Final[Mapping[Law, tuple[int, ...]]] = {Law.UNIFORM: (200, 500, 350), Law.EXPONENTIAL: (100, 500, 300)}
LEAST_S: Final[Mapping[Law, int]] = {Law.UNIFORM: 1, Law.EXPONENTIAL: 50}
SIZE: Final = 100
"""Jobs and nodes of the paper's sweep."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A trace of Table 2."""

    table: Table2
    jobs: int
    nodes: int

    @property
    def tasks_about(self) -> float:
        """The mean of the law; an exponential one's largest of 100 draws is about five means."""
        return self.jobs * self.table.tasks[1] / (2 if self.table.law is Law.UNIFORM else 5)

    def draw(self, seed: int) -> Workload:
        """Return the trace of a seed."""
        return self.table.draw(self.jobs, self.nodes, np.random.default_rng(seed))


def table(law: Law, tasks: int, memory_gb: float, duration_s: int, penalty: float) -> Table2:
    """Return one combination of the swept maxima."""
    return Table2(
        law=law,
        tasks=(1, tasks),
        memory_gb=(1.0, memory_gb),
        duration_s=(LEAST_S[law], duration_s),
        penalty_factor=penalty,
    )


def middle(law: Law, penalty: float) -> Table2:
    """Return the middle of each range."""
    return table(law, TASKS[law][-1], MEMORY_GB[-1], DURATION_S[law][-1], penalty)


def combinations(law: Law, penalty: float, levels: int) -> list[Table2]:
    """Return the sweep: the ends of each range with 2 levels, its middle too with 3; the very middle always."""
    swept = (TASKS[law][:levels], MEMORY_GB[:levels], DURATION_S[law][:levels])
    found = [table(law, *one, penalty) for one in itertools.product(*swept)]
    return list(dict.fromkeys([*found, middle(law, penalty)]))


def cases(one: Table2, profile: str, *, size: int, seeds: int, **how: float) -> list[Case]:
    """Return one case for each seed. Without elasticity the penalty means nothing: such cases are equal for all."""
    if profile != "yarn-me":
        one = dataclasses.replace(one, penalty_factor=PENALTIES[0])
    return [
        Case(recipe=Drawn(table=one, jobs=size, nodes=size), seed=seed, profile=profile, **how)  # type: ignore[arg-type]
        for seed in range(seeds)
    ]


def by_seed(columns: Sequence[Sequence[float]]) -> list[list[float]]:
    """Transpose one list of seeds for each combination to one list of combinations for each seed."""
    return [list(row) for row in zip(*columns, strict=True)]
