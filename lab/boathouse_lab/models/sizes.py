"""The size of jobs: FSPY's models beside others, on the jobs of `reproduce.fspy_workload`."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

import numpy as np

from boathouse_lab.models.comparison import Comparison, Origin, r2, relative_error
from boathouse_lab.reproduce import fspy_workload
from boathouse_policies.fspy import Config
from boathouse_policies.fspy.prediction import Predictor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from boathouse_lab.reproduce.fspy_workload import Observed
    from boathouse_policies.model import FloatVector

_ABOUT = """
Jobs of five programs by the cost model of `reproduce fspy`, with 10 % noise on what a probe measures and on run times;
half are learned from, half are held out. The size is memory times run time of all tasks. Errors are the mean of
|y - ŷ| / y, and R².
"""
NOISE = 0.10
_RIDGE = 1.0
_WRITTEN, _BEST = Config(), Config(best_model=True)


def compare(seeds: int, jobs: int = 400) -> Comparison:
    """Return the errors of all predictors, a run for each seed."""
    runs: dict[tuple[str, Origin], list[tuple[float, ...]]] = collections.defaultdict(list)
    for seed in range(seeds):
        observed = fspy_workload.generate(jobs, NOISE, np.random.default_rng([seed, round(NOISE * 1000)]))
        train, held_out = observed[: jobs // 2], observed[jobs // 2 :]
        actual = _sizes(held_out)
        for key, fit in _PREDICTORS.items():
            predicted = np.array(list(map(fit(train), held_out)))
            runs[key].append((relative_error(predicted, actual), r2(predicted, actual)))
    return Comparison(title="Size of jobs (FSPY)", about=_ABOUT.strip(), columns=("error", "R²"), rows=runs)


def _sizes(jobs: Sequence[Observed]) -> FloatVector:
    return np.array([job.size_gib_s(job.times) for job in jobs])


def _mean(train: Sequence[Observed]) -> Callable[[Observed], float]:
    mean = float(_sizes(train).mean())
    return lambda _: mean


def _by_program(train: Sequence[Observed]) -> Callable[[Observed], float]:
    sums: dict[str, list[float]] = collections.defaultdict(lambda: [0.0, 0.0])
    for job, size in zip(train, _sizes(train).tolist(), strict=True):
        total = sums[job.program.name]
        total[0], total[1] = total[0] + size, total[1] + job.probed.map_input_bytes
    rates = {name: size / amount for name, (size, amount) in sums.items()}
    return lambda job: rates[job.program.name] * job.probed.map_input_bytes


def _paper(train: Sequence[Observed], config: Config = _WRITTEN) -> Callable[[Observed], float]:
    predictor = Predictor(config)
    for job in train:
        predictor.learn(job.probed, job.times, job.program.name)

    def predict(job: Observed) -> float:
        found = predictor.predict(job.probed, job.program.name)
        if found is None:
            raise ValueError(f"{len(train)} jobs are too few to learn from")
        return job.size_gib_s(found)

    return predict


def _logarithmic(train: Sequence[Observed]) -> Callable[[Observed], float]:
    """Ridge regression of the logarithm of the size on those of all features of the probe, and their squares."""
    rows, goal = np.array([_logs(job) for job in train]), np.log(_sizes(train))
    centre, scale = rows.mean(axis=0), np.maximum(rows.std(axis=0), 1e-9)
    z, mean = (rows - centre) / scale, float(goal.mean())
    weights = np.linalg.solve(z.T @ z + _RIDGE * np.eye(z.shape[1]), z.T @ (goal - mean))
    return lambda job: float(np.exp((_logs(job) - centre) / scale @ weights + mean))


def _logs(job: Observed) -> FloatVector:
    logs = np.log1p(np.array(job.probed, np.float64))
    return np.concatenate([logs, logs**2])


_PREDICTORS: Mapping[tuple[str, Origin], Callable[[Sequence[Observed]], Callable[[Observed], float]]] = {
    ("mean of all jobs", Origin.TRIVIAL): _mean,
    ("input bytes times the program's mean rate", Origin.TRIVIAL): _by_program,
    ("two linear models of the probe's features", Origin.PAPER): _paper,
    ("ridge regression of logarithms", Origin.MODERN): _logarithmic,
    ("the rate or the linear models, whichever has predicted the program best so far", Origin.BEST): (
        lambda train: _paper(train, _BEST)
    ),
}
