"""Reconcile the objects of all kinds: a store and a reconciler for each kind, one queue for all."""

import dataclasses
from collections.abc import Callable
from typing import Any, Final, Protocol

from boathouse.cluster import boundary, retries
from boathouse.resources import names
from boathouse.resources.config import OperatorConfig
from boathouse.scheduling import assembly
from boathouse.services import hadoop, learned
from boathouse.services.frame import admission, object_store, protocols, reconciler, work_queue, writes
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.instruments import poller
from boathouse.services.progress import certificates, server
from boathouse.telemetry import metrics as telemetry
from boathouse_policies import framework

WORKERS: Final = 4
"""Concurrent reconciles. More of them write more statuses, which delays pods where the API server lacks CPU time:
docs/benchmarks.md has a run with 16."""
NOT_LEADING_REQUEUE_S: Final = 1.0
_KIND: Final = ":"


class Work(Protocol):
    """A task that runs concurrently with the queue."""

    async def run(self) -> None:
        """Run until cancelled."""


class Controllers:
    """Reconciles the objects of the added kinds while its queue, with the objects that are due, and its loops run."""

    def __init__(self, context: reconciler.Context, settings: OperatorConfig, target: telemetry.Metrics) -> None:
        self.context = context
        self.stores: dict[str, object_store.ObjectStore] = {}
        self._reconcilers: dict[str, reconciler.Reconciler[Any, Any, Any, Any]] = {}
        self.loops: list[Work] = []
        self._settings, self._target = settings, target
        self.queue = work_queue.WorkQueue(self._reconcile, workers=WORKERS, metrics=target.registry)

    def add(self, kind: protocols.Kind[Any, Any, Any, Any]) -> object_store.Resync:
        """Add a kind. Returns the resync that compares its objects with lists."""
        context, definition, limits = self.context, kind.definition, self._settings.tenant_limits
        name = definition.resource.kind
        self.stores[name] = objects = object_store.ObjectStore(
            definition,
            lambda key: self.queue.add(f"{key}{_KIND}{name}"),
            admission.Admission(limits.max_unfinished_jobs, limits.max_job_mebibytes * 2**20),
            context.aside,
        )
        context.aside.counts.update({(name, reason): 0 for reason in boundary.Reason})
        counts = reconciler.ObjectMetrics(definition, self._target.registry, self._target.gauges)
        self._reconcilers[name] = reconciler.Reconciler(kind, context, objects, counts)
        compared = object_store.Resync(context.api, objects, tuple(self._settings.watch_namespaces))
        first_s, every_s = object_store.RESYNC_FIRST_S, object_store.RESYNC_EVERY_S
        self.loops.append(retries.Loop("resync", compared.run_once, first_s=first_s, every_s=every_s))
        return compared

    def mark(self, uid: ObjectUid) -> None:
        """Reconcile the object with this UID, if there is one."""
        for name, objects in self.stores.items():
            if (key := objects.key(uid)) is not None:
                self.queue.add(f"{key}{_KIND}{name}")

    async def _reconcile(self, queue_key: str) -> float | None:
        key, _, name = queue_key.rpartition(_KIND)
        try:
            return await self._reconcilers[name].reconcile(key)
        except writes.NotLeading:
            return NOT_LEADING_REQUEUE_S  # this process is about to exit; its successor reconciles the due objects


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LeaderServices:
    """Services of the leader, to which each kind adds itself, and what is `saved`, by names that never change."""

    settings: OperatorConfig
    cluster_id: str
    profile: framework.Profile
    scheduling: assembly.Scheduling
    controllers: Controllers
    endpoint: server.ProgressServer
    bundles: certificates.Bundles
    metrics: telemetry.Metrics
    saved: dict[str, learned.Part]
    limited: dict[str, Callable[[], int]]
    signals: poller.Signals = dataclasses.field(default_factory=poller.Signals)
    clusters: hadoop.Directory = dataclasses.field(default_factory=hadoop.Directory)
    applications: hadoop.Applications


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KindEntry:
    """A kind that the operator reconciles, with what it reads of pods; if it `scales`, policies resize its objects."""

    pod_labels: frozenset[str] = frozenset()
    pod_containers: frozenset[str] = frozenset({names.CONTAINER})
    scales: bool = False
    add: Callable[[LeaderServices], None]
