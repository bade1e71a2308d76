"""One turn of the cycle: a task, or a gang's minimum, placed whole or not at all."""

import collections
import operator
from collections.abc import Iterable, Iterator, Sequence

from boathouse_policies import model
from boathouse_policies.framework import diagnosis, gathering
from boathouse_policies.framework.cycle_state import Assignment, CycleState, PendingClass
from boathouse_policies.framework.queue import KeptPart
from boathouse_policies.framework.scheduling_profile import Profile
from boathouse_policies.framework.shapes import Sized
from boathouse_policies.framework.turn_order import TurnOrder


class Attempt:
    """What one turn placed so far on the cycle state."""

    wait: model.Wait | None = None  # what to wait for instead, if patience said so
    # What must be placed together, and how many of each; empty for one task alone.
    gang: Sequence[tuple[PendingClass, int]] = ()
    _refusal: model.Verdict | None = None

    def __init__(self, pending: PendingClass, turns: TurnOrder, profile: Profile, state: CycleState) -> None:
        self.pending, self._is_drained = pending, pending.job.id == turns.drained
        self.assignments: list[Assignment] = []
        self._smaller: dict[model.ClassId, Sized] = {}
        # The room that is kept for a gang that could not be placed whole (`Draining`).
        self.kept: Sequence[KeptPart] = ()
        if pending.task_class.gang_min:
            self.gang = _lacking(turns.classes_of(pending.job.id), state)
        self._turns, self._profile, self._state = turns, profile, state

    def members(self) -> Iterable[PendingClass]:
        """Yield each class as often as a task of it must be placed, until one cannot be."""
        if self.gang:
            return self._members_of_gang()
        may_try = self.pending.left and (not self._turns.has_limits or self._may_try(self.pending))
        return (self.pending,) if may_try else ()

    def _members_of_gang(self) -> Iterator[PendingClass]:
        yield from self._each_member()
        self._smaller = {} if self._is_whole else self._sizes_together()
        if self._smaller:
            self._take_back()
            self._refusal = None
            yield from self._each_member()

    def _sizes_together(self) -> dict[model.ClassId, Sized]:
        """Return the sizes that the classes of a gang may have where it does not fit with those of each node."""
        found = ((member, self._profile.sizer.size_together(member, self._state)) for member, _ in self.gang)
        return {member.task_class.id: sized for member, sized in found if sized is not None}

    def _each_member(self) -> Iterator[PendingClass]:
        for member, count in self.gang:
            if member.left < count:
                missing = f"{member.task_class.id} needs {count} tasks together and {member.left} are there"
                self._refusal = gathering.verdict(missing)
                return
            goal = len(self.assignments) + count
            while len(self.assignments) < goal:
                before = len(self.assignments)
                if self._may_try(member):
                    yield member
                if len(self.assignments) == before:
                    if self._is_drained:
                        break  # room is kept for the others
                    return

    def _may_try(self, member: PendingClass) -> bool:
        if self._turns.has_limits and (refusal := self._turns.over_limit(member, member.shape.sizes)) is not None:
            self._refusal = refusal
            return False
        return member.left > 0

    def size(self, member: PendingClass, node: int) -> Sized | None:
        """Return the sizer's answer if the node has room for it and the queue's limit allows it."""
        if member.task_class.is_short:
            return member.ideal
        sized = self._smaller.get(member.task_class.id) or self._profile.sizer.size(member, node, self._state)
        if isinstance(sized, model.Verdict):
            self._refusal = sized
            return None
        if sized is member.ideal and member.is_rigid:
            return sized  # the filters and the limit have just seen this very size
        amounts = self._state.view.axis.amounts(sized.resources)
        if not self.has_room(amounts, node):
            self._refusal = _DOES_NOT_FIT
            return None
        self._refusal = self._turns.over_limit(member, amounts)
        return sized if self._refusal is None else None

    def has_room(self, amounts: Sequence[int], node: int) -> bool:
        """Return whether a node has so much left, by row."""
        room = self._state.free_on(node)
        return all(map(operator.ge, room, amounts)) or all(
            amount <= room[row] for row, amount in enumerate(amounts) if amount
        )

    def waits(self, member: PendingClass, node: int) -> bool:
        """Return whether the profile's patience declines the node; then the class waits and no other node is tried."""
        if self.wait is None and not self._is_drained and not member.task_class.is_short:
            self.wait = self._profile.patience.wait(member, node, self._state)
        return self.wait is not None

    def take(self, member: PendingClass, node: int, sized: Sized) -> None:
        """Place as many tasks as the size says, those whose input is closest to the node."""
        is_least = sized is member.ideal and member.is_rigid
        amounts = member.shape.sizes if is_least else self._state.view.axis.amounts(sized.resources)
        count = 1 if self.gang else sized.count
        while (pick := member.take_closest(node)) is not None:
            self.assignments.append(assignment := Assignment(member, pick, node, sized.resources, amounts))
            self._place(assignment)
            count -= 1
            if not count or not member.left or not self._one_more(member, node, amounts):
                return

    def _place(self, assignment: Assignment) -> None:
        self._state.place(assignment)
        for hooks in self._profile.hooks:
            hooks.placed(assignment, self._state)
        self._turns.placed(assignment)

    def _undo(self, assignment: Assignment) -> None:
        self._state.undo(assignment)
        for hooks in self._profile.hooks:
            hooks.undone(assignment, self._state)
        self._turns.charge(assignment.pending, assignment.amounts, operator.sub)

    def _one_more(self, member: PendingClass, node: int, amounts: Sequence[int]) -> bool:
        return (
            self._turns.rankings.may_use(member, node)
            and self.has_room(amounts, node)
            and self._turns.over_limit(member, amounts) is None
            and self._profile.patience.wait(member, node, self._state) is None
        )

    def succeeded(self) -> bool:
        """Return whether the turn placed all that it had to; otherwise what it placed is taken back."""
        if self._is_whole:
            if self.gang and self._profile.decides_sizes:
                self._make_equal()
            return True
        found = [(placed.pending, placed.node, placed.amounts) for placed in self.assignments]
        self._take_back()
        if self._is_drained:
            self._keep(found)
        return False

    def _keep(self, found: list[tuple[PendingClass, int, Sequence[int]]]) -> None:
        """Give the room of the members to nobody else in this cycle: the next one tries the gang first again."""
        placed = collections.Counter(member.task_class.id for member, *_ in found)
        for _, node, amounts in found:
            self._state.keep(node, amounts)
        is_limited = self._refusal is not None and self._refusal.code is model.Code.QUEUE_LIMIT
        for member, count in () if is_limited else self.gang:
            for node, amounts in gathering.parts(member, count - placed[member.task_class.id], self._state):
                found.append((member, node, amounts))
                self._state.keep(node, amounts)
        for member, _, amounts in found:
            self._turns.charge(member, amounts, operator.add)
        names = self._state.view.layout.names
        self.kept = [KeptPart(member.task_class.id, names[node], amounts) for member, node, amounts in found]

    @property
    def _is_whole(self) -> bool:
        if not self.gang:
            return bool(self.assignments)
        return bool(self.assignments) and len(self.assignments) >= sum([count for _, count in self.gang])

    def _take_back(self) -> None:
        for assignment in reversed(self.assignments):
            self._undo(assignment)
            assignment.pending.give_back(assignment.pick)
        self.assignments.clear()

    def _make_equal(self) -> None:
        """Give the expected tasks of a gang the least of their sizes: one program requests all their pods alike."""
        expected = [assignment for assignment in self.assignments if assignment.pick.task.expected]
        if not expected:
            return
        least = min(expected, key=lambda assignment: assignment.resources.memory_bytes)
        for i, assignment in enumerate(self.assignments):
            if assignment.pick.task.expected and assignment.resources != least.resources:
                self._undo(assignment)
                smaller = assignment._replace(resources=least.resources, amounts=least.amounts)
                self.assignments[i] = smaller
                self._place(smaller)

    @property
    def classes(self) -> Sequence[PendingClass]:
        """The classes whose turn it is."""
        return [member for member, _ in self.gang] or [self.pending]

    @property
    def lacks_room(self) -> bool:
        """Whether one task found no node, though some node is large enough: why none takes it can be said later."""
        if self.gang or self.wait is not None or self._refusal is not None or not self.pending.left:
            return False
        layout = self._state.view.layout
        return not layout.nodes or 1 in layout.large_enough(self.pending.least).tobytes()  # quicker than any()

    def verdict(self, pending: PendingClass) -> model.Verdict:
        """Return why a class of this failed turn waits."""
        if self.wait is not None:
            return self.wait.verdict
        reason = self._refusal or diagnosis.refusal(pending, self._profile, self._state)
        if not self.gang or reason.code in (model.Code.NEVER_FITS, model.Code.QUEUE_LIMIT):
            return reason
        needed = sum(count for _, count in self.gang)
        return gathering.verdict(reason.message or f"{needed} tasks must start together and do not fit")


_DOES_NOT_FIT = model.Verdict(code=model.Code.SIZING, message="the size that was decided does not fit the node")


def _lacking(classes: Iterable[PendingClass], state: CycleState) -> list[tuple[PendingClass, int]]:
    """Return the tasks that classes lack of `gang_min`, and how many; the larger first, so smaller ones fill gaps."""
    short = ((pending, pending.task_class.gang_min - state.placed(pending.task_class.id)) for pending in classes)
    return sorted(
        [lacking for lacking in short if lacking[1] > 0],
        key=lambda lacking: (-lacking[0].task_class.resources.memory_bytes, -lacking[0].task_class.resources.cpu_milli),
    )
