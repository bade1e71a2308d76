"""Dependency-aware resource adjustment (3.2): reducers that wait for maps lend their CPU to them for a while.

λ = R_Spark/(R_Spark + R_MR) by allocated CPU, 0 if neither runs. T_suspend = max(0, λ^v - θ)·T. A reducer that still
lacks map output is suspended once in T, and runs for the rest of it.

The controller decides `Suspend(resources=..., until_s=...)` with 1 millicore left, for Kubernetes knows no 0; memory
stays. The shell stops the task, frees the CPU once that shows, and resumes by itself at `until_s`.

The filter keeps lent CPU from all but maps. The reducer wants it back when its suspension ends; an executor or another
reducer would hold it for long (ours). It goes to the same job's maps first, then to others'.

Beyond the paper (ours):

* Nobody is suspended where no map could use the CPU: none waits, or the node has not the memory for the smallest that
  does, or it is reserved for an executor.
* A reducer is suspended once the shell says so (`Suspended`). One that it refused is not asked for again within T.
* `Resume` before the time is up once all maps of its job have ended, no map waits any more, or its node is reserved for
  an executor.
"""

import dataclasses
import math
from collections.abc import Collection, Hashable, Mapping, Sequence

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import (
    Assignment,
    ClusterView,
    Controller,
    CycleState,
    Figure,
    Figures,
    Filter,
    Hooks,
    PendingClass,
    Profile,
    SchedulingQueue,
    Where,
)
from boathouse_policies.ikayak.book import SPARK, Book, Reducer
from boathouse_policies.ikayak.config import Config

REASON = "it waits for map output; its CPU goes to its job's maps"
READY = "its map output is there"
NO_USE = "no map waits for its CPU"
KEPT = "its node is kept for an executor, where no map may go"


def length_s(factor: float, config: Config) -> float:
    """Return T_suspend."""
    return max(0.0, math.pow(factor, config.weight) - config.overhead) * config.interval_s


def is_in(profile: Profile) -> bool:
    """Return whether a profile suspends reducers."""
    return any(isinstance(controller, Suspension) and controller.suspends for controller in profile.controllers)


class Suspension(Controller, Filter, Hooks, Figures):
    """The controller of reducers' suspensions, and the filter that keeps lent CPU for maps."""

    reason = "node(s) whose free CPU is lent to maps by a suspended reducer"

    def __init__(self, config: Config, book: Book) -> None:
        self._config, self._book = config, book
        # Until when who is suspended in this cycle, the controller's decisions included
        self.paused: Mapping[Reducer, float] = {}
        self._hungry: Collection[model.JobId] = ()  # jobs whose maps are pending
        self._lent: model.IntVector | None = None

    @property
    def suspends(self) -> bool:
        """Whether reducers are suspended at all."""
        return self._config.suspension

    def advise(self, queue: SchedulingQueue, view: ClusterView) -> Sequence[model.Decision]:
        """Decide whom to suspend and whom to resume."""
        now_s = view.now_s
        away = {reducer: pause.until_s for reducer, pause in self._book.suspended() if pause.until_s > now_s}
        due = [reducer for reducer in self._book.lacking() if self._is_due(reducer, now_s)]
        self.paused = {}
        if not due and not away:
            return ()
        waiting = _waiting_maps(queue)
        back = {reducer: reason for reducer in away if (reason := _reason_to_resume(reducer, waiting, queue))}
        pausing = self._pausing(due, waiting, queue, view)
        self.paused = {reducer: until_s for reducer, until_s in away.items() if reducer not in back} | pausing
        self._hungry = waiting.keys()
        return [
            *(_resume(reducer, reason) for reducer, reason in back.items()),
            *(self._suspend(reducer, until_s) for reducer, until_s in pausing.items()),
        ]

    def is_idle(self) -> bool:
        """Return whether no reducer is suspended or may be."""
        return not self._book.suspended() and not any(self._config.suspension for _ in self._book.lacking())

    def _is_due(self, reducer: Reducer, now_s: float) -> bool:
        """Return whether it runs, lacks map output as far as it reported, and was not suspended within T."""
        runs = reducer.history is not None and reducer.task.pause is None and not reducer.past_shuffle
        return self._config.suspension and runs and now_s - reducer.last_s >= self._config.interval_s

    def _pausing(
        self, due: Sequence[Reducer], waiting: Mapping[model.JobId, int], queue: SchedulingQueue, view: ClusterView
    ) -> dict[Reducer, float]:
        for_s = length_s(self.delay_factor(view), self._config) if due and waiting else 0.0
        if for_s <= 0:
            return {}
        free, least, index = view.free()[model.MEMORY], min(waiting.values()), view.layout.index
        places = {reducer: index.get(reducer.task.node) for reducer in due if reducer.task.node not in queue.reserved}
        has_room = [reducer for reducer, place in places.items() if place is not None and free[place] >= least]
        return dict.fromkeys(self.worthwhile(has_room, for_s, waiting, view), view.now_s + for_s)

    def worthwhile(
        self,
        reducers: Sequence[Reducer],
        for_s: float,  # noqa: ARG002 - for those who compare
        waiting: Mapping[model.JobId, int],  # noqa: ARG002
        view: ClusterView,  # noqa: ARG002
    ) -> Sequence[Reducer]:
        """Return which reducers to suspend, of those beside which a map has room: all of them, as the paper does."""
        return reducers

    def reason_for(self, reducer: Reducer) -> str:  # noqa: ARG002 - for those who compare
        """Return why a reducer is suspended."""
        return REASON

    def delay_factor(self, view: ClusterView) -> float:
        """Return λ of what jobs hold now."""
        held = [
            (job, view.by_job[job_id][model.CPU]) for job_id, job in self._book.jobs.items() if job_id in view.by_job
        ]
        spark = sum(cpu for job, cpu in held if any(task.stage in SPARK for task in job.classes.values()))
        return spark / sum(cpu for _, cpu in held) if spark else 0.0

    def _suspend(self, reducer: Reducer, until_s: float) -> model.Suspend:
        node, holds, reason = reducer.task.node, reducer.task.resources, self.reason_for(reducer)
        size = dataclasses.replace(holds, cpu_milli=min(self._config.shrunk_milli, holds.cpu_milli))
        return model.Suspend(task=_task(reducer), node=node, resources=size, until_s=until_s, reason=reason)

    # Lent CPU

    def begins(self, queue: SchedulingQueue, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """Sum up what CPU is lent on which node."""
        self._lent = self._sum(list(self.paused), state) if self.paused else None

    def _sum(self, lenders: Sequence[Reducer], state: CycleState) -> model.IntVector:
        """Return the CPU that these lend, by node, shape [N]."""
        total = np.zeros(len(state.offered), np.int64)
        index = state.view.layout.index
        for reducer in lenders:
            place = index.get(reducer.task.node)
            if place is not None and self.paused[reducer] > state.view.now_s:
                total[place] += max(0, reducer.task.resources.cpu_milli - self._config.shrunk_milli)
        return total

    def of_placed(self, assignment: Assignment, state: CycleState) -> Sequence[Figure]:  # noqa: ARG002 - the protocol's
        """Return the CPU that is lent on the node of a map."""
        if self._lent is None or assignment.pending.task_class.stage is not model.Stage.MAP:
            return ()
        lent = self._lent.item(assignment.node)
        return (("lentMilli", float(lent)),) if lent else ()

    def free(self, state: CycleState) -> model.IntMatrix:
        """Return what is free without lent CPU, shape [R, N]: not to be changed."""
        if self._lent is None or not self._lent.any():
            return state.free
        free = state.free.copy()
        free[model.CPU] -= self._lent
        return free

    def concerns(self, pending: PendingClass) -> bool:  # noqa: ARG002 - the protocol's
        """Return whether any CPU is lent."""
        return self._lent is not None

    def key(self, pending: PendingClass) -> Hashable:
        """Return the job of maps, for its own reducers' CPU comes first."""
        return pending.job.id if pending.task_class.stage is model.Stage.MAP else None

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Return where the class fits without CPU that is lent to others."""
        lent = self._lent
        if lent is not None and pending.task_class.stage is model.Stage.MAP:
            own, hungry = pending.job.id, self._hungry
            others = [reducer for reducer in self.paused if reducer.job.job.id in hungry and reducer.job.job.id != own]
            lent = self._sum(others, state)
        if lent is None or not lent.any():
            return None
        left = (state.free[model.CPU] - lent)[where]
        passed: model.BoolVector = (lent[where] == 0) | (left >= pending.least[model.CPU])
        return passed


def _waiting_maps(queue: SchedulingQueue) -> Mapping[model.JobId, int]:
    """Return the memory of the smallest pending map of each job that has any."""
    sizes = [
        (queued.task_class.resources.memory_bytes, queued.job.id)
        for queued in queue.sorted_classes().queued
        if queued.task_class.stage is model.Stage.MAP and queued.pool.count
    ]
    return {job: size for size, job in sorted(sizes, reverse=True)}  # of each job the smallest is the last


def _reason_to_resume(reducer: Reducer, waiting: Mapping[model.JobId, int], queue: SchedulingQueue) -> str:
    if not reducer.job.lacks_maps:
        return READY
    if not waiting:
        return NO_USE
    return KEPT if reducer.task.node in queue.reserved else ""


def _resume(reducer: Reducer, reason: str) -> model.Resume:
    task = reducer.task
    return model.Resume(task=_task(reducer), node=task.node, resources=task.resources, reason=reason)


def _task(reducer: Reducer) -> model.Task:
    return model.Task(id=reducer.task.task, task_class=reducer.task.task_class)
