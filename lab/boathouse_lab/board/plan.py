"""Which cells of the board are simulated, and their simulation: what the file of results has is left out."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final, Self

from boathouse_lab.board import cases, columns, rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_lab.board.cases import Case, Result
    from boathouse_lab.board.results import Results
    from boathouse_lab.reproduce.study import Runner

SEEDS: Final = 10
WORLDS: Final = 4
QUICK_SEEDS: Final = 2
_COSTS: Final[Mapping[str, float]] = {columns.FAIR: 1.0, columns.KUBE_SCHEDULER: 1.0}
_DEAR: Final = 2.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is simulated.

    Attributes:
        rows: Names of rows.
        columns: Names of columns; fair is always one of them.
        seeds: Of workloads.
        worlds: For each seed.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    seeds: Sequence[int]
    worlds: int

    @classmethod
    def of(
        cls,
        *,
        quick: bool,
        tuning: bool = False,
        seeds: int | None = None,
        worlds: int | None = None,
        chosen_rows: Sequence[str] = (),
        chosen_columns: Sequence[str] = (),
    ) -> Self:
        """Return the plan of a form.

        Args:
            quick: Fewer rows and columns, 2 seeds and a world of each.
            tuning: Use odd seeds, on which policies may be tuned; even ones, which are reported, without it.
            seeds: How many; as the form has it without.
            worlds: How many of each seed; as the form has it without.
            chosen_rows: These rows; those of the form without.
            chosen_columns: These columns beside fair; those of the form without.

        Raises:
            ValueError: There is no such row or column.
        """
        of_form = [row.name for row in rows.ROWS if row.quick or not quick]
        columns_of_form = [column.name for column in columns.COLUMNS if column.quick or not quick]
        picked = _picked("row", chosen_rows or of_form, list(rows.BY_NAME))
        compared = _picked("column", chosen_columns or columns_of_form, list(columns.BY_NAME))
        count = seeds or (QUICK_SEEDS if quick else SEEDS)
        return cls(
            rows=picked,
            columns=list(dict.fromkeys([columns.FAIR, *compared])),
            seeds=[2 * place + 1 if tuning else 2 * place + 2 for place in range(count)],
            worlds=worlds or (1 if quick else WORLDS),
        )

    def cases(self) -> tuple[Case, ...]:
        """Return all simulations."""
        return cases.cases(self.rows, self.columns, self.seeds, self.worlds)

    def carry_out(self, results: Results, runner: Runner) -> Mapping[Case, Result]:
        """Simulate what there are no results of, seed after seed, and return the results of the plan."""
        for seed in self.seeds:
            left = [case for case in self.cases() if case.seed == seed and case not in results.found]
            if left:
                runner.map(f"seed {seed}", cases.carry_out, left, cost=_cost, ended=results.add)
        return {case: results.found[case] for case in self.cases()}


def _cost(case: Case) -> float:
    return _COSTS.get(case.column, _DEAR)


def _picked(what: str, names: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"there is no {what} {unknown[0]!r}: choose from {', '.join(known)}")
    return list(names)
