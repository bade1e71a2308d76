"""The usual cycle of a full cluster: room came free on a few nodes, and who is parked for want of room may go there.

Nothing else can have changed for those classes. So the few nodes are plain numbers here, and the order is kept from
cycle to cycle (`Lineup.keys`): a turn costs as much as the nodes that came free, whatever waits. Whoever looks at all
nodes, being new or parked for long, is turned away at once where none has room. The decisions are those of the general
way, which everything else goes.
"""

from __future__ import annotations

import heapq
import operator
from typing import TYPE_CHECKING, cast

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.attempt import UNSCHEDULABLE, refusal
from boathouse_policies.framework.plan import Left, Plan
from boathouse_policies.framework.scratch import Scratch
from boathouse_policies.framework.want import Spot, Want

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_policies.framework.extension import Lasting, Local
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
    has, holds, index = view.layout.allocatable, view.requested, view.layout.index
    if not lineup.alone or lineup.orphans or len(has) != view.axis.width:
        return None
    nodes = sorted([index[name] for name in room.freed if name in index])
    rooms: dict[int, list[int]] = {node: (has[:, node] - holds[:, node]).tolist() for node in nodes}
    nowhere = () if lineup.open is lineup.narrow else _nowhere(lineup, profile, view)
    if nowhere is None or any(min(room) < 0 for room in rooms.values()):  # over-committed
        return None
    turns = _Turns(lineup, profile, view, rooms)
    return turns.plan(nowhere) if turns.run() else None


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


class _Turns:
    """One cycle."""

    __slots__ = (
        "_constant",
        "_heap",
        "_least",
        "_lineup",
        "_looked_at",
        "_needs",
        "_newer",
        "_of_room",
        "_order",
        "_pickers",
        "_profile",
        "_rooms",
        "_scores",
        "_scratch",
        "_spots",
        "_usage",
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
        heapq.heapify(self._heap)
        self._newer: dict[int, float] = {}  # keys of whose job got a task in this cycle
        self._of_room = cast("Local", profile.score).of_room
        self._scores: dict[int, dict[int, float]] = {}
        self._pickers: dict[int, Picker] = {}
        self._usage: dict[int, model.IntVector] = {}
        self._spots: list[tuple[int, Pick, int]] = []
        self._scratch: Scratch | None = None

    def run(self) -> bool:
        """Turn by turn until nothing more fits; False if a turn is not for here."""
        single = self._lineup.single
        heap, newer, rooms, needs, nodes = self._heap, self._newer, self._rooms, self._needs, self._view.layout.nodes
        most = max([room[_MEMORY] for room in rooms.values()], default=0)  # scarce nearly always, so asked first
        while heap and rooms:
            key, place = heapq.heappop(heap)
            if needs[place][_MEMORY] > most or newer.get(place, key) != key:  # too large, or its job got a task
                continue
            scores = self._scores_of(place)
            if not scores:
                continue
            node = max(scores, key=scores.__getitem__)
            pick = self._picker(place).closest(nodes[node])
            if pick is None:  # its last task has just been taken
                continue
            if pick.task.expected:
                return False
            self._take(place, node, pick)
            most = max([room[_MEMORY] for room in rooms.values()], default=0)
            if needs[place][_MEMORY] <= most or not single:  # else its job has no more turns, whatever its key is
                self._mend(place, key)
        return True

    def _picker(self, place: int) -> Picker:
        picker = self._pickers.get(place)
        if picker is None:
            picker = self._pickers[place] = self._lineup.waiting[place].picker(self._profile, self._view.layout)
        return picker

    def _scores_of(self, place: int) -> dict[int, float]:
        """The scores of the nodes that a class may use and that have room for it, in their order."""
        scores = self._scores.get(place)
        if scores is None:
            need, inverse, of_room = self._needs[place], self._view.layout.inverse_by_node, self._of_room
            allowed = self._lineup.waiting[place].eligibility(self._view)
            scores = self._scores[place] = {
                node: of_room(need, room, inverse[node])
                for node, room in self._rooms.items()
                if all(map(operator.le, need, room)) and (allowed.everywhere or allowed.mask[node])
            }
        return scores

    def _take(self, place: int, node: int, pick: Pick) -> None:
        rooms = self._rooms
        self._pickers[place].take(pick)
        self._spots.append((place, pick, node))
        rooms[node] = room = list(map(operator.sub, rooms[node], self._needs[place]))
        if any(map(operator.lt, room, self._least)):
            del rooms[node]
        self._shrunk(node, room)

    def _shrunk(self, node: int, room: Sequence[int]) -> None:
        """A node has less room: what its score is now for those who were about to use it."""
        inverse = self._view.layout.inverse_by_node[node]
        for place, scores in self._scores.items():
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
        usage = self._usage.get(job)
        if usage is None:
            usage = view.job_usage(lineup.jobs[job].id)
        self._usage[job] = usage = usage + lineup.waiting[place].sizing(self._profile.sizer, view.axis).least
        key = self._order.key(lineup.jobs[job], usage, view.layout)
        for one in range(*lineup.first[job : job + 2]):
            if lineup.narrow[one]:
                self._newer[one] = key
                heapq.heappush(self._heap, (key, one))

    # What came of it

    def plan(self, nowhere: Sequence[int]) -> Plan:
        """The plan; some more classes looked at all nodes in vain."""
        waiting, names = self._lineup.waiting, self._view.layout.names
        decisions = tuple(
            [
                waiting[place].placement(pick, names[node], waiting[place].task_class.resources)
                for place, pick, node in self._spots
            ]
        )
        counts = {place: picker.left for place, picker in self._pickers.items()}  # settling changes the pools
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
            for place, pick, node in self._spots:
                want = Want(self._lineup.waiting[place], self._profile, scratch)
                scratch.place(Spot(want, pick, node, want.task_class.resources, want.least))
        return self._scratch


_MEMORY = model.MEMORY
