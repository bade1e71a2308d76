"""Pieces by which several policies share one decision; `boathouse` says which, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.questions import Filter, Hooks, Reserve, Score, Sizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from boathouse_policies.framework import CycleState, PendingClass, SchedulingQueue, Sized, Where
    from boathouse_policies.ikayak.shrinking import Shrinking
    from boathouse_policies.ila.interference import Interference

BOTH = "node(s) with too little memory and too little CPU at once: a task is made smaller in one of them only"


class Unhindered(Score):
    """A score within -1..1: where neighbours slow the task down least; maps that must be shrunk come after all others.

    Args:
        interference: Predicts slowdowns.
        shrinking: Knows which maps must be shrunk.
    """

    def __init__(self, interference: Interference, shrinking: Shrinking) -> None:
        self._interference = interference
        self._shrinking = shrinking

    def score(self, pending: PendingClass, state: CycleState, where: Where) -> model.FloatVector:
        """The higher the better."""
        score: model.FloatVector = 1.0 / self._interference.slowdown(pending, state, where)
        if pending.task_class.stage is model.Stage.MAP:
            score -= ~self._shrinking.whole(pending, state, where)
        return score

    def score_on(self, pending: PendingClass, state: CycleState, node: int) -> float:
        """The score of one node."""
        score = 1.0 / self._interference.slowdown_at(pending, state, node)
        if pending.task_class.stage is _MAP and not self._shrinking.whole(pending, state, node):
            score -= 1.0
        return score


class OneOfTwo(Sizer, Filter):
    """Sizer and filter: a task has less memory, or less CPU, or neither, never both.

    Args:
        memory: Decides memory; its answer stands where it is less than the ideal (YARN-ME).
        cpu: Decides CPU, and how many tasks together, where memory is ideal (iKayak).
    """

    by_node = True

    def __init__(self, memory: Sizer, cpu: Shrinking) -> None:
        self._memory = memory
        self._cpu = cpu
        self._least: dict[model.ClassId, tuple[model.TaskClass, model.Resources]] = {}

    def concerns(self, pending: PendingClass) -> bool:
        """Maps."""
        return pending.task_class.stage is model.Stage.MAP

    def least(self, task_class: model.TaskClass) -> model.Resources:
        """The least of each; the mask keeps off nodes that have no more than that of both."""
        known = self._least.get(task_class.id)
        if known is not None and known[0] is task_class:
            return known[1]
        if len(self._least) >= _CLASSES_KEPT:
            self._least.clear()
        ideal = task_class.resources
        least = model.Resources(
            cpu_milli=self._cpu.least(task_class).cpu_milli,
            memory_bytes=self._memory.least(task_class).memory_bytes,
            ephemeral_storage_bytes=ideal.ephemeral_storage_bytes,
            extended=ideal.extended,
        )
        self._least[task_class.id] = task_class, least
        return least

    def size(self, pending: PendingClass, node: int, state: CycleState) -> Sized | model.Verdict:
        """Memory first; CPU where nothing was taken of memory."""
        sized = self._memory.size(pending, node, state)
        return self._cpu.size(pending, node, state) if sized is pending.ideal else sized

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Where all of the memory or all of the CPU is free; with all of the memory, where the CPU's sizer agrees."""
        if pending.task_class.stage is not model.Stage.MAP:
            return None
        ideal = pending.task_class.resources
        memory: model.BoolVector = state.free[model.MEMORY, where] >= ideal.memory_bytes
        cpu: model.BoolVector = state.free[model.CPU, where] >= ideal.cpu_milli
        if cpu.all():
            return None
        passed = self._cpu.mask(pending, state, where)
        return cpu | memory if passed is None else cpu | (memory & passed)

    def passes(self, pending: PendingClass, state: CycleState, node: int) -> bool:
        """Whether all of the memory or all of the CPU is free on one node; with all of the memory, the CPU's answer."""
        one, free = pending.task_class, state.free_on(node)
        if one.stage is not _MAP or free[model.CPU] >= one.resources.cpu_milli:
            return True
        return free[model.MEMORY] >= one.resources.memory_bytes and self._cpu.passes(pending, state, node)

    def refusals(self, pending: PendingClass, state: CycleState, among: model.BoolVector) -> Sequence[model.Refusal]:
        """Nodes that have the least of both and no more."""
        passed = self.mask(pending, state, slice(None))
        count = 0 if passed is None else int((among & ~passed).sum())
        return [model.Refusal(reason=BOTH, nodes=count)] if count else []


class ByStage(Reserve, Hooks):
    """Who keeps nodes, by stage; a kept node is open to whom either says so, its owner's job or who is gone in time.

    Args:
        keepers: Who keeps nodes for which stage.
        others: Who keep nodes for all other stages, asked in this order.
        passing: Say who may use a node that is kept for somebody.
        refusing: Sees at once whom no node takes.
        calm: Whether none of the others would keep a node for them: only then it is asked.
    """

    by_node = True
    reserves_for_gangs = True  # executors that must start together have nodes kept for them too

    def __init__(
        self,
        keepers: Mapping[model.Stage, Reserve],
        others: Sequence[Reserve],
        passing: Sequence[Reserve],
        refusing: Reserve,
        calm: Callable[[], bool],
    ) -> None:
        self._keepers = keepers
        self._others = others
        self._passing = passing
        self._refusing = refusing
        self._calm = calm
        self._keeps = True

    def begins(self, queue: SchedulingQueue, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """A cycle begins: whether a class is pending for which nodes are kept."""
        self._keeps = not self._keepers.keys().isdisjoint(queue.sorted_classes().stages)

    def is_idle(self, state: CycleState) -> bool:
        """Whether no node is kept for anybody, nor will be."""
        return not self._keeps and not state.reserved and self._calm()

    def concerns(self, pending: PendingClass) -> bool:
        """All classes, where nodes are kept or may be in this cycle."""
        return not self.is_idle(pending.state)

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """True where the node is kept for nobody, or where the class may pass."""
        if not state.reserved:
            return None
        found: model.BoolVector | None = None
        for one in self._passing:
            mask = one.mask(pending, state, where)
            if mask is None:
                return None
            found = mask if found is None else np.logical_or(found, mask)
        return found

    def passes(self, pending: PendingClass, state: CycleState, node: int) -> bool:
        """Whether one node is kept for nobody, or the class may pass there."""
        return node not in state.reserved or any(one.passes(pending, state, node) for one in self._passing)

    def reserve(self, pending: PendingClass, state: CycleState) -> Sequence[model.Reservation | model.Wait]:
        """The nodes that the stage's policy keeps for a class that found none."""
        keeper = self._keepers.get(pending.task_class.stage)
        if keeper is not None:
            return keeper.reserve(pending, state)
        return [answer for one in self._others for answer in one.reserve(pending, state)]

    def refused(
        self, pending_classes: Iterable[PendingClass], state: CycleState
    ) -> Iterable[tuple[PendingClass, model.Verdict, model.Wait | None]]:
        """Whom no node takes, seen at once."""
        return self._refusing.refused(pending_classes, state) if self._calm() else ()


_CLASSES_KEPT = 65_536
_MAP = model.Stage.MAP  # to look into an enum each time is slow
