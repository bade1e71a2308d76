"""Suspend running tasks, by a policy's decision or because the author of their job asks for it, and resume them.

A task is ordered to pause; then what it had is recorded, and its pod shrinks once it has paused. The task continues by
itself if it does not see its CPU shrink within `LAPSES_S`. So a crash between any two steps needs no repair, and the
pod is shrunk only within `SHRUNK_WITHIN_S` of the acknowledgement.

What is to be done then follows from the stage of a pod, so a new leader continues where the former one ended. A task
is resumed when its time is over. It continues first, by its CPU limit, which needs no room. Its request grows after
that, once its node has room.
"""

import asyncio
import collections
import enum
import math
from collections.abc import Container, Iterator, Mapping

import msgspec

from boathouse import failpoints, fair
from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.scheduling import jobs, outcomes
from boathouse.scheduling.pods import facts, requests, rows
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.state import ClusterState, Part
from boathouse.suspension import stages
from boathouse_policies import model
from boathouse_task import contract

_LASTING = {
    stages.Reason.PHASE_PASSED,
    stages.Reason.NOTHING_TO_LEND,
    stages.Reason.NOT_SUPPORTED,
    stages.Reason.SWITCHED_OFF,
}


class ByHand(Part):
    """Names the tasks that their authors suspend."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._checked_s = -math.inf
        self._not_before_s: dict[tuple[model.TaskId, float], float] = {}

    def next_s(self) -> float:
        """Return when `wanted` may name a task though nothing happened; infinity for never."""
        return self._checked_s + stages.BY_HAND_EVERY_S if self._jobs.by_hand else math.inf

    def wanted(self) -> Iterator[tuple[rows.PodRow, float]]:
        """Yield running reducers to suspend, and until when."""
        now_s = self._clock()
        if not self._jobs.by_hand or now_s < self._checked_s + stages.BY_HAND_EVERY_S:
            return
        self._checked_s = now_s
        self._not_before_s = {key: due_s for key, due_s in self._not_before_s.items() if key[1] > now_s}
        for row in self._pods.running(PodState.CONFIRMED):
            pod, until_s = row.facts, self._until_s(row)
            if pod is None or until_s is None or until_s <= now_s or pod.stage is not stages.Stage.NONE:
                continue
            if self._not_before_s.get((row.id, until_s), 0.0) <= now_s:
                yield row, until_s

    def _until_s(self, row: rows.PodRow) -> float | None:
        pod, entry = row.facts, self._jobs.owner_of(row)
        if pod is None or entry is None or pod.task_of not in self._jobs.by_hand:
            return None
        is_reducer = pod.metadata.labels.get(names.LABEL_TASK_TYPE) == model.Stage.REDUCE
        return entry.suspend_until_s if is_reducer else None

    def refused(self, row: rows.PodRow, until_s: float, reason: stages.Reason) -> None:
        """Note that a task was not suspended: it is asked again later, or never for this time."""
        self._not_before_s[row.id, until_s] = math.inf if reason in _LASTING else self._clock() + stages.BY_HAND_RETRY_S


LEAST_MILLI = contract.SUSPENDED_LIMIT_MILLI  # a task that requests no more CPU than this has none to lend
_MOST_CONFLICTS = 5


def problem(pod: facts.PodFacts | None, state: PodState | None) -> stages.Reason | None:
    """Return why a task cannot be suspended as it is; None if it can be."""
    if pod is None or state is not PodState.CONFIRMED:
        return stages.Reason.NOT_RUNNING
    if pod.stage is not stages.Stage.NONE:
        return stages.Reason.RESUMING
    return None if pod.cpu_request_milli > LEAST_MILLI and pod.cpu_limit_milli else stages.Reason.NOTHING_TO_LEND


class Suspending(Part):
    """Carries suspensions out."""

    def __init__(self, state: ClusterState, places: fair.Places) -> None:
        super().__init__(state)
        self._places, self._orders = places, 0

    async def run(self, row: rows.PodRow, suspension: stages.Suspension, control: jobs.TaskControl) -> outcomes.Outcome:
        """Carry the order of a suspension out; return the outcome of the last write."""
        order = suspension.order
        assert order is not None
        self._orders += 1
        order_id = f"{self._leader.epoch}-{self._orders}"
        for_s = min(order.until_s - self._clock(), contract.MOST_SUSPENDED_S)
        if for_s <= 0:
            return outcomes.Skipped()
        with failpoints.around("scheduler.order"), self._counters.suspension_s["order",].time():
            refusal = await control.suspend(row.id, contract.SuspendOrder(id=order_id, for_s=for_s))
        if refusal:
            return outcomes.NotDone(refusal, "the task did not pause")
        pod, since_s = row.facts, self._clock()
        if pod is None:
            return outcomes.Vanished()
        if what := problem(pod, row.state):
            return outcomes.NotDone(what, "the pod was changed while the task paused")
        record = stages.SuspensionRecord(
            cpu_request_milli=pod.cpu_request_milli,
            cpu_limit_milli=pod.cpu_limit_milli,
            since_s=round(since_s, 3),
            until_s=round(max(since_s, order.until_s), 3),
            reason=order.reason,
            by=order.by,
            order=order_id,
            why="" if order.decision is None else order.decision.reason[: stages.LONGEST_WHY],
        )
        try:
            async with asyncio.timeout(stages.SHRUNK_WITHIN_S), self._places.take(row.namespace):
                return await self._shrink(row, suspension, record)
        except TimeoutError:  # if the pod shrinks all the same, the reconciler resumes it
            return outcomes.NotDone(stages.Reason.TOO_SLOW, "the pod was not shrunk in time")

    async def _shrink(
        self, row: rows.PodRow, suspension: stages.Suspension, record: stages.SuspensionRecord
    ) -> outcomes.Outcome:
        if (pod := row.facts) is None:
            return outcomes.Vanished()
        with self._counters.suspension_s["record",].time():
            outcome = await self._writer.record(row, pod.metadata.resource_version, record)
            for _ in range(_MOST_CONFLICTS):
                if (
                    not isinstance(outcome, outcomes.Elsewhere)
                    or requests.cpu_size(requests.task_container(outcome.pod)) != record.size
                ):
                    break
                outcome = await self._writer.record(row, outcome.pod.metadata.resource_version, record)
        if not isinstance(outcome, outcomes.Done):
            return outcome
        if suspension.ends is not None or row.facts is None or row.facts.metadata.deletion_timestamp is not None:
            return outcomes.Skipped()
        with self._counters.suspension_s["shrink",].time():
            return await self._writer.resize_cpu(row, stages.SUSPENDED_SIZE, "scheduler.shrink")


LEAST_LIMIT_MILLI = 1000
"""CPU limit of a task whose owner does not submit it any more, so that only its class is known, if it requests less."""


def size_of(row: rows.PodRow, entry: jobs.Entry) -> stages.CpuSize | None:
    """Return the CPU of a task's container by its class; None if its job does not list that any more."""
    if row.task is not None and row.is_submitted:
        task_class = entry.class_of(row.task.task_class)
    else:  # its owner does not submit it any more
        stage = None if row.facts is None else row.facts.metadata.labels.get(names.LABEL_TASK_TYPE)
        task_class = next((candidate for candidate in entry.classes if candidate.stage == stage), None)
    if entry.factory is None or task_class is None:
        return None
    if not row.is_submitted:
        request_milli = task_class.resources.cpu_milli
        return stages.CpuSize(request_milli, max(request_milli + 1, LEAST_LIMIT_MILLI))  # it stays Burstable
    manifest = entry.factory.build(row.id, entry.of_manifest(task_class.id, task_class.resources), None)
    return requests.cpu_size(requests.task_container(msgspec.convert(manifest, wire.PodView)))


UNKNOWN_SIZE = stages.CpuSize(100, 1000)
"""CPU of a task that is resumed although nothing is known of what it had: its record is gone, and so is its class."""
_MIN_SLEEP_S = 0.05


class Action(enum.Enum):
    """A write that a suspension needs."""

    CONTINUE = "continue"  # raise the limit: the task continues
    GROW = "grow"  # request the original CPU again
    SHRINK_BACK = "shrink back"  # take a request back that the node has deferred
    RECORD = "record"  # write a record where another writer removed it


class SuspensionReconciler(Part):
    """Determines which writes the suspensions need now."""

    def original(self, row: rows.PodRow) -> stages.CpuSize | None:
        """Return the CPU that a task had whose record was removed; None while its job may still be submitted."""
        suspension, entry = row.suspension, self._jobs.owner_of(row)
        if suspension is None:
            return None
        if suspension.record is not None:
            return suspension.record.size
        of_class = None if entry is None else size_of(row, entry)
        is_known = self._clock() >= suspension.since_s + stages.SUBMITTED_S
        return UNKNOWN_SIZE if of_class is None and is_known else of_class

    def refused(self, row: rows.PodRow) -> int:
        """Note that the API server refused a write of a suspension. Return how often in a row."""
        return 0 if row.suspension is None else row.suspension.refused(self._clock())

    def due(self, busy: Container[model.TaskId]) -> Iterator[tuple[rows.PodRow, Action]]:
        """Yield the writes that are due, of tasks of which none is in flight."""
        open_ones = [row for row in self._pods.suspensions() if row.id not in busy]
        ungrown = collections.Counter[model.NodeName]()  # CPU that is charged for tasks whose request does not grow yet
        for row in open_ones:
            ungrown[_node(row)] += ungrown_milli(row)
        for row in open_ones:
            self._observe_actuation(row)
            action = self._action(row, ungrown)
            if action is Action.GROW:
                ungrown[_node(row)] -= ungrown_milli(row)  # from now on it counts
            if action is not None:
                yield row, action

    def next_s(self) -> float:
        """Return when a write may be due though nothing happened; infinity for never."""
        least_s = self._clock() + _MIN_SLEEP_S  # what is due already is in flight
        return max(least_s, min(map(self._due_s, self._pods.suspensions()), default=math.inf))

    def reason(self, row: rows.PodRow) -> stages.Reason | None:
        """Return why a suspended task is resumed now; None if it is not."""
        pod, suspension = row.facts, row.suspension
        if pod is None or pod.suspension is None or suspension is None or not suspension.stage.is_shrunk:
            return None
        record, now_s, owner = pod.suspension, self._clock(), self._jobs.owner_of(row)
        reasons = (
            (stages.Reason.INFEASIBLE, pod.resize_problem == requests.INFEASIBLE),
            (stages.Reason.SWITCHED_OFF, not self._options.switches.suspend),
            (suspension.ends, suspension.ends is not None),
            (stages.Reason.WITHDRAWN, record.by == stages.USER and owner is not None and owner.suspend_until_s is None),
            (stages.Reason.LAPSED, now_s >= _lapses_s(suspension.stage, record)),
            (stages.Reason.TIME_OVER, now_s >= record.until_s),
            (
                stages.Reason.PROFILE_CHANGED,
                record.by not in {stages.USER, self._state.profile.name},
            ),  # nobody advises it
        )
        return next((reason for reason, holds in reasons if holds), None)

    def _observe_actuation(self, row: rows.PodRow) -> None:
        """Observe once how long the CPU of a suspension took to be free."""
        pod, suspension = row.facts, row.suspension
        if pod is None or pod.suspension is None or suspension is None or suspension.is_actuated:
            return
        if suspension.stage is stages.Stage.SUSPENDED:
            suspension.is_actuated = True
            self._counters.suspension_s["actuated",].observe(self._clock() - pod.suspension.since_s)

    def _action(self, row: rows.PodRow, ungrown: Mapping[model.NodeName, int]) -> Action | None:
        pod, suspension, now_s = row.facts, row.suspension, self._clock()
        if pod is None or suspension is None or now_s < suspension.retry_s:
            return None
        stage = suspension.stage
        if stage is stages.Stage.ORPHAN:
            return None if self.original(row) is None else Action.RECORD
        if self.reason(row) is not None:
            # where a LimitRange rejects the limit alone
            is_whole = suspension.failures % 2 and self._has_room(row, ungrown)
            return Action.GROW if is_whole else Action.CONTINUE
        if stage is stages.Stage.CONTINUING and self._has_room(row, ungrown):
            return Action.GROW
        is_deferred = stage is stages.Stage.GROWING and pod.resize_problem == "Deferred"
        if is_deferred and now_s >= suspension.since_s + stages.DEFERRED_S:
            suspension.retry_s = now_s + stages.DEFERRED_RETRY_S
            return Action.SHRINK_BACK
        return None

    def _due_s(self, row: rows.PodRow) -> float:
        pod, suspension, now_s = row.facts, row.suspension, self._clock()
        if pod is None or suspension is None:
            return math.inf
        stage, since_s, retry_s = suspension.stage, suspension.since_s, suspension.retry_s
        if stage is stages.Stage.ORPHAN:
            return max(retry_s, since_s + stages.SUBMITTED_S)
        if pod.suspension is None or not stage.is_open:
            return math.inf
        if stage is stages.Stage.GROWING:  # the condition may come late
            return max(now_s + stages.DEFERRED_S / 4, since_s + stages.DEFERRED_S)
        if stage is stages.Stage.CONTINUING:
            return retry_s if retry_s > now_s else math.inf  # when room comes free
        return retry_s if self.reason(row) else min(pod.suspension.until_s, _lapses_s(stage, pod.suspension))

    def _has_room(self, row: rows.PodRow, ungrown: Mapping[model.NodeName, int]) -> bool:
        """Return whether a node has the request of a task, while the requests of others do not grow."""
        free = self._ledger.free(_node(row))
        return free is not None and free[model.CPU] + ungrown[_node(row)] - ungrown_milli(row) >= 0


def _lapses_s(stage: stages.Stage, record: stages.SuspensionRecord) -> float:
    """Return when a task continues by itself because its CPU has not shrunk; infinity once it has."""
    return record.since_s + stages.LAPSES_S if stage is stages.Stage.SHRINKING else math.inf


def _node(row: rows.PodRow) -> model.NodeName:
    return model.NodeName("" if row.facts is None else row.facts.node_name)


def ungrown_milli(row: rows.PodRow) -> int:
    """Return the CPU that the ledger charges for a task beyond what its pod holds."""
    charged = None if row.suspension is None else row.suspension.charged
    return 0 if charged is None or row.facts is None else max(0, charged.cpu_milli - row.facts.resources.cpu_milli)
