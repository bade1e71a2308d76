"""Fit the run time of a stage's tasks to their input, from sums over runs in tables of bounded size.

    run time = a + b · input bytes,    a ≥ 0, b ≥ 0

A task starts, and then works through its input. The slope b is that of least squares, drawn towards half of the run
time at the mean input as strongly as the noise asks (ridge): after runs of one size nothing else is known. The line is
not followed further than `REACH` times beyond the sizes that were seen.

* Outliers: a run counts as at most `_MOST_DEVIATIONS` deviations more than was expected. Of the first few runs one that
  took a multiple of the next is forgotten.
* Drift: beyond `MAX_WEIGHT` runs each new one replaces an equal share of the older ones. A run at the mean input says
  nothing of the slope, so it makes nothing of it forgotten: thousands of full blocks leave known what a small input
  takes.
* What a run time differs by is measured as the runs come, each against what was expected of it before.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Final, NamedTuple, Self, TypeGuard, TypeVar

from boathouse_policies.framework.programs import Programs, numbers

PROGRAMS_KEPT: Final = 256  # stages of programs in a table
NAMESPACE_KEPT: Final = 64  # stages of programs of one namespace in a table
_KEY_SLASHES: Final = 3  # of a key: `NAMESPACE/HASH/STEP/STAGE`
_MAX_KEY_LENGTH: Final = 128
_Added = TypeVar("_Added", bound="Sums")


class Table(Programs[_Added]):
    """Sums by key, the least recently updated first. Of a dump, invalid entries are left out, as an older version's."""

    def __init__(self, kind: type[_Added], dumped: object = None) -> None:
        super().__init__(PROGRAMS_KEPT, NAMESPACE_KEPT)
        self._kind = kind
        for key, values in dumped.items() if isinstance(dumped, dict) else ():
            if _is_key(key) and (sums := kind.restored(numbers(values))) is not None:
                self.put(key, sums)

    def add(self, key: str, seconds: float, input_bytes: float) -> None:
        """Add a run, which makes its key the most recently updated one."""
        seconds = min(max(seconds, LEAST_SECONDS), MAX_SECONDS)
        input_bytes = min(input_bytes, MAX_BYTES) if input_bytes >= 1 else 0.0
        known = self.get(key)
        self.put(key, self._kind.first(seconds, input_bytes) if known is None else known.after(seconds, input_bytes))

    def dump(self) -> dict[str, list[float]]:
        """Return the sums as JSON values."""
        return {key: list(dataclasses.astuple(sums)) for key, sums in self.items()}


class Maxima(Programs[float]):
    """Bytes by key, the least recently updated first. Of a dump, invalid entries are left out."""

    def __init__(self, dumped: object = None) -> None:
        super().__init__(PROGRAMS_KEPT, NAMESPACE_KEPT)
        for key, size in dumped.items() if isinstance(dumped, dict) else ():
            if _is_key(key) and isinstance(size, int | float) and 0 < size <= MAX_BYTES:
                self.raise_to(key, float(size))

    def raise_to(self, key: str, size: float) -> None:
        """Raise the maximum of a key."""
        self.put(key, max(self.get(key, 0.0), min(size, MAX_BYTES)))


def _is_key(key: object) -> TypeGuard[str]:
    return isinstance(key, str) and key.count("/") == _KEY_SLASHES and len(key) <= _MAX_KEY_LENGTH


MAX_WEIGHT: Final = 64
"""Older runs count less: from this number on, each new run replaces an equal share of the older ones."""
REACH: Final = 4.0  # how many times beyond the smallest and the largest input seen an estimate follows the line
FEW: Final = 5  # runs before which one may turn out to have been an outlier
LEAST_SECONDS: Final = 1e-6
MAX_SECONDS: Final = 10 * 365 * 86400.0
MAX_BYTES: Final = 2.0**63
_TOO_LONG: Final = 4.0  # how many times longer than the next run, of as much input, such a run took
_MOST_DEVIATIONS: Final = 3.0
_FIRST_DEVIATION: Final = 0.5  # of a run time, as a share, before a second run was seen
_LEAST_DEVIATION: Final = 0.05  # the same at all times: no tasks are more alike


class Estimate(NamedTuple):
    """The run time of a task, its deviation with what is not known of the line, and how many runs it rests on."""

    mean_s: float
    deviation_s: float
    runs: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Sums over runs."""

    weight: float  # their number, at most `MAX_WEIGHT`
    seconds: float  # their run times
    input_bytes: float  # their input, or another amount that is compared with the seconds; 0 where no run told

    @classmethod
    def first(cls, seconds: float, input_bytes: float) -> Self:
        """Return the sums of one run."""
        return cls(weight=1.0, seconds=seconds, input_bytes=input_bytes)

    @classmethod
    def restored(cls, numbers: Sequence[float]) -> Self | None:
        """Return the sums whose fields these finite numbers are; None where no sums can have them."""
        if len(numbers) != len(dataclasses.fields(cls)):
            return None
        found = cls(**dict(zip((field.name for field in dataclasses.fields(cls)), numbers, strict=True)))
        return found if found.is_possible() else None

    def is_possible(self) -> bool:
        """Return whether runs can have such sums."""
        return 1 <= self.weight <= MAX_WEIGHT and 0 < self.mean_s <= MAX_SECONDS and 0 <= self.mean_bytes <= MAX_BYTES

    def after(self, seconds: float, input_bytes: float) -> Self:
        """Return the sums with another run."""
        keep = self._kept
        return dataclasses.replace(
            self,
            weight=self.weight * keep + 1,
            seconds=self.seconds * keep + seconds,
            input_bytes=self.input_bytes * keep + input_bytes,
        )

    @property
    def _kept(self) -> float:
        return min(1.0, (MAX_WEIGHT - 1) / self.weight)

    @property
    def mean_s(self) -> float:
        """Return the mean run time."""
        return self.seconds / self.weight

    @property
    def mean_bytes(self) -> float:
        """Return the mean input of a run."""
        return self.input_bytes / self.weight


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Runs(Sums):
    """Sums over runs that give a line."""

    spread: float = 0.0  # the squares of the inputs' distances from their mean
    joint: float = 0.0  # the products of these with the run times' distances from theirs
    variance: float = 0.0  # of run times of one input, in square seconds
    least_bytes: float = 0.0  # the smallest input seen; 0 where no run told
    most_bytes: float = 0.0  # the largest

    @classmethod
    def first(cls, seconds: float, input_bytes: float) -> Self:
        """Return the sums of one run."""
        return cls.of(Sums.first(seconds, input_bytes))

    @classmethod
    def of(cls, sums: Sums) -> Self:
        """Return what is known where there are no other sums: runs of one size."""
        variance, size = (_FIRST_DEVIATION * sums.mean_s) ** 2, sums.mean_bytes
        return cls(**dataclasses.asdict(sums), variance=variance, least_bytes=size, most_bytes=size)

    @classmethod
    def restored(cls, numbers: Sequence[float]) -> Self | None:
        """Return the sums whose fields these numbers are, or those of an earlier version, which had no line."""
        sums = Sums.restored(numbers)
        return super(Runs, cls).restored(numbers) if sums is None else cls.of(sums)

    def is_possible(self) -> bool:
        """Return whether runs can have such sums."""
        are_ordered = 0 <= self.least_bytes <= self.most_bytes <= MAX_BYTES
        return Sums.is_possible(self) and min(self.spread, self.variance) >= 0 and are_ordered

    def after(self, seconds: float, input_bytes: float) -> Self:
        """Return the sums with another run; one whose input is not known counts as of the mean input."""
        if self._began_with_an_outlier(seconds, input_bytes):
            return self.first(seconds, input_bytes)
        if self.input_bytes <= 0 < input_bytes:  # the first that tells
            known = {"least_bytes": input_bytes, "most_bytes": input_bytes, "input_bytes": self.weight * input_bytes}
            return dataclasses.replace(self, **known).after(seconds, input_bytes)
        size = input_bytes if input_bytes > 0 else self.mean_bytes
        expected = self.estimate(size)
        seconds = min(seconds, expected.mean_s + _MOST_DEVIATIONS * expected.deviation_s)
        missed = (seconds - expected.mean_s) / max(expected.deviation_s, _TINY)
        sums = Sums.after(self, seconds, size)
        longer_s, larger, kept = seconds - self.mean_s, size - self.mean_bytes, self.weight * self._kept
        part = kept / (kept + 1)
        news = part * larger**2
        keep = 1.0 - (1.0 - self._kept) * min(1.0, self.weight * news / max(self.spread, _TINY))
        return dataclasses.replace(
            sums,
            spread=self.spread * keep + news,
            joint=self.joint * keep + part * larger * longer_s,
            variance=self.variance + (missed**2 * self._noise - self.variance) / sums.weight,
            least_bytes=min(self.least_bytes, size),
            most_bytes=max(self.most_bytes, size),
        )

    def _began_with_an_outlier(self, seconds: float, input_bytes: float) -> bool:
        smaller = min(1.0, input_bytes / self.mean_bytes) if min(input_bytes, self.input_bytes) > 0 else 1.0
        return self.weight < FEW and _TOO_LONG * seconds < self.mean_s * smaller

    @property
    def _noise(self) -> float:
        """The variance, of tasks that are never quite alike."""
        return max(self.variance, (_LEAST_DEVIATION * self.mean_s) ** 2)

    def _line(self) -> tuple[float, float]:
        """Return the slope in seconds per byte, and the variance of what is known of it."""
        if self.input_bytes <= 0:
            return 0.0, 0.0
        usual, noise = 0.5 * self.mean_s / self.mean_bytes, max(self._noise, _TINY)
        if usual <= 0:
            return 0.0, 0.0
        certainty = self.spread / noise + usual**-2
        slope = (self.joint / noise + 1.0 / usual) / certainty
        return min(max(slope, 0.0), 2.0 * usual), 1.0 / certainty  # a steeper line would have a negative intercept

    def estimate(self, input_bytes: float) -> Estimate:
        """Return the run time of a task with this input; of one with the mean input where it is not known."""
        size = input_bytes if input_bytes > 0 and self.input_bytes > 0 else self.mean_bytes
        slope, doubt = self._line()
        within = min(max(size, self.least_bytes / REACH), self.most_bytes * REACH)
        variance = self._noise * (1.0 + 1.0 / self.weight) + doubt * (size - self.mean_bytes) ** 2
        return Estimate(self.mean_s + slope * (within - self.mean_bytes), math.sqrt(variance), self.weight)


_TINY: Final = 1e-30
