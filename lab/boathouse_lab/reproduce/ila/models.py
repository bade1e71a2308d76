"""Table 5 and Figure 11: how well the forms of model predict; the evaluation is `modelling`'s."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, TypeAlias

from boathouse_lab.reproduce import figures, interval
from boathouse_lab.reproduce.claim import Relation
from boathouse_lab.reproduce.figures import bars
from boathouse_lab.reproduce.ila import modelling
from boathouse_lab.reproduce.ila.experiment import row
from boathouse_lab.reproduce.ila.modelling import Family
from boathouse_lab.reproduce.study import Findings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from boathouse_lab.reproduce.claim import Claim
    from boathouse_lab.reproduce.interval import Estimate

KINDS = (modelling.IO_BOUND, modelling.CPU_BOUND, modelling.OVERALL)
_SHORT = {modelling.IO_BOUND: "io", modelling.CPU_BOUND: "cpu", modelling.OVERALL: "overall"}

TABLE_5 = {
    Family.LINEAR: (0.611, 0.676, 0.657),
    Family.QUADRATIC: (0.722, 0.672, 0.714),
    Family.EXPONENTIAL: (0.895, 0.879, 0.887),
}
"""R² by kind, in the order of `KINDS`."""

Found: TypeAlias = "Sequence[Mapping[tuple[str, str], modelling.Accuracy]]"


class Models:
    """The rows and pictures, from one evaluation for each seed."""

    def __init__(self, *, seeds: int, jobs: int) -> None:
        self.cases = [modelling.Case(seed=seed, jobs=jobs) for seed in range(seeds)]

    def findings(self, found: Found) -> Findings:
        """Return rows and pictures."""
        return Findings(claims=tuple(self._claims(found)), figures=(_table(found), _errors(found)))

    def _claims(self, found: Found) -> Iterator[Claim]:
        for kind, paper in zip(KINDS, TABLE_5[Family.EXPONENTIAL], strict=True):
            yield row(
                f"table-5-{_SHORT[kind]}",
                f"R² of the exponential model on held-out samples, {kind}",
                "Table 5",
                Relation.GE,
                paper,
                _r2(found, Family.EXPONENTIAL, kind),
                baseline=("the linear model", _r2(found, Family.LINEAR, kind)),
            )
        for family, (i, kind) in itertools.product((Family.LINEAR, Family.QUADRATIC), enumerate(KINDS)):
            yield row(
                f"table-5-{_SHORT[kind]}-{family.value}",
                f"By how much R² of the exponential model is above that of the {family.value} one, {kind}",
                "Table 5",
                Relation.GE,
                round(TABLE_5[Family.EXPONENTIAL][i] - TABLE_5[family][i], 3),
                _over(found, family, kind),
                baseline=(f"the {family.value} model", _r2(found, family, kind)),
            )
        for kind, relation, paper, tolerance in (
            (modelling.OVERALL, Relation.EQ, 0.12, 0.03),
            (modelling.IO_BOUND, Relation.LE, 0.14, 0.0),
            (modelling.CPU_BOUND, Relation.LE, 0.14, 0.0),
        ):
            yield row(
                f"figure-11-{_SHORT[kind]}",
                f"Mean error |y - ŷ| / y of the exponential model, {kind}",
                "Figure 11",
                relation,
                paper,
                _error(found, Family.EXPONENTIAL, kind),
                share=True,
                tolerance=tolerance,
                baseline=("the linear model", _error(found, Family.LINEAR, kind)),
            )


def _r2(found: Found, family: Family, kind: str) -> Estimate:
    return interval.mean([one[family.value, kind].r2 for one in found])


def _error(found: Found, family: Family, kind: str) -> Estimate:
    return interval.mean([one[family.value, kind].error for one in found])


def _over(found: Found, family: Family, kind: str) -> Estimate:
    ours = Family.EXPONENTIAL.value
    return interval.mean([one[ours, kind].r2 - one[family.value, kind].r2 for one in found])


def _table(found: Found) -> figures.Figure:
    values = {family: [_r2(found, family, kind) for kind in KINDS] for family in TABLE_5}
    panel = figures.Panel(
        title="Held-out samples",
        x=figures.Axis(label="Kind of task"),
        y=figures.Axis(label="R²", low=-1, high=1),
        categories=KINDS,
        marks=(
            *(bars(family.value, estimates) for family, estimates in values.items()),
            *(figures.Bars(label=f"the paper's {one.value}", values=r2, paper=True) for one, r2 in TABLE_5.items()),
        ),
    )
    said = ", ".join(f"{family.value} {estimates[-1].value:.2f}" for family, estimates in values.items())
    return figures.Figure(
        name="Table 5",
        title="R² of the three forms of model",
        panels=(panel,),
        paper_shape="Exponential 0.887 overall, quadratic 0.714, linear 0.657.",
        our_shape=f"Overall: {said}.",
    )


def _errors(found: Found) -> figures.Figure:
    values = {family: [_error(found, family, kind) for kind in KINDS] for family in TABLE_5}
    panel = figures.Panel(
        title="Held-out samples",
        x=figures.Axis(label="Kind of task"),
        y=figures.Axis(label="Mean error", low=0),
        categories=KINDS,
        marks=tuple(bars(family.value, estimates) for family, estimates in values.items()),
    )
    said = ", ".join(f"{family.value} {100 * estimates[-1].value:.0f} %" for family, estimates in values.items())
    return figures.Figure(
        name="Figure 11",
        title="Prediction error of the three forms of model",
        panels=(panel,),
        paper_shape="Exponential 12 % on average, below 14 % for all kinds; 10 to 15 % better than the others.",
        our_shape=f"Overall: {said}.",
    )
