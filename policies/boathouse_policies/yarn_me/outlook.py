"""What YARN-ME learns of jobs: how many tasks are left to place, and when those that run will end."""

import bisect
import collections
import functools
import math
from collections.abc import Container, Iterable, Sequence
from typing import TypeAlias

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import Follower, Observer, RunningTask, RunningTasks
from boathouse_policies.yarn_me.penalty import Elastic

End: TypeAlias = tuple[float, int, model.NodeName, int, int, model.JobId]
"""An estimated end, for a heap: time, what breaks ties, node, memory and CPU that come free, job."""


class Outlook(Observer, Follower):
    """Keeps account of jobs, and of when running tasks will end."""

    def __init__(self, running: RunningTasks) -> None:
        self.jobs: dict[model.JobId, model.Submitted] = {}  # as they were submitted, by id
        self.classes: dict[model.ClassId, model.TaskClass] = {}
        self.left: dict[model.ClassId, int] = {}  # tasks of each class that are not placed
        self.changed_nodes: set[model.NodeName] = set()  # where an end changed, for the reader to clear
        self.changes = self.job_changes = 0
        self._columns: Columns | None = None
        self._end_of: dict[model.TaskId, End] = {}
        self._ends_on: collections.defaultdict[model.NodeName, list[End]] = collections.defaultdict(list)  # ascending
        self._ends_in: collections.defaultdict[model.JobId, list[End]] = collections.defaultdict(list)
        self._freed_s: dict[model.NodeName, dict[tuple[int, int], float]] = {}  # a memo of `freed_s`
        self._disk: dict[model.NodeName, float] = {}  # a memo of `disk_bytes_per_s`
        self._made, self._running = 0, running
        running.follow(self)

    def ends(self) -> list[End]:
        """Return the estimated ends of all that runs, ascending."""
        return sorted(self._end_of.values())

    def last_end_s(self, job: model.JobId) -> float:
        """Return when the last of a job's running tasks ends; -inf where nothing runs."""
        return self._ends_in[job][-1][0] if job in self._ends_in else -math.inf

    def freed_s(self, node: model.NodeName, memory_bytes: int, cpu_milli: int) -> float:
        """Return when the tasks on a node will have freed so much; -inf for nothing, or where that is unknown."""
        if memory_bytes <= 0 and cpu_milli <= 0:
            return -math.inf
        known = self._freed_s.setdefault(node, {})
        if (memory_bytes, cpu_milli) not in known:
            known[memory_bytes, cpu_milli] = self._freed_after(self._ends_on.get(node, ()), memory_bytes, cpu_milli)
        return known[memory_bytes, cpu_milli]

    @staticmethod
    def _freed_after(ends: Iterable[End], memory_bytes: int, cpu_milli: int) -> float:
        for end_s, _, _, bytes_freed, cpu_freed, _ in ends:
            memory_bytes -= bytes_freed
            cpu_milli -= cpu_freed
            if memory_bytes <= 0 and cpu_milli <= 0:
                return end_s if end_s < math.inf else -math.inf
        return -math.inf

    def disk_bytes_per_s(self, node: model.NodeName) -> float:
        """Return what the elastic tasks on a node take of its disk, as estimated when one came or ended last."""
        if node not in self._disk:
            tasks = ((self.classes.get(task.task_class), task) for task in self._running.on(node))
            self._disk[node] = sum(
                task_class.estimates.disk_bytes_per_s(task.resources.memory_bytes)
                for task_class, task in tasks
                if task_class is not None and isinstance(task_class.estimates, Elastic)
            )
        return self._disk[node]

    def elastic_on(self, node: model.NodeName) -> int:
        """Return how many tasks on a node have less memory than their ideal."""
        known = ((self.classes.get(task.task_class), task.resources.memory_bytes) for task in self._running.on(node))
        return sum(known_class is not None and size < known_class.resources.memory_bytes for known_class, size in known)

    @property
    def columns(self) -> "Columns":
        """The elastic classes as columns, with some that are gone."""
        if self._columns is None:
            self._columns = Columns(self.classes.values())
        return self._columns

    def keep(self, nodes: Container[model.NodeName]) -> None:
        """Drop what is kept of other nodes than these."""
        self.changed_nodes = {name for name in self.changed_nodes if name in nodes}
        self._freed_s = {name: known for name, known in self._freed_s.items() if name in nodes}
        self._disk = {name: used for name, used in self._disk.items() if name in nodes}

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
        for task_class in self.jobs.pop(job).classes if job in self.jobs else ():
            del self.classes[task_class.id], self.left[task_class.id]

    def placed(self, task: RunningTask) -> None:
        """Estimate the end of a task as if it started now."""
        if task.task_class in self.classes:
            self.left[task.task_class] -= 1
            self._ends_after(task, task.placed_s)

    def started(self, task: RunningTask, now_s: float) -> None:
        """Estimate its end anew."""
        if task.task in self._end_of and task.task_class in self.classes:
            self._remove(task)
            self._ends_after(task, now_s)

    def ended(self, task: RunningTask, event: model.Finished | model.Failed) -> None:
        """Forget its end; a task that failed is left to place again."""
        if task.task in self._end_of:
            self._remove(task)
            if isinstance(event, model.Failed) and task.task_class in self.left:
                self.left[task.task_class] += 1

    def _ends_after(self, task: RunningTask, start_s: float) -> None:
        size, self._made = task.resources, self._made + 1
        end_s = start_s + duration_s(self.classes[task.task_class], size)
        end = (end_s, self._made, task.node, size.memory_bytes, size.cpu_milli, task.job)
        self._end_of[task.task] = end
        for ends in self._lists(task):
            bisect.insort(ends, end)

    def _remove(self, task: RunningTask) -> None:
        end = self._end_of.pop(task.task)
        for ends in self._lists(task):
            del ends[bisect.bisect_left(ends, end)]
        if not self._ends_in[task.job]:
            del self._ends_in[task.job]
        if not self._ends_on[task.node]:
            del self._ends_on[task.node]

    def _lists(self, task: RunningTask) -> Sequence[list[End]]:
        """Return the lists of ends that name a task, which change."""
        self.changed_nodes.add(task.node)
        self._freed_s.pop(task.node, None)
        self._disk.pop(task.node, None)
        return self._ends_on[task.node], self._ends_in[task.job]


class Columns:
    """The lowest run time of many classes by free memory. Those that are not elastic are left out."""

    def __init__(self, classes: Iterable[model.TaskClass]) -> None:
        elastic = [
            (task_class.id, task_class.estimates) for task_class in classes if isinstance(task_class.estimates, Elastic)
        ]
        self._ids = [class_id for class_id, _ in elastic]
        levels = [estimates.levels for _, estimates in elastic]
        self.regular_s = dict(zip(self._ids, [level.regular_s for level in levels], strict=True))
        self._ideal = np.array([estimates.ideal_bytes for _, estimates in elastic], np.int64)
        self._step = np.array([estimates.step_bytes for _, estimates in elastic], np.int64)
        self._last = np.cumsum([len(level.seconds) for level in levels], dtype=np.intp) - 1
        self._first = self._last - np.array([len(level.seconds) - 1 for level in levels], np.intp)
        self._seconds = np.concatenate([np.zeros(0), *(level.seconds for level in levels)])
        self._sorted = functools.lru_cache(maxsize=512)(self._sort)  # the same amounts are free again and again

    def _sort(self, free_bytes: int) -> tuple[list[float], list[model.ClassId]]:
        free = max(0, free_bytes)
        level = np.where(self._ideal <= free, self._last, self._first + free // self._step)
        seconds = self._seconds[level]
        order = seconds.argsort(kind="stable")[: np.count_nonzero(seconds < np.inf)]
        return seconds[order].tolist(), [self._ids[row] for row in order.tolist()]

    def within(self, seconds: float, free_bytes: int) -> Iterable[tuple[model.ClassId, float]]:
        """Return the classes that run for at most so long with an amount of free memory, with their run times."""
        run_times_s, ids = self._sorted(free_bytes)
        return zip(ids, run_times_s[: bisect.bisect_right(run_times_s, seconds)], strict=False)


def duration_s(task_class: model.TaskClass, resources: model.Resources) -> float:
    """Return the estimated run time of a task; infinite where nothing is known."""
    seconds = task_class.estimates.duration_s(resources)
    return math.inf if seconds is None else seconds
