"""Suspend one running task: order it to pause, record what it had, and shrink its pod once it has paused.

The task continues by itself if it does not see its CPU shrink within `keeper.LAPSES_S`. So a crash between any two
steps needs no repair, and the pod is shrunk only within `SHRUNK_WITHIN_S` of the acknowledgement.
"""

import asyncio
import dataclasses

from boathouse import failpoints
from boathouse.scheduling import outcomes, writer
from boathouse.scheduling.adjusting import places
from boathouse.scheduling.jobs import TaskControl
from boathouse.scheduling.pods import facts, requests, rows, stages, suspension
from boathouse.scheduling.pods.stages import Stage
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.state import ClusterState, Part
from boathouse_policies import model
from boathouse_task import contract

SHRUNK_WITHIN_S = 6.0
LEAST_MILLI = suspension.SUSPENDED_LIMIT_MILLI
"""A task that requests no more CPU than this has none to lend."""
_MOST_CONFLICTS = 5


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class Suspension:
    """A suspension in flight.

    Attributes:
        row: The task.
        control: Controls it.
        until_s: When it is resumed at the latest.
        reason: Why it is suspended, in CamelCase.
        by: Who decided it.
        decision: The decision of a policy; None for a user's.
        cancelled: Why it is not wanted any more; empty while it is.
    """

    row: rows.PodRow
    control: TaskControl
    until_s: float
    reason: str
    by: str
    decision: model.Suspend | None = None
    cancelled: str = ""


def problem(pod: facts.PodFacts | None, state: PodState | None) -> str:
    """Return why a task cannot be suspended as it is; empty if it can be."""
    if pod is None or state is not PodState.CONFIRMED:
        return "NotRunning"
    if pod.stage is not Stage.NONE:
        return "Resuming"
    return "" if pod.cpu_request_milli > LEAST_MILLI and pod.cpu_limit_milli else "NothingToLend"


class Suspending(Part):
    """Carries suspensions out.

    Args:
        state: The state of the scheduler.
        pod_writer: Writes pods.
        shared: Places of the API writes.
    """

    def __init__(self, state: ClusterState, pod_writer: writer.Writer, shared: places.Places) -> None:
        super().__init__(state)
        self._writer = pod_writer
        self._places = shared
        self._orders = 0

    async def run(self, one: Suspension) -> outcomes.Outcome:
        """Suspend a task; return the outcome of the last write."""
        self._orders += 1
        order_id, now_s = f"{self._writer.epoch}-{self._orders}", self._clock()
        for_s = min(one.until_s - now_s, contract.MOST_SUSPENDED_S)
        if for_s <= 0:
            return outcomes.Skipped()
        failpoints.hit("before-scheduler.order")
        with self._counters.suspension_time("order"):
            refusal = await one.control.suspend(one.row.id, contract.SuspendOrder(id=order_id, for_s=for_s))
        if refusal:
            return outcomes.NotDone(reason=refusal, message="the task did not pause")
        failpoints.hit("after-scheduler.order")
        pod, since_s = one.row.facts, self._clock()
        if pod is None:
            return outcomes.Vanished()
        if what := problem(pod, one.row.state):
            return outcomes.NotDone(reason=what, message="the pod was changed while the task paused")
        record = suspension.SuspensionRecord(
            cpu_request_milli=pod.cpu_request_milli,
            cpu_limit_milli=pod.cpu_limit_milli,
            since_s=round(since_s, 3),
            until_s=round(max(since_s, one.until_s), 3),
            reason=one.reason,
            by=one.by,
            order=order_id,
        )
        try:
            async with asyncio.timeout(SHRUNK_WITHIN_S), self._places.take(one.row.namespace):
                return await self._shrink(one, pod.metadata.resource_version, record)
        except TimeoutError:  # if the pod shrinks all the same, the keeper resumes it
            return outcomes.NotDone(reason="TooSlow", message="the pod was not shrunk in time")

    async def _shrink(self, one: Suspension, revision: str, record: suspension.SuspensionRecord) -> outcomes.Outcome:
        with self._counters.suspension_time("record"):
            outcome = await self._writer.record(one.row, revision, record)
            for _ in range(_MOST_CONFLICTS):
                if not isinstance(outcome, outcomes.Elsewhere) or not _has_size(outcome, record):
                    break
                outcome = await self._writer.record(one.row, outcome.pod.metadata.resource_version, record)
        if not isinstance(outcome, outcomes.Done):
            return outcome
        if self._is_void(one):
            return outcomes.Skipped()
        with self._counters.suspension_time("shrink"):
            return await self._writer.resize_cpu(one.row, stages.SUSPENDED_SIZE, "scheduler.shrink")

    @staticmethod
    def _is_void(one: Suspension) -> bool:
        pod = one.row.facts
        return bool(one.cancelled) or pod is None or pod.metadata.deletion_timestamp is not None


def _has_size(outcome: outcomes.Elsewhere, record: suspension.SuspensionRecord) -> bool:
    """Return whether the actual pod still has the CPU of the record."""
    found = requests.cpu_size(requests.task_container(outcome.pod))
    return found == stages.CpuSize(record.cpu_request_milli, record.cpu_limit_milli)
