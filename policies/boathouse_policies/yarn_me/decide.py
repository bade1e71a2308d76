"""Algorithm 1 as extension points: regular first, elastic only where it is no straggler, reservations, disk budget.

Where the paper's loop takes one node at a time, the cycle takes one job and looks at all nodes on offer. With one node
on offer, as at a heartbeat, the two are the same.

| lines | here |
|---|---|
| 3: the node's reserved job, or the next | `Passing.mask`: a reserved node is closed to others |
| 5, 6: regular first | `Elasticity.size`, and `Elasticity.score`: nodes with room for the ideal come first |
| 7: elastic fits, disk contention | `Elasticity.mask` and `Elasticity.size`: the disk budget of the node |
| 8, 9: ends before its job | `Elasticity.mask`: run time against the timeline |
| 12, 14: reserve and unreserve | `Passing.reserve`; the scheduling queue releases |
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from boathouse_policies import model
from boathouse_policies.baselines.yarn import places_of
from boathouse_policies.framework import (
    ALL,
    ClusterView,
    Controller,
    CycleState,
    Figure,
    Figures,
    Filter,
    Hooks,
    PendingClass,
    SchedulingQueue,
    Score,
    Sized,
    Sizer,
    Where,
)
from boathouse_policies.framework.cycle_state import Assignment
from boathouse_policies.yarn_me.config import Config
from boathouse_policies.yarn_me.disks import Disks
from boathouse_policies.yarn_me.outlook import Outlook
from boathouse_policies.yarn_me.penalty import Elastic, Levels
from boathouse_policies.yarn_me.timeline import Timeline

TOO_LATE = "node(s) with memory for so slow a task that it would end after its job"
DISK = "node(s) whose disk has no bandwidth left for tasks that spill"


class LookAhead(Protocol):
    """What a timeline answers."""

    def reaches(self, job_id: model.JobId, time_s: float) -> bool:
        """Return whether the job ends then or later, if from now on all is placed regularly."""
        ...


LookingAhead: TypeAlias = Callable[[Outlook, ClusterView, Mapping[model.NodeName, model.ClassId]], LookAhead]


class Elasticity(Controller, Filter, Score, Sizer, Hooks, Figures):
    """All of them share the outlook and the timeline. The regular score ranks nodes with room for the ideal size."""

    by_node = True

    def __init__(self, config: Config, regular: Score, outlook: Outlook, look_ahead: LookingAhead = Timeline) -> None:
        self.outlook, self._config, self.disks = outlook, config, Disks(config, outlook)
        self._look_ahead, self._regular = look_ahead, regular
        self._timeline: LookAhead | None = None
        self._made_s, self._changes, self._job_changes = -math.inf, -1, 0
        self._taken: dict[int, float] = {}  # disk bandwidth that this cycle gave out, by node

    def advise(self, queue: SchedulingQueue, view: ClusterView) -> Sequence[model.Decision]:
        """Decide nothing, but look ahead anew if the timeline is too old."""
        config, outlook = self._config, self.outlook
        is_old = view.now_s - self._made_s >= config.refresh_s and outlook.changes != self._changes
        jobs_changed = outlook.job_changes - self._job_changes
        if is_old or (jobs_changed and jobs_changed >= config.refresh_share * len(outlook.jobs)):
            self._made_s, self._changes, self._job_changes = view.now_s, outlook.changes, outlook.job_changes
            self._timeline = self._look_ahead(outlook, view, queue.reserved)
        return ()

    def concerns(self, pending: PendingClass) -> bool:
        """Return whether a class is known to run with less memory."""
        return isinstance(pending.task_class.estimates, Elastic)

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Return where a class fits regularly, or elastically within its job's finish time and the disk's budget."""
        estimates = pending.task_class.estimates
        if not isinstance(estimates, Elastic):
            return None
        seconds = estimates.levels.seconds_on(state.free[model.MEMORY, where])
        longest_s = self._longest_s(estimates.levels, seconds[state.offered[where]], pending.job, state)
        in_time: model.BoolVector = seconds <= longest_s
        return self._within_budget(in_time, pending, state, where) if self.disks.has_budget else in_time

    def passes(self, pending: PendingClass, state: CycleState, node: int) -> bool:
        """Return the answer for one node."""
        estimates = pending.task_class.estimates
        if not isinstance(estimates, Elastic):
            return True
        _, seconds = estimates.levels.on(state.free_on(node)[model.MEMORY])
        if seconds > estimates.levels.regular_s and not self.ends_in_time(pending.job.id, seconds, state):
            return False
        return not self.disks.has_budget or self._has_bandwidth(pending.job, estimates, state, node)

    def refusals(self, pending: PendingClass, state: CycleState, among: model.BoolVector) -> Sequence[model.Refusal]:
        """Return how many nodes have memory and would be too slow, and how many have a busy disk."""
        estimates = pending.task_class.estimates
        if not isinstance(estimates, Elastic):
            return ()
        seconds = estimates.levels.seconds_on(state.free[model.MEMORY])
        fits = among & np.isfinite(seconds)
        late = fits & (seconds > self._longest_s(estimates.levels, seconds[among], pending.job, state))
        nodes = {TOO_LATE: late}
        if self.disks.has_budget:
            in_time = fits & ~late
            nodes[DISK] = in_time & ~self._within_budget(in_time, pending, state, ALL)
        return [model.Refusal(reason=reason, nodes=int(found.sum())) for reason, found in nodes.items() if found.any()]

    def _longest_s(self, levels: Levels, found: model.FloatVector, job: model.Job, state: CycleState) -> float:
        """Return the longest of these run times with which a task is no straggler, at least the regular one."""
        given = (slow_s for slow_s in levels.slow_s if (found == slow_s).any())
        return next((slow_s for slow_s in given if self.ends_in_time(job.id, slow_s, state)), levels.regular_s)

    def ends_in_time(self, job: model.JobId, seconds: float, state: CycleState) -> bool:
        """Return, by line 9, whether an elastic task with this run time finishes no later than its job."""
        if self._timeline is None or seconds == math.inf:
            return False
        end_s = state.view.now_s + seconds
        return self.outlook.last_end_s(job) >= end_s or self._timeline.reaches(job, end_s)

    def begins(self, queue: SchedulingQueue, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """Forget what earlier cycles gave out."""
        self._taken.clear()

    def placed(self, assignment: Assignment, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """Take disk bandwidth of the node for an elastic task."""
        self._take(assignment, +1.0)

    def undone(self, assignment: Assignment, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """Give the disk bandwidth back."""
        self._take(assignment, -1.0)

    def _take(self, assignment: Assignment, times: float) -> None:
        estimates, node = assignment.pending.task_class.estimates, assignment.node
        if self.disks.has_budget and isinstance(estimates, Elastic):
            rate = estimates.disk_bytes_per_s(assignment.resources.memory_bytes)
            self._taken[node] = self._taken.get(node, 0.0) + times * rate

    def _within_budget(
        self, passed: model.BoolVector, pending: PendingClass, state: CycleState, where: Where
    ) -> model.BoolVector:
        """Return which of the nodes that passed have disk bandwidth left, where an elastic task would go there."""
        job, estimates = pending.job, pending.task_class.estimates
        assert isinstance(estimates, Elastic)
        elastic = (passed & (state.free[model.MEMORY, where] < estimates.ideal_bytes)).nonzero()[0].tolist()
        if not elastic:
            return passed
        within, places = passed.copy(), places_of(where, state)
        within[elastic] = [self._has_bandwidth(job, estimates, state, places[i]) for i in elastic]
        return within

    def _has_bandwidth(self, job: model.Job, estimates: Elastic, state: CycleState, node: int) -> bool:
        memory, _ = estimates.levels.on(state.free_on(node)[model.MEMORY])
        if memory >= estimates.ideal_bytes:
            return True
        name = state.view.layout.names[node]
        taken = self.outlook.disk_bytes_per_s(name) + self._taken.get(node, 0.0)
        return estimates.disk_bytes_per_s(memory) + taken <= self.disks.budget(job.namespace, name)

    def of_placed(self, assignment: Assignment, state: CycleState) -> Sequence[Figure]:
        """Return what less memory costs a task that got less."""
        estimates, memory = assignment.pending.task_class.estimates, assignment.resources.memory_bytes
        if not isinstance(estimates, Elastic) or memory >= estimates.ideal_bytes:
            return ()
        (seconds, rate), (ideal_s, _) = estimates.run(memory), estimates.run(estimates.ideal_bytes)
        figures = (("idealBytes", float(estimates.ideal_bytes)), ("seconds", seconds), ("idealSeconds", ideal_s))
        name = state.view.layout.names[assignment.node]
        budget = self.disks.budget(assignment.pending.job.namespace, name)
        return (*figures, ("diskShare", rate / budget)) if 0 < budget < math.inf else figures

    def score(self, pending: PendingClass, state: CycleState, where: Where) -> model.FloatVector:
        """Rank nodes with room for the ideal first, by the regular score; then the others, the fastest first."""
        estimates = pending.task_class.estimates
        regular = self._regular.score(pending, state, where)
        if not isinstance(estimates, Elastic):
            return regular
        memory = state.free[model.MEMORY, where]
        seconds = estimates.levels.seconds_on(memory)
        slow = np.where(np.isfinite(seconds), -seconds, 0.0)
        return np.where(memory >= estimates.ideal_bytes, regular + _ABOVE, slow)

    def score_on(self, pending: PendingClass, state: CycleState, node: int) -> float:
        """Return the rank of one node."""
        estimates, free = pending.task_class.estimates, state.free_on(node)[model.MEMORY]
        if not isinstance(estimates, Elastic):
            return self._regular.score_on(pending, state, node)
        if free >= estimates.ideal_bytes:
            return self._regular.score_on(pending, state, node) + _ABOVE
        _, seconds = estimates.levels.on(free)
        return -seconds if seconds < math.inf else 0.0

    def least(self, task_class: model.TaskClass) -> model.Resources:
        """Return the smallest elastic size."""
        ideal, estimates = task_class.resources, task_class.estimates
        if self._config.elastic and isinstance(estimates, Elastic) and estimates.least_bytes < ideal.memory_bytes:
            return _sized(ideal, estimates.least_bytes).resources
        return ideal

    def size(self, pending: PendingClass, node: int, state: CycleState) -> Sized:
        """Return the ideal if it fits, else the least memory with the lowest run time."""
        estimates, free = pending.task_class.estimates, state.free_on(node)[model.MEMORY]
        if not isinstance(estimates, Elastic) or free >= estimates.ideal_bytes:
            return pending.ideal
        return _sized(pending.task_class.resources, estimates.levels.on(free)[0])

    def size_together(self, pending: PendingClass, state: CycleState) -> Sized | None:
        """Return the least size, if tasks of this size end in time."""
        estimates = pending.task_class.estimates
        if not isinstance(estimates, Elastic) or estimates.least_bytes >= estimates.ideal_bytes:
            return None
        in_time = self.ends_in_time(pending.job.id, estimates.run(estimates.least_bytes)[0], state)
        return _sized(pending.task_class.resources, estimates.least_bytes) if in_time else None


@functools.lru_cache(maxsize=65_536)
def _sized(ideal: model.Resources, memory_bytes: int) -> Sized:
    return Sized(dataclasses.replace(ideal, memory_bytes=memory_bytes))


_ABOVE = 2.0  # above every regular rank's span of 0..1, so that none of them falls among the elastic ones
