"""LATE on fair sharing: second attempts of the tasks that are thought to end last.

Zaharia et al., "Improving MapReduce Performance in Heterogeneous Environments", OSDI 2008, 4: a task's progress rate is
its progress over the time that it has run, its time left (1 - progress) / rate. When a slot is free, no task of the job
waits and fewer than SpeculativeCap second attempts run, the task with the longest time left gets one, if its rate is
below the 25th percentile of its class (SlowTaskThreshold), on a node that is not slow itself: one whose tasks' progress
adds up to no less than the 25th percentile of nodes (SlowNodeThreshold).

* "When a slot is free" is: in the first cycle after a report, for jobs whose turn it would be by fair sharing. Jobs
  with tasks that wait and less of the cluster go before.
* Hadoop asks a minute of a task before it may have a second attempt; tasks of the paper that this is compared in are
  shorter, so one report is enough (`least_run_s`).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from boathouse_policies import model
from boathouse_policies.baselines.fair import FairShare
from boathouse_policies.baselines.placement import Placement, scorer
from boathouse_policies.framework import Follower, Profile, RunningTask, RunningTasks
from boathouse_policies.framework.questions import Observer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from boathouse_policies.framework import ClusterView, SchedulingQueue


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """LATE's parameters (4.2, 5.1).

    Attributes:
        speculative_cap: Second attempts that may run, as a share of the slots.
        slow_task_percentile: SlowTaskThreshold, 0..100.
        slow_node_percentile: SlowNodeThreshold, 0..100.
        least_run_s: How long a task must have run (ours).
        report_every_s: Between two reports of progress: the heartbeat.
    """

    speculative_cap: float = 0.1
    slow_task_percentile: float = 25.0
    slow_node_percentile: float = 25.0
    least_run_s: float = 5.0
    report_every_s: float = 5.0


@dataclasses.dataclass(slots=True, eq=False)
class _Attempt:
    """What is known of a running attempt.

    Attributes:
        task: The attempt.
        progress: As of its last report.
        told_s: When that was.
        has_second: Whether a second attempt of it runs, or was refused.
    """

    task: RunningTask
    progress: float = 0.0
    told_s: float = 0.0
    has_second: bool = False

    @property
    def is_second(self) -> bool:
        """Whether it is a second attempt itself."""
        return self.task.task.endswith(_SECOND)

    @property
    def rate(self) -> float:
        """Progress a second, as of the last report."""
        started_s = self.task.started_s
        return 0.0 if started_s is None else self.progress / max(self.told_s - started_s, 1e-3)

    @property
    def left_s(self) -> float:
        """Time left at that rate."""
        return (1.0 - self.progress) / self.rate if self.rate else np.inf


class Late(Observer, Follower):
    """See the module's docstring.

    Args:
        config: The constants.
        running: What runs.
    """

    def __init__(self, config: Config, running: RunningTasks) -> None:
        self.report_every_s = config.report_every_s
        self.measure_every_s = 0.0
        self._config = config
        self._running = running
        running.follow(self)
        self._attempts: dict[model.TaskId, _Attempt] = {}
        self._ended_rates: dict[model.ClassId, list[float]] = {}
        self._node_progress: dict[model.NodeName, float] = {}
        self._classes: dict[model.JobId, tuple[model.TaskClass, ...]] = {}
        self._due = False

    # Deciding

    def advise(self, queue: SchedulingQueue, view: ClusterView) -> Sequence[model.Decision]:
        """Second attempts for the slots that are free."""
        cap, seconds = self._cap(view), sum(one.is_second for one in self._attempts.values())
        if not self._due or seconds >= cap:
            return ()
        self._due = False  # nothing is known better before the next reports
        free, decisions = view.free(), []
        for slow in self._slow(queue, view):
            node = self._node(slow, free, view)
            if node is not None and seconds < cap:
                free[:, node] -= view.axis.vector(slow.task.resources)
                seconds += 1
                decisions.append(self._speculate(slow, view.layout.names[node]))
        return decisions

    def _cap(self, view: ClusterView) -> float:
        """Of the slots that there are for tasks such as those that run."""
        sizes = {one.task_class: one.resources for one in self._running.tasks.values()}.values()
        slots = 0.0
        for size in sizes:
            vector = view.axis.vector(size)
            rows = vector.nonzero()[0]
            fit = (view.layout.allocatable[rows] // vector[rows, None]).min(axis=0, initial=np.iinfo(np.int64).max)
            slots = max(slots, float(fit.sum()))
        return self._config.speculative_cap * slots

    def _slow(self, queue: SchedulingQueue, view: ClusterView) -> list[_Attempt]:
        """Who may have a second attempt, the job with the least share first, then the longest time left."""
        waiting = [one for one in queue.sorted_classes().queued if one.pool.count]
        least = min((_share(one.job.id, view) for one in waiting), default=np.inf)
        some = [
            one
            for job, classes in sorted(self._classes.items())
            if _share(job, view) <= least
            for task_class in classes
            if not any(each.task_class.id == task_class.id for each in waiting)
            for one in self._slow_of(task_class.id, view.now_s)
        ]
        return sorted(some, key=lambda one: (_share(one.task.job, view), -one.left_s, one.task.task))

    def _slow_of(self, task_class: model.ClassId, now_s: float) -> Iterator[_Attempt]:
        known = [self._attempts[one.task] for one in self._running.of(task_class)]
        running = [one for one in known if one.task.started_s is not None]
        rates = [*self._ended_rates.get(task_class, ()), *(one.rate for one in running)]
        if len(rates) < _TO_COMPARE:
            return
        slow = float(np.percentile(rates, self._config.slow_task_percentile))
        for one in running:
            ran_s = now_s - (one.task.started_s or 0.0)
            if one.rate < slow and ran_s >= self._config.least_run_s and not (one.is_second or one.has_second):
                yield one

    def _node(self, slow: _Attempt, free: model.IntMatrix, view: ClusterView) -> int | None:
        """A node that is not slow, has room, and is another; the first by name of those with most progress."""
        vector = view.axis.vector(slow.task.resources)
        rows = vector.nonzero()[0]
        progress = np.array([self._node_progress.get(name, 0.0) for name in view.layout.names])
        fit = (free[rows] >= vector[rows, None]).all(axis=0)
        fit &= progress >= np.percentile(progress, self._config.slow_node_percentile)
        own = view.layout.index.get(slow.task.node)
        if own is not None:
            fit[own] = False
        return int(np.where(fit, progress, -1.0).argmax()) if fit.any() else None

    @staticmethod
    def _speculate(slow: _Attempt, node: model.NodeName) -> model.Speculate:
        task = slow.task
        return model.Speculate(
            task=model.Task(id=task.task, task_class=task.task_class),
            attempt=model.TaskId(f"{task.task}{_SECOND}"),
            node=node,
            resources=task.resources,
            reason=f"{slow.progress:.0%} done at {slow.rate:.2%} a second: {slow.left_s:.0f} s left",
        )

    # Learning

    def observe(self, event: model.Event) -> None:
        """Follow what runs."""
        match event:
            case model.Submitted():
                self._classes[event.job.id] = event.classes
            case model.Progress() if event.task in self._attempts:
                self._proceed(self._attempts[event.task], event.fraction, event.now_s)
                self._due = True
            case model.Refused(decision=model.Speculate(task=task)) if task.id in self._attempts:
                self._attempts[task.id].has_second = True  # it may not have one
            case model.Ended():
                for gone in self._classes.pop(event.job, ()):
                    self._ended_rates.pop(gone.id, None)
            case model.NodeChanged(node=None):
                self._node_progress.pop(event.name, None)
            case _:
                pass

    def placed(self, task: RunningTask) -> None:
        """An attempt was placed: the first or the second."""
        one = self._attempts[task.task] = _Attempt(task)
        self._second_of(one, runs=True)

    def started(self, task: RunningTask, now_s: float) -> None:
        """Its progress counts from now on."""
        self._attempts[task.task].told_s = now_s

    def ended(self, task: RunningTask, event: model.Finished | model.Failed) -> None:
        """Its rate counts where it succeeded, and its progress nowhere where it did not."""
        one = self._attempts.pop(task.task)
        if isinstance(event, model.Finished):
            self._proceed(one, 1.0, event.now_s)
            self._ended_rates.setdefault(task.task_class, []).append(one.rate)
        else:
            self._proceed(one, 0.0, event.now_s)
            self._second_of(one, runs=False)

    def _second_of(self, second: _Attempt, *, runs: bool) -> None:
        """The attempt runs, or is lost: whether its first has a second, if it is one."""
        first = self._attempts.get(model.TaskId(second.task.task.removesuffix(_SECOND))) if second.is_second else None
        if first is not None:
            first.has_second = runs

    def _proceed(self, one: _Attempt, progress: float, now_s: float) -> None:
        node = one.task.node
        self._node_progress[node] = self._node_progress.get(node, 0.0) + progress - one.progress
        one.progress, one.told_s = progress, now_s

    def dump(self) -> Mapping[str, Any]:
        """Nothing: running tasks report anew after a restart."""
        return {}

    def load(self, state: Mapping[str, Any]) -> None:
        """Nothing."""


def _share(job: model.JobId, view: ClusterView) -> float:
    usage = view.job_usage(job)
    return float((usage * view.layout.inverse_totals).max(initial=0.0))


_SECOND = "-second"
_TO_COMPARE = 4  # of which one is in the slowest quarter


def build(placement: Placement = Placement.LEAST_LOADED, config: Config | None = None) -> Profile:
    """The profile `late`."""
    running = RunningTasks()
    late = Late(config or Config(), running)
    return Profile(
        name="late",
        order=FairShare(),
        score=scorer(placement),
        controllers=(late,),
        observers=(running, late),
        sees_hosts=False,
    )
