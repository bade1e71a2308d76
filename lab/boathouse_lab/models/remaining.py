"""The remaining time of reduces: iKayak's model beside others, on the reducers of `reproduce.ikayak.predicting`."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from boathouse_lab.models.comparison import Comparison, Origin, nrmse
from boathouse_lab.reproduce.ikayak import predicting
from boathouse_policies import ikayak, model
from boathouse_policies.ikayak.predictors import Fuzzy
from boathouse_policies.ikayak.remaining import UNIT_S, Bank, History, Predictor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_lab.reproduce.ikayak.predicting import Recorded, Trial
    from boathouse_policies.ikayak.predictors import Sample
    from boathouse_policies.model import FloatVector

_ABOUT = """
The simulator's reducers of three programs, that copy, sort and reduce beside Spark applications on iKayak's testbed.
Run times vary by 20 %, inputs by 25 %. The first 60 % of the jobs are learned from, the reducers of the others are held
out. The error is the root mean square error over the mean of what was left, and over the range of it (the paper says
only "NRMSE"), of all reports; and over the mean, of the report nearest to each reducer's half.
""".strip()

LINEAR = ("progress at its present rate", Origin.TRIVIAL)
MEAN = ("mean of the program, less the time so far", Origin.TRIVIAL)
WRITTEN = ("fuzzy model, each sample an observation", Origin.PAPER)
FUZZY = ("fuzzy model, each reducer an observation", Origin.OURS)
PHASES = ("lengths of the phases of earlier reducers, by input", Origin.MODERN)
BEST = ("whichever has predicted the program best so far", Origin.BEST)
_BANK = {MEAN: Predictor.MEAN, FUZZY: Predictor.FUZZY, PHASES: Predictor.PHASES}


class AsWritten(Fuzzy):
    """The fuzzy model, updated at each sample as eq. 6 says, which counts and forgets by samples."""

    @override
    def fit(self, samples: Sequence[Sample], labels: FloatVector) -> None:
        """Learn a reducer's history."""
        rows = self.rows(samples) if samples else np.empty((0, 0))
        for place in range(len(rows)):
            last = slice(max(0, place - 1), place + 1)
            weights = np.sqrt([self._config.discount, 1.0])[-1 - min(place, 1) :]
            self.learn(rows[last] * weights[:, None], labels[last] * weights, self._config.forgetting)


def compare(trials: Sequence[Trial]) -> Comparison:
    """Return the errors of all predictors, a run for each trial."""
    runs: dict[tuple[str, Origin], list[tuple[float, ...]]] = collections.defaultdict(list)
    for trial in trials:
        for key, errors in _errors(predicting.simulate(trial), trial).items():
            runs[key].append(errors)
    columns = ("error / mean", "error / range", "error / mean, at the half")
    return Comparison(title="Remaining time of reduces (iKayak)", about=_ABOUT, columns=columns, rows=runs)


def _errors(recorded: Sequence[Recorded], trial: Trial) -> Mapping[tuple[str, Origin], tuple[float, ...]]:
    bank = Bank(ikayak.Config(best_predictor=True))
    written: dict[str, AsWritten] = collections.defaultdict(lambda: AsWritten(ikayak.Config()))
    learnt = trial.learnt * trial.jobs
    for one in recorded:
        if one.number < learnt:
            history = one.history()
            written[one.program].fit(history.samples, history.labels(one.ended_s))
            bank.learn(one.program, history, one.ended_s)
            bank.ended(one.program, model.Stage.REDUCE, one.ended_s - one.started_s)
    found: dict[tuple[str, Origin], list[float]] = collections.defaultdict(list)
    left: list[float] = []
    halves: list[int] = []
    for one in recorded:
        if one.number >= learnt:
            first = len(left)
            done = _predict(one, bank, written[one.program], found, left)
            if done:
                halves.append(first + int(np.argmin(np.abs(np.array(done) - 0.5))))
    actual = np.array(left)
    return {key: _of(np.array(values), actual, halves) for key, values in found.items()}


def _of(predicted: FloatVector, actual: FloatVector, halves: Sequence[int]) -> tuple[float, ...]:
    error, at = nrmse(predicted, actual), list(halves)
    return error, error * float(actual.mean() / np.ptp(actual)), nrmse(predicted[at], actual[at])


def _predict(
    one: Recorded, bank: Bank, written: Fuzzy, found: Mapping[tuple[str, Origin], list[float]], left: list[float]
) -> list[float]:
    """Add each predictor's values at each report, and what was left; return the progress at each."""
    history, done = History(one.started_s), []
    for now_s, fraction, cpu, size in one.reports:
        history.report(now_s, fraction, cpu, size)
        if history.now is None:
            continue
        age_s, program, samples = now_s - history.at_s, one.program, [history.now]
        values = {key: float(bank.predicted(program, by, samples)[0]) * UNIT_S - age_s for key, by in _BANK.items()}
        values[WRITTEN] = float(written.predict(samples)[0]) * UNIT_S - age_s
        values[BEST] = float(bank.left_s([program], samples)[0]) - age_s
        values[LINEAR] = (1.0 - fraction) * (now_s - one.started_s) / fraction
        for key in (LINEAR, MEAN, WRITTEN, FUZZY, PHASES, BEST):
            found[key].append(max(0.0, values[key]))
        left.append(one.ended_s - now_s)
        done.append(fraction)
    return done
