"""The usual cycle of a full cluster: room came free on a few nodes, and who is parked for want of room may go there.

Nothing else can have changed for those classes. So the few nodes are plain numbers here, and the order is kept from
cycle to cycle (`Lineup.keys`): a turn costs as much as the nodes that came free, whatever waits. The decisions are
those of the general way, which everything else goes.
"""

from __future__ import annotations

import heapq
import operator
from typing import TYPE_CHECKING, cast

from boathouse_policies import model
from boathouse_policies.framework.attempt import UNSCHEDULABLE
from boathouse_policies.framework.plan import Left, Plan
from boathouse_policies.framework.scratch import Scratch
from boathouse_policies.framework.want import Spot, Want

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    if len(lineup.bands) != 1 or lineup.orphans or room.queues[lineup.bands[0].queue].limits:
        return None
    has, holds, index = view.layout.allocatable, view.requested, view.layout.index
    nodes = sorted([index[name] for name in room.freed if name in index])
    rooms: dict[int, list[int]] = {node: (has[:, node] - holds[:, node]).tolist() for node in nodes}
    if len(has) != view.axis.width or any(min(room) < 0 for room in rooms.values()):
        return None
    turns = _Turns(lineup, profile, view, rooms)
    return turns.plan() if turns.run() else None


class _Turns:
    """One cycle."""

    __slots__ = (
        "_heap",
        "_least",
        "_lineup",
        "_looked_at",
        "_most",
        "_needs",
        "_newer",
        "_order",
        "_pickers",
        "_profile",
        "_rooms",
        "_score",
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
        self._most = max([room[_MEMORY] for room in rooms.values()], default=0)  # scarce nearly always: asked first
        self._score = cast("Local", profile.score)
        self._order = cast("Lasting", profile.order)
        self._needs, self._least = lineup.needs(profile.sizer, view.axis)
        looked_at = lineup.narrow.nonzero()[0]
        keys = lineup.keys(self._order, view)[looked_at].tolist()
        self._looked_at: list[int] = looked_at.tolist()
        self._newer: dict[int, float] = {}  # keys of whose job got a task in this cycle
        self._heap = list(zip(keys, self._looked_at, strict=True))
        heapq.heapify(self._heap)
        self._pickers: dict[int, Picker] = {}
        self._usage: dict[int, model.IntVector] = {}
        self._spots: list[tuple[int, Pick, int]] = []
        self._scratch: Scratch | None = None

    def run(self) -> bool:
        """Turn by turn until nothing more fits; False if a turn is not for here."""
        heap, newer, rooms, needs, nodes = self._heap, self._newer, self._rooms, self._needs, self._view.layout.nodes
        while heap and rooms:
            key, place = heapq.heappop(heap)
            need = needs[place]
            if need[_MEMORY] > self._most or newer.get(place, key) != key:  # too large, or its job got a task meanwhile
                continue
            found = [node for node, room in rooms.items() if all(map(operator.le, need, room))]
            node = self._best(place, found) if found else None
            if node is None:
                continue
            pick = self._picker(place).closest(nodes[node])
            if pick is not None and pick.task.expected:
                return False
            if pick is not None:  # else its last task has just been taken
                self._take(place, node, pick)
        return True

    def _picker(self, place: int) -> Picker:
        picker = self._pickers.get(place)
        if picker is None:
            picker = self._lineup.waiting[place].picker(self._profile, self._view.layout)
            self._pickers[place] = picker
        return picker

    def _best(self, place: int, found: list[int]) -> int | None:
        """The node with the highest score of these, which have room, the first of equals."""
        eligibility = self._lineup.waiting[place].eligibility(self._view)
        if not eligibility.everywhere:
            found = [node for node in found if eligibility.mask[node]]
        if len(found) <= 1:
            return found[0] if found else None
        need, rooms, score, inverse = self._needs[place], self._rooms, self._score, self._view.layout.inverse_by_node
        scores = [score.of_room(need, rooms[node], inverse[node]) for node in found]
        return found[scores.index(max(scores))]

    def _take(self, place: int, node: int, pick: Pick) -> None:
        room, rooms = self._rooms[node], self._rooms
        self._pickers[place].take(pick)
        self._spots.append((place, pick, node))
        room[:] = map(operator.sub, room, self._needs[place])
        if any(map(operator.lt, room, self._least)):
            del rooms[node]
        if rooms:
            self._most = max([room[_MEMORY] for room in rooms.values()])
            self._mend(place)

    def _mend(self, place: int) -> None:
        """The class' job holds more: ask for its key again, and let its classes wait for their turn anew."""
        lineup, newer, view = self._lineup, self._newer, self._view
        job = lineup.job_of[place]
        usage = self._usage.get(job)
        if usage is None:
            usage = view.job_usage(lineup.jobs[job].id)
        self._usage[job] = usage = usage + lineup.waiting[place].sizing(self._profile.sizer, view.axis).least
        key = self._order.key(lineup.jobs[job], usage, view.layout)
        for one in range(*lineup.first[job : job + 2]):
            if lineup.narrow[one]:
                newer[one] = key
                heapq.heappush(self._heap, (key, one))

    # What came of it

    def plan(self) -> Plan:
        """The plan."""
        waiting, names = self._lineup.waiting, self._view.layout.names
        decisions = tuple(
            waiting[place].placement(pick, names[node], waiting[place].task_class.resources)
            for place, pick, node in self._spots
        )
        counts = {place: picker.left for place, picker in self._pickers.items()}  # settling changes the pools
        return Plan(decisions, dict, self._profile, self._worked_out, still=lambda: self._left(counts))

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
