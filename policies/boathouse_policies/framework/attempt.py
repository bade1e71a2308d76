"""One turn of the cycle: a task, or a gang's minimum, placed whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies import model
from boathouse_policies.framework.cycle_state import Spot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

    from boathouse_policies.framework.cycle_state import Scratch, Want
    from boathouse_policies.framework.line import Line
    from boathouse_policies.framework.policy import Profile
    from boathouse_policies.framework.shapes import Sized


class Attempt:
    """What one turn placed so far on the scratch copy.

    Attributes:
        want: The class whose turn it is.
        gang: What must be placed together; empty for one task alone.
        spots: The tasks placed.
        hold: What to wait for instead, if patience said so.
    """

    __slots__ = ("_line", "_profile", "_refusal", "_scratch", "gang", "hold", "spots", "want")

    def __init__(self, want: Want, line: Line, profile: Profile, scratch: Scratch) -> None:
        self.want = want
        self.spots: list[Spot] = []
        self.hold: model.Hold | None = None
        self.gang: Sequence[tuple[Want, int]] = ()
        if want.task_class.gang_min:
            classes = [one for one in line.classes_of(want.job.id) if one.task_class.gang_min]
            self.gang = profile.gang.together(classes, scratch)
        self._line = line
        self._profile = profile
        self._scratch = scratch
        self._refusal: model.Verdict | None = None

    def members(self) -> Iterator[Want]:
        """Each class as often as a task of it must be placed, until one cannot be."""
        if not self.gang:
            if self._may_try(self.want):
                yield self.want
            return
        for member, count in self.gang:
            if member.left < count:
                missing = f"{member.task_class.id} needs {count} tasks together and {member.left} are there"
                self._refuse(model.Code.GANG, missing)
                return
            goal = len(self.spots) + count
            while len(self.spots) < goal:
                before = len(self.spots)
                if not self._may_try(member):
                    return
                yield member
                if len(self.spots) == before:
                    return

    def _may_try(self, member: Want) -> bool:
        if self._line.has_limits and (refusal := self._line.over_limit(member, member.least)) is not None:
            self._refusal = refusal
            return False
        return member.left > 0

    def size(self, member: Want, node: int) -> Sized | None:
        """The sizer's answer, if the node has room for it and the queue's limit allows it."""
        sized = self._profile.sizer.size(member, node, self._scratch)
        if isinstance(sized, model.Verdict):
            self._refusal = sized
            return None
        if sized is member.ideal and member.is_rigid:
            return sized  # the filters and the limit have just seen this very size
        vector = self._scratch.view.axis.vector(sized.resources)
        if not self._has_room(vector, node):
            self._refuse(model.Code.SIZING, "the size that was decided does not fit the node")
            return None
        self._refusal = self._line.over_limit(member, vector)
        return sized if self._refusal is None else None

    def _refuse(self, code: model.Code, message: str) -> None:
        self._refusal = model.Verdict(code=code, message=message)

    def _has_room(self, vector: model.IntVector, node: int) -> bool:
        room = self._scratch.free_on(node)
        return all(amount <= room[row] for row, amount in enumerate(vector.tolist()) if amount)

    def waits(self, member: Want, node: int) -> bool:
        """Whether the profile's patience declines the node; then the class waits and no other node is tried."""
        if self.hold is None:
            self.hold = self._profile.patience.wait(member, node, self._scratch)
        return self.hold is not None

    def take(self, member: Want, node: int, sized: Sized) -> None:
        """Place as many tasks as the size says, those whose input is closest to the node."""
        scratch = self._scratch
        vector = member.least
        if sized is not member.ideal or not member.is_rigid:
            vector = scratch.view.axis.vector(sized.resources)
        most = min(sized.count, member.left) if sized.count > 1 and not self.gang else 1
        for already in range(most):
            if already and not self._one_more(member, node, vector):
                return
            pick = member.picker.closest(scratch.view.layout.nodes[node])
            if pick is None:
                return
            spot = Spot(member, pick, node, sized.resources, vector)
            member.take(pick)
            scratch.place(spot)
            self.spots.append(spot)
            self._line.placed(member)
            for hooks in self._profile.hooks:
                hooks.placed(spot, scratch)

    def _one_more(self, member: Want, node: int, vector: model.IntVector) -> bool:
        allowed = self._line.rankings.may_use(member, node) and self._has_room(vector, node)
        if not allowed or self._line.over_limit(member, vector) is not None:
            return False
        return self._profile.patience.wait(member, node, self._scratch) is None

    def succeeded(self) -> bool:
        """Whether the turn placed all that it had to; otherwise what it placed is taken back."""
        if len(self.spots) >= (sum([count for _, count in self.gang]) if self.gang else 1):
            return True
        for spot in reversed(self.spots):
            self._scratch.undo(spot)
            spot.want.give_back(spot.pick)
            self._line.taken_back(spot.want)
            for hooks in self._profile.hooks:
                hooks.undone(spot, self._scratch)
        self.spots.clear()
        return False

    @property
    def lacks_room(self) -> bool:
        """Whether one task found no node, though some node is large enough: why none takes it can be said later."""
        if self.gang or self.hold is not None or self._refusal is not None or not self.want.left:
            return False
        layout = self._scratch.view.layout
        return not layout.nodes or layout.could_hold(self.want.least)

    def verdict(self, want: Want) -> model.Verdict:
        """Why a class of this failed turn waits."""
        if self.hold is not None:
            return self.hold.verdict
        reason = self._refusal or refusal(want, self._profile, self._scratch)
        if not self.gang or reason.code in (model.Code.NEVER_FITS, model.Code.QUEUE_LIMIT):
            return reason
        needed = sum(count for _, count in self.gang)
        message = reason.message or f"{needed} tasks must start together and do not fit"
        return model.Verdict(code=model.Code.GANG, message=message)


def refusal(want: Want, profile: Profile, scratch: Scratch, *, is_passed_over: bool = False) -> model.Verdict:
    """Why no node takes a class.

    Args:
        want: The class.
        profile: The policies.
        scratch: The state of the cycle.
        is_passed_over: Whether the reserve has said that every node that fits is kept for others.
    """
    view = scratch.view
    if view.layout.nodes and not view.layout.could_hold(want.least):
        return model.Verdict(code=model.Code.NEVER_FITS, message="no node is large enough, even empty")
    if scratch.offers == len(scratch.offered) and not profile.reserve.concerns(want):
        return UNSCHEDULABLE  # every node was asked
    passing = _passing(want, profile, scratch)
    if not len(passing):
        return UNSCHEDULABLE
    unreserved = None if is_passed_over else profile.reserve.mask(want, scratch, passing)
    if is_passed_over or (unreserved is not None and not unreserved.any()):
        return KEPT
    return UNSCHEDULABLE if scratch.offered[passing].any() else NOT_OFFERED


def _passing(want: Want, profile: Profile, scratch: Scratch) -> npt.NDArray[np.intp]:
    """The places of the nodes where all filters pass, whether the node is offered, or kept for somebody, or not."""
    room = scratch.room(want)
    nodes = (room if want.eligibility.everywhere else room & want.eligibility.mask).nonzero()[0]
    for one in profile.filters:
        if one.of_shape or not len(nodes):
            continue
        passed = one.mask(want, scratch, nodes)
        if passed is not None:
            nodes = nodes[passed]
    return nodes


KEPT = model.Verdict(code=model.Code.JOB_ORDER, message="the nodes that fit are kept for jobs ahead")
NOT_OFFERED = model.Verdict(code=model.Code.NOT_OFFERED, message="the nodes that fit take no more in this cycle")
UNSCHEDULABLE = model.Verdict(code=model.Code.UNSCHEDULABLE)
