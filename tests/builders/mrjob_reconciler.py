"""The reconciler of MRJobs with an API server of one MRJob, a scheduler, and a clock that the test turns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from prometheus_client import registry

from boathouse.resources.config import OperatorConfig, TenantLimits
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.services import hadoop
from boathouse.services.frame import admission, object_store, reconciler, status_writer
from boathouse.services.instruments import poller
from boathouse.services.mrjob.kind import MRJOB, MRJobKind
from boathouse.telemetry import metrics
from tests.builders import mrjobs
from tests.builders.frame import NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Callable

    from boathouse.cluster import errors

KEY = "demo/wordcount"


class JobReconciler:
    """The reconciler of a given MRJob; it is its own API server, scheduler and publisher of the trust bundle.

    Attributes:
        stored: The MRJob that the API server has.
        on_request: Called during a read of a ConfigMap and during a write of a status.
        status_error: The error with which writes of a status end.
        namespace_queue: The queue that the namespace's label names.
        ended: Tasks whose pods the scheduler observed to be gone.

    Args:
        resource: The MRJob.
        clocks: `now` of the reconcilers' context, if it is not `now_s`; empty for the one that the operator uses.
        config: Sections of the operator's configuration.
    """

    def __init__(
        self,
        resource: dict[str, Any] | None = None,
        clocks: dict[str, Callable[[], float]] | None = None,
        **config: Any,
    ) -> None:
        self.stored: dict[str, Any] | None = None
        self.on_request = lambda: None
        self.status_error: errors.ClusterError | None = None
        self.namespace_queue: str | None = None
        self.ended: set[str] = set()
        self.statuses: list[tuple[str, dict[str, Any]]] = []
        self.submitted: list[tuple[str, ...]] = []
        self.withdrawn: list[str] = []
        self.bundles: set[str] = set()
        self.events: list[str] = []
        self.now_s = mrjobs.CREATED_S
        limits = OperatorConfig.model_validate(config).tenant_limits
        self.objects = object_store.ObjectStore(MRJOB, lambda _: None, admission.Admission(limits.max_unfinished_jobs))
        context = self._context(limits, {"now": self.clock} if clocks is None else clocks)
        counts = reconciler.ObjectMetrics(MRJOB, registry.CollectorRegistry(), metrics.ScrapeGauges())
        kind = self._kind(context, config)
        self.pods = kind.pods
        self.reconciler = reconciler.Reconciler(kind, context, self.objects, counts)
        self.store(resource)

    def _context(self, limits: TenantLimits, clocks: dict[str, Callable[[], float]]) -> reconciler.Context:
        return reconciler.Context(
            api=self,
            events=self,
            statuses=status_writer.StatusShare(limits.status_writes_per_second, self.clock),
            may_lead=lambda: True,
            monotonic=self.clock,
            **clocks,
        )

    def clock(self) -> float:
        return self.now_s

    def _kind(self, context: reconciler.Context, config: dict[str, Any]) -> MRJobKind:
        settings = OperatorConfig.model_validate({"task": {"image": "task:dev"}} | config)
        settings.follow(lambda _: self.namespace_queue)
        leader = SimpleNamespace(
            settings=settings,
            cluster_id="",
            profile=SimpleNamespace(observers=(), controllers=(), figures=(), order=None),
            scheduling=SimpleNamespace(scheduler=self),
            controllers=SimpleNamespace(context=context, mark=lambda _: None),
            bundles=self,
            signals=poller.Signals(),
            clusters=hadoop.Directory(),
            applications=hadoop.Applications(lambda _: None),
            metrics=SimpleNamespace(registry=registry.CollectorRegistry()),
        )
        return MRJobKind(leader, lambda _, call: call())

    def store(self, resource: dict[str, Any] | None) -> None:
        """Store an MRJob, or none, in the API server; the watch reports it."""
        before = self.stored
        if before is not None and (resource is None or resource["metadata"]["uid"] != before["metadata"]["uid"]):
            self.objects.on_deleted(before)
        self.stored = resource
        if resource is not None:
            self.objects.on_object(resource)

    async def reconcile(self) -> float | None:
        return await self.reconciler.reconcile(KEY)

    @property
    def last_status(self) -> dict[str, Any]:
        return self.statuses[-1][1]

    # The API server

    async def get(self, resource, _name, _namespace):
        if resource.kind != mrjob_names.KIND:
            self.on_request()
            raise NOT_FOUND
        if self.stored is None:
            raise NOT_FOUND
        return self.stored

    async def patch_status(self, _resource, _name, status, _namespace, *, uid, **_more):
        self.on_request()
        if self.status_error is not None:
            raise self.status_error
        self.statuses.append((uid, status))
        before = self.stored["metadata"]
        metadata = before | {"resourceVersion": str(int(before["resourceVersion"]) + 1)}
        self.stored = self.stored | {"metadata": metadata, "status": status}
        return self.stored

    def publish(self, _regarding, *, reason, **_more) -> None:
        self.events.append(reason)

    # The scheduler

    def submit(self, _job, _classes, tasks, _factory, **_more):
        self.submitted.append(tuple(task.id for task in tasks))
        return [task.id for task in tasks if task.id in self.ended]

    def withdraw(self, job_id) -> None:
        self.withdrawn.append(job_id)

    def diagnosis(self, _job_id) -> None:
        return None

    def may_create(self, _job_id) -> bool:
        return False

    # The trust bundle

    async def ensure(self, namespace: str) -> None:
        self.bundles.add(namespace)

    def forget(self, namespace: str) -> None:
        self.bundles.discard(namespace)
