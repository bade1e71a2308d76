"""The scheduler: events in, decisions, effects out, over one state.

    watches, services --> intake --> state --> decider --> executor --> API server --> watches ...
                            ^                                 |
                            +------ outcomes of writes -------+

A decision is assumed before it is sent, confirmed when the watch shows it, and taken back only on known failure.
"""

import asyncio
import collections
import contextlib
import math
import time
from collections.abc import Callable, Sequence

from boathouse.cluster import boundary, client, loops
from boathouse.cluster import events as event_writer
from boathouse.scheduling import (
    decider,
    executor,
    intake,
    jobs,
    kept,
    pod_conditions,
    reasons,
    rejections,
    writer,
)
from boathouse.scheduling import options as scheduler_options
from boathouse.scheduling.pods import ownership, table
from boathouse.scheduling.state import ClusterState
from boathouse.scheduling.tenants import quotas, refusals
from boathouse.scheduling.volumes import book as volume_book
from boathouse.scheduling.volumes import rules
from boathouse.scheduling.volumes import writer as volume_writer
from boathouse.telemetry import health, metrics
from boathouse_policies import framework, model

BEHIND_S = 0.25
"""The least time between two cycles while more is decided than written: decisions had better be fresh, but a namespace
whose writes are many must not keep the others' tasks from being decided at all."""
Options = scheduler_options.Options


def steady_clock() -> Callable[[], float]:
    """Return a clock that shows the time of day when it starts, and from then on only grows, evenly."""
    offset_s = time.time() - time.monotonic()
    return lambda: time.monotonic() + offset_s


class Scheduler:
    """What services talk to. Every public method is synchronous and returns at once.

    Args:
        api: Speaks to the API server.
        leader: Asked before every write.
        events: Records events.
        metrics_: Metrics.
        profile: The policies.
        queues: The queues that exist.
        options: How to behave.
        queue_of: The queue of somebody else's pod.
        on_fatal: Called with the reason when the process must end: leadership lost, or the cache cannot be trusted.
        clock: Seconds since the epoch that only grow.
        storage: What is known of volumes, live; tell the intake of changes.
        aside: Where objects go that cannot be represented.

    Attributes:
        keep: What of a pod to keep. A watch applies it before it reports the pod.
        state: The state that the three parts share.
        intake: Takes events in.
        decider: Decides.
        executor: Writes.
        pod_writer: Writes pods, and reads them.
    """

    def __init__(
        self,
        api: client.ApiClient,
        leader: writer.Leadership,
        events: event_writer.EventSink,
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
    ) -> None:
        clock, aside = clock or steady_clock(), aside or boundary.Boundary(events)
        axis = model.Axis()
        queue, ledger = framework.SchedulingQueue(axis, queues), framework.Ledger(axis)
        volumes = volume_book.VolumeBook(storage or rules.Storage.empty())
        pods = table.PodTable(
            ledger,
            volumes,
            clock,
            scheduler_name=options.scheduler_name,
            queue_of=ownership.charged_queue_of(queue_of, queue),
        )
        book = jobs.Jobs(queue, pods=pods, clock=clock, queue_of=queue_of, limits=options.shape_limits)
        self.state = ClusterState(
            options=options,
            profile=profile,
            clock=clock,
            axis=axis,
            ledger=ledger,
            queue=queue,
            pods=pods,
            jobs=book,
            volumes=volumes,
            quotas=quotas.Quotas(),
            exclusions=rejections.Exclusions(clock),
            diagnoses=reasons.Diagnoses(book, pods.holders, clock),
            conditions=pod_conditions.PodConditions(
                api, leader, events, metrics_.scheduler, clock, writes_per_s=options.conditions_per_s, aside=aside
            ),
            counters=metrics_.scheduler,
            aside=aside,
        )
        self.heartbeat = health.Heartbeat(limit_s=options.stall_s)
        self.keep = kept.pods(options.scheduler_name, pods.offered, options.pod_labels, options.pod_containers)
        self.intake = intake.Intake(self.state, keep=self.keep, wake=self.wake, on_fatal=on_fatal)
        self.decider = decider.Decider(self.state)
        self.pod_writer = writer.Writer(api, leader, metrics_.scheduler)
        self.executor = executor.Executor(
            self.state,
            self.pod_writer,
            volume_writer.VolumeWriter(api, leader, volumes),
            finished=self.intake.finished,
            workers=options.workers,
        )
        self.submit = self.intake.submit
        self.withdraw = self.intake.withdraw
        self.set_queues = self.intake.set_queues
        self._wake = asyncio.Event()
        self._decided_s = -math.inf

    # What services read

    def diagnosis(self, job_id: model.JobId) -> reasons.JobDiagnosis | None:
        """Return why a job waits; None if nothing of it does, as far as is known."""
        return self.state.diagnoses.of_job(job_id)

    def may_create(self, job_id: model.JobId) -> bool:
        """Return whether pods of a job may still come: it has tasks, or a pod of it is being written or unconfirmed."""
        in_flight = (self.state.pods.job_of(row) for row in self.state.pods.assumed())
        return self.state.jobs.entry(job_id) is not None or job_id in in_flight

    def held_back(self) -> dict[tuple[str, ...], float]:
        """Return how many namespaces and jobs are held back, by reason."""
        counts = collections.Counter(hold.reason for hold in self.state.jobs.refused.holds())
        return {(reason,): float(counts[reason]) for reason in refusals.REASONS}

    def wake(self) -> None:
        """Run a cycle soon: something changed that it may make use of."""
        self._wake.set()

    # The loop

    async def run(self) -> None:
        """Decide and write until cancelled. Begin after the watches are in sync and leadership has settled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.executor.run())
            group.create_task(self.state.conditions.run())
            group.create_task(loops.Loop("scheduling", self._round).run())

    async def _round(self) -> None:
        """Wait until a decision is due, and decide."""
        await asyncio.sleep(self.state.options.coalesce_s)
        with contextlib.suppress(TimeoutError):  # not wait_for: that one can swallow a cancellation in Python 3.11
            async with asyncio.timeout(self._nap_s()):
                await self._wake.wait()
        self.heartbeat.beat()
        self.executor.check_volumes()
        if self.state.clock() >= self._decides_from_s():
            self.cycle()
        self._wake.clear()  # at the end: a round that fails is repeated without another event

    def cycle(self) -> None:
        """Decide once, without awaiting anything, and begin what was decided."""
        self._decided_s = self.state.clock()
        for operation in self.decider.decide():
            self.executor.start(operation)

    def _decides_from_s(self) -> float:
        return self._decided_s + (BEHIND_S if len(self.executor.operations) > self.state.options.workers else 0.0)

    def _nap_s(self) -> float:
        is_behind = len(self.executor.operations) > self.state.options.workers
        timer_s = self._decides_from_s() if is_behind else self.decider.next_s()
        return max(0.0, min(self.state.options.idle_s, timer_s - self.state.clock()))
