"""Assemble a scheduler and its watches."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from boathouse.cluster import boundary, catalogue, client, election, events, informer, retries, views
from boathouse.resources import names
from boathouse.scheduling import consistency, gauges, outlived, scheduler, shadow, showing, transforms
from boathouse.scheduling.options import Options
from boathouse.scheduling.pods import ownership
from boathouse.scheduling.state import ClusterState
from boathouse.scheduling.volumes import objects
from boathouse.telemetry import health
from boathouse.telemetry.metrics import Gauge, Metrics, Reading
from boathouse_policies import framework, model

WATCH_SILENCE_S = 180.0  # a watch without a message for this time is unhealthy: bookmarks arrive about once a minute

Watch = informer.Informer[Any]


class Scheduling:
    """A scheduler with its watches and gauges; run both `watch` and `run`.

    Attributes:
        aside: Objects of all kinds that were set aside.
        storage: Claims, volumes, and what provisions them, by plural.
    """

    def __init__(
        self,
        api: client.ApiClient,
        leader: election.LeaderElection,
        events: events.EventWriter,
        metrics: Metrics,
        *,
        profile: framework.Profile,
        queues: Sequence[model.Queue],
        on_fatal: Callable[[str], None],
        options: Options = Options(),  # noqa: B008 - frozen
        queue_of: ownership.QueueOf = ownership.default_queue,
        shadow_: shadow.Shadow | None = None,
    ) -> None:
        self.aside = aside = boundary.Boundary(events)
        storage, self.storage = objects.watches(api, aside)
        state = ClusterState(
            api,
            leader,
            events,
            metrics.scheduler,
            profile=profile,
            queues=queues,
            options=options,
            queue_of=queue_of,
            clock=scheduler.steady_clock(),
            storage=storage,
            aside=aside,
            shadow=shadow_,
        )
        self.scheduler = subject = scheduler.Scheduler(state, on_fatal=on_fatal)
        intake, transform_pod = subject.intake, subject.transform_pod
        for watch in self.storage.values():
            watch.subscribe(lambda _: intake.on_storage())
        # all pods that use resources or are pending, of all schedulers
        self.pods = informer.Informer(
            api,
            catalogue.PODS,
            on_change=intake.on_pod,
            fields=catalogue.PODS_THAT_HOLD_RESOURCES,
            transform=transform_pod,
            aside=aside,
        )
        self.nodes = informer.Informer(
            api, catalogue.NODES, on_change=intake.on_node, transform=transforms.node, aside=aside
        )
        # task pods that ended, in the namespaces with jobs
        self.ended = informer.Informer(
            api,
            catalogue.PODS,
            on_change=intake.on_ended,
            namespaces=sorted(options.namespaces),
            labels=names.LABEL_JOB_UID,
            fields=catalogue.PODS_THAT_ENDED,
            transform=transform_pod,
            aside=aside,
        )
        # all namespaces: their labels name their default queues, and affinity selects by them
        self.namespaces = informer.Informer(
            api, catalogue.NAMESPACES, on_change=intake.on_namespace, transform=transforms.namespace, aside=aside
        )
        self.quotas = informer.Informer(
            api, views.QUOTAS, on_change=intake.on_quota, transform=transforms.quota, aside=aside
        )
        # DeviceClasses. Nothing waits for their first list: a cluster may not serve them
        self.devices = informer.Informer(
            api,
            views.DEVICE_CLASSES,
            on_change=intake.on_device_class,
            transform=transforms.device_class,
            aside=aside,
            backoff=retries.Backoff(base_s=1.0, cap_s=600.0),
        )
        self.consistency = consistency.ConsistencyChecker(subject, self.pods, self.nodes, on_fatal=on_fatal)
        self.outlived = outlived.OutlivedPods(api, leader, state.clock)
        self.showing = showing.Showing(state, subject.executor.start)
        for on_pod in (self.outlived.on_pod, state.placeholders.on_pod, self.showing.on_pod):
            self.pods.subscribe(on_pod)
        metrics.gauges.add(*gauges.SchedulerGauges(subject).all(), *self._gauges())

    async def synced(self) -> None:
        """Wait until all watches have processed their first list."""
        for watch in (*self.storage.values(), self.namespaces, self.nodes, self.pods, self.ended, self.quotas):
            await watch.synced.wait()

    async def watch(self) -> None:
        """Follow the API server until cancelled.

        Call it after leadership has settled, so that the first list has all writes of an earlier leader.
        """
        async with asyncio.TaskGroup() as group:
            # a pod is charged to a queue when it is first observed, and its requests depend on the resources of nodes
            for first in (self.namespaces, self.nodes):
                group.create_task(first.run())
                await first.synced.wait()
            others: tuple[Watch, ...] = (self.pods, self.ended, self.quotas, self.devices, *self.storage.values())
            for watch in others:
                group.create_task(watch.run())

    async def run(self) -> None:
        """Decide and write until cancelled, once `watch` has its first lists."""
        await self.synced()
        async with asyncio.TaskGroup() as group:
            for part in (
                self.scheduler,
                self.consistency,
                retries.Loop("outlived pods", self.outlived.end_due, every_s=outlived.ROUND_S),
                retries.Loop("shown gangs", self.showing.round),
            ):
                group.create_task(part.run())

    def queue_of_namespace(self, name: str) -> str | None:
        """Return the default queue in a namespace's label, or None."""
        namespace = self.namespaces.objects.get(name)
        return None if namespace is None else namespace.metadata.labels.get(names.LABEL_QUEUE)

    def add_probes(self, state: health.Health) -> None:
        """Add liveness probes for silent watches and a stalled scheduling loop."""
        watches: dict[str, Watch] = {"pods": self.pods, "nodes": self.nodes, "ended pods": self.ended, **self.storage}
        watches |= {"namespaces": self.namespaces, "quotas": self.quotas}
        for name, watch in watches.items():
            state.liveness[f"watch of {name}"] = _freshness(watch)
            state.readiness[f"first list of {name}"] = _first_list(watch)
        state.liveness["scheduling loop"] = self.scheduler.heartbeat

    def _gauges(self) -> tuple[Gauge, ...]:
        watches: dict[str, Watch] = {"pods": self.pods, "nodes": self.nodes, "ended": self.ended, **self.storage}

        def of_watches(name: str, documentation: str, value: Callable[[Watch], float], *, counts: bool = True) -> Gauge:
            """Return a counter of all watches, or a gauge of those that have their first list."""

            def read() -> Reading:
                return {(name,): value(watch) for name, watch in watches.items() if counts or watch.synced.is_set()}

            return Gauge(f"boathouse_watch_{name}", documentation, read, ("watch",), counts)

        set_aside = "Objects that cannot be represented and were set aside, by kind and by what failed"
        age, lag = "Age of the last message of a watch", "Processing time of the last batch of events"
        return (
            Gauge("boathouse_objects_set_aside", set_aside, self._set_aside, ("kind", "reason"), counts=True),
            of_watches("freshness_seconds", age, lambda watch: watch.freshness_s(), counts=False),
            of_watches("lag_seconds", lag, lambda watch: watch.lag_s, counts=False),
            of_watches("events", "Watch events about objects", lambda watch: watch.stats.events),
            of_watches("lists", "Lists that were read completely", lambda watch: watch.stats.lists),
            of_watches("failures", "Lists and watches that failed", lambda watch: watch.stats.failures),
        )

    def _set_aside(self) -> Reading:
        zeros = {(kind, reason): 0 for kind in ("Pod", "Node") for reason in boundary.Reason}
        return {(kind, str(reason)): count for (kind, reason), count in (zeros | self.aside.counts).items()}


def _freshness(watch: Watch) -> health.Probe:
    def probe() -> str | None:
        silence_s = watch.freshness_s() if watch.synced.is_set() else 0.0
        return f"no event or bookmark for {silence_s:.0f} s" if silence_s > WATCH_SILENCE_S else None

    return probe


def _first_list(watch: Watch) -> health.Probe:
    return lambda: None if watch.synced.is_set() else "not finished"
