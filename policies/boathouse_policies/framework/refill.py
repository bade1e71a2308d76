"""The usual cycle of a full cluster: room came free on a few nodes, and who is parked for want of room may go there.

Nothing else can have changed for those classes. So the few nodes are plain numbers here, and the order is kept from
cycle to cycle (`Lineup.keys`): a turn costs as much as the nodes that came free, whatever waits. Where namespaces share
the queue, each has heaps of its own, and the one that holds least has the next turn. Whoever looks at all
nodes, being new or parked for long, is turned away at once where none has room. The decisions are those of the general
way, which everything else goes.
"""

from __future__ import annotations

import bisect
import heapq
import operator
from typing import TYPE_CHECKING, cast

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.attempt import UNSCHEDULABLE, refusal
from boathouse_policies.framework.plan import Left, Plan
from boathouse_policies.framework.scratch import Scratch
from boathouse_policies.framework.sums import combined
from boathouse_policies.framework.want import Spot, Want

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_policies.framework.classes import Waiting
    from boathouse_policies.framework.extension import Lasting, Local
    from boathouse_policies.framework.layout import Layout
    from boathouse_policies.framework.lineup import Lineup
    from boathouse_policies.framework.policy import Profile
    from boathouse_policies.framework.pool import Pick, Picker
    from boathouse_policies.framework.view import ClusterView
    from boathouse_policies.framework.waiting import WaitingRoom


def plan(room: WaitingRoom, profile: Profile, view: ClusterView) -> Plan | None:
    """The plan of such a cycle; None where the case is another."""
    if not profile.refills or view.offered is not None or view.max_per_node is not None or not room.looks_at_freed:
        return None
    lineup = room.lineup()
    layout, held = view.layout, view.held
    if not lineup.alone or lineup.orphans or len(layout.allocatable) != view.axis.width:
        return None
    nodes = sorted([layout.index[name] for name in room.freed if name in layout.index])
    rooms = {node: _room(node, layout, held.on_node(layout.names[node], node)) for node in nodes}
    nowhere = () if lineup.open is lineup.narrow else _nowhere(lineup, profile, view)
    if nowhere is None or min(map(min, rooms.values()), default=0) < 0:  # over-committed
        return None
    turns = _Turns(lineup, profile, view, rooms)
    return turns.plan(nowhere) if turns.run() else None


def _room(node: int, layout: Layout, held: Sequence[int]) -> list[int]:
    """What is free on a node. Pods may hold any amount of what it does not have: that is no over-commitment."""
    free = layout.free(node, held)
    if min(free) >= 0:
        return free
    return [left if has else 0 for left, has in zip(free, layout.allocatable_by_node[node], strict=True)]


def _nowhere(lineup: Lineup, profile: Profile, view: ClusterView) -> Sequence[int] | None:
    """Who looks at all nodes, being new or parked for long; None if one of them may go somewhere."""
    places = (lineup.open & ~lineup.narrow).nonzero()[0].tolist()
    free, sizes = view.free(), lineup.sizes(profile.sizer, view.axis)
    for place in places:
        waiting, need = lineup.waiting[place], sizes[:, place]
        rows = need.nonzero()[0]
        room = np.logical_and.reduce(free[rows] >= need[rows, None])
        if not waiting.is_plain or bool((room & waiting.eligibility(view).mask).any()):
            return None
    return places


class _Namespace:
    """Who waits of one namespace.

    Attributes:
        heaps: By priority, the highest first: keys and places of classes.
        held: What its jobs hold of the queue.
        share: The dominant share of it.
    """

    __slots__ = ("heaps", "held", "share")

    def __init__(self, held: model.Amounts, layout: Layout) -> None:
        self.heaps: list[list[tuple[float, int]]] = []
        self.held = held
        self.share = layout.dominant_share(held)

    def add(self, amounts: Sequence[int], layout: Layout) -> None:
        """One of its jobs got a task."""
        self.held = combined(operator.add, self.held, amounts)
        self.share = layout.dominant_share(self.held)


class _Turns:
    """One cycle."""

    __slots__ = (
        "_constant",
        "_had",
        "_heap",
        "_held",
        "_least",
        "_lineup",
        "_looked_at",
        "_needs",
        "_newer",
        "_of_room",
        "_order",
        "_profile",
        "_rooms",
        "_scratch",
        "_spots",
        "_view",
    )

    def __init__(self, lineup: Lineup, profile: Profile, view: ClusterView, rooms: dict[int, list[int]]) -> None:
        self._lineup = lineup
        self._profile = profile
        self._view = view
        self._rooms = rooms
        self._order = cast("Lasting", profile.order)
        self._constant = getattr(profile.order, "constant", False)
        self._needs, self._least = lineup.needs(profile.sizer, view.axis)
        looked_at = lineup.narrow.nonzero()[0]
        self._looked_at: list[int] = looked_at.tolist()
        self._heap = list(zip(lineup.keys(self._order, view)[looked_at].tolist(), self._looked_at, strict=True))
        self._newer: dict[int, float] = {}  # keys of whose job got a task in this cycle
        self._of_room = cast("Local", profile.score).of_room
        self._had: dict[int, tuple[dict[int, float], Picker]] = {}  # who had a turn: its nodes' scores, its tasks
        self._held: dict[int, model.Amounts] = {}  # what a job holds that got a task in this cycle
        self._spots: list[tuple[Waiting, Pick, int]] = []
        self._scratch: Scratch | None = None

    def run(self) -> bool:
        """Turn by turn until nothing more fits; False if a turn is not for here."""
        if len(self._lineup.bands) == 1:
            heapq.heapify(self._heap)
            return self._run(None)
        namespaces = self._by_namespace(self._heap)
        while self._rooms and (namespace := _next(namespaces)) is not None:
            self._heap = namespace.heaps[0]
            if not self._run(namespace if len(namespaces) > 1 else None):
                return False
        return True

    def _by_namespace(self, turns: list[tuple[float, int]]) -> list[_Namespace]:
        """Those who have a turn, by namespace and priority."""
        lineup, view, stop = self._lineup, self._view, 0
        found: dict[model.NamespaceName, _Namespace] = {}
        for band in lineup.bands:
            start, stop = stop, bisect.bisect_left(self._looked_at, lineup.first[band.stop], stop)
            if start == stop:
                continue
            namespace = found.get(band.namespace)
            if namespace is None:
                namespace = _Namespace(view.held_in((band.queue, band.namespace)), view.layout)
                found[band.namespace] = namespace
            heap = turns[start:stop]
            heapq.heapify(heap)
            namespace.heaps.append(heap)
        return list(found.values())

    def _run(self, namespace: _Namespace | None) -> bool:
        """All that fits, or the next task of a namespace that shares the queue; False if a turn is not for here."""
        single = self._lineup.single
        heap, newer, rooms, needs, nodes = self._heap, self._newer, self._rooms, self._needs, self._view.layout.nodes
        most = max([room[_MEMORY] for room in rooms.values()], default=0)  # scarce nearly always, so asked first
        while heap and rooms:
            key, place = heapq.heappop(heap)
            if needs[place][_MEMORY] > most or newer.get(place, key) != key:  # too large, or its job got a task
                continue
            scores, picker = self._had.get(place) or self._first_turn(place)
            if not scores:
                continue
            node = max(scores, key=scores.__getitem__) if len(scores) > 1 else next(iter(scores))
            pick = picker.closest(nodes[node])
            if pick is None:  # its last task has just been taken
                continue
            if pick.task.expected:
                return False
            picker.take(pick)
            self._spots.append((self._lineup.waiting[place], pick, node))
            self._shrink(node, needs[place])
            if namespace is not None:
                namespace.add(needs[place], self._view.layout)
            if not rooms:
                break
            most = max([room[_MEMORY] for room in rooms.values()])
            if needs[place][_MEMORY] <= most or not single:  # else its job has no more turns, whatever its key is
                self._mend(place, key)
            if namespace is not None:
                break
        return True

    def _first_turn(self, place: int) -> tuple[dict[int, float], Picker]:
        """The scores of the nodes that a class may use and that have room for it, in their order; and its tasks."""
        one, need, inverse = self._lineup.waiting[place], self._needs[place], self._view.layout.inverse_by_node
        allowed = one.eligibility(self._view)
        scores = {
            node: self._of_room(need, room, inverse[node])
            for node, room in self._rooms.items()
            if all(map(operator.le, need, room)) and (allowed.everywhere or allowed.mask[node])
        }
        turn = self._had[place] = scores, one.picker(self._profile, self._view.layout)
        return turn

    def _shrink(self, node: int, taken: Sequence[int]) -> None:
        """A node has less room: what its score is now for those who were about to use it."""
        rooms = self._rooms
        rooms[node] = room = list(map(operator.sub, rooms[node], taken))
        if any(map(operator.lt, room, self._least)):
            del rooms[node]
            if not rooms:
                return
        inverse = self._view.layout.inverse_by_node[node]
        for place, (scores, _) in self._had.items():
            if node in scores:
                need = self._needs[place]
                if all(map(operator.le, need, room)):
                    scores[node] = self._of_room(need, room, inverse)
                else:
                    del scores[node]

    def _mend(self, place: int, key: float) -> None:
        """The class' job holds more: ask for its key again, and let its classes wait for their turn anew."""
        if self._constant:
            heapq.heappush(self._heap, (key, place))
            return
        lineup, view = self._lineup, self._view
        job = lineup.job_of[place]
        held = self._held.get(job) or view.held_by(lineup.jobs[job].id)
        self._held[job] = held = combined(operator.add, held, self._needs[place])
        key = self._order.key(lineup.jobs[job], held, view.layout)
        for one in range(*lineup.first[job : job + 2]):
            if lineup.narrow[one]:
                self._newer[one] = key
                heapq.heappush(self._heap, (key, one))

    # What came of it

    def plan(self, nowhere: Sequence[int]) -> Plan:
        """The plan; some more classes looked at all nodes in vain."""
        names = self._view.layout.names
        decisions = tuple(
            [one.placement(pick, names[node], one.task_class.resources) for one, pick, node in self._spots]
        )
        counts = {place: picker.left for place, (_, picker) in self._had.items()}  # settling changes the pools
        news = (lambda: self._refused(nowhere)) if nowhere else dict
        return Plan(decisions, news, self._profile, self._worked_out, still=lambda: self._left(counts))

    def _refused(self, places: Sequence[int]) -> Mapping[model.ClassId, Left]:
        wants = [Want(self._lineup.waiting[place], self._profile, self._worked_out()) for place in places]
        return {
            want.task_class.id: Left(want, refusal(want, self._profile, want.scratch), want.left)
            for want in wants
            if want.left
        }

    def _left(self, counts: Mapping[int, int]) -> Mapping[model.ClassId, Left]:
        found = {}
        for place in self._looked_at:
            waiting = self._lineup.waiting[place]
            count = counts.get(place, waiting.pool.count)
            if count:
                want = Want(waiting, self._profile, self._worked_out())
                found[waiting.task_class.id] = Left(want, UNSCHEDULABLE, count)
        return found

    def _worked_out(self) -> Scratch:
        """The scratch copy that the general way would have ended with, for whoever asks why something waits."""
        if self._scratch is None:
            self._scratch = scratch = Scratch(self._view)
            for one, pick, node in self._spots:
                want = Want(one, self._profile, scratch)
                scratch.place(Spot(want, pick, node, want.task_class.resources, want.least))
        return self._scratch


def _next(namespaces: list[_Namespace]) -> _Namespace | None:
    """The namespace that holds least; they are in the order of their names, and the first of equals goes first."""
    while namespaces:
        first = min(namespaces, key=_SHARE)
        while first.heaps:
            if first.heaps[0]:
                return first
            first.heaps.pop(0)
        namespaces.remove(first)
    return None


_MEMORY = model.MEMORY
_SHARE = operator.attrgetter("share")
