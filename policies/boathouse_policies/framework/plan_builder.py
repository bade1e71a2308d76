"""The plan in the making."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies import model
from boathouse_policies.framework import attempt as attempts
from boathouse_policies.framework.plan import Left, Plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_policies.framework.cycle_state import Assignment, CycleState, PendingClass
    from boathouse_policies.framework.scheduling_profile import Profile
    from boathouse_policies.framework.scheduling_queue import SchedulingQueue
    from boathouse_policies.framework.turn_order import TurnOrder


class PlanBuilder:
    """Decisions, and what is left waiting, so far."""

    def __init__(self, profile: Profile, state: CycleState) -> None:
        self._profile = profile
        self._state = state
        self._decisions: list[model.Decision] = []
        self._left: dict[model.ClassId, Left] = {}
        self._undiagnosed: list[PendingClass] = []
        self._counts: Mapping[int, int] = {}

    def plan(self, turns: TurnOrder) -> Plan:
        """The plan."""
        return Plan(
            tuple(self._decisions),
            lambda: self._news(turns),
            self._profile,
            lambda: self._state,
            still=lambda: self._still(turns),
            released=[self._state.view.layout.names[node] for node in sorted(self._state.released)],
        )

    def _news(self, turns: TurnOrder) -> Mapping[model.ClassId, Left]:
        """With those that had no turn: no node takes anything more in this cycle, or none that they may use."""
        for pending in self._undiagnosed:
            if pending.task_class.id not in self._left:
                self._leave(pending, attempts.refusal(pending, self._profile, self._state))
        for pending in turns.rest():
            self._leave(pending, _NOT_OFFERED)
        for pending in turns.passed_over():
            self._leave(pending, attempts.refusal(pending, self._profile, self._state, is_passed_over=True))
        for pending in turns.skipped():
            self._leave(pending, attempts.refusal(pending, self._profile, self._state))
        self._counts = turns.counts()
        return self._left

    def _still(self, turns: TurnOrder) -> Mapping[model.ClassId, Left]:
        counts = self._counts
        pending_classes = ((pending, counts.get(pending.place, pending.left)) for pending in turns.still())
        return {
            pending.task_class.id: Left(pending, attempts.UNSCHEDULABLE, count)
            for pending, count in pending_classes
            if count
        }

    def advise(self, queue: SchedulingQueue) -> None:
        """Controllers look at the whole first."""
        for controller in self._profile.controllers:
            for decision in controller.advise(queue, self._state.view):
                self._decisions.append(decision)
                if isinstance(decision, model.Speculate):
                    self._state.take(decision.node, decision.resources)

    def leave_orphans(self, turns: TurnOrder, queue: SchedulingQueue) -> None:
        """Jobs that name a queue that does not exist, or that does not accept them."""
        for pending in turns.orphans:
            self._leave(pending, _no_queue(pending.job, queue.queues))

    def decide(self, assignments: Sequence[Assignment]) -> None:
        """Turn placed tasks into decisions."""
        self._decisions += [self._decision(assignment) for assignment in assignments]

    def _decision(self, assignment: Assignment) -> model.Decision:
        pending, task, state = assignment.pending, assignment.pick.task, self._state
        if state.reserved and state.reserved.get(assignment.node) == pending.task_class.id:
            state.release(assignment.node)
            if task.expected:
                state.released.discard(assignment.node)  # its pod is still to come
        node = state.view.layout.names[assignment.node]
        if task.expected:
            return _reserved(assignment, node)
        return pending.queued.placement(assignment.pick, node, assignment.resources)

    def diagnose(self, attempt: attempts.Attempt, turns: TurnOrder) -> None:
        """Close what failed, keep a node for it if the profile says so, and close what cannot fare better."""
        if attempt.lacks_room:
            turns.close(attempt.pending)
            self._undiagnosed.append(attempt.pending)
        elif not self._left_for_want_of_room(attempt, turns):
            return
        self._reserve(attempt.pending, turns)
        turns.confine()
        for pending, verdict, hold in self._profile.reserve.refused(turns.rest(), self._state):
            turns.close(pending)
            if hold is not None:
                self._decisions.append(hold)
            self._leave(pending, verdict)

    def _left_for_want_of_room(self, attempt: attempts.Attempt, turns: TurnOrder) -> bool:
        """Leave a gang, or who has a reason of its own; return whether room would help."""
        members = [member for member, _ in attempt.gang] or [attempt.pending]
        for pending in members:
            turns.close(pending)
            self._leave(pending, attempt.verdict(pending))
        if attempt.hold is not None:
            self._decisions.append(attempt.hold)
            return False
        left = self._left.get(attempt.pending.task_class.id)
        if left is None:
            return False
        if left.verdict.code is model.Code.GANG and self._profile.reserve.reserves_for_gangs:
            self._reserve(attempt.pending, turns)
        return left.verdict.code in _ROOM_IS_MISSING

    def _reserve(self, pending: PendingClass, turns: TurnOrder) -> None:
        own = pending.task_class.id
        self._state.most_reserved = most = turns.most_reserved(pending)
        if most == 0:
            return
        for hold in self._profile.reserve.reserve(pending, self._state):
            if hold.node is not None:
                node = self._state.view.layout.index[hold.node]
                owner = self._state.reserved.get(node)
                if owner not in (None, own):
                    continue  # first come, first kept
                if owner is None:
                    self._state.reserve(node, own)
                turns.reserved(pending)
            self._decisions.append(hold)
            self._leave(pending, hold.verdict)

    def _leave(self, pending: PendingClass, verdict: model.Verdict) -> None:
        count = pending.left
        if count:
            self._left[pending.task_class.id] = Left(pending, verdict, count)


def _no_queue(job: model.Job, queues: Mapping[model.QueueName, model.Queue]) -> model.Verdict:
    """Why a job may not use the queue that it names. The message leaves out the queue's lists, which name others."""
    if job.queue not in queues:
        names = ", ".join(sorted(queues)) or "none"
        message = f"queue {job.queue!r} is not defined (defined: {names})"
        return model.Verdict(code=model.Code.UNKNOWN_QUEUE, message=message)
    who = f"priority class {job.priority_class!r}" if queues[job.queue].accepts(job.namespace) else "this namespace"
    message = f"queue {job.queue!r} does not accept {who}"
    return model.Verdict(code=model.Code.QUEUE_NOT_ALLOWED, message=message)


def _reserved(assignment: Assignment, node: model.NodeName) -> model.Hold:
    message = f"room on {node} is kept until the pod comes"
    return model.Hold(
        task_class=assignment.pending.task_class,
        job=assignment.pending.job,
        verdict=model.Verdict(code=model.Code.GANG, message=message),
        node=node,
        task=assignment.pick.task,
        resources=assignment.resources,
    )


_ROOM_IS_MISSING = {model.Code.UNSCHEDULABLE, model.Code.JOB_ORDER, model.Code.NOT_OFFERED, model.Code.SIZING}
_NOT_OFFERED = model.Verdict(
    code=model.Code.NOT_OFFERED, message="the nodes that fit take no more in this cycle, or are kept for jobs ahead"
)
