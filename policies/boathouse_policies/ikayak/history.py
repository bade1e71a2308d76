"""What a running reducer's reports say: lags of the remaining time, and the samples to learn from once it has ended.

What is left cannot be measured while it runs: a lag is (1 - progress)/rate, with the rate since the present phase began
(readings). Each third of the progress is a phase, as Hadoop counts. Time during which the reducer was suspended counts
in no rate: what is predicted is the time that it must still run.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from boathouse_policies.ikayak.fuzzy import ANTECEDENTS, RULES, WIDTH, Sample

UNIT_S = 60.0
"""Times in the model are in minutes, so that all regressors are of about one size."""
UNIT_BYTES = float(1 << 30)
"""Inputs in the model are in GiB."""
LEAST_SEEN = 0.05
"""Of a phase, before its pace counts: that of its first moments may be wrong a hundredfold."""
MOST_SAMPLES = 128
"""Kept of a reducer; then every second one is dropped and only every second is taken."""


@dataclasses.dataclass(slots=True)
class _Lag:
    fraction: float
    left_s: float
    cpu: float


class History:
    """One reducer.

    Args:
        started_s: When it began to run.

    Attributes:
        now: The newest sample; None before there is one.
        at_s: Its time.
        times_s: Running time, without suspensions, at each kept sample.
        samples: The kept samples.
    """

    __slots__ = ("_away_s", "_before", "_phase", "_since_s", "_skip", "_taken", "at_s", "now", "samples", "times_s")

    def __init__(self, started_s: float) -> None:
        self._since_s = started_s
        self._phase = 0
        self._before: _Lag | None = None
        self._away_s = 0.0
        self._taken = 0
        self._skip = 1
        self.at_s = started_s
        self.now: Sample | None = None
        self.times_s: list[float] = []
        self.samples: list[Sample] = []

    def away(self, seconds: float) -> None:
        """It was suspended for so long, until now or before."""
        self._away_s += seconds

    def report(self, now_s: float, fraction: float, cpu: float, input_bytes: float) -> None:
        """A report of its progress.

        Args:
            now_s: When.
            fraction: 0..1.
            cpu: CPU that it has, as a share of what it asked for.
            input_bytes: Of the reducer.
        """
        running_s = now_s - self._away_s
        phase = min(int(fraction * RULES + _ROUNDING), RULES - 1)
        if phase != self._phase:
            self._since_s = self._began_s(phase, running_s)
            self._phase = phase
        done = fraction - phase / RULES
        if done * RULES < LEAST_SEEN or running_s <= self._since_s:
            return  # little is known of its pace yet: what the last sample said holds on
        lag = _Lag(fraction, (1.0 - fraction) * (running_s - self._since_s) / done, cpu)
        before = self._before or lag
        self._before = lag
        self.now, self.at_s = _sample(lag, before, input_bytes), now_s
        self._reserve(running_s)

    def _began_s(self, phase: int, running_s: float) -> float:
        """When the phase began: by the pace of the one before, between the last report and this one."""
        before = self._before
        if before is None or not self.times_s:
            return self._since_s
        pace = (1.0 - before.fraction) / max(before.left_s, _ROUNDING)
        last_s = self.at_s - self._away_s
        return min(max(last_s, last_s + (phase / RULES - before.fraction) / max(pace, _ROUNDING)), running_s - _SHORT_S)

    def _reserve(self, running_s: float) -> None:
        assert self.now is not None
        self._taken += 1
        if self._taken % self._skip:
            return
        self.times_s.append(running_s)
        self.samples.append(self.now)
        if len(self.samples) > MOST_SAMPLES:
            del self.times_s[::2], self.samples[::2]
            self._skip *= 2

    def labels(self, ended_s: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """What was really left at each kept sample, in the model's unit."""
        return np.maximum(ended_s - self._away_s - np.array(self.times_s), 0.0) / UNIT_S


def _sample(lag: _Lag, before: _Lag, input_bytes: float) -> Sample:
    size = input_bytes / UNIT_BYTES
    regressor = np.array([lag.left_s / UNIT_S, before.left_s / UNIT_S, before.cpu, lag.cpu, size, 1.0])
    premise = np.array([1.0 - lag.fraction, 1.0 - before.fraction, before.cpu, lag.cpu, size])
    assert len(regressor) == WIDTH
    assert len(premise) == ANTECEDENTS
    return Sample(regressor, premise)


def linear_s(sample: Sample) -> float:
    """What the newest lag alone says."""
    return float(sample.regressor[0]) * UNIT_S


_ROUNDING = 1e-9
_SHORT_S = 0.5  # a phase that is seen has lasted so long at least
