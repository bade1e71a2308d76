"""Maps where their input is, with less than they asked for if need be (3.3, Algorithm 3).

On a node with P_requested waiting maps whose input is there, P = min(P_requested, min_r ⌊R_free/(μ R_demand)⌋) are
accepted together, each with R = min(R_demand, R_free/P) (readings: the algorithm lost its test, and read literally its
R belongs to P + 1). μ is the share of local maps so far (`Book.local_share`).

Only maps with their input on the node are shrunk: a remote one would be slow twice (Figure 6: local with 100 % is
faster than local with 80 %, which is faster than remote with 100 %). In that order nodes are tried.

Any map may do without `Config.crumbs` of its CPU: beside reducers that keep a millicore each, no whole core is free.
"""

import dataclasses
import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import (
    Assignment,
    CycleState,
    Figure,
    Figures,
    Filter,
    Hooks,
    PendingClass,
    Score,
    Sized,
    Sizer,
    Where,
)
from boathouse_policies.ikayak.book import Book
from boathouse_policies.ikayak.config import Config, Shrink

_TOO_SMALL = model.Verdict(code=model.Code.SIZING, message="only maps with their input on a node are shrunk")


class Shrinking(Sizer, Filter, Hooks, Figures):
    """Sizer and filter for maps; other stages get what they request."""

    by_node = True
    reason = "node(s) with too little room for a map whose input is elsewhere"

    def __init__(self, config: Config, book: Book) -> None:
        self._shrink = config.shrink
        self._whole_share = 1.0 - config.crumbs if config.suspension else 1.0
        self._least_share = min(self._whole_share, 1.0 if self._shrink is Shrink.OFF else config.least_share)
        self._book = book

    def placed(self, assignment: Assignment, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """Note that a class' input is in blocks: its maps count for μ."""
        pending = assignment.pending
        if pending.queued.pool.located and (job := self._book.jobs.get(pending.job.id)) is not None:
            job.located.add(pending.task_class.id)

    def of_placed(self, assignment: Assignment, state: CycleState) -> Sequence[Figure]:  # noqa: ARG002 - the protocol's
        """Return the share of its CPU that a task got which was shrunk."""
        requested, got = assignment.pending.task_class.resources.cpu_milli, assignment.resources.cpu_milli
        return (("cpuShare", got / requested),) if got < requested else ()

    def least(self, task_class: model.TaskClass) -> model.Resources:
        """Return the smallest map that may be decided."""
        size = task_class.resources
        if task_class.stage is not _MAP or self._least_share >= 1.0:
            return size
        cpu, memory = self._part(size, self._least_share)
        return dataclasses.replace(size, cpu_milli=cpu, memory_bytes=memory)

    def _part(self, size: model.Resources, share: float) -> tuple[int, int]:
        """Return CPU and memory of a map that has this share of what is shrunk."""
        memory = math.ceil(size.memory_bytes * share) if self._shrink is Shrink.BOTH else size.memory_bytes
        return math.ceil(size.cpu_milli * share), memory

    def concerns(self, pending: PendingClass) -> bool:
        """Return whether the class has maps and maps are shrunk."""
        return pending.task_class.stage is _MAP and self._shrink is not Shrink.OFF

    def key(self, pending: PendingClass) -> Hashable:
        """Return the class of maps: where its input is."""
        return pending.task_class.id if pending.task_class.stage is _MAP else None

    def size(self, pending: PendingClass, node: int, state: CycleState) -> Sized | model.Verdict:
        """Run Algorithm 3 for a node with room for the least."""
        if pending.task_class.stage is not _MAP:
            return pending.ideal
        demand, free = pending.task_class.resources, state.free_on(node)
        fits = fits_at(state, node, demand.cpu_milli, demand.memory_bytes)
        most = self._most(demand, free) if pending.queued.pool.located else 0
        if fits and most <= 1:
            return pending.ideal
        accepted = len(pending.picker.local(state.view.layout.names[node], most)) if most else 0
        if accepted > 1 and not fits_at(state, node, accepted * demand.cpu_milli, accepted * demand.memory_bytes):
            return Sized(_shared(demand, free, accepted), accepted)
        if fits:
            return pending.ideal
        if accepted == 1 or self.whole(pending, state, node):
            return Sized(_shared(demand, free, 1))
        return _TOO_SMALL

    def _most(self, demand: model.Resources, free: Sequence[int]) -> int:
        """Compute min_r ⌊R_free/(μ R_demand)⌋; what is not shrunk counts in full. With nothing there, it is one map."""
        if self._shrink is Shrink.OFF:
            return 1
        cpu, memory = self._part(demand, self._book.local_share())
        needs = ((model.CPU, cpu), (model.MEMORY, memory), (_STORAGE, demand.ephemeral_storage_bytes), (model.PODS, 1))
        return max(0, min([free[row] // need for row, need in needs if need]))

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Return where a whole map fits, or a shrunk one whose input is there."""
        if not self.concerns(pending):
            return None
        whole: model.BoolVector = self.whole(pending, state, where)
        if not pending.queued.pool.located or whole.all():
            return whole
        local: model.BoolVector = pending.levels[where] == _AT_INPUT
        if not np.count_nonzero(local):  # as a rule: few nodes have room, and few have its input
            return whole
        return np.asarray(whole | (local & self._fits_shrunk(pending, state, where)), np.bool_)

    def passes(self, pending: PendingClass, state: CycleState, node: int) -> bool:
        """Return whether a map fits on one node, whole, or shrunk beside its input."""
        if not self.concerns(pending) or self.whole(pending, state, node):
            return True
        is_local = pending.queued.pool.located and pending.levels[node] == _AT_INPUT
        return bool(is_local and self._fits_shrunk(pending, state, node))

    def whole(self, pending: PendingClass, state: CycleState, where: int | Where) -> Any:
        """Return where a map fits that is not shrunk by more than crumbs."""
        demand = pending.task_class.resources
        return fits_at(state, where, math.ceil(demand.cpu_milli * self._whole_share), demand.memory_bytes)

    def _fits_shrunk(self, pending: PendingClass, state: CycleState, where: int | Where) -> Any:
        return fits_at(state, where, *self._part(pending.task_class.resources, self._book.local_share()))


class LocalFirst(Score):
    """A score for maps: local and whole, local and shrunk, remote (Figure 6); then another rank, of a span of 1."""

    def __init__(self, shrinking: Shrinking, base: Score) -> None:
        self._shrinking, self._base = shrinking, base

    def score(self, pending: PendingClass, state: CycleState, where: Where) -> model.FloatVector:
        """Return the tier, times more than the base's span, plus the base."""
        base = self._base.score(pending, state, where)
        if not pending.queued.pool.located:
            return base
        local: model.FloatVector = (pending.levels[where] == _AT_INPUT).astype(np.float64)
        whole: model.BoolVector = self._shrinking.whole(pending, state, where)
        return base + _SPAN * local * (1.0 + whole)

    def score_on(self, pending: PendingClass, state: CycleState, node: int) -> float:
        """Return the score of one node."""
        base = self._base.score_on(pending, state, node)
        if not pending.queued.pool.located or pending.levels[node] != _AT_INPUT:
            return base
        return base + _SPAN * (1.0 + bool(self._shrinking.whole(pending, state, node)))


def fits_at(state: CycleState, where: int | Where, cpu_milli: int, memory_bytes: int) -> Any:
    """Return whether so much is free: a bool for a place, a vector for several. Filters compared the rest."""
    if isinstance(where, int):
        free = state.free_on(where)
        return free[model.CPU] >= cpu_milli and free[model.MEMORY] >= memory_bytes
    return (state.free[model.CPU, where] >= cpu_milli) & (state.free[model.MEMORY, where] >= memory_bytes)


def _shared(demand: model.Resources, free: Sequence[int], accepted: int) -> model.Resources:
    """Compute R = min(R_demand, R_free/P); where only CPU is shrunk, P is such that all of the memory is there."""
    cpu, memory = free[model.CPU] // accepted, free[model.MEMORY] // accepted
    cpu, memory = min(demand.cpu_milli, cpu), min(demand.memory_bytes, memory)
    return dataclasses.replace(demand, cpu_milli=cpu, memory_bytes=memory)


_SPAN = 4.0
_MAP = model.Stage.MAP  # to look into an enum each time is slow
_AT_INPUT = int(model.Distance.NODE)
_STORAGE = model.EPHEMERAL_STORAGE
