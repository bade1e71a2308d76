"""Suspend one running task, by a policy's decision or because the author of its job asks for it.

A task is ordered to pause; then what it had is recorded, and its pod shrinks once it has paused. The task continues by
itself if it does not see its CPU shrink within `LAPSES_S`. So a crash between any two steps needs no repair, and the
pod is shrunk only within `SHRUNK_WITHIN_S` of the acknowledgement.
"""

import asyncio
import math
from collections.abc import Iterator

from boathouse import failpoints, fair
from boathouse.resources import names
from boathouse.scheduling import outcomes
from boathouse.scheduling.jobs import TaskControl
from boathouse.scheduling.pods import facts, requests, rows
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.state import ClusterState, Part
from boathouse.suspension import stages
from boathouse.suspension.stages import LONGEST_WHY, Reason, Stage, Suspension, SuspensionRecord
from boathouse_policies import model
from boathouse_task import contract

_LASTING = {Reason.PHASE_PASSED, Reason.NOTHING_TO_LEND, Reason.NOT_SUPPORTED, Reason.SWITCHED_OFF}


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
            if pod is None or until_s is None or until_s <= now_s or pod.stage is not Stage.NONE:
                continue
            if self._not_before_s.get((row.id, until_s), 0.0) <= now_s:
                yield row, until_s

    def _until_s(self, row: rows.PodRow) -> float | None:
        pod, entry = row.facts, self._jobs.owner_of(row)
        if pod is None or entry is None or pod.task_of not in self._jobs.by_hand:
            return None
        is_reducer = pod.metadata.labels.get(names.LABEL_TASK_TYPE) == model.Stage.REDUCE
        return entry.suspend_until_s if is_reducer else None

    def refused(self, row: rows.PodRow, until_s: float, reason: Reason) -> None:
        """Note that a task was not suspended: it is asked again later, or never for this time."""
        self._not_before_s[row.id, until_s] = math.inf if reason in _LASTING else self._clock() + stages.BY_HAND_RETRY_S


LEAST_MILLI = contract.SUSPENDED_LIMIT_MILLI  # a task that requests no more CPU than this has none to lend
_MOST_CONFLICTS = 5


def problem(pod: facts.PodFacts | None, state: PodState | None) -> Reason | None:
    """Return why a task cannot be suspended as it is; None if it can be."""
    if pod is None or state is not PodState.CONFIRMED:
        return Reason.NOT_RUNNING
    if pod.stage is not Stage.NONE:
        return Reason.RESUMING
    return None if pod.cpu_request_milli > LEAST_MILLI and pod.cpu_limit_milli else Reason.NOTHING_TO_LEND


class Suspending(Part):
    """Carries suspensions out."""

    def __init__(self, state: ClusterState, places: fair.Places) -> None:
        super().__init__(state)
        self._places, self._orders = places, 0

    async def run(self, row: rows.PodRow, suspension: Suspension, control: TaskControl) -> outcomes.Outcome:
        """Carry the order of a suspension out; return the outcome of the last write."""
        order = suspension.order
        assert order is not None
        self._orders += 1
        order_id = f"{self._leader.epoch}-{self._orders}"
        for_s = min(order.until_s - self._clock(), contract.MOST_SUSPENDED_S)
        if for_s <= 0:
            return outcomes.Skipped()
        failpoints.hit("before-scheduler.order")
        with self._counters.suspension_s["order",].time():
            refusal = await control.suspend(row.id, contract.SuspendOrder(id=order_id, for_s=for_s))
        if refusal:
            return outcomes.NotDone(refusal, "the task did not pause")
        failpoints.hit("after-scheduler.order")
        pod, since_s = row.facts, self._clock()
        if pod is None:
            return outcomes.Vanished()
        if what := problem(pod, row.state):
            return outcomes.NotDone(what, "the pod was changed while the task paused")
        record = SuspensionRecord(
            cpu_request_milli=pod.cpu_request_milli,
            cpu_limit_milli=pod.cpu_limit_milli,
            since_s=round(since_s, 3),
            until_s=round(max(since_s, order.until_s), 3),
            reason=order.reason,
            by=order.by,
            order=order_id,
            why="" if order.decision is None else order.decision.reason[:LONGEST_WHY],
        )
        try:
            async with asyncio.timeout(stages.SHRUNK_WITHIN_S), self._places.take(row.namespace):
                return await self._shrink(row, suspension, record)
        except TimeoutError:  # if the pod shrinks all the same, the reconciler resumes it
            return outcomes.NotDone(Reason.TOO_SLOW, "the pod was not shrunk in time")

    async def _shrink(self, row: rows.PodRow, suspension: Suspension, record: SuspensionRecord) -> outcomes.Outcome:
        if (pod := row.facts) is None:
            return outcomes.Vanished()
        with self._counters.suspension_s["record",].time():
            outcome = await self._writer.record(row, pod.metadata.resource_version, record)
            for _ in range(_MOST_CONFLICTS):
                if not isinstance(outcome, outcomes.Elsewhere) or not _has_size(outcome, record):
                    break
                outcome = await self._writer.record(row, outcome.pod.metadata.resource_version, record)
        if not isinstance(outcome, outcomes.Done):
            return outcome
        if suspension.ends is not None or row.facts is None or row.facts.metadata.deletion_timestamp is not None:
            return outcomes.Skipped()
        with self._counters.suspension_s["shrink",].time():
            return await self._writer.resize_cpu(row, stages.SUSPENDED_SIZE, "scheduler.shrink")


def _has_size(outcome: outcomes.Elsewhere, record: SuspensionRecord) -> bool:
    return requests.cpu_size(requests.task_container(outcome.pod)) == record.size
