"""Jobs whose run times are not of the family that FSPY fits, and how well FSPY predicts them.

Eqs 6 and 7 are linear in a few sums over a job. Here a task's run time has steps (spills, merge passes, waves), a
sorting term in the records of one task rather than of the job, and rates that depend on how many tasks run at once.
What is left is noise: `noise` is the coefficient of variation, log-normal with mean 1, of

* each total run time, map and reduce apart: neighbours, disks, stragglers;
* each function time and amount that a probe measures: a small sample of skewed input.

The paper's own workload and cluster are not public; what stands below as constants is assumed, in its cluster's order
of size (III.A, IV.A: 64 MB blocks, 8 slaves of 8 cores).
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies.fspy import Config
from boathouse_policies.fspy.prediction import Features, Predictor, TotalTimes

if TYPE_CHECKING:
    from collections.abc import Sequence

MB, GIB = 1e6, 1 << 30
BLOCK_BYTES = 64 << 20
SLOTS = 64
MAP_CONTAINER_GIB, REDUCE_CONTAINER_GIB = 1.0, 2.0

_START_S = 1.5
_DISK_BYTES_PER_S = 90 * MB
_NETWORK_BYTES_PER_S = 60 * MB
_SORT_BUFFER_BYTES = 40 * MB
_SORT_S_PER_COMPARISON = 6e-8
_MERGE_FACTOR = 10
_REMOTE_SHARE = 0.3
_REPLICAS = 2
_SLOW_START = 0.8


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What a program does with its input.

    Attributes:
        name: Its kind.
        map_s_per_mb: Function time for each MB of input.
        record_bytes: Of a map's output record.
        map_selectivity: Output over input bytes of the maps.
        combine: Share of the map output's records that reach the reduces.
        reduce_s_per_mb: Function time for each MB of map output.
        reduce_selectivity: Output over input bytes of the reduces.
    """

    name: str
    map_s_per_mb: float
    record_bytes: float
    map_selectivity: float
    combine: float
    reduce_s_per_mb: float
    reduce_selectivity: float


PROGRAMS = (
    Program(
        name="wordcount",
        map_s_per_mb=0.12,
        record_bytes=12,
        map_selectivity=1.4,
        combine=0.1,
        reduce_s_per_mb=0.01,
        reduce_selectivity=0.05,
    ),
    Program(
        name="sort",
        map_s_per_mb=0.01,
        record_bytes=100,
        map_selectivity=1.0,
        combine=1.0,
        reduce_s_per_mb=0.01,
        reduce_selectivity=1.0,
    ),
    Program(
        name="grep",
        map_s_per_mb=0.05,
        record_bytes=80,
        map_selectivity=0.01,
        combine=1.0,
        reduce_s_per_mb=0.01,
        reduce_selectivity=1.0,
    ),
    Program(
        name="join",
        map_s_per_mb=0.03,
        record_bytes=60,
        map_selectivity=0.7,
        combine=1.0,
        reduce_s_per_mb=0.08,
        reduce_selectivity=1.5,
    ),
    Program(
        name="model",
        map_s_per_mb=0.4,
        record_bytes=30,
        map_selectivity=0.1,
        combine=1.0,
        reduce_s_per_mb=0.2,
        reduce_selectivity=0.1,
    ),
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A job: what its probe said, and what it took.

    Attributes:
        program: What ran.
        probed: Features as the probe has them, noise and all.
        times: SE_m and SE_r as they were.
    """

    program: Program
    probed: Features
    times: TotalTimes

    def size_gib_s(self, times: TotalTimes) -> float:
        """Compute eq. 5 in memory, for these times."""
        return MAP_CONTAINER_GIB * times.map_s + REDUCE_CONTAINER_GIB * times.reduce_s


def generate(count: int, noise: float, rng: np.random.Generator) -> list[Observed]:
    """Return jobs of all programs, their input log-normal about 4 GB.

    Args:
        count: How many.
        noise: Coefficient of variation, 0 for none.
        rng: Draws programs, inputs and noise.
    """
    return [_job(noise, rng) for _ in range(count)]


def _job(noise: float, rng: np.random.Generator) -> Observed:
    program = PROGRAMS[int(rng.integers(len(PROGRAMS)))]
    input_bytes = float(np.clip(rng.lognormal(math.log(4e9), 1.2), 1e6, 2e11))
    exact = features_of(program, input_bytes, reduces=max(1, min(SLOTS // 2, round(input_bytes / 1e9))))
    return _observed(program, exact, run_times(program, exact), noise, rng)


def replayed(
    program: Program, input_bytes: float, reduces: int, *, noise: float = 0.0, rng: np.random.Generator
) -> Observed:
    """Replay a job of a trace, whose reduces start after its maps: none of their time is waiting for maps.

    Args:
        program: With the trace's ratios; see `with_ratios`.
        input_bytes: Above 0.
        reduces: At least 1.
        noise: Coefficient of variation, 0 for none.
        rng: Draws the noise.
    """
    exact = features_of(program, input_bytes, reduces)
    return _observed(program, exact, run_times(program, exact, overlap=False), noise, rng)


def with_ratios(input_bytes: float, shuffle_bytes: float, output_bytes: float, like: Program) -> Program:
    """Return a program that turns this input into these amounts, at the costs of another (as for SWIM's jobs).

    Args:
        input_bytes: Above 0.
        shuffle_bytes: Above 0.
        output_bytes: What the reduces write.
        like: Its function times and records.
    """
    return dataclasses.replace(
        like,
        name="",
        map_selectivity=shuffle_bytes / input_bytes,
        combine=1.0,
        reduce_selectivity=output_bytes / shuffle_bytes,
    )


def _observed(
    program: Program, exact: Features, times: tuple[float, float], noise: float, rng: np.random.Generator
) -> Observed:
    blurred = exact.amounts() * blur(noise, rng, 7)
    blurred[0] = exact.map_input_bytes  # the input's length is known, not measured
    on_map, on_reduce = blur(noise, rng, 2)
    return Observed(
        program=program,
        probed=Features(exact.maps, exact.reduces, *blurred.tolist()),
        times=TotalTimes(map_s=times[0] * on_map, reduce_s=times[1] * on_reduce),
    )


def features_of(program: Program, input_bytes: float, reduces: int) -> Features:
    """Return a job's features without noise."""
    map_output_bytes = input_bytes * program.map_selectivity
    shuffled_bytes = map_output_bytes * program.combine
    return Features(
        maps=max(1, math.ceil(input_bytes / BLOCK_BYTES)),
        reduces=reduces,
        map_input_bytes=input_bytes,
        map_function_s=program.map_s_per_mb * input_bytes / MB,
        map_output_bytes=map_output_bytes,
        map_output_records=map_output_bytes / program.record_bytes,
        reduce_function_s=program.reduce_s_per_mb * shuffled_bytes / MB,
        reduce_output_bytes=shuffled_bytes * program.reduce_selectivity,
        reduce_input_records=shuffled_bytes / program.record_bytes,
    )


def run_times(program: Program, job: Features, *, overlap: bool = True) -> tuple[float, float]:
    """Return SE_m and SE_r in seconds, without noise: the truth that no linear model has.

    Args:
        program: What runs.
        job: Without noise.
        overlap: Whether reduces start while maps still run, and wait for them.
    """
    map_s = job.maps * _map_task_s(job)
    wave_s = math.ceil(job.maps / SLOTS) * _map_task_s(job) if overlap else 0.0
    return map_s, job.reduces * _reduce_task_s(program, job, wave_s)


def _map_task_s(job: Features) -> float:
    share = 1 / job.maps
    crowd = min(1.0, job.maps / SLOTS)  # disks and network are shared by those that run at once
    read_s = job.map_input_bytes * share * (1 + crowd) / _DISK_BYTES_PER_S
    fetch_s = _REMOTE_SHARE * (1 - crowd) * job.map_input_bytes * share / _NETWORK_BYTES_PER_S
    output, records = job.map_output_bytes * share, job.map_output_records * share
    sort_s = _SORT_S_PER_COMPARISON * records * math.log2(max(2.0, records))
    spills = math.ceil(output / _SORT_BUFFER_BYTES)
    spill_s = output * (1 if spills <= 1 else 3) / _DISK_BYTES_PER_S
    return _START_S + read_s + fetch_s + job.map_function_s * share + sort_s + spill_s


def _reduce_task_s(program: Program, job: Features, wave_s: float) -> float:
    share = 1 / job.reduces
    shuffled = job.map_output_bytes * program.combine * share
    wait_s = (1 - _SLOW_START) * wave_s
    copy_s = shuffled * (1 + job.reduces / SLOTS) / _NETWORK_BYTES_PER_S + 0.002 * job.maps
    passes = max(0, math.ceil(math.log(max(1, job.maps), _MERGE_FACTOR)) - 1)
    merge_s = 2 * passes * shuffled / _DISK_BYTES_PER_S
    write_s = _REPLICAS * job.reduce_output_bytes * share / _DISK_BYTES_PER_S
    return _START_S + max(wait_s, copy_s) + merge_s + job.reduce_function_s * share + write_s


def blur(variation: float, rng: np.random.Generator, count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return factors of mean 1 and this coefficient of variation, log-normal, shape [count]."""
    sigma = math.sqrt(math.log1p(variation**2))
    return rng.lognormal(-sigma * sigma / 2, sigma, count)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """R² on held-out jobs, at one noise: of one seed, or the mean over several."""

    noise: float
    map_r2: float
    reduce_r2: float
    job_r2: float


PAPER = Accuracy(noise=math.nan, map_r2=0.942, reduce_r2=0.918, job_r2=0.970)
NOISES = tuple(percent / 100 for percent in range(0, 55, 5))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Jobs that the models have not learnt from: (predicted, actual) of each, shape [J]."""

    map_s: tuple[tuple[float, float], ...]
    reduce_s: tuple[tuple[float, float], ...]
    size_gib_s: tuple[tuple[float, float], ...]


def held_out(noise: float, seed: int, *, jobs: int = 400) -> HeldOut:
    """Learn from one half of the jobs, predict the other."""
    observed = generate(jobs, noise, np.random.default_rng([seed, round(noise * 1000)]))
    predictor = Predictor(Config())
    for one in observed[: jobs // 2]:
        predictor.learn(one.probed, one.times)
    pairs = [(found, one) for one in observed[jobs // 2 :] if (found := predictor.predict(one.probed)) is not None]
    return HeldOut(
        map_s=tuple((found.map_s, one.times.map_s) for found, one in pairs),
        reduce_s=tuple((found.reduce_s, one.times.reduce_s) for found, one in pairs),
        size_gib_s=tuple((one.size_gib_s(found), one.size_gib_s(one.times)) for found, one in pairs),
    )


def r2_of(noise: float, found: HeldOut) -> Accuracy:
    """Return R² on held-out jobs."""
    return Accuracy(noise=noise, map_r2=_r2(found.map_s), reduce_r2=_r2(found.reduce_s), job_r2=_r2(found.size_gib_s))


def mean(noise: float, found: Sequence[Accuracy]) -> Accuracy:
    """Return the mean over seeds."""
    return Accuracy(
        noise=noise,
        map_r2=float(np.mean([one.map_r2 for one in found])),
        reduce_r2=float(np.mean([one.reduce_r2 for one in found])),
        job_r2=float(np.mean([one.job_r2 for one in found])),
    )


def sweep(seeds: Sequence[int], noises: Sequence[float] = NOISES, *, jobs: int = 400) -> list[Accuracy]:
    """Return the accuracy at each noise, the mean over the seeds."""
    return [mean(noise, [r2_of(noise, held_out(noise, seed, jobs=jobs)) for seed in seeds]) for noise in noises]


def _r2(pairs: Sequence[tuple[float, float]]) -> float:
    predicted, actual = zip(*pairs, strict=True)
    return r_squared(actual, predicted)


def r_squared(actual: Sequence[float], predicted: Sequence[float]) -> float:
    """Compute 1 - Σ(y - ŷ)² / Σ(y - ȳ)²: 1 for perfect, 0 for no better than the mean, below 0 for worse.

    Raises:
        ValueError: All actual values are equal, so there is nothing to explain.
    """
    y, estimate = np.array(actual, np.float64), np.array(predicted, np.float64)
    spread = float(((y - y.mean()) ** 2).sum())
    if spread == 0:
        raise ValueError("R² needs at least two different values")
    return 1 - float(((y - estimate) ** 2).sum()) / spread


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """The largest noise up to which the paper's values are met; None where they are not met at any."""

    map_noise: float | None
    reduce_noise: float | None
    job_noise: float | None


def met_up_to(rows: Sequence[Accuracy], paper: Accuracy = PAPER) -> Met:
    """Return at which noise the paper's R² are met, and at all lower ones."""
    ordered = sorted(rows, key=lambda row: row.noise)

    def last(name: str) -> float | None:
        noise = None
        for row in ordered:
            if getattr(row, name) < getattr(paper, name):
                break
            noise = row.noise
        return noise

    return Met(map_noise=last("map_r2"), reduce_noise=last("reduce_r2"), job_noise=last("job_r2"))
