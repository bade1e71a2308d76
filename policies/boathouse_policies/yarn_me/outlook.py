"""What YARN-ME learns of jobs: how many tasks are left to place, and when those that run will end."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import Follower, Observer
from boathouse_policies.yarn_me.penalty import Elastic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boathouse_policies.framework import RunningTask, RunningTasks

End: TypeAlias = tuple[float, int, model.NodeName, int, int, model.JobId]
"""An estimated end, for a heap: time, what breaks ties, node, memory and CPU that come free, job."""


class Outlook(Observer, Follower):
    """Keeps account of jobs, and of when running tasks will end.

    Args:
        running: Which task runs where.

    Attributes:
        jobs: As they were submitted, by id.
        classes: The classes of those jobs.
        left: Tasks of each class that are not placed.
        changed_nodes: Where an end changed, for the reader to clear.
        changes: How many events there were.
        job_changes: How often a job came or ended.
    """

    def __init__(self, running: RunningTasks) -> None:
        self.jobs: dict[model.JobId, model.Submitted] = {}
        self.classes: dict[model.ClassId, model.TaskClass] = {}
        self.left: dict[model.ClassId, int] = {}
        self.changed_nodes: set[model.NodeName] = set()
        self.changes = self.job_changes = 0
        self._columns: Columns | None = None
        self._ends: dict[model.TaskId, End] = {}
        self._last_ends_s: dict[model.JobId, float] = {}  # a memo of `last_end_s`
        self._made = 0
        self._running = running
        running.follow(self)

    def ends(self) -> list[End]:
        """Return the estimated ends of all that runs, ascending."""
        return sorted(self._ends.values())

    def ends_on(self, node: model.NodeName) -> list[End]:
        """Return the estimated ends on a node, ascending."""
        return sorted([self._ends[task.task] for task in self._running.on(node) if task.task in self._ends])

    def last_end_s(self, job: model.JobId) -> float:
        """Return when the last of a job's running tasks ends; -inf where nothing runs."""
        last_s = self._last_ends_s.get(job)
        if last_s is None:
            classes = self.jobs[job].classes if job in self.jobs else ()
            tasks = [task.task for task_class in classes for task in self._running.of(task_class.id)]
            last_s = max([self._ends[task][0] for task in tasks if task in self._ends], default=-math.inf)
            self._last_ends_s[job] = last_s
        return last_s

    def disk_bytes_per_s(self, node: model.NodeName) -> float:
        """Return what the elastic tasks on a node take of its disk."""
        tasks = [(self.classes.get(task.task_class), task) for task in self._running.on(node)]
        return sum(
            task_class.estimates.disk_bytes_per_s(task.resources.memory_bytes)
            for task_class, task in tasks
            if task_class is not None and isinstance(task_class.estimates, Elastic)
        )

    @property
    def columns(self) -> Columns:
        """The elastic classes as columns, with some that are gone."""
        if self._columns is None:
            self._columns = Columns(self.classes.values())
        return self._columns

    # Jobs

    def observe(self, event: model.Event) -> None:
        """Keep account of jobs."""
        self.changes += 1
        if isinstance(event, model.Submitted):
            self._forget(event.job.id)
            self.jobs[event.job.id] = event
            for task_class in event.classes:
                self.classes[task_class.id] = task_class
                self.left[task_class.id] = event.tasks.get(task_class.id, 0)
            self._columns = None
            self.job_changes += 1
        elif isinstance(event, model.Ended):
            self._forget(event.job)
            self.job_changes += 1

    def _forget(self, job: model.JobId) -> None:
        self._last_ends_s.pop(job, None)
        for task_class in self.jobs.pop(job).classes if job in self.jobs else ():
            del self.classes[task_class.id], self.left[task_class.id]

    # Tasks

    def placed(self, task: RunningTask) -> None:
        """Estimate the end of a task as if it started now."""
        if task.task_class in self.classes:
            self.left[task.task_class] -= 1
            self._ends_after(task, task.placed_s)

    def started(self, task: RunningTask, now_s: float) -> None:
        """Estimate its end anew."""
        if task.task in self._ends and task.task_class in self.classes:
            self._ends_after(task, now_s)

    def ended(self, task: RunningTask, event: model.Finished | model.Failed) -> None:
        """Forget its end; a task that failed is left to place again."""
        if self._ends.pop(task.task, None) is not None:
            self._changed(task)
            if isinstance(event, model.Failed) and task.task_class in self.left:
                self.left[task.task_class] += 1

    def _ends_after(self, task: RunningTask, start_s: float) -> None:
        size, self._made = task.resources, self._made + 1
        end_s = start_s + duration_s(self.classes[task.task_class], size)
        self._ends[task.task] = (end_s, self._made, task.node, size.memory_bytes, size.cpu_milli, task.job)
        self._changed(task)

    def _changed(self, task: RunningTask) -> None:
        self.changed_nodes.add(task.node)
        self._last_ends_s.pop(task.job, None)


class Columns:
    """The lowest run time of many classes by free memory.

    Args:
        classes: Those that are not elastic are left out.

    Attributes:
        ids: The elastic classes.
        regular_s: Their run time with the ideal memory.
        seconds: Their lowest run time with an amount of free memory, infinite where that is too little.
    """

    def __init__(self, classes: Iterable[model.TaskClass]) -> None:
        elastic = [
            (task_class.id, task_class.estimates) for task_class in classes if isinstance(task_class.estimates, Elastic)
        ]
        self.ids = [class_id for class_id, _ in elastic]
        levels = [estimates.levels for _, estimates in elastic]
        self.regular_s = np.array([level.regular_s for level in levels])
        self._ideal = np.array([estimates.ideal_bytes for _, estimates in elastic], np.int64)
        self._step = np.array([estimates.step_bytes for _, estimates in elastic], np.int64)
        self._last = np.cumsum([len(level.seconds) for level in levels], dtype=np.intp) - 1
        self._first = self._last - np.array([len(level.seconds) - 1 for level in levels], np.intp)
        self._seconds = np.concatenate([np.zeros(0), *(level.seconds for level in levels)])
        self.seconds = functools.lru_cache(maxsize=512)(self._lowest_s)  # the same amounts are free again and again

    def _lowest_s(self, free_bytes: int) -> model.FloatVector:
        free = max(0, free_bytes)
        level = np.where(self._ideal <= free, self._last, self._first + free // self._step)
        seconds: model.FloatVector = self._seconds[level]
        return seconds


def duration_s(task_class: model.TaskClass, resources: model.Resources) -> float:
    """Return the estimated run time of a task; infinite where nothing is known."""
    seconds = task_class.estimates.duration_s(resources)
    return math.inf if seconds is None else seconds
