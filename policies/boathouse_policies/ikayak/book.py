"""What iKayak learns of jobs and of their tasks that run, beside where they run (`RunningTasks`). From events alone.

μ = local/(local + remote) of the maps so far, 1 without history, at least `Config.least_share` (3.3).

Rows are CPU, memory, ephemeral storage and pods: what tasks of MapReduce hold. An extended resource that a map or
reducer holds is not thought to come free.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from boathouse_policies import model
from boathouse_policies.framework import Follower, Layout, Observer, Pause, RunningTask, RunningTasks
from boathouse_policies.ikayak.config import Config
from boathouse_policies.ikayak.remaining import Bank, History

ROWS = model.PODS + 1

SPARK = frozenset({model.Stage.DRIVER, model.Stage.EXECUTOR})


@dataclasses.dataclass(slots=True, eq=False)
class JobBook:
    """A job."""

    job: model.Job
    classes: Mapping[model.ClassId, model.TaskClass]  # by id, in order
    left: dict[model.ClassId, int] = dataclasses.field(default_factory=dict)  # its maps that have not ended, by class
    maps: int = 0  # how many it has; if the shell does not say, how many were left at most
    reducers: "dict[model.TaskId, Reducer]" = dataclasses.field(default_factory=dict)  # its reducers that run, by task
    located: set[model.ClassId] = dataclasses.field(default_factory=set)
    """Its classes whose input is in blocks, as far as tasks of them were placed."""

    @property
    def key(self) -> str:
        """Of its class of jobs."""
        return self.job.kind or self.job.id

    @property
    def lacks_maps(self) -> bool:
        """Whether map output is still to come."""
        return any(count > 0 for count in self.left.values())

    @property
    def left_share(self) -> float:
        """The part of its maps that has not ended, 0 to 1."""
        return sum(self.left.values()) / self.maps if self.maps else 0.0


@dataclasses.dataclass(slots=True, eq=False)
class Reducer:
    """A reducer that runs."""

    task: RunningTask
    job: JobBook
    end_s: float = math.inf  # its estimated end as long as it made no report
    history: History | None = None  # its reports, once it started
    past_shuffle: bool = False  # whether it is known to have all map output
    last_s: float = -math.inf  # when it was last suspended, or that was refused


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Some tasks, as columns."""

    node: npt.NDArray[np.intp]  # the place of each task's node, shape [T]
    held: model.IntMatrix  # what each holds, shape [4, T]
    left_s: model.FloatVector  # how long each will still hold it, shape [T]


class Book(Observer, Follower):
    """Keeps account of jobs, of where maps read and when they should end, and of what reducers report."""

    def __init__(self, config: Config, running: RunningTasks) -> None:
        self.bank = Bank(config)
        self.jobs: dict[model.JobId, JobBook] = {}
        self.reducers: dict[model.TaskId, Reducer] = {}  # those that run, by task
        self.local = 0  # maps that were placed on a node with their input
        self.remote = 0  # the others whose input is in blocks
        self.report_every_s = config.sample_s  # for the shell: how often reducers report
        self._least_share = config.least_share
        self._map_ends_s: dict[model.TaskId, float] = {}
        self._running = running
        running.follow(self)

    def placed(self, task: RunningTask) -> None:
        """Count a map by where it reads, and estimate when a map or reducer ends."""
        self._expect(task, task.placed_s)
        job = self.jobs.get(task.job)
        if job is None or task.task_class not in job.left:
            return
        if task.distance is model.Distance.NODE:
            self.local += 1
        elif task.distance is not model.Distance.ANYWHERE or task.task_class in job.located:
            self.remote += 1

    def started(self, task: RunningTask, now_s: float) -> None:
        """Estimate when it ends now that it runs; a reducer will report."""
        self._expect(task, now_s)
        if (reducer := self.reducers.get(task.task)) is not None:
            reducer.history = History(now_s)

    def resumed(self, task: RunningTask, pause: Pause, now_s: float) -> None:
        """Leave the time for which a reducer stood still out of its history: until now, or until its time was up."""
        reducer = self.reducers.get(task.task)
        if reducer is not None and reducer.history is not None:
            reducer.history.away_s += min(now_s, pause.until_s) - pause.since_s

    def suspended(self) -> list[tuple[Reducer, Pause]]:
        """Return the reducers that are suspended."""
        found = ((self.reducers.get(task.task), task.pause) for task in self._running.suspended.values())
        return [(reducer, pause) for reducer, pause in found if reducer is not None and pause is not None]

    def _expect(self, task: RunningTask, start_s: float) -> None:
        job = self.jobs.get(task.job)
        task_class = None if job is None else job.classes.get(task.task_class)
        if job is None or task_class is None or task_class.stage not in (_MAP, _REDUCE):
            return
        end_s = start_s + self.bank.length_s(job.key, task_class)
        if task_class.stage is _MAP:
            self._map_ends_s[task.task] = end_s
        else:
            reducer = self.reducers[task.task] = job.reducers[task.task] = self.reducers.get(
                task.task, Reducer(task, job)
            )
            reducer.end_s = end_s

    def ended(self, task: RunningTask, event: model.Finished | model.Failed) -> None:
        """Learn from a map or reducer that succeeded, and forget it."""
        is_map = self._map_ends_s.pop(task.task, None) is not None
        job, reducer = self.jobs.get(task.job), self.reducers.pop(task.task, None)
        if reducer is not None:
            del reducer.job.reducers[task.task]
        if job is None or isinstance(event, model.Failed):
            return
        if is_map:
            job.left[task.task_class] = max(0, job.left.get(task.task_class, 0) - 1)
            self.bank.ended(job.key, _MAP, event.duration_s)
        elif reducer is not None and reducer.history is not None:
            self.bank.learn(job.key, reducer.history, event.now_s)
            self.bank.ended(job.key, _REDUCE, event.duration_s)

    def observe(self, event: model.Event) -> None:
        """Keep account of what `RunningTasks` does not tell of."""
        match event:
            case model.Placed() | model.Started() | model.Finished() | model.Failed():
                return
            case model.Progress() if event.task in self.reducers:
                self._progress(self.reducers[event.task], event)
            case model.Suspended() if event.task in self.reducers:
                self.reducers[event.task].last_s = event.now_s
            case model.Refused(decision=model.Suspend(task=task)) if task.id in self.reducers:
                if self.reducers[task.id].task.pause is None:
                    self.reducers[task.id].last_s = event.now_s
            case model.Submitted():
                self._submitted(event)
            case model.Ended():
                job = self.jobs.pop(event.job, None)
                if job is not None and not job.job.kind:
                    self.bank.forget(job.key)
            case _:
                pass

    def _submitted(self, event: model.Submitted) -> None:
        classes = {task_class.id: task_class for task_class in event.classes}
        job = self.jobs.setdefault(event.job.id, JobBook(event.job, classes))
        job.job, job.classes = event.job, classes
        job.left = {  # those that run have not ended either
            class_id: event.tasks.get(class_id, 0) + len(list(self._running.of(class_id)))
            for class_id, task_class in classes.items()
            if task_class.stage is _MAP
        }
        total = sum(event.totals.get(class_id, 0) for class_id in job.left)
        job.maps = total or max(job.maps, sum(job.left.values()))

    @staticmethod
    def _progress(reducer: Reducer, event: model.Progress) -> None:
        reducer.past_shuffle = reducer.past_shuffle or event.phase != "shuffle"
        task_class = reducer.job.classes.get(reducer.task.task_class)  # None once its job has begun a later step
        if reducer.history is None or reducer.task.pause is not None or task_class is None:
            return  # a suspended one's says nothing of its pace
        requested = task_class.resources.cpu_milli
        cpu = event.counters.get("cpu_milli", float(requested)) / requested if requested else 1.0
        reducer.history.report(event.now_s, event.fraction, cpu, event.counters.get("input_bytes", 0.0))

    def dump(self) -> Mapping[str, Any]:
        """Return what was learned: the shell submits jobs and shows what runs again after a restart."""
        return {**self.bank.dump(), "local": self.local, "remote": self.remote}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump."""
        self.bank.load(state)
        local, remote = state.get("local"), state.get("remote")
        if isinstance(local, int) and isinstance(remote, int) and min(local, remote) >= 0:
            self.local, self.remote = local, remote

    def local_share(self) -> float:
        """Return μ."""
        total = self.local + self.remote
        return max(self._least_share, self.local / total) if total else 1.0

    def lacking(self) -> list[Reducer]:
        """Return the reducers that run and lack map output, in the order in which they were placed."""
        jobs = [job for job in self.jobs.values() if job.reducers and job.lacks_maps]
        found = (reducer for job in jobs for reducer in job.reducers.values())
        return sorted(found, key=lambda reducer: reducer.task.placed_s)

    def columns(self, layout: Layout, now_s: float, paused: Mapping[Reducer, float]) -> tuple[Columns, Columns]:
        """Return the maps that run, and the reducers with their predicted remaining times (eq. 1)."""
        ends_s, running = self._map_ends_s, self._running.tasks.values()
        maps = [task for task in running if task.task in ends_s and task.node in layout.index]
        reducers = [reducer for reducer in self.reducers.values() if reducer.task.node in layout.index]
        left_s = np.maximum(np.array([ends_s[task.task] for task in maps]) - now_s, 0.0)
        reducers_left_s = self.left_s(reducers, now_s, paused)
        tasks = [reducer.task for reducer in reducers]
        return _columns(maps, layout, left_s), _columns(tasks, layout, reducers_left_s)

    def left_s(self, reducers: Sequence[Reducer], now_s: float, paused: Mapping[Reducer, float]) -> model.FloatVector:
        """Return how long reducers still hold their room: the model's prediction, and the rest of a suspension."""
        left = np.array([reducer.end_s - now_s for reducer in reducers])
        reported = [
            (i, reducer.job.key, sample, _ran_s(reducer.task, history.at_s, now_s))
            for i, reducer in enumerate(reducers)
            if (history := reducer.history) is not None and (sample := history.now) is not None
        ]
        if reported:
            places, keys, samples, ages_s = map(list, zip(*reported, strict=True))
            left[places] = self.bank.left_s(keys, samples) - ages_s
        rest: model.FloatVector = np.array([max(paused.get(reducer, -math.inf) - now_s, 0.0) for reducer in reducers])
        return left.clip(0.0) + rest


def _columns(tasks: Sequence[RunningTask], layout: Layout, left_s: model.FloatVector) -> Columns:
    node = np.array([layout.index[task.node] for task in tasks], np.intp)
    sizes = (task.resources for task in tasks)
    held = [(size.cpu_milli, size.memory_bytes, size.ephemeral_storage_bytes, 1) for size in sizes]
    return Columns(node, np.array(held, np.int64).reshape(len(tasks), ROWS).T, left_s)


def _ran_s(task: RunningTask, since_s: float, now_s: float) -> float:
    return max(0.0, (now_s if task.pause is None else min(now_s, task.pause.since_s)) - since_s)


_MAP = model.Stage.MAP
_REDUCE = model.Stage.REDUCE
