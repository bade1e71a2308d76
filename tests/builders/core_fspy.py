"""A shell for FSPY that runs jobs in virtual time, and features of jobs of which a law is known."""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from boathouse_policies import framework, fspy, model
from boathouse_policies.fspy.jobs import Phase, Shape
from boathouse_policies.fspy.prediction import Features, TotalTimes
from boathouse_sim import probing
from tests.builders import core

if TYPE_CHECKING:
    from collections.abc import Callable

# Features

ALPHA = np.array([5.0, 2.0, 3e-8, 1.2, 1e-8, 4e-6, 1e-7])
BETA = np.array([7.0, 3.0, 0.05, 2e-8, 1.1, 3e-8, 2e-6, 2e-7])


def features(seed: int = 2) -> Features:
    """The features of a job."""
    return many_features(seed, 1)[0]


def many_features(seed: int, count: int) -> list[Features]:
    """The features of several jobs."""
    rng = np.random.default_rng(seed)
    return [
        Features(
            maps=int(rng.integers(1, 200)),
            reduces=int(rng.integers(1, 30)),
            map_input_bytes=rng.uniform(1e6, 1e10),
            map_function_s=rng.uniform(1, 2000),
            map_output_bytes=rng.uniform(1e5, 1e10),
            map_output_records=rng.uniform(1e3, 1e8),
            reduce_function_s=rng.uniform(1, 900),
            reduce_output_bytes=rng.uniform(1e5, 1e9),
            reduce_input_records=rng.uniform(1e3, 1e8),
        )
        for _ in range(count)
    ]


def total_times(of: Features) -> TotalTimes:
    """The times of a job by the law of `ALPHA` and `BETA`."""
    map_s = float(ALPHA @ of.map_row())
    return TotalTimes(map_s=map_s, reduce_s=float(BETA @ of.reduce_row(map_s)))


def shape(tasks=1, task_s=10.0, cpu=1.0, memory=1.0, master=(0.0, 0.0), uber=False) -> Shape:
    """The shape of a job of one phase."""
    return Shape(phases=(Phase(container=(cpu, memory), tasks=tasks, task_s=task_s),), master=master, uber=uber)


# Jobs in virtual time


class StatedTimes:
    """Run times known beforehand."""

    def __init__(self, task_s: float) -> None:
        self._task_s = task_s

    def duration_s(self, resources: model.Resources) -> float:  # noqa: ARG002 - the protocol's
        return self._task_s

    def deviation_s(self) -> None:
        return None

    def input_bytes(self) -> int:
        return 64 << 20

    def spilled_bytes(self, resources: model.Resources) -> None:  # noqa: ARG002 - the protocol's
        return None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
    """Tasks of a job that run after those of the stage before it."""

    tasks: int
    task_s: float
    size: model.Resources = dataclasses.field(default_factory=lambda: core.amount(1000, 1))
    kind: model.Stage = model.Stage.MAP
    stated_s: float | None = None

    def task_class(self, job: model.Job, place: int) -> model.TaskClass:
        estimates = model.UNKNOWN if self.stated_s is None else StatedTimes(self.stated_s)
        return core.task_class(job, self.size, f"{place}-{self.kind}", stage=self.kind, estimates=estimates)


def map_stage(tasks: int, task_s: float = 1.0, *, stated: bool = True, **fields: Any) -> Stage:
    return Stage(tasks=tasks, task_s=task_s, stated_s=task_s if stated else None, **fields)


def reduce_stage(tasks: int, task_s: float = 1.0, **fields: Any) -> Stage:
    return map_stage(tasks, task_s, kind=model.Stage.REDUCE, **fields)


@dataclasses.dataclass
class Run:
    """A submitted job: its stages, their classes, and what its current stage still runs."""

    job: model.Job
    stages: list[Stage]
    counters: dict[str, float]
    running: int = 0

    def __post_init__(self) -> None:
        self.classes = [stage.task_class(self.job, i) for i, stage in enumerate(self.stages)]


class FspyShell(core.ReportingShell):
    """Runs jobs in virtual time to their end. `ends_s` says when each job ended."""

    def __init__(self, nodes: list[model.Node], config: fspy.Config | None = None) -> None:
        super().__init__(nodes, profile=fspy.build(config or fspy.Config()))
        self.order: fspy.SizeBased = self.profile.order
        self.ends_s: dict[str, float] = {}
        self.placed: list[tuple[float, str]] = []
        self.runs: dict[str, Run] = {}
        self._events: list[tuple[float, int, Callable[[], Any]]] = []
        self._number = itertools.count()

    def submit_at(self, name: str, at_s: float, *stages: Stage, probed: Features | None = None, **fields: Any) -> None:
        """Submit a job at a time; with features, a probing job comes with it that reads a hundredth."""
        job = core.job(name, submitted_s=at_s, **fields)
        self._at(at_s, lambda: self._submit(Run(job, list(stages), {})))
        if probed is not None:
            probe = core.job(f"{name}-probe", submitted_s=at_s, probe_of=job.id)
            stage = Stage(tasks=1, task_s=2.0, kind=model.Stage.PROBE)
            self._at(at_s, lambda: self._submit(Run(probe, [stage], probing.counters_of(probed, 0.01))))

    def run(self, until_s: float = float("inf")) -> dict[str, float]:
        """Run until a time, or until all jobs have ended; return when each ended."""
        while self._events and self._events[0][0] <= until_s:
            now_s = self._events[0][0]
            self.now_s = now_s
            while self._events and self._events[0][0] == now_s:
                heapq.heappop(self._events)[2]()
            while self.advance(now_s):
                self.cycle()
            if self.queue.next_wake_s() < float("inf") and len(self.queue):
                self._at(self.queue.next_wake_s(), lambda: None)
        return self.ends_s

    def cycle(self, now_s: float | None = None, **options: Any) -> framework.Plan:
        plan = super().cycle(now_s, **options)
        for placed in core.placements(plan):
            self.placed.append((self.now_s, placed.job.id))
            run = self.runs[placed.job.id]
            place = run.classes.index(placed.task_class)
            self._at(self.now_s + run.stages[place].task_s, lambda of=placed, place=place: self._finish(of, place))
        return plan

    def _at(self, at_s: float, action: Callable[[], Any]) -> None:
        heapq.heappush(self._events, (at_s, next(self._number), action))

    def _submit(self, run: Run) -> None:
        self.runs[run.job.id] = run
        counts = {of.id: stage.tasks for of, stage in zip(run.classes, run.stages, strict=True)}
        self.report(core.submitted(run.job, *run.classes, now_s=self.now_s, tasks=counts))
        self._start(run, 0)

    def _start(self, run: Run, place: int) -> None:
        run.running = run.stages[place].tasks
        self.queue.submit(run.job, [run.classes[place]], core.tasks(run.classes[place], run.running))

    def _finish(self, placed: model.Placement, place: int) -> None:
        run = self.runs[placed.job.id]
        self.end(placed.task.id)
        fields = {"duration_s": run.stages[place].task_s, "counters": run.counters if place == 0 else {}}
        self.report_task(model.Finished, placed.task, placed.node, **fields)
        run.running -= 1
        if run.running:
            return
        if place + 1 < len(run.stages):
            self._start(run, place + 1)
            return
        self.queue.withdraw(run.job.id)
        self.ends_s[run.job.id] = self.now_s
        self.report(model.Ended(now_s=self.now_s, job=run.job.id, succeeded=True))


def slots_shell(slots: int = 1, config: fspy.Config | None = None) -> FspyShell:
    """A shell with one node that holds so many tasks of a core and 1 GiB."""
    return FspyShell([core.node(allocatable=core.amount(1000 * slots, slots))], config)
