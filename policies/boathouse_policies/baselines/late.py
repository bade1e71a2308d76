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
from boathouse_policies.framework import Profile
from boathouse_policies.framework.extension import Observer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from boathouse_policies.framework import ClusterView, WaitingRoom


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
    """What is known of a running attempt."""

    task: model.TaskId
    task_class: model.ClassId
    job: model.JobId
    node: model.NodeName
    resources: model.Resources
    started_s: float | None = None
    progress: float = 0.0
    told_s: float = 0.0
    is_second: bool = False
    has_second: bool = False

    @property
    def rate(self) -> float:
        """Progress a second, as of the last report."""
        return 0.0 if self.started_s is None else self.progress / max(self.told_s - self.started_s, 1e-3)

    @property
    def left_s(self) -> float:
        """Time left at that rate."""
        return (1.0 - self.progress) / self.rate if self.rate else np.inf


class Late(Observer):
    """See the module's docstring."""

    def __init__(self, config: Config) -> None:
        self.report_every_s = config.report_every_s
        self.measure_every_s = 0.0
        self._config = config
        self._attempts: dict[model.TaskId, _Attempt] = {}
        self._ended_rates: dict[model.ClassId, list[float]] = {}
        self._node_progress: dict[model.NodeName, float] = {}
        self._classes: dict[model.JobId, tuple[model.TaskClass, ...]] = {}
        self._due = False

    # Deciding

    def advise(self, queue: WaitingRoom, view: ClusterView) -> Sequence[model.Decision]:
        """Second attempts for the slots that are free."""
        cap, seconds = self._cap(view), sum(one.is_second for one in self._attempts.values())
        if not self._due or seconds >= cap:
            return ()
        self._due = False  # nothing is known better before the next reports
        free, decisions = view.free(), []
        for slow in self._slow(queue, view):
            node = self._node(slow, free, view)
            if node is not None and seconds < cap:
                free[:, node] -= view.axis.vector(slow.resources)
                seconds += 1
                decisions.append(self._speculate(slow, view.layout.names[node]))
        return decisions

    def _cap(self, view: ClusterView) -> float:
        """Of the slots that there are for tasks such as those that run."""
        sizes = {one.task_class: one.resources for one in self._attempts.values()}.values()
        slots = 0.0
        for size in sizes:
            vector = view.axis.vector(size)
            rows = vector.nonzero()[0]
            fit = (view.layout.allocatable[rows] // vector[rows, None]).min(axis=0, initial=np.iinfo(np.int64).max)
            slots = max(slots, float(fit.sum()))
        return self._config.speculative_cap * slots

    def _slow(self, queue: WaitingRoom, view: ClusterView) -> list[_Attempt]:
        """Who may have a second attempt, the job with the least share first, then the longest time left."""
        waiting = [one for one in queue.lineup().waiting if len(one.pool)]
        least = min((_share(one.job.id, view) for one in waiting), default=np.inf)
        some = [
            one
            for job, classes in sorted(self._classes.items())
            if _share(job, view) <= least
            for task_class in classes
            if not any(each.task_class.id == task_class.id for each in waiting)
            for one in self._slow_of(task_class.id, view.now_s)
        ]
        return sorted(some, key=lambda one: (_share(one.job, view), -one.left_s, one.task))

    def _slow_of(self, task_class: model.ClassId, now_s: float) -> Iterator[_Attempt]:
        running = [one for one in self._attempts.values() if one.task_class == task_class and one.started_s is not None]
        rates = [*self._ended_rates.get(task_class, ()), *(one.rate for one in running)]
        if len(rates) < _TO_COMPARE:
            return
        slow = float(np.percentile(rates, self._config.slow_task_percentile))
        for one in running:
            ran_s = now_s - (one.started_s or 0.0)
            if one.rate < slow and ran_s >= self._config.least_run_s and not (one.is_second or one.has_second):
                yield one

    def _node(self, slow: _Attempt, free: model.IntMatrix, view: ClusterView) -> int | None:
        """A node that is not slow, has room, and is another; the first by name of those with most progress."""
        vector = view.axis.vector(slow.resources)
        rows = vector.nonzero()[0]
        progress = np.array([self._node_progress.get(name, 0.0) for name in view.layout.names])
        fit = (free[rows] >= vector[rows, None]).all(axis=0)
        fit &= progress >= np.percentile(progress, self._config.slow_node_percentile)
        own = view.layout.index.get(slow.node)
        if own is not None:
            fit[own] = False
        return int(np.where(fit, progress, -1.0).argmax()) if fit.any() else None

    @staticmethod
    def _speculate(slow: _Attempt, node: model.NodeName) -> model.Speculate:
        slow.has_second = True
        return model.Speculate(
            task=model.Task(id=slow.task, task_class=slow.task_class),
            attempt=model.TaskId(f"{slow.task}{_SECOND}"),
            node=node,
            resources=slow.resources,
            reason=f"{slow.progress:.0%} done at {slow.rate:.2%} a second: {slow.left_s:.0f} s left",
        )

    # Learning

    def observe(self, event: model.Event) -> None:
        """Follow what runs."""
        match event:
            case model.Submitted():
                self._classes[event.job.id] = event.classes
            case model.Placed():
                self._placed(event)
            case model.Started() | model.Progress() | model.Finished() | model.Failed():
                if (one := self._attempts.get(event.task)) is not None:
                    self._of(one, event)
            case model.Ended():
                for gone in self._classes.pop(event.job, ()):
                    self._ended_rates.pop(gone.id, None)
            case model.NodeChanged(node=None):
                self._node_progress.pop(event.name, None)
            case _:
                pass

    def _of(self, one: _Attempt, event: model.Started | model.Progress | model.Finished | model.Failed) -> None:
        match event:
            case model.Started():
                one.started_s = one.told_s = event.now_s
            case model.Progress():
                self._proceed(one, event.fraction, event.now_s)
                self._due = True
            case model.Finished():
                self._proceed(one, 1.0, event.now_s)
                self._ended_rates.setdefault(one.task_class, []).append(one.rate)
                del self._attempts[one.task]
            case model.Failed():
                self._proceed(one, 0.0, event.now_s)
                del self._attempts[one.task]
                self._may_have_another(one)

    def _placed(self, event: model.Placed) -> None:
        one = _Attempt(event.task, event.task_class, event.job, event.node, event.resources)
        one.is_second = event.task.endswith(_SECOND)
        self._attempts[event.task] = one

    def _may_have_another(self, lost: _Attempt) -> None:
        first = self._attempts.get(model.TaskId(lost.task.removesuffix(_SECOND))) if lost.is_second else None
        if first is not None:
            first.has_second = False

    def _proceed(self, one: _Attempt, progress: float, now_s: float) -> None:
        done = self._node_progress.get(one.node, 0.0) + progress - one.progress
        self._node_progress[one.node] = done
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
    late = Late(config or Config())
    return Profile(
        name="late",
        order=FairShare(),
        score=scorer(placement),
        controllers=(late,),
        observers=(late,),
        sees_hosts=False,
    )
