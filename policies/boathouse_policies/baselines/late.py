"""LATE on fair sharing: second attempts of the tasks that are thought to end last.

Zaharia et al., "Improving MapReduce Performance in Heterogeneous Environments", OSDI 2008, 4: a task's progress rate is
its progress over the time that it has run, its time left (1 - progress) / rate. When a slot is free, no task of the job
waits and fewer than SpeculativeCap second attempts run, the task with the longest time left gets one, if its rate is
below the 25th percentile of its class (SlowTaskThreshold), on a node that is not slow itself: one whose tasks' progress
adds up to no less than the 25th percentile of nodes (SlowNodeThreshold).

* "When a slot is free" is: in the first cycle after a report, for jobs whose turn it would be by fair sharing. Jobs
  with tasks that wait and less of the cluster go before.
* A second attempt takes no room that is kept for a gang (`KeptRoom`).
* A shell that places second attempts by its ordinary cycle keeps them off slow nodes and off that of the first attempt
  (`Speculate.avoids`), but ranks the other nodes by the profile.
* Hadoop asks a minute of a task before it may have a second attempt; tasks of the paper that this is compared in are
  shorter, so one report is enough (`least_run_s`).
"""

import collections
import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from boathouse_policies import model
from boathouse_policies.baselines import LEAST_LOADED, FairShare, fitting
from boathouse_policies.framework import (
    ClusterView,
    Controller,
    Follower,
    Observer,
    Profile,
    QueuedClass,
    RunningTask,
    RunningTasks,
    SchedulingQueue,
    Score,
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """LATE's parameters (4.2, 5.1)."""

    speculative_cap: float = 0.1  # second attempts that may run, as a share of the slots
    slow_task_percentile: float = 25.0  # SlowTaskThreshold, 0..100
    slow_node_percentile: float = 25.0  # SlowNodeThreshold, 0..100
    least_run_s: float = 5.0  # how long a task must have run (ours)
    report_every_s: float = 5.0  # between two reports of progress: the heartbeat


@dataclasses.dataclass(slots=True, eq=False)
class _Attempt:
    """What is known of a running attempt."""

    task: RunningTask
    progress: float = 0.0
    reported_s: float = 0.0  # when it reported last; 0 before
    is_refused: bool = False  # whether a second attempt of it was refused

    @property
    def rate(self) -> float:
        """Progress a second, as of the last report."""
        started_s = self.task.started_s
        return 0.0 if started_s is None else self.progress / max(self.reported_s - started_s, 1e-3)

    @property
    def left_s(self) -> float:
        """Time left at that rate."""
        return (1.0 - self.progress) / self.rate if self.rate else np.inf


class Late(Controller, Observer, Follower):
    """Start second attempts of the tasks with the longest time left; not dumped, for running tasks report again."""

    def __init__(self, config: Config, running: RunningTasks) -> None:
        self.report_every_s, self._config, self._running = config.report_every_s, config, running
        self._attempts: dict[model.TaskId, _Attempt] = {}
        self._repeated: dict[model.TaskId, model.TaskId] = {}  # tasks with second attempts that run, by those
        self._ended_rates: dict[model.JobId, dict[model.ClassId, list[float]]] = {}
        self._node_progress: collections.defaultdict[model.NodeName, float] = collections.defaultdict(float)
        self._is_due = False
        running.follow(self)

    # Deciding

    def advise(self, queue: SchedulingQueue, view: ClusterView) -> Sequence[model.Decision]:
        """Decide second attempts for the slots that are free."""
        seconds = len(self._repeated)
        if not self._is_due or seconds >= (cap := self._cap(view)):
            return ()
        self._is_due = False  # nothing is known better before the next reports
        names, free, decisions = view.layout.names, queue.kept_room.beside(view), list[model.Decision]()
        progress = np.array([self._node_progress.get(name, 0.0) for name in names])
        is_slow = progress < np.percentile(progress, self._config.slow_node_percentile)
        avoids = tuple([names[node] for node in is_slow.nonzero()[0]])
        for slow in self._slow(queue, view):
            node = self._node(slow, free, np.where(is_slow, -1.0, progress), view)
            if node is not None and seconds + len(decisions) < cap:
                free[:, node] -= view.axis.vector(slow.task.resources)
                decisions.append(_speculate(slow, names[node], avoids))
        return decisions

    def is_idle(self) -> bool:
        """Return whether no task has reported since the last advice."""
        return not self._is_due

    def _cap(self, view: ClusterView) -> float:
        """Return the share of the slots that there are for tasks such as those that run."""
        sizes = {task.task_class: task.resources for task in self._running.tasks.values()}.values()
        fits = [np.floor(fitting(view.layout.allocatable, view.axis.vector(size))) for size in sizes]
        return self._config.speculative_cap * max((float(fit.sum()) for fit in fits), default=0.0)

    def _slow(self, queue: SchedulingQueue, view: ClusterView) -> list[_Attempt]:
        """Return who may have a second attempt, the job with the least share first, then the longest time left."""
        pending = {queued.job.id for queued in queue.sorted_classes().queued if queued.pool.count}
        jobs = {attempt.task.job for attempt in self._attempts.values()} | pending
        shares = {job: view.layout.dominant_share(view.job_usage(job)) for job in jobs}
        least = min((shares[job] for job in pending), default=np.inf)
        slow = [
            attempt
            for job in jobs
            if shares[job] <= least
            for task_class in _without_waiting(queue.classes_of(job))
            for attempt in self._slow_of(task_class, view.now_s)
        ]
        return sorted(slow, key=lambda attempt: (shares[attempt.task.job], -attempt.left_s, attempt.task.task))

    def _slow_of(self, task_class: model.TaskClass, now_s: float) -> Iterator[_Attempt]:
        attempts = [self._attempts[task.task] for task in self._running.of(task_class.id) if task.started_s is not None]
        ended_rates = self._ended_rates.get(task_class.job, {}).get(task_class.id, ())
        rates = [*ended_rates, *(attempt.rate for attempt in attempts)]
        if len(rates) < _TO_COMPARE:
            return
        slow = float(np.percentile(rates, self._config.slow_task_percentile))
        for attempt in attempts:
            task, ran_s = attempt.task, now_s - (attempt.task.started_s or 0.0)
            has_second = attempt.is_refused or task.second_of is not None or task.task in self._repeated.values()
            if attempt.rate < slow and ran_s >= self._config.least_run_s and not has_second:
                yield attempt

    def _node(
        self, slow: _Attempt, free: model.IntMatrix, progress: model.FloatVector, view: ClusterView
    ) -> int | None:
        """Return a node that is not slow, has room, and is another; the first by name of those with most progress."""
        vector = view.axis.vector(slow.task.resources)
        fit = ((free >= vector[:, None]) | (vector[:, None] == 0)).all(axis=0) & (progress >= 0)
        fit &= np.array(view.layout.names) != slow.task.node
        return int(np.where(fit, progress, -1.0).argmax()) if fit.any() else None

    # Learning

    def observe(self, event: model.Event) -> None:
        """Learn how far tasks are."""
        match event:
            case model.Progress() if event.task in self._attempts:
                self._proceed(self._attempts[event.task], event.fraction, event.now_s)
                self._is_due = True
            case model.Refused(decision=model.Speculate(task=task)) if task.id in self._attempts:
                self._attempts[task.id].is_refused = True
            case model.Ended():
                self._ended_rates.pop(event.job, None)
            case model.NodeChanged(node=None):
                self._node_progress.pop(event.name, None)
            case _:
                pass

    def placed(self, task: RunningTask) -> None:
        """Begin an attempt, the first or the second."""
        self._attempts[task.task] = _Attempt(task)
        if task.second_of is not None:
            self._repeated[task.task] = task.second_of

    def ended(self, task: RunningTask, event: model.Finished | model.Failed) -> None:
        """Count its rate where it succeeded, and its progress nowhere where it did not."""
        attempt, succeeded = self._attempts.pop(task.task), isinstance(event, model.Finished)
        self._repeated.pop(task.task, None)
        self._proceed(attempt, float(succeeded), event.now_s)
        if succeeded:
            self._ended_rates.setdefault(task.job, {}).setdefault(task.task_class, []).append(attempt.rate)

    def _proceed(self, attempt: _Attempt, progress: float, now_s: float) -> None:
        node = attempt.task.node
        self._node_progress[node] = self._node_progress[node] + progress - attempt.progress
        attempt.progress, attempt.reported_s = progress, now_s


def _without_waiting(classes: Sequence[QueuedClass]) -> Iterator[model.TaskClass]:
    """Yield a job's classes without pending tasks; pending second attempts are in a class beside that of others."""
    wait = {(queued.task_class.step, queued.task_class.stage) for queued in classes if queued.pool.count}
    return (queued.task_class for queued in classes if (queued.task_class.step, queued.task_class.stage) not in wait)


def _speculate(slow: _Attempt, node: model.NodeName, avoids: tuple[model.NodeName, ...]) -> model.Speculate:
    task = slow.task
    return model.Speculate(
        task=model.Task(id=task.task, task_class=task.task_class),
        attempt=model.TaskId(f"{task.task}-second"),
        node=node,
        avoids=avoids,
        resources=task.resources,
        reason=f"{slow.progress:.0%} done at {slow.rate:.2%} a second: {slow.left_s:.0f} s left",
    )


_TO_COMPARE = 4  # of which one is in the slowest quarter


def added(profile: Profile, config: Config | None = None) -> Profile:
    """Return a profile that also decides second attempts."""
    running = profile.running or RunningTasks()
    late = Late(config or Config(), running)
    observers = profile.observers if running is profile.running else (running, *profile.observers)
    return dataclasses.replace(
        profile, controllers=(*profile.controllers, late), observers=(*observers, late), running=running
    )


def build(score: Score = LEAST_LOADED, config: Config | None = None) -> Profile:
    """Return the profile `late`."""
    return added(Profile(name="late", order=FairShare(), score=score, sees_hosts=False), config)
