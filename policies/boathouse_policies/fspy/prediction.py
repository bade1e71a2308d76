"""Total execution times, predicted from a probe's features by two linear models (FSPY, III.A; eqs 6, 7 and 8).

A probe's input is sampled semi-randomly (Algorithm 1). Deviations:
* The loops run to `<`, and the swap reads splits[j], as its neighbours do: the text has `<=` and i and j mixed.
* Line 6 draws from all splits at each step, which makes some permutations likelier than others; a generator's own
  permutation does not.
* f_p is the bytes really read over all bytes (readings), as whole bytes are read of splits of unequal length.

The models are fitted by generalised least squares (Orsini et al., Stata Journal 6(1), 2006), one observation after the
other: β = (Xᵀ Σ⁻¹ X)⁻¹ Xᵀ Σ⁻¹ y with Σ = σ²·diag(v). The paper states no Σ. A prediction is a sum over N tasks, so its
variance grows with N: v = N (ours; known before the job runs, so the weights do not bias the coefficients). A model
keeps only the two sums, so its state is small, and the order of learning does not matter.

Deviations:
* Eq. 7 is lost in the text (a copy of eq. 6). From the parameters that III.A names and the eight betas it counts:
  SE_r = β0 + β1·N_r + β2·SE_m + β3·MO + β4·RFE + β5·RO + β6·RIR + β7·RIR·log RIR.
* log x is log max(x, 1): a job without output has no records to sort.
* A prediction below the function time itself (MFE, RFE), which a linear model may give, counts as that time.
* Predictions are kept per program (`Job.kind`), which the paper does not do: what one probe measured, per byte of
  input, serves the later jobs of its kind, which then need no probe and no time in the fair sub-queue.
* A model predicts only once it has learnt from `least_jobs` jobs; before, jobs stay in the fair sub-queue.
* With `best_model` the linear models compete with what is simpler: a program's mean time per byte of input.
"""

import dataclasses
import enum
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.programs import Contest, Programs
from boathouse_policies.fspy.config import Config


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a probing job reads."""

    parts: tuple[tuple[int, int], ...]  # (place of the split, bytes to read of it), in the order in which they are read
    fraction: float  # f_p


def sample(split_bytes: Sequence[int], *, reducers: int, most_splits: int, rng: np.random.Generator) -> Sample:
    """Run Algorithm 1 with a split for each map task; raise ValueError if none is read, of `most_splits` at most."""
    mappers = len(split_bytes)
    if mappers < 1 or most_splits < 1:
        raise ValueError(f"a probe samples at least 1 split, not {most_splits} of {mappers}")
    sample_fraction = 1 / max(mappers, reducers)
    sampled = min(mappers, most_splits)
    frequency = sample_fraction / (sampled / mappers)
    chosen = rng.permutation(mappers)[:sampled].tolist()
    parts = tuple((split, int(split_bytes[split] * frequency)) for split in chosen)
    total = sum(split_bytes)
    return Sample(parts=parts, fraction=sum(count for _, count in parts) / total if total else 0.0)


class Counter(enum.StrEnum):
    """What a probing job's one task reports, by Hadoop's names where Hadoop has one; amounts in `Features`' order."""

    SAMPLED_FRACTION = "Sampled fraction"  # f_p: bytes really read over all bytes of the input
    MAP_INPUT_BYTES = "Bytes Read"
    MAP_FUNCTION_S = "Map function seconds"
    MAP_OUTPUT_BYTES = "Map output bytes"
    MAP_OUTPUT_RECORDS = "Map output records"
    REDUCE_FUNCTION_S = "Reduce function seconds"
    REDUCE_OUTPUT_BYTES = "Bytes Written"
    REDUCE_INPUT_RECORDS = "Reduce input records"


class Features(NamedTuple):
    """What the models read of a whole job."""

    maps: int  # N_m
    reduces: int  # N_r; 0 for a job of maps alone
    map_input_bytes: float  # MI
    map_function_s: float  # MFE, summed over the maps, with all input local
    map_output_bytes: float  # MO
    map_output_records: float  # MOR
    reduce_function_s: float  # RFE, summed over the reduces
    reduce_output_bytes: float  # RO
    reduce_input_records: float  # RIR

    def amounts(self) -> model.FloatVector:
        """Return the amounts that grow with the input, MI first, shape [7]."""
        return np.array(self[2:])

    def map_row(self) -> model.FloatVector:
        """Return eq. 6 without its coefficients, shape [7]."""
        own = [self.maps, self.map_input_bytes, self.map_function_s, self.map_output_bytes]
        return np.array([1.0, *own, *_with_log(self.map_output_records)])

    def reduce_row(self, map_s: float) -> model.FloatVector:
        """Return eq. 7 without its coefficients, shape [8]; `map_s` is SE_m."""
        own = [self.reduces, map_s, self.map_output_bytes, self.reduce_function_s, self.reduce_output_bytes]
        return np.array([1.0, *own, *_with_log(self.reduce_input_records)])


AMOUNTS = tuple(Counter)[1:]  # the counters of `Features.amounts`, in that order


def scaled(counters: Mapping[str, float], *, maps: int, reduces: int) -> Features | None:
    """Compute eq. 8: a job's features from its probing job's counters, over f_p; None where that is not known or 0."""
    fraction = counters.get(Counter.SAMPLED_FRACTION, 0.0)
    if not 0 < fraction <= 1:
        return None
    amounts = [float(counters.get(counter, 0.0)) / fraction for counter in AMOUNTS]
    return Features(maps, reduces, *amounts) if all(0 <= amount < math.inf for amount in amounts) else None


class Source(enum.StrEnum):
    """What a job's predicted size is from."""

    STATED = "Stated"  # run times that somebody states for its classes
    PROBE = "Probe"
    PROGRAM = "Program"  # a probe of an earlier job of the program
    HISTORY = "History"  # the mean of earlier uber jobs, or of the program's earlier runs on Spark


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The predicted size of a job."""

    seconds: Mapping[model.Stage, float]  # run time of all tasks together, by stage
    byte_seconds: float  # memory times run time, over all tasks
    source: Source


class LinearModel:
    """A linear model and what it learnt. The columns are its coefficients, the constant included."""

    def __init__(self, columns: int, forgetting: float = 1.0) -> None:
        self.seen, self._forgetting = 0, forgetting
        self._squares: model.FloatVector = np.zeros((columns, columns))
        self._products: model.FloatVector = np.zeros(columns)
        self._coefficients: model.FloatVector | None = None

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
        """Learn one observation of a row, shape [columns]. Its variance, above 0, is relative to that of others."""
        self._squares = self._squares * self._forgetting + np.outer(row, row) / variance
        self._products = self._products * self._forgetting + row * (value / variance)
        self._coefficients = None
        self.seen += 1

    def predict(self, row: model.FloatVector) -> float:
        """Return the value expected of a row."""
        return float(self.coefficients @ row)

    def dump(self) -> dict[str, Any]:
        """Return its state as JSON values: n(n+1)/2 + n numbers."""
        upper = self._squares[np.triu_indices(len(self._products))]
        return {"seen": self.seen, "squares": upper.tolist(), "products": self._products.tolist()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump, unless it is of other columns; a ValueError says that it is no sums of squares."""
        products = np.array(state.get("products", ()), np.float64)
        upper = np.array(state.get("squares", ()), np.float64)
        rows, columns = np.triu_indices(len(self._products))
        if products.shape != self._products.shape or upper.shape != rows.shape:
            return
        if not (np.isfinite(products).all() and np.isfinite(upper).all() and upper[rows == columns].min() >= 0):
            raise ValueError("not a dump of a linear model")
        self._products = products
        self._squares[rows, columns] = self._squares[columns, rows] = upper
        self.seen = int(state.get("seen", 0))
        self._coefficients = None


class Sums:
    """Sums by program: of a base, such as the input of its jobs or their number, and of amounts that go with it."""

    def __init__(self, kept: int, width: int) -> None:
        self._width = width
        self._sums: Programs[tuple[float, ...]] = Programs(kept)

    def add(self, kind: str, *amounts: float) -> None:
        """Add a job's base and amounts."""
        known = self._sums.get(kind)
        self._sums.put(kind, amounts if known is None else tuple(map(operator.add, known, amounts)))

    def scaled(self, kind: str, base: float, *, as_used: bool = False) -> list[float] | None:
        """Return base and amounts in proportion to this base; None without any, or for an unknown program."""
        sums = self._sums.use(kind) if as_used else self._sums.get(kind)
        return None if sums is None or base <= 0 else [amount * (base / sums[0]) for amount in sums]

    def mean(self, kind: str) -> float | None:
        """Return the first amount over the base; None for an unknown program."""
        sums = self._sums.get(kind)
        return None if sums is None else sums[1] / sums[0]

    def dump(self) -> dict[str, list[float]]:
        """Return the sums as JSON values."""
        return {kind: list(sums) for kind, sums in self._sums.items()}

    def load(self, dumped: Any) -> None:
        """Continue from a dump, without the entries of it that are invalid."""
        self._sums.clear()
        for kind, sums in dumped.items() if isinstance(dumped, dict) else ():
            if isinstance(sums, list) and len(sums) == self._width and all(map(_is_amount, sums)) and sums[0] > 0:
                self._sums.put(str(kind), tuple(sums))


def _is_amount(found: Any) -> bool:
    return isinstance(found, int | float) and 0 <= found < math.inf


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TotalTimes:
    """SE_m and SE_r."""

    map_s: float
    reduce_s: float


class Predictor:
    """The two models, of SE_m and SE_r, the features of known programs, and means of those that the models do not know.

    Means are of the run time of an uber task, and of the memory-seconds, in bytes, of a Spark application's executors.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        kept = config.kinds_kept
        self.maps = LinearModel(7, config.forgetting)  # eq. 6
        self.reduces = LinearModel(8, config.forgetting)  # eq. 7
        self.kinds = Sums(kept, len(AMOUNTS))  # of the input and the other amounts of probed jobs
        self.rates = Sums(kept, 3)  # of the input, and of the times of maps and reduces
        self.contest = Contest(kept, 2)
        self.uber, self.apps = Sums(kept + 1, 2), Sums(kept + 1, 2)  # one more for all, a group of its own

    def learn(self, features: Features, times: TotalTimes, kind: str = "") -> None:
        """Learn from a job that ended: its probed features and its actual times, and which model knew them best."""
        if kind and self._config.best_model and features.map_input_bytes > 0:
            self._judge(features, times, kind)
            self.rates.add(kind, features.map_input_bytes, times.map_s, times.reduce_s)
        if features.maps:
            self.maps.update(features.map_row(), times.map_s, features.maps)
        if features.reduces:
            self.reduces.update(features.reduce_row(times.map_s), times.reduce_s, features.reduces)

    def _judge(self, features: Features, times: TotalTimes, kind: str) -> None:
        linear, rated = self._linear(features), self._rated(features, kind)
        actual_s = times.map_s + times.reduce_s
        if linear is not None and rated is not None and actual_s > 0:
            self.contest.judge(kind, [abs(of.map_s + of.reduce_s - actual_s) / actual_s for of in (linear, rated)])

    def _rated(self, features: Features, kind: str) -> TotalTimes | None:
        found = self.rates.scaled(kind, features.map_input_bytes)
        return None if found is None else TotalTimes(map_s=found[1], reduce_s=found[2])

    def standing(self, kind: str) -> tuple[int, float] | None:
        """Return which model is the best at a program (0: the linear ones), and its mean relative error."""
        error = self.contest.error(kind) if self._config.best_model else None
        return None if error is None else (self.contest.best(kind), error)

    def predict(self, features: Features, kind: str = "") -> TotalTimes | None:
        """Predict the times of a job; None while too little was learnt."""
        best, _ = self.standing(kind) or (0, 0.0)
        return self._rated(features, kind) if best else self._linear(features)

    def _linear(self, features: Features) -> TotalTimes | None:
        """Predict by the two models; SE_r from the predicted SE_m, as the actual one is not known yet."""
        least = self._config.least_jobs
        if (features.maps and self.maps.seen < least) or (features.reduces and self.reduces.seen < least):
            return None
        map_s = max(self.maps.predict(features.map_row()), features.map_function_s) if features.maps else 0.0
        row = features.reduce_row(map_s)
        reduce_s = max(self.reduces.predict(row), features.reduce_function_s) if features.reduces else 0.0
        return TotalTimes(map_s=map_s, reduce_s=reduce_s)

    def remember(self, kind: str, features: Features) -> None:
        """Keep what a probe of a program measured."""
        if kind and features.map_input_bytes > 0:
            self.kinds.add(kind, *features.amounts().tolist())

    def recall(self, kind: str, *, input_bytes: float, maps: int, reduces: int) -> Features | None:
        """Return the features of a job of a program that was probed before, by its input; None if it was not."""
        amounts = self.kinds.scaled(kind, input_bytes, as_used=True)
        return None if amounts is None else Features(maps, reduces, *amounts)

    def learn_uber(self, kind: str, task_s: float) -> None:
        """Learn from an uber task that succeeded."""
        for key in dict.fromkeys((kind, _ALL)):
            self.uber.add(key, 1, task_s)

    def uber_s(self, kind: str) -> float | None:
        """Return the historic mean: of the program where it is known, else of all; None if there is none."""
        known_s = self.uber.mean(kind)
        return self.uber.mean(_ALL) if known_s is None else known_s

    def dump(self) -> dict[str, Any]:
        """Return its state as JSON values."""
        return {name: getattr(self, name).dump() for name in _PARTS}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump, which may lack entries; a ValueError says that the dump of a model is none."""
        for name in _PARTS:
            getattr(self, name).load(state.get(name, {}))


def _with_log(x: float) -> tuple[float, float]:
    return x, x * math.log(max(x, 1.0))


_PARTS = ("maps", "reduces", "kinds", "uber", "apps", "rates", "contest")  # of a predictor's state
_ALL = ""
_NEGLIGIBLE = 1e-12
