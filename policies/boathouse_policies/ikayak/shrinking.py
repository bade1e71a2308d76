"""Maps where their input is, with less than they asked for if need be (3.3, Algorithm 3).

On a node with P_requested waiting maps whose input is there, P = min(P_requested, min_r ⌊R_free/(μ R_demand)⌋) are
accepted together, each with R = min(R_demand, R_free/P) (readings: the algorithm lost its test, and read literally its
R belongs to P + 1). μ = local/(local + remote) of the maps so far, 1 without history, at least `Config.least_share`.

Only maps with their input on the node are shrunk: a remote one would be slow twice (Figure 6: local with 100 % is
faster than local with 80 %, which is faster than remote with 100 %). In that order nodes are tried.

Any map may do without `Config.crumbs` of its CPU: beside reducers that keep a millicore each, no whole core is free.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import Sized
from boathouse_policies.framework.questions import Filter, Observer, Score, Sizer
from boathouse_policies.ikayak.config import Shrink

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from boathouse_policies.framework import CycleState, PendingClass, Where
    from boathouse_policies.ikayak.config import Config

REMOTE = "node(s) with too little room for a map whose input is elsewhere"
_TOO_SMALL = model.Verdict(code=model.Code.SIZING, message="only maps with their input on a node are shrunk")


class Locality(Observer):
    """μ, from where maps were placed: an observer."""

    def __init__(self, config: Config) -> None:
        self._floor = config.least_share
        self._located: set[model.ClassId] = set()
        self._maps: dict[model.ClassId, model.JobId] = {}
        self.local = 0
        self.remote = 0

    def share(self) -> float:
        """μ."""
        total = self.local + self.remote
        return max(self._floor, self.local / total) if total else 1.0

    def located(self, task_class: model.TaskClass) -> None:
        """The class' input is in blocks: its maps count."""
        self._located.add(task_class.id)

    def observe(self, event: model.Event) -> None:
        """Count maps by where they read."""
        match event:
            case model.Submitted():
                self._maps.update({one.id: one.job for one in event.classes if one.stage is model.Stage.MAP})
            case model.Placed() if event.task_class in self._maps:
                if event.distance is model.Distance.NODE:
                    self.local += 1
                elif event.distance is not model.Distance.ANYWHERE or event.task_class in self._located:
                    self.remote += 1
            case model.Ended():
                gone = [one for one, job in self._maps.items() if job == event.job]
                for one in gone:
                    del self._maps[one]
                    self._located.discard(one)
            case _:
                pass

    def dump(self) -> Mapping[str, Any]:
        """The counts."""
        return {"local": self.local, "remote": self.remote}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump."""
        near, far = state.get("local"), state.get("remote")
        if isinstance(near, int) and isinstance(far, int) and min(near, far) >= 0:
            self.local, self.remote = near, far


class Shrinking(Sizer, Filter):
    """Sizer and filter for maps; other stages get what they ask for.

    Args:
        config: The constants.
        locality: Knows μ.
    """

    by_node = True

    def __init__(self, config: Config, locality: Locality) -> None:
        self._shrink = config.shrink
        self._crumbs = config.crumbs if config.suspension else 0.0
        self._floor = config.least_share
        self._locality = locality

    # Sizer

    def least(self, task_class: model.TaskClass) -> model.Resources:
        """The smallest map that may be decided."""
        if task_class.stage is not model.Stage.MAP:
            return task_class.resources
        share = min(self._floor, 1.0 - self._crumbs) if self._shrink is not Shrink.OFF else 1.0 - self._crumbs
        return self._part(task_class.resources, share) if share < 1.0 else task_class.resources

    def _share_of(self, size: model.Resources, share: float) -> tuple[int, int]:
        """CPU and memory of a map that has this share of what is shrunk."""
        memory = math.ceil(size.memory_bytes * share) if self._shrink is Shrink.BOTH else size.memory_bytes
        return math.ceil(size.cpu_milli * share), memory

    def _part(self, size: model.Resources, share: float) -> model.Resources:
        cpu, memory = self._share_of(size, share)
        return model.Resources(
            cpu_milli=cpu,
            memory_bytes=memory,
            ephemeral_storage_bytes=size.ephemeral_storage_bytes,
            extended=size.extended,
        )

    def concerns(self, pending: PendingClass) -> bool:
        """Maps, where they are made smaller."""
        return pending.task_class.stage is model.Stage.MAP and self._shrink is not Shrink.OFF

    def key(self, pending: PendingClass) -> Hashable:
        """The class, of maps: where its input is."""
        return pending.task_class.id if pending.task_class.stage is model.Stage.MAP else None

    def size(self, pending: PendingClass, node: int, state: CycleState) -> Sized | model.Verdict:
        """Algorithm 3 for a node with room for the least."""
        demand = pending.task_class.resources
        if pending.task_class.stage is not model.Stage.MAP:
            return pending.ideal
        free, accepted = state.free_on(node), self._accepted(pending, node, state)
        if accepted > 1 and not self._fits(free, demand, accepted):
            return Sized(self._share(demand, free, accepted), accepted)
        if self._fits(free, demand, 1):
            return pending.ideal
        if accepted == 1 or self.is_whole(pending, state, node):
            return Sized(self._share(demand, free, 1))
        return _TOO_SMALL

    def _whole(self, demand: model.Resources) -> int:
        """The CPU of a map without its crumbs."""
        return math.ceil(demand.cpu_milli * (1.0 - self._crumbs))

    def _accepted(self, pending: PendingClass, node: int, state: CycleState) -> int:
        """P: how many local maps are accepted together; none where nothing may be shrunk and none fits."""
        if not pending.queued.pool.located:
            return 0
        self._locality.located(pending.task_class)
        most = 1
        if self._shrink is not Shrink.OFF:
            most = self._most(pending.task_class.resources, state.free_on(node), self._locality.share())
        return len(pending.picker.local(state.view.layout.names[node], most))

    def _most(self, demand: model.Resources, free: Sequence[int], share: float) -> int:
        """min_r ⌊R_free/(μ R_demand)⌋; what is not shrunk counts in full."""
        cpu, memory = self._share_of(demand, share)
        most = free[model.PODS]
        for row, need in ((model.CPU, cpu), (model.MEMORY, memory), (_STORAGE, demand.ephemeral_storage_bytes)):
            if need and free[row] // need < most:
                most = free[row] // need
        return max(0, most)

    @staticmethod
    def _share(demand: model.Resources, free: Sequence[int], accepted: int) -> model.Resources:
        """R = min(R_demand, R_free/P); where only CPU is shrunk, P is such that all of the memory is there."""
        return model.Resources(
            cpu_milli=min(demand.cpu_milli, free[model.CPU] // accepted),
            memory_bytes=min(demand.memory_bytes, free[model.MEMORY] // accepted),
            ephemeral_storage_bytes=demand.ephemeral_storage_bytes,
            extended=demand.extended,
        )

    @staticmethod
    def _fits(free: Sequence[int], size: model.Resources, count: int) -> bool:
        """Whether so many of a size fit, CPU and memory: the filters have compared the rest."""
        return free[model.CPU] >= count * size.cpu_milli and free[model.MEMORY] >= count * size.memory_bytes

    # Filter

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Where a whole map fits, or a shrunk one whose input is there."""
        if pending.task_class.stage is not model.Stage.MAP or self._shrink is Shrink.OFF:
            return None
        whole = self.whole(pending, state, where)
        if not pending.queued.pool.located or whole.all():
            return whole
        return whole | (local(pending, where) & self._room(pending, state, where))

    def passes(self, pending: PendingClass, state: CycleState, node: int) -> bool:
        """Whether a map fits on one node, whole, or shrunk beside its input."""
        if pending.task_class.stage is not model.Stage.MAP or self._shrink is Shrink.OFF:
            return True
        if self.is_whole(pending, state, node):
            return True
        if not pending.queued.pool.located or pending.levels[node] != _AT_INPUT:
            return False
        free, least = state.free_on(node), self._share_of(pending.task_class.resources, self._locality.share())
        return free[model.CPU] >= least[0] and free[model.MEMORY] >= least[1]

    def whole(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector:
        """Where a map fits that is not shrunk by more than crumbs."""
        demand = pending.task_class.resources
        cpu: model.BoolVector = state.free[model.CPU, where] >= self._whole(demand)
        return cpu & (state.free[model.MEMORY, where] >= demand.memory_bytes)

    def is_whole(self, pending: PendingClass, state: CycleState, node: int) -> bool:
        """The same of one node."""
        demand, free = pending.task_class.resources, state.free_on(node)
        return free[model.MEMORY] >= demand.memory_bytes and free[model.CPU] >= self._whole(demand)

    def _room(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector:
        """Where one map of μ·R_demand fits."""
        least_cpu, least_memory = self._share_of(pending.task_class.resources, self._locality.share())
        cpu: model.BoolVector = state.free[model.CPU, where] >= least_cpu
        return cpu & (state.free[model.MEMORY, where] >= least_memory)

    def refusals(self, pending: PendingClass, state: CycleState, among: model.BoolVector) -> Sequence[model.Refusal]:
        """Nodes with room for a shrunk map, none of whose input is there."""
        passed = self.mask(pending, state, slice(None))
        count = 0 if passed is None else int((among & ~passed).sum())
        return [model.Refusal(reason=REMOTE, nodes=count)] if count else []


class LocalFirst(Score):
    """A score for maps: local and whole, local and shrunk, remote (Figure 6); then the rank of other tasks.

    Args:
        shrinking: Knows where a map is whole.
        base: The rank of other tasks, within 0..1 or -1..0.
    """

    def __init__(self, shrinking: Shrinking, base: Score) -> None:
        self._shrinking = shrinking
        self._base = base

    def score(self, pending: PendingClass, state: CycleState, where: Where) -> model.FloatVector:
        """The tier, times more than the base's span, plus the base."""
        base = self._base.score(pending, state, where)
        if not pending.queued.pool.located:
            return base
        here = local(pending, where)
        whole = self._shrinking.whole(pending, state, where)
        return base + _SPAN * (here.astype(np.float64) + (here & whole))

    def score_on(self, pending: PendingClass, state: CycleState, node: int) -> float:
        """The score of one node."""
        base = self._base.score_on(pending, state, node)
        if not pending.queued.pool.located or pending.levels[node] != _AT_INPUT:
            return base
        return base + _SPAN * (1.0 + self._shrinking.is_whole(pending, state, node))


def local(pending: PendingClass, where: Where) -> model.BoolVector:
    """Where a waiting map of the class has its input, of some nodes: shape as `where`."""
    here: model.BoolVector = pending.levels[where] == _AT_INPUT
    return here


_SPAN = 4.0
_AT_INPUT = int(model.Distance.NODE)
_STORAGE = model.EPHEMERAL_STORAGE
