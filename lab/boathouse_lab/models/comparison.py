"""A table of predictors, and what their errors are."""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING

import numpy as np

from boathouse_lab.reproduce import interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boathouse_policies.model import FloatVector


class Origin(enum.StrEnum):
    """Where a predictor is from."""

    TRIVIAL = "trivial"
    PAPER = "the paper's, as written"
    OURS = "ours"
    MODERN = "modern"
    BEST = "profile `boathouse`"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A table.

    Attributes:
        title: What is predicted.
        about: Whose data, what is held out, and what the columns are, in Markdown.
        columns: Measures of error.
        rows: (predictor, origin) to the errors of each column in each independent run.
    """

    title: str
    about: str
    columns: tuple[str, ...]
    rows: Mapping[tuple[str, Origin], Sequence[tuple[float, ...]]]

    def table(self) -> str:
        """Return the section in Markdown."""
        head = f"| predictor | origin | {' | '.join(self.columns)} |\n{'|---' * (len(self.columns) + 2)}|"
        lines = [f"| {name} | {origin} | {' | '.join(_cells(runs))} |" for (name, origin), runs in self.rows.items()]
        return "\n".join([f"## {self.title}", "", self.about, "", head, *lines, ""])


def _cells(runs: Iterable[tuple[float, ...]]) -> list[str]:
    return [_cell(interval.mean(found)) for found in zip(*runs, strict=True)]


def _cell(found: interval.Estimate) -> str:
    spread = "" if found.interval is None else f" ({found.interval[0]:.2f} to {found.interval[1]:.2f})"
    return f"{found.value:.2f}{spread}"


def nrmse(predicted: FloatVector, actual: FloatVector) -> float:
    """Return the root mean square error over the mean of the actual values."""
    return float(np.sqrt(np.mean((predicted - actual) ** 2)) / actual.mean())


def relative_error(predicted: FloatVector, actual: FloatVector) -> float:
    """Return the mean of |y - ŷ| / y."""
    return float(np.mean(np.abs(predicted - actual) / actual))


def r2(predicted: FloatVector, actual: FloatVector) -> float:
    """Return the coefficient of determination."""
    return 1.0 - float(((actual - predicted) ** 2).sum()) / float(((actual - actual.mean()) ** 2).sum())
