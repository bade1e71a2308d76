"""What YARN-ME knows of the jobs: what is left to place, what runs where and until when. Learnt from events alone."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, TypeAlias

from boathouse_policies import model
from boathouse_policies.yarn_me.columns import Columns
from boathouse_policies.yarn_me.penalty import Elastic

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclasses.dataclass(slots=True, eq=False)
class Running:
    """A task that was placed.

    Attributes:
        job: Its job.
        task_class: Its class; None for one that was never submitted (a master).
        node: Where it is; None once it is gone.
        resources: What it holds.
        seconds: Estimated run time with that; infinite where nothing is known.
        end_s: Estimated end.
        disk_bytes_per_s: What an elastic task takes of the node's disk; 0 for a regular one.
    """

    job: JobBook
    task_class: model.TaskClass | None
    node: model.NodeName | None
    resources: model.Resources
    seconds: float
    end_s: float
    disk_bytes_per_s: float


End: TypeAlias = tuple[float, int, model.NodeName, int, int, model.JobId, Running | None]
"""An estimated end, for a heap: time, what breaks ties, node, memory and CPU that come free, job, task if it runs."""


@dataclasses.dataclass(slots=True, eq=False)
class JobBook:
    """A job.

    Attributes:
        job: As it was submitted.
        classes: Its classes in order.
        seconds: Estimated run time of a task of each with its ideal memory; infinite where nothing is known.
        left: Tasks of each that are not placed.
        held_bytes: Memory that its tasks hold.
        running: Its tasks.
    """

    job: model.Job
    classes: tuple[model.TaskClass, ...]
    seconds: tuple[float, ...]
    left: dict[model.ClassId, int]
    held_bytes: int = 0
    running: dict[model.TaskId, Running] = dataclasses.field(default_factory=dict)
    _last_end_s: float | None = -math.inf

    @property
    def last_end_s(self) -> float:
        """When the last of its running tasks ends."""
        if self._last_end_s is None:
            ends = [task.end_s for task in self.running.values() if task.task_class is not None]
            self._last_end_s = max(ends, default=-math.inf)
        return self._last_end_s

    def ends(self, task: Running, before_s: float) -> None:
        """The task's end is known, or known anew."""
        if self._last_end_s is None or task.task_class is None:
            return
        self._last_end_s = None if task.end_s < before_s >= self._last_end_s else max(self._last_end_s, task.end_s)

    def remove(self, task_id: model.TaskId, task: Running) -> None:
        """The task is gone."""
        self.held_bytes -= task.resources.memory_bytes
        self.running.pop(task_id, None)
        if task.end_s == self._last_end_s:
            self._last_end_s = None

    def take_over(self, other: JobBook) -> None:
        """The job was submitted again: what runs of it belongs here from now on."""
        self.held_bytes, self.running, self._last_end_s = other.held_bytes, other.running, None
        for task in self.running.values():
            task.job = self


class Book:
    """Keeps account of jobs and running tasks.

    Attributes:
        jobs: By id.
        classes: The classes of those jobs.
        columns: The same as vectors.
        nodes: Running tasks by node.
        versions: Of each node, another number whenever anything changed there; the last that changed is the last.
        changes: How often anything changed: what is derived from the book is good as long as this stays.
    """

    def __init__(self) -> None:
        self.jobs: dict[model.JobId, JobBook] = {}
        self.classes: dict[model.ClassId, model.TaskClass] = {}
        self.columns = Columns()
        self.nodes: dict[model.NodeName, dict[model.TaskId, Running]] = {}
        self.versions: dict[model.NodeName, int] = {}
        self.changes = 0
        self._ends: list[End] = []  # with some that are out of date
        self._sweep_at = _SWEEP_FROM
        self._made = 0

    def ends(self) -> list[End]:
        """The estimated ends of all that runs, as far as they still hold, the first first: a new list."""
        self._ends = [
            end
            for end in self._ends
            if (task := end[-1]) is not None and task.node is not None and task.end_s == end[0]
        ]
        self._ends.sort()  # nearly nothing to do: only the newest are out of order
        return self._ends.copy()

    def observe(self, event: model.Event) -> None:
        """Keep account of an event."""
        self.changes += 1
        match event:
            case model.Placed():
                self._placed(event)
            case model.Started():
                self._started(event)
            case model.Finished():
                self._gone(event.task, event.node)
            case model.Failed():
                self._failed(event)
            case model.Submitted():
                self._submitted(event)
            case model.Ended():
                self._ended(event.job)
            case _:
                pass

    def _submitted(self, event: model.Submitted) -> None:
        known = self.jobs.get(event.job.id)
        seconds = tuple(duration_s(one, one.resources) for one in event.classes)
        fresh = JobBook(event.job, event.classes, seconds, dict(event.tasks))
        if known is not None:
            fresh.take_over(known)
            self._forget(known)
        self.jobs[event.job.id] = fresh
        for one in event.classes:
            self.classes[one.id] = one
            self.columns.add(one, fresh.left.get(one.id, 0))

    def _ended(self, job: model.JobId) -> None:
        gone = self.jobs.pop(job, None)
        if gone is not None:
            self._forget(gone)

    def _forget(self, job: JobBook) -> None:
        for one in job.classes:
            self.classes.pop(one.id, None)
            self.columns.remove(one.id)

    def _left(self, job: JobBook, one: model.TaskClass, change: int) -> None:
        job.left[one.id] = left = job.left[one.id] + change
        self.columns.set_left(one.id, left)

    def _placed(self, event: model.Placed) -> None:
        book = self.jobs.get(event.job)
        if book is None:
            return
        one = self.classes.get(event.task_class)
        seconds, disk = math.inf, 0.0
        if one is not None:
            self._left(book, one, -1)
            seconds = duration_s(one, event.resources)
            if isinstance(one.estimates, Elastic) and event.resources.memory_bytes < one.resources.memory_bytes:
                disk = one.estimates.disk_bytes_per_s(event.resources.memory_bytes)
        task = Running(book, one, event.node, event.resources, seconds, event.now_s + seconds, disk)
        book.held_bytes += event.resources.memory_bytes
        book.running[event.task] = task
        self._ends_at(task, event.node, -math.inf)
        self.nodes.setdefault(event.node, {})[event.task] = task
        self._touch(event.node)

    def _started(self, event: model.Started) -> None:
        task = self.nodes.get(event.node, {}).get(event.task)
        if task is not None and task.end_s != event.now_s + task.seconds:
            before_s, task.end_s = task.end_s, event.now_s + task.seconds
            self._ends_at(task, event.node, before_s)
            self._touch(event.node)

    def _touch(self, node: model.NodeName) -> None:
        self.versions.pop(node, None)
        self.versions[node] = self.changes

    def _ends_at(self, task: Running, node: model.NodeName, before_s: float) -> None:
        task.job.ends(task, before_s)
        if task.end_s == math.inf:
            return
        self._made += 1
        size = task.resources
        self._ends.append((task.end_s, self._made, node, size.memory_bytes, size.cpu_milli, task.job.job.id, task))
        if len(self._ends) > self._sweep_at:
            self._sweep_at = 2 * len(self.ends()) + _SWEEP_FROM

    def _gone(self, task: model.TaskId, node: model.NodeName) -> Running | None:
        here = self.nodes.get(node, {})
        gone = here.pop(task, None)
        if gone is None:
            return None
        self._touch(node)
        if not here:
            del self.nodes[node]
        gone.node = None
        gone.job.remove(task, gone)
        return gone

    def _failed(self, event: model.Failed) -> None:
        gone = self._gone(event.task, event.node)
        if gone is not None and gone.task_class is not None and gone.task_class.id in gone.job.left:
            self._left(gone.job, gone.task_class, +1)  # it will be tried again

    def dump(self) -> Mapping[str, Any]:
        """Nothing: the shell submits jobs and shows what runs again after a restart."""
        return {}

    def load(self, state: Mapping[str, Any]) -> None:
        """Nothing."""


_SWEEP_FROM = 1024


def duration_s(one: model.TaskClass, resources: model.Resources) -> float:
    """Estimated run time; infinite where nothing is known."""
    known = one.estimates.duration_s(resources)
    return math.inf if known is None else known
