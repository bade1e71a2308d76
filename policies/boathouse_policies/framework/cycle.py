"""The scheduling cycle: one pure function from what waits and what is free to what is decided, and what stays pending.

What a gang that has begun is short of goes first where an earlier leader had reserved room for it. The node may have
only just as much room left, for that room was reserved. So all gangs get their former places before any of them gets
another node.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from boathouse_policies import model
from boathouse_policies.framework import diagnosis, gathering
from boathouse_policies.framework.attempt import Attempt
from boathouse_policies.framework.cycle_state import Assignment, CycleState, PendingClass
from boathouse_policies.framework.queue import KeptPart, SchedulingQueue
from boathouse_policies.framework.scheduling_profile import Profile
from boathouse_policies.framework.turn_order import TurnOrder
from boathouse_policies.framework.view import ClusterView


class Plan:
    """The decisions of a cycle, in the order in which they were made, and what it leaves pending."""

    kept: Sequence[KeptPart] = ()

    def __init__(self, decisions: list[model.Decision], turns: TurnOrder, profile: Profile, state: CycleState) -> None:
        self.decisions, self._turns, self._profile, self._state = decisions, turns, profile, state
        self._left: dict[model.ClassId, PendingClass] = {}
        self._undiagnosed: list[PendingClass] = []

    # For the cycle

    def leave_orphans(self, queues: Mapping[model.QueueName, model.Queue]) -> None:
        """Drop the jobs that name a queue that does not exist, or that does not accept them."""
        for pending in self._turns.orphans:
            self._leave(pending, _no_queue(pending.job, queues))

    def decide(self, assignments: Iterable[Assignment]) -> None:
        """Turn placed tasks into decisions."""
        state, names, explaining = self._state, self._state.view.layout.names, self._profile.figures
        for assignment in assignments:
            pending, pick, place, resources, _ = assignment
            if state.reserved and state.reserved.get(place) == pending.task_class.id:
                state.release(place)
                if pick.task.expected:
                    state.released.discard(place)  # its pod is still to come
            if pick.task.expected:
                self.decisions.append(
                    model.Reservation(
                        task_class=pending.task_class,
                        job=pending.job,
                        verdict=gathering.verdict(f"room on {names[place]} is kept until the pod comes"),
                        node=names[place],
                        task=pick.task,
                        resources=resources,
                    )
                )
            else:
                figures = tuple([figure for source in explaining for figure in source.of_placed(assignment, state)])
                self.decisions.append(pending.queued.placement(pick, names[place], resources, figures))

    def diagnose(self, attempt: Attempt) -> None:
        """Close what failed, reserve a node for it if the profile says so, and close what cannot fare better."""
        for pending in attempt.classes:
            self._watch_pods(pending)
        if attempt.lacks_room:
            self._turns.close(attempt.pending.place)
            self._undiagnosed.append(attempt.pending)
        elif not self._left_for_want_of_room(attempt):
            return
        self._reserve(attempt.pending)
        for pending, verdict, wait in self._profile.reserve.refused(self._turns.rest(), self._state):
            self._turns.close(pending.place)
            if wait is not None:
                self._wait(wait)
            self._leave(pending, verdict)

    def _watch_pods(self, pending: PendingClass) -> None:
        """Wake a class when pods come or go that it depends on: at once, for this cycle may place some of them.

        A class without a node for other reasons is woken by a change of nodes or of their room, as any other.
        """
        state = self._state
        if state.pod_counts is not None and (state.room(pending) & pending.eligibility.mask).any():
            state.pod_counts.wait(pending.queued)

    def _left_for_want_of_room(self, attempt: Attempt) -> bool:
        """Close a gang, or a class that knows why it failed, and note the reasons; return whether room would help."""
        if attempt.kept:
            self._profile.draining.kept = self.kept = attempt.kept
        for pending in attempt.classes:
            self._turns.close(pending.place)
            self._leave(pending, attempt.verdict(pending))
        if attempt.wait is not None:
            self._wait(attempt.wait)
        if attempt.wait is not None or attempt.pending.task_class.id not in self._left:
            return False
        why = attempt.pending.verdict
        if why.code is model.Code.GANG and self._profile.reserve.reserves_for_gangs:
            self._reserve(attempt.pending)
        elif why.code is model.Code.GANG:
            self._wait_for_room(attempt, why)
        return why.code in _ROOM_IS_MISSING

    def _wait_for_room(self, attempt: Attempt, why: model.Verdict) -> None:
        job, own = attempt.pending.job, attempt.pending.task_class
        verdict, until_s = self._profile.draining.explain(job.id, why, self._state.view.now_s)
        self.decisions.append(model.Wait(task_class=own, job=job, verdict=verdict, until_s=until_s))
        for pending in attempt.classes:
            self._leave(pending, verdict)

    def _reserve(self, pending: PendingClass) -> None:
        own, state = pending.task_class.id, self._state
        if (judge := state.judge(pending)) is not None and judge.rules.has_own:
            return  # pods that are placed later, its own too, may keep it from a reserved node
        state.most_reserved = self._turns.most_reserved(pending)
        if state.most_reserved == 0:
            return
        for answer in self._profile.reserve.reserve(pending, state):
            if isinstance(answer, model.Reservation):
                node = state.view.layout.index[answer.node]
                if state.reserved.get(node, own) != own:
                    continue  # reserved for another class before
                if node not in state.reserved:
                    state.reserve(node, own)
                self._turns.reserved(pending)
                self.decisions.append(answer)
            else:
                self._wait(answer)
            self._leave(pending, answer.verdict)
        self._turns.confine()

    def _wait(self, wait: model.Wait) -> None:
        self.decisions.append(wait)
        for hooks in self._profile.hooks:
            hooks.waits(wait, self._state)

    def _leave(self, pending: PendingClass, verdict: model.Verdict) -> None:
        if pending.left:
            pending.verdict = verdict
            self._left[pending.task_class.id] = pending

    # For the shell

    @property
    def released(self) -> Sequence[model.NodeName]:
        """Nodes that were reserved before and are not any more, sorted."""
        return [self._state.view.layout.names[node] for node in sorted(self._state.released)]

    @functools.cached_property
    def newly_left(self) -> Mapping[model.ClassId, PendingClass]:
        """Who had a turn, or is newly unschedulable. To be asked before the queue takes placed tasks out."""
        turns, profile, state = self._turns, self._profile, self._state
        for pending in self._undiagnosed:
            if pending.task_class.id not in self._left:
                self._leave(pending, diagnosis.refusal(pending, profile, state))
        for pending in turns.rest():
            self._leave(pending, _NOT_OFFERED)
        for pending in turns.passed_over():
            self._leave(pending, diagnosis.refusal(pending, profile, state, is_passed_over=True))
        for pending in turns.without_room(as_before=False):
            self._leave(pending, diagnosis.refusal(pending, profile, state))
        for pending in self._left.values():
            self._watch_pods(pending)
        return self._left

    @functools.cached_property
    def left(self) -> Mapping[model.ClassId, PendingClass]:
        """All that is pending of what the cycle considered, by class: the news, and who is pending as before."""
        found = dict(self.newly_left)
        for pending in self._turns.without_room(as_before=True):
            if pending.left:
                pending.verdict = diagnosis.UNSCHEDULABLE
                found[pending.task_class.id] = pending
        return found

    def diagnosis(self, task_class: model.ClassId) -> model.Diagnosis | None:
        """Return why a class is pending; None if it is not. Computed on request, from the cycle's last state."""
        pending = self.left.get(task_class)
        return None if pending is None else diagnosis.explain(pending, self._profile, self._state)

    def diagnoses(self) -> Sequence[model.Diagnosis]:
        """Return a diagnosis for each pending class."""
        return [diagnosis.explain(pending, self._profile, self._state) for pending in self.left.values()]


def advised(queue: SchedulingQueue, profile: Profile, state: CycleState) -> list[model.Decision]:
    """Ask the controllers. A second attempt has its room; where that is kept for a gang, the shell refuses it."""
    decisions: list[model.Decision] = []
    for controller in profile.controllers:
        for decision in controller.advise(queue, state.view):
            decisions.append(decision)
            if isinstance(decision, model.Speculate):
                node, amounts = state.view.layout.index[decision.node], state.view.axis.amounts(decision.resources)
                if not queue.kept_room.refusal(decision.node, state.free_on(node), amounts):
                    state.keep(node, amounts)
    return decisions


def _no_queue(job: model.Job, queues: Mapping[model.QueueName, model.Queue]) -> model.Verdict:
    """Return why a job may not use the queue that it names. The message omits the queue's lists, which name others."""
    if job.queue not in queues:
        names = ", ".join(sorted(queues)) or "none"
        return model.Verdict(
            code=model.Code.UNKNOWN_QUEUE, message=f"queue {job.queue!r} is not defined (defined: {names})"
        )
    who = f"priority class {job.priority_class!r}" if queues[job.queue].accepts(job.namespace) else "this namespace"
    return model.Verdict(code=model.Code.QUEUE_NOT_ALLOWED, message=f"queue {job.queue!r} does not accept {who}")


_ROOM_IS_MISSING = {model.Code.UNSCHEDULABLE, model.Code.JOB_ORDER, model.Code.NOT_OFFERED, model.Code.SIZING}
_NOT_OFFERED = model.Verdict(
    code=model.Code.NOT_OFFERED, message="the nodes that fit take no more in this cycle, or are kept for jobs ahead"
)


def restored(turns: TurnOrder, profile: Profile, state: CycleState) -> Iterator[Assignment]:
    """Place tasks on the former places of their classes (`TaskClass.former_places`), one for each that has room."""
    index = state.view.layout.index
    for pending in turns.short():
        allowed = pending.eligibility.mask
        for node in [index[name] for name in pending.task_class.former_places if name in index]:
            attempt = Attempt(pending, turns, profile, state)
            for member in attempt.members() if allowed[node] and state.is_offered(node) else ():
                if attempt.has_room(member.shape.sizes, node):
                    attempt.take(member, node, member.ideal)
            yield from attempt.assignments


def run_cycle(queue: SchedulingQueue, profile: Profile, view: ClusterView) -> Plan:
    """Place what can be placed, and say why the rest waits.

    Deterministic; changes neither queue nor view. Work-conserving: a class that does not fit is passed over, unless the
    profile's Reserve reserves a node for it. The view's columns have every resource that a pending class names. The
    plan is for the shell to assume and carry out, and to settle in the scheduling queue.
    """
    state = CycleState(view, queue.reserved)
    advice = advised(queue, profile, state)
    for hooks in profile.hooks:
        hooks.begins(queue, state)
    if not profile.reserve.reserves_for_gangs:
        profile.draining.begins(queue, state)
    # 1. Order jobs: queues and namespaces by share, then priority, then the profile's keys.
    turns = TurnOrder(queue, profile, state)
    plan = Plan(advice, turns, profile, state)
    plan.leave_orphans(queue.queues)
    # Gangs that have begun take the places of before (`TaskClass.former_places`), ahead of all turns.
    plan.decide(list(restored(turns, profile, state)))
    if profile.depends_on_shape_only:
        plan.decide(turns.quick_turns())
    # 2. Take the next class: one task of it, or the minimum of its gang, all or nothing.
    rankings = turns.rankings
    while not state.exhausted and (pending := turns.next_class()) is not None:
        attempt = Attempt(pending, turns, profile, state)
        for member in attempt.members():
            # 3. Feasible nodes. 4. Rank: the best first.
            while (node := rankings.best(member)) is not None:
                # 5. Size: how much of this node, and how many tasks on it together.
                sized = attempt.size(member, node) if profile.decides_sizes else member.ideal
                if sized is None:
                    rankings.refuse(member, node)
                    continue
                # 6. Patience: wait for a better node?
                if profile.is_patient and attempt.waits(member, node):
                    break
                # 7. Pick the closest tasks and take their room on the cycle state.
                attempt.take(member, node, sized)
                break
        # 8. Decide.
        if attempt.succeeded():
            plan.decide(attempt.assignments)
        # 9. Diagnose: remember why; the words are worked out when somebody asks.
        else:
            plan.diagnose(attempt)
    return plan
