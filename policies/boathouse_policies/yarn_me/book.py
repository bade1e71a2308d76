"""What YARN-ME knows of the jobs: what is left to place, what runs where and until when. Learnt from events alone."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from boathouse_policies import model
from boathouse_policies.yarn_me.penalty import Elastic

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclasses.dataclass(slots=True, eq=False)
class Running:
    """A task that was placed.

    Attributes:
        job: Its job.
        task_class: Its class; None for one that was never submitted (a master).
        resources: What it holds.
        seconds: Estimated run time with that; infinite where nothing is known.
        end_s: Estimated end.
        disk_bytes_per_s: What an elastic task takes of the node's disk; 0 for a regular one.
    """

    job: JobBook
    task_class: model.TaskClass | None
    resources: model.Resources
    seconds: float
    end_s: float
    disk_bytes_per_s: float


@dataclasses.dataclass(slots=True, eq=False)
class JobBook:
    """A job.

    Attributes:
        job: As it was submitted.
        classes: Its classes in order.
        left: Tasks of each that are not placed.
        held_bytes: Memory that its tasks hold.
        running: Its tasks.
    """

    job: model.Job
    classes: tuple[model.TaskClass, ...]
    left: dict[model.ClassId, int]
    held_bytes: int = 0
    running: dict[model.TaskId, Running] = dataclasses.field(default_factory=dict)

    @property
    def last_end_s(self) -> float:
        """When the last of its running tasks ends."""
        ends = [task.end_s for task in self.running.values() if task.task_class is not None]
        return max(ends, default=-math.inf)


class Book:
    """Keeps account of jobs and running tasks.

    Attributes:
        jobs: By id.
        classes: The classes of those jobs.
        nodes: Running tasks by node.
        touched: Nodes where anything changed, until somebody clears it.
        changes: How often anything changed: what is derived from the book is good as long as this stays.
    """

    def __init__(self) -> None:
        self.jobs: dict[model.JobId, JobBook] = {}
        self.classes: dict[model.ClassId, model.TaskClass] = {}
        self.nodes: dict[model.NodeName, dict[model.TaskId, Running]] = {}
        self.touched: set[model.NodeName] = set()
        self.changes = 0

    def observe(self, event: model.Event) -> None:
        """Keep account of an event."""
        self.changes += 1
        match event:
            case model.Submitted():
                self._submitted(event)
            case model.Placed():
                self._placed(event)
            case model.Started():
                self._started(event)
            case model.Finished():
                self._gone(event.task, event.node)
            case model.Failed():
                self._failed(event)
            case model.Ended():
                self._ended(event.job)
            case _:
                pass

    def _submitted(self, event: model.Submitted) -> None:
        known = self.jobs.get(event.job.id)
        fresh = JobBook(event.job, event.classes, dict(event.tasks))
        if known is not None:
            fresh.held_bytes, fresh.running = known.held_bytes, known.running
            for task in known.running.values():
                task.job = fresh
        self.jobs[event.job.id] = fresh
        self.classes.update((one.id, one) for one in event.classes)

    def _ended(self, job: model.JobId) -> None:
        gone = self.jobs.pop(job, None)
        for one in gone.classes if gone is not None else ():
            self.classes.pop(one.id, None)

    def _placed(self, event: model.Placed) -> None:
        book = self.jobs.get(event.job)
        if book is None:
            return
        one = self.classes.get(event.task_class)
        seconds, disk = math.inf, 0.0
        if one is not None:
            book.left[one.id] -= 1
            seconds = duration_s(one, event.resources)
            if isinstance(one.estimates, Elastic) and event.resources.memory_bytes < one.resources.memory_bytes:
                disk = one.estimates.disk_bytes_per_s(event.resources.memory_bytes)
        task = Running(book, one, event.resources, seconds, event.now_s + seconds, disk)
        book.held_bytes += event.resources.memory_bytes
        book.running[event.task] = task
        self.nodes.setdefault(event.node, {})[event.task] = task
        self.touched.add(event.node)

    def _started(self, event: model.Started) -> None:
        task = self.nodes.get(event.node, {}).get(event.task)
        if task is not None:
            task.end_s = event.now_s + task.seconds
            self.touched.add(event.node)

    def _gone(self, task: model.TaskId, node: model.NodeName) -> Running | None:
        here = self.nodes.get(node, {})
        gone = here.pop(task, None)
        if gone is None:
            return None
        self.touched.add(node)
        if not here:
            del self.nodes[node]
        gone.job.held_bytes -= gone.resources.memory_bytes
        gone.job.running.pop(task, None)
        return gone

    def _failed(self, event: model.Failed) -> None:
        gone = self._gone(event.task, event.node)
        if gone is not None and gone.task_class is not None:
            gone.job.left[gone.task_class.id] += 1  # it will be tried again

    def shorter_than(self, seconds: float) -> set[model.ClassId]:
        """The classes with tasks left to place whose regular run time is at most this."""
        return {
            one.id
            for job in self.jobs.values()
            for one in job.classes
            if job.left.get(one.id, 0) > 0 and duration_s(one, one.resources) <= seconds
        }

    def dump(self) -> Mapping[str, Any]:
        """Nothing: the shell submits jobs and shows what runs again after a restart."""
        return {}

    def load(self, state: Mapping[str, Any]) -> None:
        """Nothing."""


def duration_s(one: model.TaskClass, resources: model.Resources) -> float:
    """Estimated run time; infinite where nothing is known."""
    known = one.estimates.duration_s(resources)
    return math.inf if known is None else known
