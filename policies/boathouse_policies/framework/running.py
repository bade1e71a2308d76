"""Which task runs where: the one account of it, learnt from events, that the policies of a profile share.

A policy that keeps more of a running task than is here (an estimated end, a history of progress) is a `Follower`: it is
notified of each task, and stores what it learns by task. In a profile's observers `RunningTasks` comes first.
"""

import dataclasses
import math
from collections.abc import Iterable
from typing import TypeVar

from boathouse_policies import model
from boathouse_policies.framework.questions import Observer


@dataclasses.dataclass(frozen=True, slots=True)
class Pause:
    """The suspension of a task."""

    since_s: float
    until_s: float


@dataclasses.dataclass(slots=True, eq=False)
class RunningTask:
    """A task that was placed and has not ended."""

    task: model.TaskId
    task_class: model.ClassId
    job: model.JobId
    node: model.NodeName
    resources: model.Resources  # what it holds; of a suspended task, what it holds when it goes on
    distance: model.Distance
    placed_s: float
    started_s: float | None = None  # when its container began to run; None before
    pause: Pause | None = None
    second_of: model.TaskId | None = None  # of a second attempt, the task that it repeats; else None


class Follower:
    """Is notified of running tasks, right after `RunningTasks` knows."""

    def placed(self, task: RunningTask) -> None:
        """Record that a task was placed."""

    def started(self, task: RunningTask, now_s: float) -> None:
        """Record that its container runs."""

    def resumed(self, task: RunningTask, pause: Pause, now_s: float) -> None:
        """Record that a suspended task runs again."""

    def ended(self, task: RunningTask, event: model.Finished | model.Failed) -> None:
        """Remove a task that succeeded, failed or was lost from those that run."""


class RunningTasks(Observer):
    """Keeps account of running tasks, those that are suspended too, in the order in which they were placed."""

    def __init__(self) -> None:
        self.tasks: dict[model.TaskId, RunningTask] = {}
        self.suspended: dict[model.TaskId, RunningTask] = {}
        self._by_node: dict[model.NodeName, dict[model.TaskId, RunningTask]] = {}
        self._by_class: dict[model.ClassId, dict[model.TaskId, RunningTask]] = {}
        self._followers: list[Follower] = []

    def follow(self, follower: Follower) -> None:
        """Notify a follower of every task from now on."""
        self._followers.append(follower)

    def on(self, node: model.NodeName) -> Iterable[RunningTask]:
        """Return the tasks on a node, in the order in which they were placed."""
        return self._by_node.get(node, _NOTHING).values()

    def of(self, task_class: model.ClassId) -> Iterable[RunningTask]:
        """Return the tasks of a class, in the order in which they were placed."""
        return self._by_class.get(task_class, _NOTHING).values()

    def observe(self, event: model.Event) -> None:
        """Keep account of an event."""
        match event:
            case model.Placed():
                self._placed(event)
            case model.Started() if (task := self.tasks.get(event.task)) is not None:
                task.started_s = event.now_s
                for follower in self._followers:
                    follower.started(task, event.now_s)
            case model.Finished() | model.Failed():
                self._ended(event)
            case model.Resized() | model.Suspended() | model.Resumed():
                self._adjusted(event)
            case _:
                pass

    def _placed(self, event: model.Placed) -> None:
        if event.task in self.tasks:
            about: model.About = {
                "now_s": event.now_s,
                "task": event.task,
                "task_class": event.task_class,
                "job": event.job,
                "node": event.node,
            }
            self._ended(model.Failed(**about, reason="PlacedAgain"))
        task = RunningTask(
            event.task,
            event.task_class,
            event.job,
            event.node,
            event.resources,
            event.distance,
            event.now_s,
            second_of=event.second_of,
        )
        self.tasks[task.task] = task
        self._by_node.setdefault(task.node, {})[task.task] = task
        self._by_class.setdefault(task.task_class, {})[task.task] = task
        for follower in self._followers:
            follower.placed(task)

    def _ended(self, event: model.Finished | model.Failed) -> None:
        if (task := self.tasks.pop(event.task, None)) is None:
            return
        _remove(self._by_node, task.node, task)
        _remove(self._by_class, task.task_class, task)
        self._resumed(task, event.now_s)
        for follower in self._followers:
            follower.ended(task, event)

    def _adjusted(self, event: model.Resized | model.Suspended | model.Resumed) -> None:
        if (task := self.tasks.get(event.task)) is None:
            return
        if isinstance(event, model.Suspended):
            task.pause = Pause(event.now_s, math.inf if event.until_s is None else event.until_s)
            self.suspended[task.task] = task
        else:
            task.resources = event.resources
        if isinstance(event, model.Resumed):
            self._resumed(task, event.now_s)

    def _resumed(self, task: RunningTask, now_s: float) -> None:
        pause, task.pause = task.pause, None
        self.suspended.pop(task.task, None)
        if pause is not None:
            for follower in self._followers:
                follower.resumed(task, pause, now_s)


_Key = TypeVar("_Key", model.NodeName, model.ClassId)


def _remove(index: dict[_Key, dict[model.TaskId, RunningTask]], key: _Key, task: RunningTask) -> None:
    del index[key][task.task]
    if not index[key]:
        del index[key]


_NOTHING: dict[model.TaskId, RunningTask] = {}
