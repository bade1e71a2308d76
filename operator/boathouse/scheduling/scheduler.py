"""Combine the parts of the scheduler: events in, decisions, effects out, over one state.

    watches, services --> intake --> state --> decider --> executor --> API server --> watches ...
                            ^                     |           |
                            |                     +--> adjuster (running tasks) --> API server, tasks
                            |                                 |
                            +------ outcomes of writes -------+

A decision is assumed before it is sent, confirmed by the watch, and reverted only after a definite failure.
"""

import asyncio
import collections
import contextlib
import math
from collections.abc import Callable, Sequence

from boathouse.cluster import boundary, client, retries, server_time
from boathouse.cluster import events as event_writer
from boathouse.scheduling import adjuster, decider, executor, intake, reasons, refusals, shadow, transforms, writer
from boathouse.scheduling.options import Options
from boathouse.scheduling.pods import ownership
from boathouse.scheduling.state import ClusterState
from boathouse.scheduling.volumes import objects as volume_writer
from boathouse.scheduling.volumes import rules
from boathouse.telemetry import health, metrics
from boathouse_policies import framework, model

BEHIND_S = 0.25
"""Minimum time between two cycles while decisions are queued for writing. It keeps decisions current, and a namespace
with many writes does not stop decisions for others."""
NO_CLUSTER = "NoCluster"


def steady_clock() -> Callable[[], float]:
    """Return a monotonic clock that starts at the API server's current epoch time."""
    return server_time.SERVER_TIME.steady()


class Scheduler:
    """Interface of the scheduler for services. Public methods are synchronous and return at once.

    The arguments are those of the state that its parts share (`ClusterState`), and `on_fatal`, which is called with the
    reason when the process must exit: leadership was lost, or the cache is wrong.

    Attributes:
        transform_pod: Transform of pods, which a watch applies before it reports a pod.
        scaler: Takes a decision about the size of a cluster, or returns why not; set by the kind of clusters.
    """

    def __init__(
        self,
        api: client.ApiClient,
        leader: writer.Leadership,
        events: event_writer.EventWriter,
        metrics_: metrics.Metrics,
        *,
        profile: framework.Profile,
        queues: Sequence[model.Queue],
        on_fatal: Callable[[str], None],
        options: Options = Options(),  # noqa: B008 - frozen
        queue_of: ownership.QueueOf = ownership.default_queue,
        clock: Callable[[], float] | None = None,
        storage: rules.Storage | None = None,
        aside: boundary.Boundary | None = None,
        shadow_: shadow.Shadow | None = None,
    ) -> None:
        self.state = ClusterState(
            api,
            leader,
            events,
            metrics_.scheduler,
            options=options,
            profile=profile,
            queues=queues,
            queue_of=queue_of,
            clock=clock or steady_clock(),
            storage=storage or rules.Storage(),
            aside=aside or boundary.Boundary(events),
            shadow=shadow_,
        )
        self.heartbeat = health.Heartbeat(limit_s=options.stall_s)
        self.transform_pod = transforms.pods(
            options.scheduler_name, self.state.pods.offered, options.pod_labels, options.pod_containers
        )
        self.intake = intake.Intake(self.state, transform_pod=self.transform_pod, wake=self.wake, on_fatal=on_fatal)
        self.decider = decider.Decider(self.state)
        self.pod_writer = writer.Writer(api, leader, metrics_.scheduler)
        self.executor = executor.Executor(
            self.state,
            self.pod_writer,
            volume_writer.VolumeWriter(api, leader, self.state.volumes),
            finished=self.intake.finished,
        )
        self.scaler: Callable[[model.Scale], str] = lambda _: NO_CLUSTER
        self.adjuster = adjuster.Adjuster(self.state, self.pod_writer, finished=self.intake.adjusted, scale=self._scale)
        self.submit = self.intake.submit
        self.withdraw = self.intake.withdraw
        self.set_queues = self.intake.set_queues
        self._wake = asyncio.Event()
        self._decided_s = -math.inf

    def diagnosis(self, job_id: model.JobId) -> reasons.JobDiagnosis | None:
        """Return the diagnosis of a job; None if it has no known pending tasks."""
        return self.state.diagnoses.of_job(job_id)

    def may_create(self, job_id: model.JobId) -> bool:
        """Return whether pods of a job may still be created: it has tasks, or a pod is being written or unconfirmed."""
        return self.state.jobs.entry(job_id) is not None or bool(self._in_flight(job_id))

    def creating(self, job_id: model.JobId) -> set[model.TaskId]:
        """Return a job's tasks of which no pod has ended, and those whose pod is being written or unconfirmed."""
        return {*self.state.pods.of_job(job_id), *self._in_flight(job_id)}

    def _in_flight(self, job_id: model.JobId) -> Sequence[model.TaskId]:
        pods = self.state.pods
        return [row.id for row in pods.assumed() if pods.job_of(row) == job_id]

    def backoffs(self) -> dict[tuple[str, ...], float]:
        """Return the number of namespaces and jobs that are held back, by reason."""
        counts = collections.Counter(backoff.reason for backoff in self.state.jobs.refused.backoffs())
        return {(reason,): counts[reason] for reason in refusals.REASONS}

    def wake(self) -> None:
        """Request a cycle after a relevant change."""
        self._wake.set()

    async def run(self) -> None:
        """Decide and write until cancelled. Call it after the watches are in sync and leadership has settled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.executor.run())
            group.create_task(self.adjuster.run())
            group.create_task(self.state.conditions.run())
            group.create_task(retries.Loop("scheduling", self._round).run())

    async def _round(self) -> None:
        """Wait until a decision is due, and decide."""
        await asyncio.sleep(self.state.options.coalesce_s)
        if self.state.shadow is not None:
            self.state.shadow.run()  # the writes of the last cycle have begun meanwhile
        with contextlib.suppress(TimeoutError):  # not wait_for, which can swallow a cancellation in Python 3.11
            async with asyncio.timeout(self._sleep_s()):
                await self._wake.wait()
        self.heartbeat.beat()
        self.executor.check_volumes()
        if self.state.clock() >= self._decides_from_s():
            self.cycle()
        self.adjuster.reconcile_suspensions()
        self._wake.clear()  # at the end: a round that fails is repeated without another event

    def cycle(self) -> None:
        """Decide once without awaiting, and begin the decided writes."""
        self._decided_s = self.state.clock()
        for operation in self.decider.decide():
            self.executor.start(operation)
        for decision in self.decider.take_advice():
            self.adjuster.take(decision)

    def _scale(self, decision: model.Scale) -> str:
        return self.scaler(decision)

    def _decides_from_s(self) -> float:
        return self._decided_s + (BEHIND_S if len(self.executor.operations) > self.state.options.workers else 0.0)

    def _sleep_s(self) -> float:
        is_behind = len(self.executor.operations) > self.state.options.workers
        timer_s = min(self._decides_from_s() if is_behind else self.decider.next_s(), self.adjuster.next_s())
        return max(0.0, min(self.state.options.idle_s, timer_s - self.state.clock()))
