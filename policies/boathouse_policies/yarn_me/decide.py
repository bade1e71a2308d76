"""Algorithm 1 as extension points: regular first, elastic only where it is no straggler, reservations, disk budget.

Where the paper's loop takes one node at a time, the cycle takes one job and looks at all nodes on offer. With one node
on offer, as at a heartbeat, the two are the same.

| lines | here |
|---|---|
| 3: the node's reserved job, or the next | `Passing.mask`: a node kept for one is closed to others |
| 5, 6: regular first | `Elasticity.size`, and `Elasticity.score`: nodes with room for the ideal come first |
| 7: elastic fits, disk contention | `Elasticity.mask` and `Elasticity.size`: the disk budget of the node |
| 8, 9: ends before its job | `Elasticity.mask`: run time against the timeline |
| 12, 14: reserve and unreserve | `Passing.keep`; the scheduling queue releases |
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol, TypeAlias, overload

import numpy as np

from boathouse_policies import model
from boathouse_policies.baselines.yarn import places_of
from boathouse_policies.framework import ALL, Filter, Hooks, Observer, Score, Sized, Sizer
from boathouse_policies.yarn_me.book import Book
from boathouse_policies.yarn_me.penalty import Elastic
from boathouse_policies.yarn_me.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from boathouse_policies.framework import ClusterView, CycleState, PendingClass, SchedulingQueue, Where
    from boathouse_policies.framework.cycle_state import Assignment
    from boathouse_policies.yarn_me.config import Config

TOO_LATE = "node(s) with memory for so slow a task that it would end after its job"
DISK = "node(s) whose disk has no bandwidth left for tasks that spill"


class LookAhead(Protocol):
    """What a timeline answers."""

    def reaches(self, job: model.JobId, time_s: float) -> bool:
        """Whether the job ends then or later, if from now on all is placed regularly."""
        ...


LookingAhead: TypeAlias = "Callable[[Book, ClusterView, Mapping[model.NodeName, model.ClassId]], LookAhead]"


class Elasticity(Filter, Score, Sizer, Observer, Hooks):
    """Filter, score, sizer, controller, observer and hooks in one: they share the book and the timeline.

    Args:
        config: The constants.
        regular: Ranks nodes with room for the ideal size.
        look_ahead: Makes a timeline.
    """

    by_node = True

    def __init__(self, config: Config, regular: Score, look_ahead: LookingAhead = Timeline) -> None:
        self._config = config
        self._look_ahead = look_ahead
        self._regular = regular
        self._book = Book()
        self._reserved: Mapping[model.NodeName, model.ClassId] = {}
        self._timeline: LookAhead | None = None
        self._made = (-math.inf, -1)
        self._jobs_changed = 0
        self._taken: dict[int, float] = {}  # disk bandwidth that this cycle gave out, by node
        self._sizes: dict[tuple[model.Resources, int], Sized] = {}

    # Observer

    def observe(self, event: model.Event) -> None:
        """Keep the book."""
        self._book.observe(event)
        self._jobs_changed += isinstance(event, _CHANGING_JOBS)

    def dump(self) -> Mapping[str, Any]:
        """As the book."""
        return self._book.dump()

    def load(self, state: Mapping[str, Any]) -> None:
        """As the book."""
        self._book.load(state)

    # Controller

    def advise(self, queue: SchedulingQueue, view: ClusterView) -> Sequence[model.Decision]:
        """Nothing: it only learns which nodes are kept, and looks ahead."""
        self._reserved = queue.reserved
        self._renew(view)
        return ()

    # Filter

    def concerns(self, pending: PendingClass) -> bool:
        """Classes that are known to run with less memory."""
        return isinstance(pending.task_class.estimates, Elastic)

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Where the class fits regularly, or elastically within its job's estimated finish and the disk's budget."""
        one = pending.task_class.estimates
        if not isinstance(one, Elastic):
            return None
        offered = state.memory(where)[state.offered[where]]
        in_time = one.levels.seconds(state.memory(where)) <= self._allowance_s(one, pending, offered, state)
        return in_time & self._within_budget(one, state, where) if self.has_budget else in_time

    def passes(self, pending: PendingClass, state: CycleState, node: int) -> bool:
        """The same of one node."""
        one = pending.task_class.estimates
        if not isinstance(one, Elastic):
            return True
        free = state.memory(node)
        in_time = one.levels.seconds(free) <= self._allowance_s(one, pending, free, state)
        return in_time and (not self.has_budget or self._has_bandwidth(one, state, node))

    def refusals(self, pending: PendingClass, state: CycleState, among: model.BoolVector) -> Sequence[model.Refusal]:
        """Nodes that have memory and would be too slow, and those whose disk is busy."""
        one = pending.task_class.estimates
        if not isinstance(one, Elastic):
            return []
        memory = state.memory(ALL)
        seconds = one.levels.seconds(memory)
        late = np.isfinite(seconds) & (seconds > self._allowance_s(one, pending, memory[among], state)) & among
        found = [model.Refusal(reason=TOO_LATE, nodes=int(late.sum()))]
        if self.has_budget:
            busy = np.isfinite(seconds) & ~late & among & ~self._within_budget(one, state, ALL)
            found.append(model.Refusal(reason=DISK, nodes=int(busy.sum())))
        return [refusal for refusal in found if refusal.nodes]

    def _allowance_s(
        self, one: Elastic, pending: PendingClass, free: int | model.IntVector, state: CycleState
    ) -> float:
        """The longest run time that so much free memory gives with which a task of the class is no straggler."""
        for longest_s in one.levels.slow(free):
            if self.ends_in_time(pending.task_class.id, state.view.now_s + longest_s):
                return longest_s
        return one.levels.regular_s

    def ends_in_time(self, class_id: model.ClassId, end_s: float) -> bool:
        """Line 9: does an elastic task of the class with this end finish no later than its job?"""
        columns, one = self._book.columns, self._book.classes.get(class_id)
        row = columns.row(class_id)
        if row is None or one is None or self._timeline is None:
            return False
        if end_s <= columns.allowed_s[row]:
            return True
        if end_s >= columns.refused_s[row]:
            return False
        in_time = self._book.jobs[one.job].last_end_s >= end_s or self._timeline.reaches(one.job, end_s)
        (columns.allowed_s if in_time else columns.refused_s)[row] = end_s
        return in_time

    def placeable(self, free: Sequence[int], gaps_s: Sequence[float], now_s: float) -> set[model.ClassId]:
        """The classes that may be placed on one of some nodes that are kept for others, all seen at once.

        Args:
            free: Bytes of memory on each node.
            gaps_s: How long each is of no use to its owner.
            now_s: The time.
        """
        columns = self._book.columns
        longest_s: dict[int, float] = {}
        for free_bytes, gap_s in zip(free, gaps_s, strict=True):
            if gap_s > longest_s.get(free_bytes, 0.0):
                longest_s[free_bytes] = gap_s
        if not longest_s:
            return set()
        least_s: model.FloatVector | None = None
        for free_bytes, gap_s in longest_s.items():
            here = columns.seconds(free_bytes)
            here = np.where(here <= gap_s, here, np.inf)
            least_s = here if least_s is None else np.minimum(least_s, here)
        assert least_s is not None
        found = set()
        for row in ((least_s < np.inf) & (columns.left > 0)).nonzero()[0].tolist():
            class_id, seconds = columns.id(row), float(least_s[row])
            if seconds <= columns.regular_s[row] or self.ends_in_time(class_id, now_s + seconds):
                found.add(class_id)
        return found

    def _renew(self, view: ClusterView) -> None:
        """Look ahead anew if the timeline is too old."""
        (made_s, changes), changed = self._made, self._jobs_changed
        is_old = view.now_s - made_s >= self._config.refresh_s and changes != self._book.changes
        if is_old or (changed and changed >= self._config.refresh_share * len(self._book.jobs)):
            self._made, self._jobs_changed = (view.now_s, self._book.changes), 0
            self._timeline = self._look_ahead(self._book, view, self._reserved)
            self._book.columns.ask_again()

    # Disk

    def begins(self, queue: SchedulingQueue, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """Nothing is placed yet."""
        self._taken.clear()

    def placed(self, assignment: Assignment, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """An elastic task takes disk bandwidth of its node."""
        if self.has_budget:
            self._take(assignment, +1.0)

    def undone(self, assignment: Assignment, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """It does not after all."""
        if self.has_budget:
            self._take(assignment, -1.0)

    def _take(self, assignment: Assignment, times: float) -> None:
        one, memory_bytes = assignment.pending.task_class.estimates, assignment.resources.memory_bytes
        if isinstance(one, Elastic) and memory_bytes < one.ideal_bytes:
            self._taken[assignment.node] = self._taken.get(assignment.node, 0.0) + times * one.disk_bytes_per_s(
                memory_bytes
            )

    @property
    def has_budget(self) -> bool:
        """Whether elastic tasks' disk bandwidth is bounded."""
        return self._config.disk_bytes_per_s is not None

    def _within_budget(self, one: Elastic, state: CycleState, where: Where) -> model.BoolVector:
        """Where the node's disk has bandwidth left for the elastic task that would go there."""
        return np.array([self._has_bandwidth(one, state, node) for node in places_of(where, state)], np.bool_)

    def _has_bandwidth(self, one: Elastic, state: CycleState, node: int) -> bool:
        free = state.memory(node)
        if free >= one.ideal_bytes or self._config.disk_bytes_per_s is None:
            return True
        taken = self._disk_of(state.view.layout.names[node]) + self._taken.get(node, 0.0)
        budget = self._config.disk_bytes_per_s * self._config.disk_share
        return one.disk_bytes_per_s(_given(one, free)) + taken <= budget

    def _disk_of(self, node: model.NodeName) -> float:
        return sum(task.disk_bytes_per_s for task in self._book.nodes.get(node, {}).values())

    # Score

    def score(self, pending: PendingClass, state: CycleState, where: Where) -> model.FloatVector:
        """Nodes with room for the ideal, by the regular rank; then the others, the fastest first."""
        one = pending.task_class.estimates
        regular = self._regular.score(pending, state, where)
        if not isinstance(one, Elastic):
            return regular
        memory = state.memory(where)
        seconds = one.levels.seconds(memory)
        return np.where(memory >= one.ideal_bytes, regular + _ABOVE, -np.where(np.isfinite(seconds), seconds, 0.0))

    def score_on(self, pending: PendingClass, state: CycleState, node: int) -> float:
        """The rank of one node."""
        one, free = pending.task_class.estimates, state.memory(node)
        if isinstance(one, Elastic) and free < one.ideal_bytes:
            seconds = one.levels.seconds(free)
            return -seconds if seconds < math.inf else 0.0
        regular = self._regular.score_on(pending, state, node)
        return regular + _ABOVE if isinstance(one, Elastic) else regular

    # Sizer

    def least(self, task_class: model.TaskClass) -> model.Resources:
        """The smallest elastic size."""
        one = task_class.estimates
        if not isinstance(one, Elastic) or one.least_bytes >= task_class.resources.memory_bytes:
            return task_class.resources
        return self._sized(task_class.resources, one.least_bytes).resources

    def size(self, pending: PendingClass, node: int, state: CycleState) -> Sized:
        """The ideal if it fits, else the least memory with the lowest run time."""
        one = pending.task_class.estimates
        free = state.memory(node)
        if not isinstance(one, Elastic) or free >= one.ideal_bytes:
            return pending.ideal
        return self._sized(pending.task_class.resources, _given(one, free))

    def _sized(self, ideal: model.Resources, memory_bytes: int) -> Sized:
        known = self._sizes.get((ideal, memory_bytes))
        if known is None:
            size = model.Resources(
                cpu_milli=ideal.cpu_milli,
                memory_bytes=memory_bytes,
                ephemeral_storage_bytes=ideal.ephemeral_storage_bytes,
                extended=ideal.extended,
            )
            if len(self._sizes) >= _SIZES_KEPT:
                self._sizes.clear()
            known = self._sizes[ideal, memory_bytes] = Sized(size)
        return known

    @overload
    def seconds(self, pending: PendingClass, state: CycleState, where: int) -> float: ...

    @overload
    def seconds(self, pending: PendingClass, state: CycleState, where: Where) -> float | model.FloatVector: ...

    def seconds(self, pending: PendingClass, state: CycleState, where: int | Where) -> float | model.FloatVector:
        """The run time that a task would have on some nodes, infinite where it does not fit or nothing is known."""
        one = pending.task_class.estimates
        return one.levels.seconds(state.memory(where)) if isinstance(one, Elastic) else math.inf

    @property
    def book(self) -> Book:
        """What runs and what is left."""
        return self._book


def _given(one: Elastic, free_bytes: int) -> int:
    """The least memory with the lowest run time, where the ideal does not fit."""
    memory, _ = one.table()
    return int(memory[min(max(free_bytes, 0), one.ideal_bytes) // one.step_bytes])


_CHANGING_JOBS = (model.Submitted, model.Ended)
_ABOVE = 2.0  # above every regular rank's span of 0..1, so that none of them falls among the elastic ones
_SIZES_KEPT = 65_536
