"""Write the PodScheduled conditions and the events FailedScheduling and Scheduled of pods.

Cluster autoscalers add nodes for pods with the reason Unschedulable, so this reason is used only for what a new node
could cure.
"""

import asyncio
import collections
import math
from collections.abc import Callable

from boathouse import fair
from boathouse.cluster import boundary, catalogue, client, election, errors, events, retries, server_time, wire
from boathouse.scheduling import outcomes
from boathouse.scheduling.pods import rows
from boathouse.scheduling.pods.states import PendingReason, PendingReport
from boathouse.telemetry import logs, metrics
from boathouse_policies import model

log = logs.get(__name__)

POD_SCHEDULED = "PodScheduled"
UNSUPPORTED = "UnsupportedConstraint"
SET_ASIDE = "SetAside"
EVENT_WINDOW_S = 60.0
MESSAGE_WINDOW_S = 10.0
REPEAT_EVERY_S = 1.0  # interval of checks of all delayed writes, of which there may be thousands with different times
WRITERS = 2


class PodConditions:
    """Writes conditions and events for pods; `run` it in a task.

    A condition is written at once if its reason changed. If only its message changed, or a write failed, it is written
    some seconds after the last write (`flush` writes delayed conditions). An event is published at most once a minute
    for a pod and a reason. Namespaces take turns, each with a limited rate and a burst of 50 times that.
    """

    def __init__(
        self,
        api: client.ApiClient,
        leader: election.LeaderElection,
        events: events.EventWriter,
        counters: metrics.SchedulerMetrics,
        clock: Callable[[], float],
        *,
        writes_per_s: float,
        aside: boundary.Boundary,
    ) -> None:
        self.shares = fair.Buckets(rate_per_s=writes_per_s, burst=writes_per_s * fair.BURST_S, clock=clock)
        self._api, self._leader, self._events, self._counters = api, leader, events, counters
        self._clock, self._aside, self._wake = clock, aside, asyncio.Event()
        self._due: collections.OrderedDict[str, dict[model.TaskId, rows.PodRow]] = collections.OrderedDict()
        self._delayed: dict[model.TaskId, rows.PodRow] = {}
        self._next_s, self._repeated_s = math.inf, -math.inf

    def set_pending(self, row: rows.PodRow, why: PendingReason) -> None:
        """Report that a pod is pending for this reason."""
        pod, report, now_s = row.facts, row.report, self._clock()
        assert pod is not None
        if report is None:
            stated = pod.condition(POD_SCHEDULED)
            is_set = stated is not None and stated.status == "False"
            report = row.report = PendingReport(
                PendingReason(stated.reason, stated.message) if stated and is_set else None
            )
        self._delayed.pop(row.id, None)
        if (reported := report.condition) != why:
            is_other = reported is not None and reported.reason != why.reason
            if is_time := is_other or now_s >= report.condition_at_s + MESSAGE_WINDOW_S:
                report.condition_at_s = now_s
            if is_time and self.shares.take(row.namespace):
                report.condition = why
                self._due.setdefault(row.namespace, {})[row.id] = row
                self._wake.set()
            else:
                self._delay(row, report, why)
        self._publish(pod, report, why, now_s)

    def _delay(self, row: rows.PodRow, report: PendingReport, why: PendingReason) -> None:
        self._delayed[row.id], report.delayed = row, why
        self._next_s = min(self._next_s, report.condition_at_s + MESSAGE_WINDOW_S)

    def next_s(self) -> float:
        """Return when `flush` is due; infinity for never."""
        return max(self._next_s, self._repeated_s + REPEAT_EVERY_S)

    def flush(self) -> None:
        """Write delayed conditions that are due, so that a stale message is replaced."""
        now_s = self._clock()
        if now_s < self.next_s():
            return
        self._next_s, self._repeated_s = math.inf, now_s
        for row in list(self._delayed.values()):
            if row.report is not None and row.report.delayed is not None:
                self.set_pending(row, row.report.delayed)

    def _publish(self, pod: wire.Pod, report: PendingReport, why: PendingReason, now_s: float) -> None:
        if now_s - report.events_at_s.get(why.reason, -EVENT_WINDOW_S) < EVENT_WINDOW_S:
            self._counters.event("FailedScheduling", "suppressed")
            return
        report.events_at_s[why.reason] = now_s
        self._counters.event("FailedScheduling", "sent")
        about = events.reference(catalogue.PODS, pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
        self._events.publish(about, type_="Warning", reason="FailedScheduling", action="Scheduling", note=why.message)

    def scheduled(self, row: rows.PodRow, uid: str, node: model.NodeName) -> None:
        """Report that a pod was placed on a node."""
        self.forget(row)
        self._counters.event("Scheduled", "sent")
        about = events.reference(catalogue.PODS, row.namespace, row.name, uid)
        note = f"Successfully assigned {row.id} to {node}"
        self._events.publish(about, type_="Normal", reason="Scheduled", action="Binding", note=note)

    def warn(self, row: rows.PodRow, reason: str, note: str) -> None:
        """Publish a warning about a running pod."""
        about = events.reference(catalogue.PODS, row.namespace, row.name, row.uid or "")
        self._events.publish(about, type_="Warning", reason=reason, action="Resizing", note=note)

    def note_job(self, job: model.Job, resource: catalogue.Resource[wire.Manifest], reason: str, note: str) -> None:
        """Publish an event about a job."""
        namespace, _, name = job.name.partition("/")
        about = events.reference(resource, namespace, name, job.id)
        self._events.publish(about, type_="Normal", reason=reason, action="Scheduling", note=note)

    def forget(self, row: rows.PodRow) -> None:
        """Drop a pod that is no longer pending."""
        if row.report is not None:
            self._take_due(row)
            self._delayed.pop(row.id, None)
            row.report = None

    async def cancel_writes(self, row: rows.PodRow) -> None:
        """Cancel a pod's due write and wait for the one in flight, because a binding sets another condition next."""
        while row.report is not None and row.report.written is not None:
            await row.report.written.wait()
        if row.report is not None:  # else the pod has ended, and another may have its name
            if self._take_due(row):
                row.report.condition = None
            self._delayed.pop(row.id, None)

    async def run(self) -> None:
        """Write conditions until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(retries.Loop("pod conditions", self._write_next).run())

    async def _write_next(self) -> None:
        while (row := self._next()) is None:
            self._wake.clear()
            await self._wake.wait()
        self._take_due(row)
        report, pod = row.report, row.facts
        if report is not None and report.condition is not None and pod is not None and self._leader.valid():
            report.written = asyncio.Event()
            try:
                await self._write(row, report, pod, report.condition)
            except Exception as error:  # noqa: BLE001 - an error of one object must not affect others
                self._aside.set_aside(catalogue.PODS, pod.metadata, boundary.Reason.WRITING, error)
            finally:
                report.written.set()
                report.written = None

    def _next(self) -> rows.PodRow | None:
        """Return the next pod without a write in flight: of two concurrent writes the older might arrive last."""
        for namespace, due in self._due.items():
            for row in due.values():
                if row.report is not None and row.report.written is None:
                    self._due.move_to_end(namespace)
                    return row
        return None

    def _take_due(self, row: rows.PodRow) -> bool:
        is_due = self._due.get(row.namespace, {}).pop(row.id, None) is not None
        if is_due and not self._due[row.namespace]:
            del self._due[row.namespace]
        return is_due

    async def _write(self, row: rows.PodRow, report: PendingReport, pod: wire.Pod, why: PendingReason) -> None:
        try:
            await write_condition(self._api, pod, why)
        except (errors.NotFound, errors.Conflict):
            if row.report is report:
                self.forget(row)  # the pod was deleted or replaced
        except errors.ClusterError as error:
            self._counters.write_error("status", outcomes.code(error))
            log.warning("a pod's condition was not written", pod=pod.metadata.key, error=str(error))
            is_due = row.id in self._due.get(row.namespace, {})
            if row.report is report and not is_due and row.id not in self._delayed:
                report.condition = None
                self._delay(row, report, why)


async def write_condition(api: client.ApiClient, pod: wire.Pod, why: PendingReason) -> None:
    """Write the condition PodScheduled of a pending pod. Raises errors.ClusterError if the write failed."""
    meta, status = pod.metadata, {"conditions": [condition_of(pod, why)]}
    style = client.PatchStyle.STRATEGIC
    await api.patch_status(catalogue.PODS, meta.name, status, meta.namespace, style=style, uid=meta.uid)


def condition_of(pod: wire.Pod, why: PendingReason) -> dict[str, object]:
    """Return the condition PodScheduled of a pending pod, as it is written."""
    stated: dict[str, object] = {"type": POD_SCHEDULED, "status": "False", "reason": why.reason, "message": why.message}
    if pod.metadata.generation:
        stated["observedGeneration"] = pod.metadata.generation
    if (former := pod.condition(POD_SCHEDULED)) is None or former.status != "False":
        stated["lastTransitionTime"] = server_time.SERVER_TIME.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    return stated
