"""Assemble a scheduler and its watches."""

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from boathouse.cluster import boundary, catalogue, client, informer, retries, views, wire
from boathouse.cluster import events as event_writer
from boathouse.resources import names
from boathouse.scheduling import consistency, outlived, scheduler, shadow, showing, transforms, writer
from boathouse.scheduling import gauges as scheduler_gauges
from boathouse.scheduling.pods import facts, ownership
from boathouse.scheduling.volumes import objects as storage_watches
from boathouse.telemetry import health, metrics
from boathouse_policies import framework, model

WATCH_SILENCE_S = 180.0
"""A watch without a message for this time is unhealthy: bookmarks arrive about once a minute."""

Watch = informer.Informer[Any]


@dataclasses.dataclass(slots=True, kw_only=True)
class Scheduling:
    """A scheduler with its watches; run both `watch` and `run`.

    Attributes:
        scheduler: The scheduler.
        pods: All pods that use resources or are pending, of all schedulers.
        nodes: All nodes.
        ended: Task pods that ended, in the namespaces with jobs.
        storage: Claims, volumes and their provisioners.
        aside: Objects of all kinds that were set aside.
        namespaces: All namespaces: their labels name their default queues, and affinity selects by them.
        quotas: ResourceQuotas.
        devices: DeviceClasses. Nothing waits for their first list: a cluster may not serve them.
        outlived: Ends pods whose own container has ended.
        showing: Shows pending gangs to a cluster autoscaler.
    """

    scheduler: scheduler.Scheduler
    pods: informer.Informer[facts.PodFacts]
    nodes: informer.Informer[wire.NodeView]
    ended: informer.Informer[facts.PodFacts]
    storage: storage_watches.StorageWatches
    namespaces: informer.Informer[wire.ObjectView]
    quotas: informer.Informer[views.QuotaView]
    devices: informer.Informer[views.DeviceClassView]
    aside: boundary.Boundary
    consistency: consistency.ConsistencyChecker
    outlived: outlived.OutlivedPods
    showing: showing.Showing

    async def synced(self) -> None:
        """Wait until all watches have processed their first list."""
        await self.storage.synced()
        await self.namespaces.synced.wait()
        for watch in (self.nodes, self.pods, self.ended, self.quotas):
            await watch.synced.wait()

    async def watch(self) -> None:
        """Follow the API server until cancelled.

        Call it after leadership has settled, so that the first list has all writes of an earlier leader.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self.namespaces.run())
            await self.namespaces.synced.wait()  # first, because a pod is charged to a queue when it is first observed
            group.create_task(self.nodes.run())
            await (
                self.nodes.synced.wait()
            )  # second, because the stored requests of a pod depend on the resources of nodes
            for watch in (self.pods, self.ended, self.quotas, self.devices):
                group.create_task(watch.run())
            group.create_task(self.storage.run())

    async def run(self) -> None:
        """Decide and write until cancelled, once `watch` has its first lists."""
        await self.synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.scheduler.run())
            group.create_task(self.consistency.run())
            group.create_task(
                retries.Loop("outlived pods", self.outlived.end_due, every_s=outlived.ROUND_S).run(),
            )
            group.create_task(retries.Loop("shown gangs", self.showing.round).run())

    def queue_of_namespace(self, name: str) -> str | None:
        """Return the default queue in a namespace's label, or None."""
        namespace = self.namespaces.objects.get(name)
        return None if namespace is None else namespace.metadata.labels.get(names.LABEL_QUEUE)

    def add_probes(self, state: health.Health) -> None:
        """Add liveness probes for silent watches and a stalled scheduling loop."""
        for name, watch in (
            ("pods", self.pods),
            ("nodes", self.nodes),
            ("ended pods", self.ended),
            *self.storage,
            ("namespaces", self.namespaces),
            ("quotas", self.quotas),
        ):
            state.add_liveness(f"watch of {name}", _freshness(watch))
            state.add_readiness(f"first list of {name}", _first_list(watch))
        state.add_liveness("scheduling loop", self.scheduler.heartbeat)


def assemble(
    api: client.ApiClient,
    leader: writer.Leadership,
    events: event_writer.EventWriter,
    metrics_: metrics.Metrics,
    *,
    profile: framework.Profile,
    queues: Sequence[model.Queue],
    on_fatal: Callable[[str], None],
    options: scheduler.Options = scheduler.Options(),  # noqa: B008 - frozen
    queue_of: ownership.QueueOf = ownership.default_queue,
    shadow_: shadow.Shadow | None = None,
) -> Scheduling:
    """Return a scheduler with its watches and gauges, ready to run."""
    aside = boundary.Boundary(events)
    storage = storage_watches.StorageWatches(api, aside)
    subject = scheduler.Scheduler(
        api,
        leader,
        events,
        metrics_,
        profile=profile,
        queues=queues,
        on_fatal=on_fatal,
        options=options,
        queue_of=queue_of,
        storage=storage.objects,
        aside=aside,
        shadow_=shadow_,
    )
    storage.subscribe(subject.intake.on_storage)
    pods = informer.Informer(
        api,
        catalogue.PODS,
        on_change=subject.intake.on_pod,
        fields=catalogue.PODS_THAT_HOLD_RESOURCES,
        transform=subject.transform_pod,
        aside=aside,
    )
    sidecars = outlived.OutlivedPods(api, leader, subject.state.clock)
    pods.subscribe(sidecars.on_pod)
    pods.subscribe(subject.state.placeholders.on_pod)
    shown = showing.Showing(api, leader, subject.state, subject.pod_writer, subject.executor)
    pods.subscribe(shown.on_pod)
    nodes = informer.Informer(
        api, catalogue.NODES, on_change=subject.intake.on_node, transform=transforms.node, aside=aside
    )
    ended = informer.Informer(
        api,
        catalogue.PODS,
        on_change=subject.intake.on_ended,
        namespaces=sorted(options.namespaces),
        labels=names.LABEL_JOB_UID,
        fields=catalogue.PODS_THAT_ENDED,
        transform=subject.transform_pod,
        aside=aside,
    )
    _count_set_aside(metrics_.gauges, aside)
    scheduler_gauges.SchedulerGauges(subject, leader).register(metrics_.gauges)
    _watch_gauges(metrics_.gauges, {"pods": pods, "nodes": nodes, "ended": ended, **dict(storage)})
    return Scheduling(
        scheduler=subject,
        pods=pods,
        nodes=nodes,
        ended=ended,
        storage=storage,
        namespaces=informer.Informer(
            api,
            catalogue.NAMESPACES,
            on_change=subject.intake.on_namespace,
            transform=transforms.namespace,
            aside=aside,
        ),
        quotas=informer.Informer(
            api, views.QUOTAS, on_change=subject.intake.on_quota, transform=transforms.quota, aside=aside
        ),
        devices=informer.Informer(
            api,
            views.DEVICE_CLASSES,
            on_change=subject.intake.on_device_class,
            transform=transforms.device_class,
            aside=aside,
            backoff=retries.Backoff(base_s=1.0, cap_s=600.0),
        ),
        aside=aside,
        consistency=consistency.ConsistencyChecker(subject, pods, nodes, on_fatal=on_fatal),
        outlived=sidecars,
        showing=shown,
    )


def _count_set_aside(target: metrics.ScrapeGauges, aside: boundary.Boundary) -> None:
    zeros: dict[tuple[str, ...], float] = {
        (kind, str(reason)): 0.0 for kind in ("Pod", "Node") for reason in boundary.Reason
    }
    target.add(
        metrics.Gauge(
            name=f"{metrics.PREFIX}_objects_set_aside",
            documentation="Objects that cannot be represented and were set aside, by kind and by what failed",
            labels=("kind", "reason"),
            read=lambda: zeros | {(kind, str(reason)): float(count) for (kind, reason), count in aside.counts.items()},
            counts=True,
        )
    )


def _freshness(watch: Watch) -> health.Probe:
    def probe() -> str | None:
        silence_s = watch.freshness_s() if watch.synced.is_set() else 0.0
        return f"no event or bookmark for {silence_s:.0f} s" if silence_s > WATCH_SILENCE_S else None

    return probe


def _first_list(watch: Watch) -> health.Probe:
    return lambda: None if watch.synced.is_set() else "not finished"


def _watch_gauges(target: metrics.ScrapeGauges, watches: dict[str, Watch]) -> None:
    def read(value: Callable[[Watch], float]) -> Callable[[], metrics.Reading]:
        return lambda: {(name,): value(watch) for name, watch in watches.items()}

    def read_synced(value: Callable[[Watch], float]) -> Callable[[], metrics.Reading]:
        return lambda: {(name,): value(watch) for name, watch in watches.items() if watch.synced.is_set()}

    prefix = f"{metrics.PREFIX}_watch_"
    target.add(
        metrics.Gauge(
            name=f"{prefix}freshness_seconds",
            documentation="Age of the last message of a watch",
            labels=("watch",),
            read=read_synced(lambda watch: watch.freshness_s()),
        ),
        metrics.Gauge(
            name=f"{prefix}lag_seconds",
            documentation="Processing time of the last batch of events",
            labels=("watch",),
            read=read_synced(lambda watch: watch.lag_s),
        ),
    )
    for name, documentation, value in (
        ("events", "Watch events about objects", lambda watch: float(watch.stats.events)),
        ("lists", "Lists that were read completely", lambda watch: float(watch.stats.lists)),
        ("failures", "Lists and watches that failed", lambda watch: float(watch.stats.failures)),
    ):
        target.add(
            metrics.Gauge(
                name=prefix + name, documentation=documentation, labels=("watch",), read=read(value), counts=True
            )
        )
