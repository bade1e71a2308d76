"""What pods that wait are told: the PodScheduled condition and FailedScheduling events; and Scheduled for the others.

Cluster autoscalers buy nodes for pods whose condition says Unschedulable, so that reason stands for want of nodes only.
"""

import asyncio
import collections
import dataclasses
import datetime as dt
import math
from collections.abc import Callable

from boathouse import buckets
from boathouse.cluster import boundary, catalogue, client, errors, loops, wire
from boathouse.cluster import events as event_writer
from boathouse.scheduling import outcomes, writer
from boathouse.telemetry import logs, metrics
from boathouse_policies import model

log = logs.get(__name__)

POD_SCHEDULED = "PodScheduled"
UNSUPPORTED = "UnsupportedConstraint"
SET_ASIDE = "SetAside"
EVENT_WINDOW_S = 60.0
MESSAGE_WINDOW_S = 10.0
REPEAT_EVERY_S = 1.0
"""So seldom all that was held back is looked through: it may be thousands of pods, each due at a time of its own."""
WRITERS = 2
WRITES_PER_S = 50.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PendingReason:
    """Why a pod waits: a CamelCase token and a sentence."""

    reason: str
    message: str


@dataclasses.dataclass(slots=True, kw_only=True)
class _PendingReport:
    namespace: str
    condition: PendingReason | None
    condition_at_s: float
    events_at_s: dict[str, float] = dataclasses.field(default_factory=dict)


class PodConditions:
    """Writes conditions and events for pods; `run` it in a task.

    A condition is written when its reason changes, or when only its message did, or a write failed, and the last write
    is some seconds ago (`flush` says later what was held back); an event at most once a minute for a pod and a reason.
    Namespaces take turns, and one that had more than its share of writes is held back.

    Args:
        api: Speaks to the API server.
        leader: Asked before every write.
        events: Records events.
        counters: Where writes are counted.
        clock: The scheduler's seconds.
        writes_per_s: How many conditions of a namespace are written in a second; of a quiet one, 50 times that at once.
        aside: Where pods go whose condition cannot be written.

    Attributes:
        shares: How much of its share each namespace has used.
    """

    def __init__(
        self,
        api: client.ApiClient,
        leader: writer.Leadership,
        events: event_writer.EventSink,
        counters: metrics.SchedulerMetrics,
        clock: Callable[[], float],
        *,
        writes_per_s: float = WRITES_PER_S,
        aside: boundary.Boundary | None = None,
    ) -> None:
        self.shares = buckets.Buckets(rate_per_s=writes_per_s, burst=writes_per_s * buckets.BURST_S, clock=clock)
        self._api = api
        self._leader = leader
        self._events = events
        self._counters = counters
        self._clock = clock
        self._aside = aside or boundary.Boundary(events)
        self._reports: dict[str, _PendingReport] = {}
        self._due: collections.OrderedDict[str, dict[str, tuple[wire.Pod, PendingReason]]] = collections.OrderedDict()
        self._writing: dict[str, asyncio.Event] = {}
        self._held_back: dict[str, tuple[wire.Pod, PendingReason]] = {}
        self._next_s = math.inf
        self._repeated_s = -math.inf
        self._wake = asyncio.Event()

    def set_pending(self, pod: wire.Pod, why: PendingReason) -> None:
        """A pod waits for this reason."""
        uid, now_s = pod.metadata.uid, self._clock()
        report = self._reports.get(uid)
        if report is None:
            report = self._reports[uid] = _PendingReport(
                namespace=pod.metadata.namespace, condition=_stated(pod), condition_at_s=-math.inf
            )
        self._held_back.pop(uid, None)
        known = report.condition
        other = known is not None and known.reason != why.reason
        if known != why and (other or now_s >= report.condition_at_s + MESSAGE_WINDOW_S):
            report.condition_at_s = now_s
            if self.shares.take(pod.metadata.namespace):
                report.condition = why
                self._due.setdefault(pod.metadata.namespace, {})[uid] = (pod, why)
                self._wake.set()
            else:
                self._hold_back(pod, why, report)
        elif known != why:
            self._hold_back(pod, why, report)
        self._publish(pod, why, report, now_s)

    def _hold_back(self, pod: wire.Pod, why: PendingReason, report: _PendingReport) -> None:
        self._held_back[pod.metadata.uid] = (pod, why)
        self._next_s = min(self._next_s, report.condition_at_s + MESSAGE_WINDOW_S)

    def next_s(self) -> float:
        """When `flush` has something to say; infinite for never."""
        return max(self._next_s, self._repeated_s + REPEAT_EVERY_S)

    def flush(self) -> None:
        """Say what was held back, where it has been long enough: a message that is out of date must not stay."""
        now_s = self._clock()
        if now_s < self.next_s():
            return
        self._next_s, self._repeated_s = math.inf, now_s
        for pod, why in list(self._held_back.values()):
            self.set_pending(pod, why)

    def _publish(self, pod: wire.Pod, why: PendingReason, report: _PendingReport, now_s: float) -> None:
        if now_s - report.events_at_s.get(why.reason, -EVENT_WINDOW_S) < EVENT_WINDOW_S:
            self._counters.event("FailedScheduling", "suppressed")
            return
        report.events_at_s[why.reason] = now_s
        self._counters.event("FailedScheduling", "sent")
        self._events.publish(
            event_writer.about_pod(pod),
            type_="Warning",
            reason="FailedScheduling",
            action="Scheduling",
            note=why.message,
        )

    def scheduled(self, task: model.TaskId, uid: str, node: model.NodeName) -> None:
        """A pod was put on a node."""
        self.forget(uid)
        namespace, _, name = task.partition("/")
        self._counters.event("Scheduled", "sent")
        self._events.publish(
            event_writer.reference(catalogue.PODS, namespace, name, uid),
            type_="Normal",
            reason="Scheduled",
            action="Binding",
            note=f"Successfully assigned {task} to {node}",
        )

    def forget(self, uid: str) -> None:
        """A pod does not wait any more."""
        self._take_due(uid)
        self._reports.pop(uid, None)
        self._held_back.pop(uid, None)

    async def write_deferred(self, uid: str) -> None:
        """A pod is about to be bound: what is being written must land before, for the binding says the opposite."""
        while (written := self._writing.get(uid)) is not None:
            await written.wait()
        if self._take_due(uid) is not None:
            self._reports[uid].condition = None
        self._held_back.pop(uid, None)

    async def run(self) -> None:
        """Write conditions until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(loops.Loop("pod conditions", self._write_next).run())

    async def _write_next(self) -> None:
        while (due := self._next()) is None:
            self._wake.clear()
            await self._wake.wait()
        pod, why = due
        uid = pod.metadata.uid
        if self._leader.valid():
            self._writing[uid] = asyncio.Event()
            try:
                with self._aside.guard(catalogue.PODS, pod.metadata, boundary.Reason.WRITING):
                    await self._write(pod, why)
            finally:
                self._writing.pop(uid).set()

    def _next(self) -> tuple[wire.Pod, PendingReason] | None:
        """The next pod to write about: of two writes about one at a time the older might come last, and stay."""
        for namespace, pods in self._due.items():
            uid = next((uid for uid in pods if uid not in self._writing), None)
            if uid is not None:
                self._due.move_to_end(namespace)
                return self._take_due(uid)
        return None

    def _is_due(self, meta: wire.ObjectMeta) -> bool:
        return meta.uid in self._due.get(meta.namespace, {})

    def _take_due(self, uid: str) -> tuple[wire.Pod, PendingReason] | None:
        report = self._reports.get(uid)
        pods = self._due.get(report.namespace, {}) if report is not None else {}
        due = pods.pop(uid, None)
        if report is not None and due is not None and not pods:
            del self._due[report.namespace]
        return due

    async def _write(self, pod: wire.Pod, why: PendingReason) -> None:
        meta = pod.metadata
        try:
            await self._api.patch_status(
                catalogue.PODS,
                meta.name,
                {"conditions": [_condition(pod, why)]},
                meta.namespace,
                style=client.PatchStyle.STRATEGIC,
                uid=meta.uid,
            )
        except (errors.NotFound, errors.Conflict):
            self.forget(meta.uid)  # it is gone, or another one
        except errors.ClusterError as error:
            self._counters.write_error("status", outcomes.code(error))
            log.warning("a pod's condition was not written", pod=meta.key, error=str(error))
            report = self._reports.get(meta.uid)
            if report is not None and not self._is_due(meta) and meta.uid not in self._held_back:
                report.condition = None
                self._hold_back(pod, why, report)


def _stated(pod: wire.Pod) -> PendingReason | None:
    known = pod.condition(POD_SCHEDULED)
    return (
        None if known is None or known.status != "False" else PendingReason(reason=known.reason, message=known.message)
    )


def _condition(pod: wire.Pod, why: PendingReason) -> dict[str, object]:
    condition: dict[str, object] = {"type": POD_SCHEDULED, "status": "False"}
    condition |= {"reason": why.reason, "message": why.message}
    if pod.metadata.generation:
        condition["observedGeneration"] = pod.metadata.generation
    known = pod.condition(POD_SCHEDULED)
    if known is None or known.status != "False":
        condition["lastTransitionTime"] = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return condition
