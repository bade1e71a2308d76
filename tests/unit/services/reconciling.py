"""A reconciler at its desk: all it talks to is here, and a test may let the world change while it waits."""

from types import SimpleNamespace
from typing import Any

from prometheus_client import registry

from boathouse.cluster import errors
from boathouse.resources.config import OperatorConfig, TenantLimits
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.services.frame import admission, metrics, object_store, reconciler, status_writer
from boathouse.services.hadoop import applications, directory
from boathouse.services.instruments import missing
from boathouse.services.mrjob.kind import MRJOB, MRJobKind
from boathouse.telemetry import gauges
from tests.unit.services.conftest import Build

KEY = "demo/wordcount"
SETUP = "wordcount-u1-s0-setup"
GONE = errors.NotFound(404, "NotFound", "")
STALE = errors.Conflict(409, "Conflict", "")


def body(uid: str = "u1", revision: int = 1, **spec: Any) -> dict[str, Any]:
    """An MRJob as the API server holds it."""
    made = Build.body(**spec)
    return {**made, "metadata": made["metadata"] | {"uid": uid, "resourceVersion": str(revision)}}


class Desk:
    """The reconciler, its API server and its scheduler.

    Attributes:
        stored: the MRJob that the API server has.
        meanwhile: called while a ConfigMap is asked for, and while a status is written.
        refusal: what a write of a status ends with.
        queue: what the namespace's label names.
        over: tasks whose pods the scheduler saw go.
    """

    def __init__(self, **config: Any) -> None:
        self.stored: dict[str, Any] | None = None
        self.meanwhile = lambda: None
        self.refusal: errors.ClusterError | None = None
        self.queue: str | None = None
        self.over: set[str] = set()
        self.written: list[tuple[str, dict[str, Any]]] = []
        self.submitted: list[tuple[str, ...]] = []
        self.withdrawn: list[str] = []
        self.published: set[str] = set()
        self.events: list[str] = []
        self.now_s = Build.CREATED_S
        limits = OperatorConfig.model_validate(config).tenant_limits
        self.jobs = object_store.ObjectStore(MRJOB, lambda _: None, admission.Admission(limits.max_unfinished_jobs))
        context = self._context(limits)
        counts = metrics.ObjectMetrics(MRJOB, registry.CollectorRegistry(), gauges.ScrapeGauges())
        kind = self._kind(context, config)
        self.pods = kind.pods
        self.reconciler = reconciler.Reconciler(kind, context, self.jobs, counts)

    def _context(self, limits: TenantLimits) -> reconciler.Context:
        return reconciler.Context(
            api=self,
            events=self,
            statuses=status_writer.StatusShare(limits.status_writes_per_second, self.clock),
            may_lead=lambda: True,
            now=self.clock,
            monotonic=self.clock,
        )

    def clock(self) -> float:
        return self.now_s

    def _kind(self, context: reconciler.Context, config: dict[str, Any]) -> MRJobKind:
        settings = OperatorConfig.model_validate({"task": {"image": "task:dev"}} | config)
        settings.follow(lambda _: self.queue)
        leader = SimpleNamespace(
            settings=settings,
            cluster_id="",
            profile=SimpleNamespace(observers=(), controllers=(), order=None),
            scheduling=SimpleNamespace(scheduler=self),
            controllers=SimpleNamespace(context=context, mark=lambda _: None),
            bundles=self,
            signals=missing.Signals(),
            clusters=directory.Directory(),
            applications=applications.Applications(lambda _: None),
            metrics=SimpleNamespace(registry=registry.CollectorRegistry()),
        )
        return MRJobKind(leader, lambda _, call: call())

    def holds(self, one: dict[str, Any] | None) -> None:
        """Let the API server hold this MRJob, and the watch have told of it."""
        if self.stored is not None and (one is None or one["metadata"]["uid"] != self.stored["metadata"]["uid"]):
            self.jobs.on_deleted(self.stored)
        self.stored = one
        if one is not None:
            self.jobs.on_object(one)

    async def look(self) -> float | None:
        return await self.reconciler.reconcile(KEY)

    # The API server

    async def get(self, resource, _name, _namespace):
        if resource.kind != mrjob_names.KIND:
            self.meanwhile()
            raise GONE
        if self.stored is None:
            raise GONE
        return self.stored

    async def patch_status(self, _resource, _name, status, _namespace, *, uid, **_more):
        self.meanwhile()
        if self.refusal is not None:
            raise self.refusal
        self.written.append((uid, status))
        known = self.stored["metadata"]
        metadata = known | {"resourceVersion": str(int(known["resourceVersion"]) + 1)}
        self.stored = self.stored | {"metadata": metadata, "status": status}
        return self.stored

    def publish(self, _regarding, *, reason, **_more) -> None:
        self.events.append(reason)

    # The scheduler

    def submit(self, _job, _classes, tasks, _factory, **_more):
        self.submitted.append(tuple(task.id for task in tasks))
        return [task.id for task in tasks if task.id in self.over]

    def withdraw(self, job_id) -> None:
        self.withdrawn.append(job_id)

    def diagnosis(self, _job_id) -> None:
        return None

    # The bundle

    async def ensure(self, namespace: str) -> None:
        self.published.add(namespace)

    def forget(self, namespace: str) -> None:
        self.published.discard(namespace)
