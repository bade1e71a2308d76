"""Generalised least squares, fitted observation by observation (FSPY, III.A; Orsini et al., Stata Journal 6(1), 2006).

β = (Xᵀ Σ⁻¹ X)⁻¹ Xᵀ Σ⁻¹ y with Σ = σ²·diag(v). The paper states no Σ. What is predicted is a sum over N tasks, so its
variance grows with N: v = N (ours; known before the job runs, so the weights do not bias the coefficients).

Only the two sums are kept, so the state is small whatever was learnt, and the order of learning does not matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_policies import model

_NEGLIGIBLE = 1e-12


class LinearModel:
    """A linear model and what it learnt.

    Args:
        columns: Coefficients, the constant included.
        forgetting: How much an observation counts after the next one.
    """

    def __init__(self, columns: int, forgetting: float = 1.0) -> None:
        self.seen = 0
        self._forgetting = forgetting
        self._squares: npt.NDArray[np.float64] = np.zeros((columns, columns))
        self._products: model.FloatVector = np.zeros(columns)
        self._coefficients: model.FloatVector | None = None

    @property
    def columns(self) -> int:
        """How many coefficients it has."""
        return len(self._products)

    @property
    def coefficients(self) -> model.FloatVector:
        """β, shape [columns]; the one of least norm (columns scaled) while there are too few observations for more."""
        if self._coefficients is None:
            # Columns differ by ten orders of magnitude: scaled to the same before the inverse.
            scale = np.sqrt(self._squares.diagonal())
            scale = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
            inverse = np.linalg.pinv(self._squares * np.outer(scale, scale), rcond=_NEGLIGIBLE, hermitian=True)
            self._coefficients = scale * (inverse @ (scale * self._products))
        return self._coefficients

    def update(self, row: model.FloatVector, value: float, variance: float = 1.0) -> None:
        """Learn one observation.

        Args:
            row: Shape [columns].
            value: What was measured.
            variance: Relative to other observations', above 0.
        """
        self._squares = self._squares * self._forgetting + np.outer(row, row) / variance
        self._products = self._products * self._forgetting + row * (value / variance)
        self._coefficients = None
        self.seen += 1

    def fit(
        self,
        rows: Sequence[model.FloatVector],
        values: Sequence[float],
        variances: Sequence[float],
    ) -> None:
        """Forget all and learn these."""
        self.__init__(self.columns, self._forgetting)  # type: ignore[misc]  # one way to begin
        for row, value, variance in zip(rows, values, variances, strict=True):
            self.update(row, value, variance)

    def predict(self, row: model.FloatVector) -> float:
        """The value expected of a row."""
        return float(self.coefficients @ row)

    def dump(self) -> dict[str, Any]:
        """Its state as JSON values: n(n+1)/2 + n numbers."""
        upper = self._squares[np.triu_indices(self.columns)]
        return {"seen": self.seen, "squares": upper.tolist(), "products": self._products.tolist()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump; one of another number of columns is ignored.

        Raises:
            ValueError: Its numbers are no sums of squares.
        """
        products = np.array(state.get("products", ()), np.float64)
        upper = np.array(state.get("squares", ()), np.float64)
        rows, columns = np.triu_indices(self.columns)
        if products.shape != self._products.shape or upper.shape != rows.shape:
            return
        if not (np.isfinite(products).all() and np.isfinite(upper).all() and upper[rows == columns].min() >= 0):
            raise ValueError("not a dump of a linear model")
        self._products = products
        self._squares = np.zeros((self.columns, self.columns))
        self._squares[rows, columns] = self._squares[columns, rows] = upper
        self.seen = int(state.get("seen", 0))
        self._coefficients = None


def r_squared(actual: Sequence[float], predicted: Sequence[float]) -> float:
    """1 - Σ(y - ŷ)² / Σ(y - ȳ)²: 1 for perfect, 0 for no better than the mean, below 0 for worse.

    Raises:
        ValueError: All actual values are equal, so there is nothing to explain.
    """
    y, estimate = np.array(actual, np.float64), np.array(predicted, np.float64)
    spread = float(((y - y.mean()) ** 2).sum())
    if spread == 0:
        raise ValueError("R² needs at least two different values")
    return 1 - float(((y - estimate) ** 2).sum()) / spread
