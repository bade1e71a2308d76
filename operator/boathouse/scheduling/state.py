"""State that the three parts of the scheduler share: events change it, decisions and effects read it."""

import dataclasses
from collections.abc import Callable

from boathouse.cluster import boundary, catalogue, wire
from boathouse.scheduling import gangs, limits, options, pod_conditions, reasons, refusals
from boathouse.scheduling import shadow as shadows
from boathouse.scheduling.jobs import Entry, Jobs
from boathouse.scheduling.pods import table
from boathouse.scheduling.volumes import book as volume_book
from boathouse.telemetry import metrics
from boathouse_policies import framework, model


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """State of the cluster and of the pods to schedule.

    Attributes:
        options: Options of the scheduler.
        profile: The policies.
        clock: Returns the scheduler's time in seconds.
        axis: Resources that the ledger and the queue count.
        ledger: Resource usage of nodes.
        queue: Pending tasks.
        pods: All pods and tasks.
        placeholders: Placeholders of gangs that show themselves to a cluster autoscaler.
        jobs: Their jobs.
        volumes: Constraints of volumes.
        quotas: ResourceQuotas of namespaces.
        devices: DeviceClasses.
        exclusions: Nodes that recently rejected pods.
        diagnoses: Diagnoses of pending classes and jobs.
        conditions: Conditions and events of pods.
        counters: Metrics.
        aside: Objects that were set aside.
        shadow: Compares cycles with those of another profile; None if there is none.
    """

    options: options.Options
    profile: framework.Profile
    clock: Callable[[], float]
    axis: model.Axis
    ledger: framework.Ledger
    queue: framework.SchedulingQueue
    pods: table.PodTable
    placeholders: gangs.PlaceholderPods
    jobs: Jobs
    volumes: volume_book.VolumeBook
    quotas: limits.Quotas
    devices: reasons.Devices
    exclusions: refusals.Exclusions
    diagnoses: reasons.Diagnoses
    conditions: pod_conditions.PodConditions
    counters: metrics.SchedulerMetrics
    aside: boundary.Boundary
    shadow: shadows.Shadow | None = None

    def sync_jobs(self) -> None:
        """Update the scheduling queue with changed jobs, and set jobs aside that it rejects."""
        for entry, error in self.jobs.sync():
            self.set_job_aside(entry, error)

    def set_job_aside(self, entry: Entry, error: Exception) -> None:
        """Set a job aside that makes the scheduler fail: none of its tasks is scheduled."""
        why, job = reasons.set_aside(error), entry.job
        self.jobs.set_aside(job.id)
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
        self._state = state
        self._options = state.options
        self._clock = state.clock
        self._ledger = state.ledger
        self._queue = state.queue
        self._pods = state.pods
        self._jobs = state.jobs
        self._volumes = state.volumes
        self._quotas = state.quotas
        self._devices = state.devices
        self._exclusions = state.exclusions
        self._diagnoses = state.diagnoses
        self._conditions = state.conditions
        self._counters = state.counters
        self._aside = state.aside

    def _room_freed(self, freed: framework.Freed) -> None:
        """Reconsider pending tasks that may fit into freed resources."""
        self._queue.capacity_freed(freed, self._ledger.free(freed.node))
