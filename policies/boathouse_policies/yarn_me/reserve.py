"""Node reservations that lock others out only where they would harm (3.3, "Node reservations")."""

import math
from collections.abc import Collection

import numpy as np

from boathouse_policies import model
from boathouse_policies.baselines.yarn import LockedNodes
from boathouse_policies.framework import CycleState, Hooks, Layout, PendingClass, SchedulingQueue, Where
from boathouse_policies.yarn_me.decide import Elasticity
from boathouse_policies.yarn_me.outlook import Outlook
from boathouse_policies.yarn_me.penalty import Elastic


class Passing(LockedNodes, Hooks):
    """A reserved node may be used by others whose task ends before the reserved task could start there regularly."""

    passing_changes = False

    def __init__(self, elasticity: Elasticity) -> None:
        self._elasticity, self._outlook = elasticity, elasticity.outlook
        self._columns = _Columns(self._outlook)

    def begins(self, queue: SchedulingQueue, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """Compare what the columns hold with the cluster before they are used, and forget nodes that are gone."""
        self._columns.begin(state.view.layout)

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Return where the node is not reserved, or is open to this class, or where this class does no harm."""
        own = super().mask(pending, state, where)
        if own is None:
            return None
        columns, estimates = self._columns.renewed(state), pending.task_class.estimates
        seconds = (
            estimates.levels.seconds_on(state.free[model.MEMORY, where]) if isinstance(estimates, Elastic) else math.inf
        )
        harmless: model.BoolVector = seconds <= columns.until_s[where] - state.view.now_s
        return own | harmless

    def passes(self, pending: PendingClass, state: CycleState, node: int) -> bool:
        """Return the answer for one node."""
        if super().passes(pending, state, node):
            return True
        estimates, gap_s = pending.task_class.estimates, until_s(self._outlook, state, node) - state.view.now_s
        return isinstance(estimates, Elastic) and estimates.levels.on(state.free_on(node)[model.MEMORY])[1] <= gap_s

    def passing(self, state: CycleState) -> Collection[model.ClassId]:
        """Return the owners, and the classes that may use a reserved node before its owner can."""
        places, now_s = state.offered_places(), state.view.now_s
        if len(places) <= _FEW:
            free = [state.free_on(node)[model.MEMORY] for node in places]
            ends_s = [until_s(self._outlook, state, node) for node in places]
        else:
            free = state.free[model.MEMORY, places].tolist()
            ends_s = self._columns.renewed(state).until_s[places].tolist()
        longest_s: dict[int, float] = {}  # by free memory: of equal nodes the one that is free for longest
        for free_bytes, end_s in zip(free, ends_s, strict=True):
            if end_s - now_s > longest_s.get(free_bytes, 0.0):
                longest_s[free_bytes] = end_s - now_s
        return self._harmless(longest_s, state) | state.owners()

    def _harmless(self, longest_s: dict[int, float], state: CycleState) -> set[model.ClassId]:
        """Return the classes that end in time with some amount of memory, before that is wanted by its owner."""
        columns, outlook = self._outlook.columns, self._outlook
        least_s: dict[model.ClassId, float] = {}
        for free_bytes, gap_s in longest_s.items():
            for class_id, seconds in columns.within(gap_s, free_bytes):
                if outlook.left.get(class_id, 0) > 0:
                    least_s[class_id] = min(seconds, least_s.get(class_id, math.inf))
        return {
            class_id
            for class_id, seconds in least_s.items()
            if seconds <= columns.regular_s[class_id]
            or self._elasticity.ends_in_time(outlook.classes[class_id].job, seconds, state)
        }


def until_s(outlook: Outlook, state: CycleState, node: int) -> float:
    """Return when a node's owner has room there for its ideal size; infinite without one, -inf for now or unknown."""
    owner = state.reserved.get(node)
    if owner is None:
        return math.inf
    task_class = outlook.classes.get(owner)
    if task_class is None:
        return -math.inf
    free, need, name = state.free_on(node), task_class.resources, state.view.layout.names[node]
    return outlook.freed_s(name, need.memory_bytes - free[model.MEMORY], need.cpu_milli - free[model.CPU])


class _Columns:
    """The nodes as a column of `until_s`, shape [N], which is updated at a cycle's first question where it differs."""

    def __init__(self, outlook: Outlook) -> None:
        self._outlook = outlook
        self._layout: Layout | None = None
        self._known: Layout | None = None
        self._reserved: dict[int, model.ClassId] = {}
        self._changes: int | None = None
        self._placed_on: set[int] = set()

    def begin(self, layout: Layout) -> None:
        self._changes = None
        if layout is not self._known:
            self._known = layout
            self._outlook.keep(layout.index)

    def renewed(self, state: CycleState) -> "_Columns":
        if self._changes != state.changes:
            if self._changes is None:
                changed = self._differing(state)
            else:
                changed = set(state.changed_since(self._changes))
                self._placed_on |= changed  # the cycle's placements may come to nothing
            self._changes = state.changes
            for node in changed:
                self.until_s[node] = until_s(self._outlook, state, node)
        return self

    def _differing(self, state: CycleState) -> Collection[int]:
        """Return the nodes where anything differs from what the columns were made of."""
        layout, free = state.view.layout, state.free[:_ROWS]
        if layout is not self._layout:
            self._layout, self._free, self._reserved = layout, free, {}
            self._placed_on.clear()
            self.until_s = np.full(len(layout), np.inf)
        changed = {layout.index[name] for name in self._outlook.changed_nodes if name in layout.index}
        changed.update(node for node, _ in self._reserved.items() ^ state.reserved.items())
        changed.update(self._placed_on, (free != self._free).any(axis=0).nonzero()[0].tolist())
        self._outlook.changed_nodes.clear()
        self._placed_on.clear()
        self._reserved, self._free = state.reserved.copy(), free.copy()
        return changed


_ROWS = max(model.CPU, model.MEMORY) + 1
_FEW = 8
