"""State that the parts of the scheduler share: events change it, decisions and effects read it."""

import asyncio
from collections.abc import Callable, Sequence

from boathouse.cluster import boundary, catalogue, client, election, events, wire
from boathouse.scheduling import gangs, limits, pod_conditions, reasons, refusals, shadow as shadows, writer
from boathouse.scheduling.jobs import Entry, Jobs
from boathouse.scheduling.options import Options
from boathouse.scheduling.pods import ownership, table
from boathouse.scheduling.volumes import book, rules
from boathouse.telemetry import metrics
from boathouse_policies import framework, model


class ClusterState:
    """State of the cluster and of the pods to schedule."""

    def __init__(
        self,
        api: client.ApiClient,
        leader: election.LeaderElection,
        events: events.EventWriter,
        counters: metrics.SchedulerMetrics,
        *,
        profile: framework.Profile,
        queues: Sequence[model.Queue],
        options: Options,
        queue_of: ownership.QueueOf,
        clock: Callable[[], float],
        storage: rules.Storage,
        aside: boundary.Boundary,
        shadow: shadows.Shadow | None,
    ) -> None:
        self.api, self.leader, self.counters = api, leader, counters
        self.options, self.profile, self.shadow = options, profile, shadow
        self.clock, self.aside = clock, aside
        self.writer = writer.Writer(api, leader, counters)
        self.axis = model.Axis()  # resources that the ledger and the queue count
        self.ledger = framework.Ledger(self.axis)
        self.queue = framework.SchedulingQueue(self.axis, queues)
        self.volumes = book.VolumeBook(storage)
        self.pods = table.PodTable(
            self.ledger,
            self.volumes,
            clock,
            scheduler_name=options.scheduler_name,
            queue_of=ownership.charged_queue_of(queue_of, self.queue),
        )
        self.placeholders = gangs.PlaceholderPods()  # of gangs that show themselves to a cluster autoscaler
        self.jobs = Jobs(self.queue, pods=self.pods, clock=clock, queue_of=queue_of, limits=options.tenant_limits)
        self.quotas = limits.Quotas()
        self.devices = reasons.Devices(self.axis)
        self.exclusions = refusals.Exclusions(clock)
        self.diagnoses = reasons.Diagnoses(
            self.jobs, self.pods, self.devices, clock, nodes_can_come=options.autoscaling.enabled
        )
        self.queue.on_removed.append(self.diagnoses.forget)
        self.conditions = pod_conditions.PodConditions(
            api,
            leader,
            events,
            counters,
            clock,
            writes_per_s=options.tenant_limits.status_writes_per_second,
            aside=aside,
        )

    def sync_jobs(self) -> None:
        """Update the scheduling queue with changed jobs, and set jobs aside that it rejects."""
        for entry, error in self.jobs.sync():
            self.set_job_aside(entry, error)

    def set_job_aside(self, entry: Entry, error: Exception) -> None:
        """Set a job aside that makes the scheduler fail: none of its tasks is scheduled for a while."""
        why, job = reasons.set_aside(error), entry.job
        self.jobs.set_aside(entry)
        entry.api_refusal = why
        if entry.factory is not None:
            namespace, _, name = job.name.partition("/")
            subject = wire.ObjectMeta(namespace=namespace, name=name, uid=job.id)
            self.aside.set_aside(entry.factory.resource, subject, boundary.Reason.SCHEDULING, error)
        for row in self.jobs.rows(entry):
            if row.facts is not None and row.pending_uid is not None:
                self.aside.set_aside(catalogue.PODS, row.facts.metadata, boundary.Reason.SCHEDULING, error)
                self.conditions.set_pending(row, why)

    def report_refused(self, decision: model.Decision, reason: str) -> None:
        """Report a decision that is not carried out to the policies, with the reason."""
        for observer in self.profile.observers:
            observer.observe(model.Refused(now_s=self.clock(), decision=decision, reason=reason))


class Part:
    """A part of the scheduler, which works on the state and does not reference other parts."""

    def __init__(self, state: ClusterState) -> None:
        self._state, self._options, self._clock = state, state.options, state.clock
        self._api, self._leader, self._writer = state.api, state.leader, state.writer
        self._ledger, self._queue, self._pods, self._jobs = state.ledger, state.queue, state.pods, state.jobs
        self._volumes, self._quotas, self._devices = state.volumes, state.quotas, state.devices
        self._exclusions, self._diagnoses = state.exclusions, state.diagnoses
        self._conditions, self._counters, self._aside = state.conditions, state.counters, state.aside

    def _room_freed(self, freed: framework.Freed) -> None:
        """Reconsider pending tasks that may fit into freed resources."""
        self._queue.capacity_freed(freed, self._ledger.free(freed.node))


class WorkingPart(Part):
    """A part whose work is in tasks of one group, while it runs."""

    _group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            self._begin_queued()
            try:
                await asyncio.Event().wait()
            finally:
                self._group = None  # what is decided from now on must not begin

    def _begin_queued(self) -> None:
        """Begin what was decided before the part runs."""
