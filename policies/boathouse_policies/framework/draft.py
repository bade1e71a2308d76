"""The plan in the making."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies import model
from boathouse_policies.framework import attempt as attempts
from boathouse_policies.framework.plan import Left, Plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_policies.framework.cycle_state import Scratch, Spot, Want
    from boathouse_policies.framework.line import Line
    from boathouse_policies.framework.policy import Profile
    from boathouse_policies.framework.waiting import WaitingRoom


class Draft:
    """Decisions, and what is left waiting, so far."""

    def __init__(self, profile: Profile, scratch: Scratch) -> None:
        self._profile = profile
        self._scratch = scratch
        self._decisions: list[model.Decision] = []
        self._left: dict[model.ClassId, Left] = {}
        self._undiagnosed: list[Want] = []
        self._counts: Mapping[int, int] = {}

    def plan(self, line: Line) -> Plan:
        """The plan."""
        return Plan(
            tuple(self._decisions),
            lambda: self._news(line),
            self._profile,
            lambda: self._scratch,
            still=lambda: self._still(line),
            released=[self._scratch.view.layout.names[node] for node in sorted(self._scratch.let_go)],
        )

    def _news(self, line: Line) -> Mapping[model.ClassId, Left]:
        """With those that had no turn: no node takes anything more in this cycle, or none that they may use."""
        for want in self._undiagnosed:
            if want.task_class.id not in self._left:
                self._leave(want, attempts.refusal(want, self._profile, self._scratch))
        for want in line.rest():
            self._leave(want, _NOT_OFFERED)
        for want in line.passed_over():
            self._leave(want, attempts.refusal(want, self._profile, self._scratch, is_passed_over=True))
        for want in line.skipped():
            self._leave(want, attempts.refusal(want, self._profile, self._scratch))
        self._counts = line.counts()
        return self._left

    def _still(self, line: Line) -> Mapping[model.ClassId, Left]:
        counts = self._counts
        wants = ((want, counts.get(want.place, want.left)) for want in line.still())
        return {want.task_class.id: Left(want, attempts.UNSCHEDULABLE, count) for want, count in wants if count}

    def advise(self, queue: WaitingRoom) -> None:
        """Controllers look at the whole first."""
        for controller in self._profile.controllers:
            for decision in controller.advise(queue, self._scratch.view):
                self._decisions.append(decision)
                if isinstance(decision, model.Speculate):
                    self._scratch.take(decision.node, decision.resources)

    def leave_orphans(self, line: Line, queue: WaitingRoom) -> None:
        """Jobs that name a queue that does not exist, or that does not accept them."""
        for want in line.orphans:
            self._leave(want, _no_queue(want.job, queue.queues))

    def decide(self, spots: Sequence[Spot]) -> None:
        """Turn placed tasks into decisions."""
        self._decisions += [self._decision(spot) for spot in spots]

    def _decision(self, spot: Spot) -> model.Decision:
        want, task, scratch = spot.want, spot.pick.task, self._scratch
        if scratch.kept and scratch.kept.get(spot.node) == want.task_class.id:
            scratch.release(spot.node)
            if task.expected:
                scratch.let_go.discard(spot.node)  # its pod is still to come
        node = scratch.view.layout.names[spot.node]
        if task.expected:
            return _kept(spot, node)
        return want.waiting.placement(spot.pick, node, spot.resources)

    def diagnose(self, attempt: attempts.Attempt, line: Line) -> None:
        """Close what failed, keep a node for it if the profile says so, and close what cannot fare better."""
        if attempt.lacks_room:
            line.close(attempt.want)
            self._undiagnosed.append(attempt.want)
        elif not self._left_for_want_of_room(attempt, line):
            return
        self._keep(attempt.want, line)
        line.confine()
        for want, verdict, hold in self._profile.reserve.refused(line.rest(), self._scratch):
            line.close(want)
            if hold is not None:
                self._decisions.append(hold)
            self._leave(want, verdict)

    def _left_for_want_of_room(self, attempt: attempts.Attempt, line: Line) -> bool:
        """Leave a gang, or who has a reason of its own; return whether room would help."""
        members = [member for member, _ in attempt.gang] or [attempt.want]
        for want in members:
            line.close(want)
            self._leave(want, attempt.verdict(want))
        if attempt.hold is not None:
            self._decisions.append(attempt.hold)
            return False
        left = self._left.get(attempt.want.task_class.id)
        if left is None:
            return False
        if left.verdict.code is model.Code.GANG and self._profile.reserve.keeps_for_gangs:
            self._keep(attempt.want, line)
        return left.verdict.code in _ROOM_IS_MISSING

    def _keep(self, want: Want, line: Line) -> None:
        own = want.task_class.id
        self._scratch.most_kept = most = line.most_kept(want)
        if most == 0:
            return
        for hold in self._profile.reserve.keep(want, self._scratch):
            if hold.node is not None:
                node = self._scratch.view.layout.index[hold.node]
                owner = self._scratch.kept.get(node)
                if owner not in (None, own):
                    continue  # first come, first kept
                if owner is None:
                    self._scratch.keep(node, own)
                line.kept(want)
            self._decisions.append(hold)
            self._leave(want, hold.verdict)

    def _leave(self, want: Want, verdict: model.Verdict) -> None:
        count = want.left
        if count:
            self._left[want.task_class.id] = Left(want, verdict, count)


def _no_queue(job: model.Job, queues: Mapping[model.QueueName, model.Queue]) -> model.Verdict:
    """Why a job may not use the queue that it names. The message leaves out the queue's lists, which name others."""
    if job.queue not in queues:
        names = ", ".join(sorted(queues)) or "none"
        message = f"queue {job.queue!r} is not defined (defined: {names})"
        return model.Verdict(code=model.Code.UNKNOWN_QUEUE, message=message)
    who = f"priority class {job.priority_class!r}" if queues[job.queue].accepts(job.namespace) else "this namespace"
    message = f"queue {job.queue!r} does not accept {who}"
    return model.Verdict(code=model.Code.QUEUE_NOT_ALLOWED, message=message)


def _kept(spot: Spot, node: model.NodeName) -> model.Hold:
    message = f"room on {node} is kept until the pod comes"
    return model.Hold(
        task_class=spot.want.task_class,
        job=spot.want.job,
        verdict=model.Verdict(code=model.Code.GANG, message=message),
        node=node,
        task=spot.pick.task,
        resources=spot.resources,
    )


_ROOM_IS_MISSING = {model.Code.UNSCHEDULABLE, model.Code.JOB_ORDER, model.Code.NOT_OFFERED, model.Code.SIZING}
_NOT_OFFERED = model.Verdict(
    code=model.Code.NOT_OFFERED, message="the nodes that fit take no more in this cycle, or are kept for jobs ahead"
)
