"""What runs where: maps and reducers as columns over tasks, and from them vectors over nodes. Learnt from events alone.

Rows are CPU, memory, ephemeral storage and pods: what tasks of MapReduce hold. An extended resource that a map or
reducer holds is not thought to come free.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from boathouse_policies import model
from boathouse_policies.framework.questions import Observer
from boathouse_policies.ikayak.bank import Bank
from boathouse_policies.ikayak.history import History

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_policies.framework import Layout
    from boathouse_policies.ikayak.config import Config

ROWS = model.PODS + 1

SPARK = frozenset({model.Stage.DRIVER, model.Stage.EXECUTOR})


@dataclasses.dataclass(slots=True, eq=False)
class JobBook:
    """A job.

    Attributes:
        job: As it was submitted.
        classes: By id, in order.
        left: Its maps that have not ended, by class.
        reducers: Its reducers that run, by task.
    """

    job: model.Job
    classes: dict[model.ClassId, model.TaskClass]
    left: dict[model.ClassId, int] = dataclasses.field(default_factory=dict)
    reducers: dict[model.TaskId, Running] = dataclasses.field(default_factory=dict)

    @property
    def key(self) -> str:
        """Of its class of jobs."""
        return self.job.kind or self.job.id

    @property
    def is_spark(self) -> bool:
        """Whether it is a Spark application."""
        return any(one.stage in SPARK for one in self.classes.values())

    @property
    def lacks_maps(self) -> bool:
        """Whether map output is still to come."""
        return any(count > 0 for count in self.left.values())

    @property
    def maps(self) -> list[model.TaskClass]:
        """Its classes of maps."""
        return [one for one in self.classes.values() if one.stage is model.Stage.MAP]


@dataclasses.dataclass(slots=True, eq=False)
class Running:
    """A task of MapReduce that was placed.

    Attributes:
        task: Its id.
        job: Its job.
        task_class: Its class.
        node: Where.
        resources: What it holds when it is not suspended.
        end_s: Estimated end of a map, or of a reducer that made no report.
        number: How many were placed before it.
        history: Of a reducer that started.
        past_shuffle: Whether it is known to have all map output.
        suspended_s: When it was suspended; None if it is not.
        until_s: Until when.
        last_s: When it was last suspended, or that was refused.
    """

    task: model.TaskId
    job: JobBook
    task_class: model.TaskClass
    node: model.NodeName
    resources: model.Resources
    end_s: float
    number: int
    history: History | None = None
    past_shuffle: bool = False
    suspended_s: float | None = None
    until_s: float = -math.inf
    last_s: float = -math.inf

    @property
    def is_map(self) -> bool:
        """Whether it is a map; else a reducer."""
        return self.task_class.stage is model.Stage.MAP


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Some tasks, as columns.

    Attributes:
        node: The place of each one's node, shape [T].
        held: What each holds, shape [4, T].
        left_s: How long each will still hold it, shape [T].
    """

    node: npt.NDArray[np.intp]
    held: model.IntMatrix
    left_s: model.FloatVector

    def at(self, place: int) -> Columns:
        """Those on one node, as if it were the only one."""
        here = (self.node == place).nonzero()[0]
        return Columns(np.zeros(len(here), np.intp), self.held[:, here], self.left_s[here])


class Book(Observer):
    """Keeps account of jobs and of the tasks of MapReduce that run.

    Args:
        config: The constants.

    Attributes:
        bank: What was learned.
        jobs: By id.
        running: By task.
        away: Those of them that are suspended.
        report_every_s: For the shell: how often reducers report.
        measure_every_s: Nodes need not be measured.
    """

    def __init__(self, config: Config) -> None:
        self.bank = Bank(config)
        self._reduce_s = config.reduce_s
        self.jobs: dict[model.JobId, JobBook] = {}
        self.running: dict[model.TaskId, Running] = {}
        self.away: dict[model.TaskId, Running] = {}
        self._placed_so_far = 0
        self._changes = 0
        self._memo: tuple[Layout, float, int, Mapping[Running, float], tuple[Columns, Columns]] | None = None
        self.report_every_s = config.sample_s
        self.measure_every_s = 0.0

    # Observer

    def observe(self, event: model.Event) -> None:
        """Keep account of an event."""
        self._changes += 1
        match event:
            case model.Progress():
                self._progress(event)
            case model.Placed():
                self._placed(event)
            case model.Started():
                self._started(event)
            case model.Finished():
                self._finished(event)
            case model.Failed():
                self._failed(event)
            case model.Suspended() | model.Resumed() | model.Refused():
                self._adjusted(event)
            case model.Submitted():
                self._submitted(event)
            case model.Ended():
                self._ended(event.job)
            case _:
                pass

    def dump(self) -> Mapping[str, Any]:
        """What was learned: the shell submits jobs and shows what runs again after a restart."""
        return self.bank.dump()

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump."""
        self.bank.load(state)

    def _submitted(self, event: model.Submitted) -> None:
        known = self.jobs.get(event.job.id)
        classes = {one.id: one for one in event.classes}
        if known is None:
            known = self.jobs[event.job.id] = JobBook(event.job, classes)
        known.job, known.classes = event.job, classes
        run = [one.task_class.id for one in self.running.values() if one.job is known]
        for one in event.classes:
            if one.stage is model.Stage.MAP:  # those that run have not ended either
                known.left[one.id] = event.tasks.get(one.id, 0) + run.count(one.id)

    def _ended(self, job: model.JobId) -> None:
        gone = self.jobs.pop(job, None)
        if gone is not None and not gone.job.kind:
            self.bank.over(gone.key)

    def _placed(self, event: model.Placed) -> None:
        job = self.jobs.get(event.job)
        one = None if job is None else job.classes.get(event.task_class)
        if job is None or one is None or one.stage not in _STAGES:
            return
        end_s = event.now_s + self._length_s(job, one)
        self.away.pop(event.task, None)
        number = self._placed_so_far = self._placed_so_far + 1
        running = Running(event.task, job, one, event.node, event.resources, end_s, number)
        self.running[event.task] = running
        if not running.is_map:
            job.reducers[event.task] = running

    def _length_s(self, job: JobBook, one: model.TaskClass) -> float:
        stated_s = one.estimates.duration_s(one.resources)
        if one.stage is model.Stage.MAP:
            return self.bank.map_s(job.key, stated_s)
        known_s = self.bank.reduce_s(job.key)
        return next((length for length in (known_s, stated_s) if length is not None), self._reduce_s)

    def _started(self, event: model.Started) -> None:
        one = self.running.get(event.task)
        if one is None:
            return
        one.end_s = event.now_s + self._length_s(one.job, one.task_class)
        if not one.is_map:
            one.history = History(event.now_s)

    def _progress(self, event: model.Progress) -> None:
        one = self.running.get(event.task)
        if one is None or one.history is None:
            return
        one.past_shuffle = one.past_shuffle or event.phase != "shuffle"
        if one.suspended_s is not None:
            return  # that says nothing of its pace
        asked = one.task_class.resources.cpu_milli
        cpu = event.counters.get("cpu_milli", float(asked)) / asked if asked else 1.0
        one.history.report(event.now_s, event.fraction, cpu, event.counters.get("input_bytes", 0.0))

    def _finished(self, event: model.Finished) -> None:
        one = self._gone(event.task)
        if one is None:
            return
        key, left = one.job.key, one.job.left
        if one.is_map:
            left[one.task_class.id] = max(0, left.get(one.task_class.id, 0) - 1)
            self.bank.map_ended(key, event.duration_s)
        elif one.history is not None:
            self._resumed(one, event.now_s)
            self.bank.reduce_ended(key, event.duration_s, one.history, event.now_s)

    def _failed(self, event: model.Failed) -> None:
        self._gone(event.task)

    def _gone(self, task: model.TaskId) -> Running | None:
        one = self.running.pop(task, None)
        if one is not None:
            one.job.reducers.pop(task, None)
            self.away.pop(task, None)
        return one

    def _adjusted(self, event: model.Suspended | model.Resumed | model.Refused) -> None:
        match event:
            case model.Suspended() if event.task in self.running:
                one = self.running[event.task]
                one.suspended_s = one.last_s = event.now_s
                one.until_s = math.inf if event.until_s is None else event.until_s
                self.away[one.task] = one
            case model.Resumed() if event.task in self.running:
                self._resumed(self.running[event.task], event.now_s)
            case model.Refused(decision=model.Suspend(task=task)) if task.id in self.running:
                self.running[task.id].last_s = event.now_s
            case _:
                pass

    def _resumed(self, one: Running, now_s: float) -> None:
        """It runs again, since now or since its time was up."""
        if one.suspended_s is not None and one.history is not None:
            one.history.away(min(now_s, one.until_s) - one.suspended_s)
        one.suspended_s = None
        self.away.pop(one.task, None)

    def lacking(self) -> list[Running]:
        """The reducers that run and lack map output, in the order in which they were placed."""
        jobs = [one for one in self.jobs.values() if one.reducers and one.lacks_maps]
        return sorted((one for job in jobs for one in job.reducers.values()), key=_NUMBER)

    # Vectors

    def columns(self, layout: Layout, now_s: float, paused: Mapping[Running, float]) -> tuple[Columns, Columns]:
        """The maps that run, and the reducers with their predicted remaining times (eq. 1).

        Each application that waits asks for them in a cycle: a memo.

        Args:
            layout: The nodes.
            now_s: The time.
            paused: Until when who is suspended.
        """
        known = self._memo
        if known is None or known[0] is not layout or known[1:3] != (now_s, self._changes) or known[3] is not paused:
            here = [one for one in self.running.values() if one.node in layout.index]
            maps, reducers = [one for one in here if one.is_map], [one for one in here if not one.is_map]
            left_s = np.maximum(np.array([one.end_s for one in maps]) - now_s, 0.0)
            both = _columns(maps, layout, left_s), _columns(reducers, layout, self.left_s(reducers, now_s, paused))
            known = self._memo = (layout, now_s, self._changes, paused, both)
        return known[4]

    def left_s(self, tasks: list[Running], now_s: float, paused: Mapping[Running, float]) -> model.FloatVector:
        """How long these reducers will still hold their room: the model's prediction, and the rest of a suspension."""
        left = np.array([one.end_s - now_s for one in tasks])
        known = [i for i, one in enumerate(tasks) if one.history is not None and one.history.now is not None]
        keys, samples, ages = [], [], []
        for i in known:
            history = tasks[i].history
            if history is not None and history.now is not None:
                keys.append(tasks[i].job.key)
                samples.append(history.now)
                ages.append(_ran_s(tasks[i], history.at_s, now_s))
        left[known] = self.bank.left_s(keys, samples) - np.array(ages)
        rest = np.array([max(paused.get(one, -math.inf) - now_s, 0.0) for one in tasks])
        rested: model.FloatVector = np.maximum(left, 0.0) + rest
        return rested


def _ran_s(one: Running, since_s: float, now_s: float) -> float:
    """How long it ran since then."""
    return max(0.0, (now_s if one.suspended_s is None else min(now_s, one.suspended_s)) - since_s)


def _columns(tasks: list[Running], layout: Layout, left_s: model.FloatVector) -> Columns:
    node = np.array([layout.index[one.node] for one in tasks], np.intp)
    held = np.array([_held(one.resources) for one in tasks], np.int64).reshape(len(tasks), ROWS).T
    return Columns(node, held, left_s)


def _held(size: model.Resources) -> tuple[int, int, int, int]:
    return size.cpu_milli, size.memory_bytes, size.ephemeral_storage_bytes, 1


_STAGES = frozenset({model.Stage.MAP, model.Stage.REDUCE})
_NUMBER = operator.attrgetter("number")
