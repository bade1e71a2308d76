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

from boathouse.cluster import retries, server_time
from boathouse.scheduling import adjuster, decider, executor, intake, reasons, refusals, transforms
from boathouse.scheduling.state import ClusterState
from boathouse.telemetry import health
from boathouse_policies import model

BEHIND_S = 0.25
"""Minimum time between two cycles while decisions are queued for writing. It keeps decisions current, and a namespace
with many writes does not stop decisions for others."""


def steady_clock() -> Callable[[], float]:
    """Return a monotonic clock that starts at the API server's current epoch time."""
    return server_time.SERVER_TIME.steady()


class Scheduler:
    """Interface of the scheduler for services. Public methods are synchronous and return at once.

    `on_fatal` is called with the reason when the process must exit: leadership was lost, or the cache is wrong.
    """

    def __init__(self, state: ClusterState, *, on_fatal: Callable[[str], None]) -> None:
        self.state, options = state, state.options
        self.heartbeat = health.Heartbeat(limit_s=options.stall_s)
        # transform of pods, which a watch applies before it reports a pod
        self.transform_pod = transforms.pods(
            options.scheduler_name, state.pods.offered, options.pod_labels, options.pod_containers
        )
        self.intake = intake.Intake(state, transform_pod=self.transform_pod, wake=self.wake, on_fatal=on_fatal)
        self.decider = decider.Decider(state)
        self.executor = executor.Executor(state, finished=self.intake.finished)
        self.adjuster = adjuster.Adjuster(state, finished=self.intake.adjusted)
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

    def _decides_from_s(self) -> float:
        return self._decided_s + (BEHIND_S if self._is_behind() else 0.0)

    def _sleep_s(self) -> float:
        timer_s = min(self._decides_from_s() if self._is_behind() else self.decider.next_s(), self.adjuster.next_s())
        return max(0.0, min(self.state.options.idle_s, timer_s - self.state.clock()))

    def _is_behind(self) -> bool:
        return len(self.executor.operations) > self.state.options.workers
