"""How well the fuzzy model predicts reducers that it has not learnt from, beside two simple predictors (Figure 9a).

The reducers are the live engine's: they copy map output as it appears, share disks and networks with neighbours that
come and go, and are drawn longer or shorter. None of that is of the fitted family. A predictor sees what a reducer
reports every 5 s. Those that end in the first part of a run are learnt from, in the order of their ends; the jobs
submitted later are held out, and nothing is learnt from them.

| predictor | what is left |
|---|---|
| fuzzy | Takagi-Sugeno, one model for each program |
| linear | (1 - progress) · time so far / progress |
| mean | mean time of the program's reducers - time so far, at least 0 |

The error is NRMSE: the root mean square error over the mean of what was really left (readings: the paper's divisor is
unstated).
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Final

import numpy as np
from typing_extensions import override

from boathouse_lab.reproduce.ikayak import setting
from boathouse_policies import ikayak, model
from boathouse_policies.framework import Observer
from boathouse_policies.ikayak.remaining import Bank, History
from boathouse_sim import conditions, work
from boathouse_sim.conditions import Conditions
from boathouse_sim.live import Live, MapReduce, Spark, SparkStage
from boathouse_sim.workload import Cluster, Workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_sim.work import App

NOISES: Final = (0.0, 0.1, 0.2, 0.4)
SKEWS: Final = (0.0, 0.25, 0.5)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A run whose reducers are predicted.

    Attributes:
        noise: Coefficient of variation of tasks' times.
        skew: Coefficient of variation of reducers' input, from job to job of a program.
        seed: Of all that is drawn.
        jobs: Of each of the three programs.
        learnt: Share of the jobs, the first ones, that are learnt from.
        forgetting: λ_f; None for the policy's own.
        discount: τ; None for the policy's own.
    """

    noise: float = 0.2
    skew: float = 0.25
    seed: int = 0
    jobs: int = 12
    learnt: float = 0.6
    forgetting: float | None = None
    discount: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Errors on the held-out reducers, as NRMSE.

    Attributes:
        fuzzy: The model's.
        linear: Of linear progress.
        mean: Of the mean of the class.
        half: The model's, of one sample of each reducer: that nearest to its half (Figure 9a has one of each of 12).
        reducers: Held out.
        samples: Their reports.
        points: (really left, predicted by the model) at each one's half, in seconds, the first 12.
    """

    fuzzy: float
    linear: float
    mean: float
    half: float
    reducers: int
    samples: int
    points: tuple[tuple[float, float], ...]


def trials(seeds: int, *, jobs: int = 12) -> tuple[Trial, ...]:
    """Return the sweep: noise at the middle skew, skew at the middle noise."""
    pairs = dict.fromkeys([*((noise, 0.25) for noise in NOISES), *((0.2, skew) for skew in SKEWS)])
    return tuple(Trial(noise=noise, skew=skew, seed=seed, jobs=jobs) for noise, skew in pairs for seed in range(seeds))


def predict(trial: Trial) -> Accuracy:
    """Run a trial: simulate, learn from the first jobs, predict the reducers of the others."""
    recorded = simulate(trial)
    first = [one for one in recorded if one.number < trial.learnt * trial.jobs]
    later = [one for one in recorded if one.number >= trial.learnt * trial.jobs]
    config = ikayak.Config()
    forgetting = config.forgetting if trial.forgetting is None else trial.forgetting
    discount = config.discount if trial.discount is None else trial.discount
    bank = Bank(dataclasses.replace(config, forgetting=forgetting, discount=discount))
    for one in first:
        bank.learn(one.program, one.history(), one.ended_s)
        bank.ended(one.program, model.Stage.REDUCE, one.ended_s - one.started_s)
    rows = [row for one in later for row in _rows(one, bank)]
    halves = [min(_rows(one, bank), key=lambda row: abs(row.done - _HALF)) for one in later if _rows(one, bank)]
    left = np.array([row.left_s for row in rows])
    return Accuracy(
        fuzzy=nrmse(np.array([row.fuzzy_s for row in rows]), left),
        linear=nrmse(np.array([row.linear_s for row in rows]), left),
        mean=nrmse(np.array([row.mean_s for row in rows]), left),
        half=nrmse(np.array([row.fuzzy_s for row in halves]), np.array([row.left_s for row in halves])),
        reducers=len(later),
        samples=len(rows),
        points=tuple((row.left_s, row.fuzzy_s) for row in halves[:12]),
    )


def nrmse(predicted: model.FloatVector, actual: model.FloatVector) -> float:
    """Return root mean square error over the mean of the actual values; nan where there are none."""
    if not len(actual) or not actual.mean():
        return math.nan
    return float(np.sqrt(np.mean((predicted - actual) ** 2)) / actual.mean())


_HALF = 0.5


# What is recorded


@dataclasses.dataclass(slots=True)
class Recorded:
    """What a reducer reported, and when it ended.

    Attributes:
        program: Its job's.
        number: Of the job among those of its program.
        started_s: When it started.
        ended_s: When it ended.
        reports: (time, progress, CPU share, bytes) of each report.
    """

    program: str
    number: int
    started_s: float
    ended_s: float = math.nan
    reports: list[tuple[float, float, float, float]] = dataclasses.field(default_factory=list)

    def history(self) -> History:
        """Return the history as the policy keeps it."""
        found = History(self.started_s)
        for report in self.reports:
            found.report(*report)
        return found


class Recorder(Observer):
    """An observer that writes down what reducers report."""

    def __init__(self) -> None:
        self.report_every_s, self.measure_every_s = 5.0, 0.0
        self._jobs: dict[model.JobId, model.Job] = {}
        self._reduces: set[model.ClassId] = set()
        self._running: dict[model.TaskId, Recorded] = {}
        self.ended: list[Recorded] = []

    @override
    def observe(self, event: model.Event) -> None:
        """Write down."""
        match event:
            case model.Submitted():
                self._jobs[event.job.id] = event.job
                self._reduces.update(one.id for one in event.classes if one.stage is model.Stage.REDUCE)
            case model.Started() if event.task_class in self._reduces:
                job = self._jobs[event.job]
                self._running[event.task] = Recorded(job.kind, int(job.name.rsplit("-", 1)[1]), event.now_s)
            case model.Progress() if event.task in self._running:
                cpu = event.counters["cpu_milli"] / 1000
                row = (event.now_s, event.fraction, cpu, event.counters["input_bytes"])
                self._running[event.task].reports.append(row)
            case model.Finished() if event.task in self._running:
                one = self._running.pop(event.task)
                one.ended_s = event.now_s
                self.ended.append(one)
            case model.Failed():
                self._running.pop(event.task, None)
            case _:
                pass


@dataclasses.dataclass(frozen=True, slots=True)
class _Row:
    done: float
    left_s: float
    fuzzy_s: float
    linear_s: float
    mean_s: float


def _rows(one: Recorded, bank: Bank) -> list[_Row]:
    """Return each predictor's values at each report from the first that shows a pace on."""
    history, mean_s, found = History(one.started_s), bank.mean_s(one.program, model.Stage.REDUCE), []
    for now_s, fraction, cpu, size in one.reports:
        history.report(now_s, fraction, cpu, size)
        if history.now is None or mean_s is None:
            continue
        so_far_s = now_s - one.started_s
        fuzzy_s = max(0.0, float(bank.left_s([one.program], [history.now])[0]) - (now_s - history.at_s))
        linear_s = (1.0 - fraction) * so_far_s / fraction
        found.append(_Row(fraction, one.ended_s - now_s, fuzzy_s, linear_s, max(0.0, mean_s - so_far_s)))
    return found


# The simulation


def simulate(trial: Trial) -> Sequence[Recorded]:
    """Simulate a run; return its reducers in the order of their ends."""
    recorder = Recorder()
    config = ikayak.Config(suspension=False, shrink=ikayak.Shrink.OFF)
    profile = ikayak.build(config=config)
    profile = dataclasses.replace(profile, observers=(*profile.observers, recorder))
    driver = Live(workload(trial), profile, seed=trial.seed)
    while driver.advance():
        pass
    return recorder.ended


def workload(trial: Trial) -> Workload:
    """Make jobs of three programs one after the other, on the paper's testbed, beside Spark applications."""
    random = np.random.default_rng([trial.seed, 0x1CA])
    apps: list[App] = []
    for number in range(trial.jobs):
        for i, (program, reduce) in enumerate(_PROGRAMS.items()):
            size = float(random.lognormal(0.0, math.sqrt(math.log1p(trial.skew**2))))
            at_ms = round((number * len(_PROGRAMS) + i + float(random.uniform(0.0, 0.5))) * _GAP_MS)
            apps.append(_job(f"{program}-{number}", program, reduce, size, at_ms))
        apps.append(_application(f"spark-{number}", round(number * len(_PROGRAMS) * _GAP_MS)))
    return Workload(
        name="predicting",
        cluster=Cluster.of(setting.testbed()),
        apps=tuple(apps),
        conditions=Conditions(contention=conditions.Saturation(), jitter=trial.noise),
    )


_GAP_MS = 12_000
_REDUCES = 6
_PROGRAMS: Final = {  # MB copied and sorted, CPU seconds, MB written, by one reducer of middle size
    "terasort": (400.0, 30.0, 400.0),
    "grep": (80.0, 40.0, 20.0),
    "wordcount": (150.0, 70.0, 100.0),
}


def _job(name: str, program: str, reduce: tuple[float, float, float], size: float, at_ms: int) -> MapReduce:
    mb, cpu_s, written_mb = (size * amount for amount in reduce)
    copy = work.segment("shuffle", copy_mb=mb)
    sort = work.segment("sort", cpu_s=0.1 * cpu_s, read_mb=mb, write_mb=mb)
    last = work.segment("reduce", cpu_s=cpu_s, read_mb=mb, write_mb=written_mb)
    one = work.segment("map", cpu_s=15.0, read_mb=256.0, write_mb=100.0)
    return MapReduce(
        id=name,
        maps=30,
        map=work.Container(mem_mb=1024, segments=(one,)),
        reduces=_REDUCES,
        reduce=work.Container(mem_mb=2048, segments=(copy, sort, last)),
        submit_ms=at_ms,
        program=program,
    )


def _application(name: str, at_ms: int) -> Spark:
    task = work.segment("task", cpu_s=8.0, read_mb=128.0)
    return Spark(
        id=name,
        executors=4,
        executor=work.Container(mem_mb=4096, cores=4),
        stages=(SparkStage(tasks=40, work=task, replicas=3),),
        submit_ms=at_ms,
        program="kmeans",
    )
