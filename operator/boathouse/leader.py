"""Wire and run the parts of the leader, without decisions: watches, scheduler, reconcilers, endpoint, Kopf."""

import asyncio
import dataclasses
import time
from collections.abc import Awaitable, Callable
from typing import Final

import kopf

from boathouse import handlers
from boathouse.cluster import client, config, election, errors, events as event_writer, retries, server_time
from boathouse.options import Options
from boathouse.resources.config import OperatorConfig
from boathouse.scheduling import assembly, options, shadow
from boathouse.services import hadoop, learned, observers, own_objects
from boathouse.services.frame import controllers, reconciler, status_writer
from boathouse.services.instruments import wiring
from boathouse.services.mrcluster import kind as mrclusters
from boathouse.services.mrjob import routes as mrjobs
from boathouse.services.progress import certificates, server
from boathouse.services.sparkapp import kind as sparkapps
from boathouse.telemetry import health, logs
from boathouse.telemetry.metrics import Gauge, Metrics
from boathouse_policies import framework, profiles

_log = logs.get(__name__)
KINDS: Final[tuple[controllers.KindEntry, ...]] = (mrjobs.ENTRY, sparkapps.ENTRY, mrclusters.ENTRY)
BUNDLE_REFRESH_S: Final = 30.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LeaderContext:
    """Services of the process before it leads. `after_kopf` sets the signal handlers, which Kopf replaces, again."""

    options: Options
    cluster: config.ClusterConfig
    api: client.ApiClient
    state: health.Health
    metrics: Metrics
    election: election.LeaderElection
    events: event_writer.EventWriter
    bundles: certificates.Bundles
    authority: certificates.Authority
    cluster_id: str
    on_fatal: Callable[[str], None]
    after_kopf: Callable[[], None]


class Leader:
    """Parts of the leader. `run` ends when one of them ends."""

    def __init__(self, context: LeaderContext) -> None:
        self._context = context
        settings = context.options.config
        profile = profiles.build(settings.profile, switches=_switches(settings))
        saved: dict[str, learned.Part] = {learned.key(observer): observer for observer in profile.observers}
        guarded = observers.GuardedObservers(profile.observers, context.metrics.gauges)
        shadow_ = _shadow(settings)
        profile = dataclasses.replace(profile, observers=(guarded,) if shadow_ is None else (guarded, shadow_))
        self._scheduling = _scheduling(context, settings, profile, shadow_)
        settings.follow(self._scheduling.queue_of_namespace)
        limits, scheduler_ = settings.tenant_limits, self._scheduling.scheduler
        signals, measuring = wiring.build(context.api, settings, guarded, self._scheduling, context.metrics)
        statuses = status_writer.StatusShare(limits.status_writes_per_second, time.monotonic)
        frame = reconciler.Context(
            api=context.api,
            events=context.events,
            statuses=statuses,
            may_lead=context.election.valid,
            aside=self._scheduling.aside,
        )
        reconciling = controllers.Controllers(frame, settings, context.metrics)
        self._services = controllers.LeaderServices(
            settings=settings,
            cluster_id=context.cluster_id,
            profile=profile,
            scheduling=self._scheduling,
            controllers=reconciling,
            endpoint=server.ProgressServer(context.api, context.metrics),
            bundles=context.bundles,
            metrics=context.metrics,
            saved=saved,
            limited={
                "events": lambda: context.events.limited,
                "conditions": lambda: scheduler_.state.conditions.shares.refused,
                "statuses": lambda: statuses.refused,
            },
            signals=signals,
            applications=hadoop.Applications(reconciling.mark),
        )
        self._services.controllers.loops += measuring
        if shadow_ is not None:
            published = observers.PublishedShadow(
                context.api, settings.namespace, profile.name, shadow_, context.election.valid, context.metrics.gauges
            )
            self._services.controllers.loops.append(retries.Loop("shadow", published.save, every_s=observers.EVERY_S))
        for kind in KINDS:
            kind.add(self._services)
        self._saved_state = learned.SavedState(
            context.api, settings.namespace, self._services.saved, context.election.valid
        )
        context.metrics.gauges.add(*self._gauges())

    async def run(self) -> None:
        """Start the watches, and the other parts when the first lists are complete."""
        around = self._context
        self._scheduling.add_probes(around.state)
        async with asyncio.TaskGroup() as group:
            start(group, self._scheduling.watch(), "watches")
            await self._scheduling.synced()
            start(group, self._scheduling.run(), "scheduler")
            start(group, self._serve(), "progress endpoint")
            group.create_task(self._mark_leader(), name="mark")
            await self._load_learned()
            start(group, self._services.controllers.queue.run(), "reconciling")
            for loop in (
                retries.Loop("learning", self._saved_state.save, every_s=learned.EVERY_S),
                retries.Loop("authorities", around.bundles.refresh, every_s=BUNDLE_REFRESH_S),
                *self._services.controllers.loops,
            ):
                group.create_task(loop.run())
            await self._start_kopf(group)

    async def save_learned(self) -> None:
        """Save what was learned since the last save; call it while this process leads."""
        await self._saved_state.save_last()

    async def _mark_leader(self) -> None:
        around = self._context
        await retries.until_done(
            lambda: own_objects.mark_leader(around.api, around.options.config.namespace, around.options.identity),
            what="mark this replica as the leader",
        )

    async def _load_learned(self) -> None:
        try:
            await retries.retrying(self._saved_state.load, idempotent=True)
        except errors.ClusterError as error:
            _log.warning("cannot read the saved estimates; starting without them", error=str(error))

    async def _start_kopf(self, group: asyncio.TaskGroup) -> None:
        """Start Kopf's tasks in this event loop. When they end, Kopf cancels only the tasks that it started."""
        ours = asyncio.all_tasks()
        registry = handlers.registry(self._services.controllers.stores.values())
        handlers.login(registry, self._context.cluster)
        namespaces = self._context.options.config.watch_namespaces
        tasks = await kopf.spawn_tasks(
            registry=registry,
            settings=handlers.settings(),
            standalone=True,
            clusterwide=not namespaces,
            namespaces=namespaces,
        )
        self._context.after_kopf()
        start(group, kopf.run_tasks(tasks, ignored=ours), "kopf")

    async def _serve(self) -> None:
        around, settings = self._context, self._context.options.config
        context = certificates.server_context(around.authority, _hosts(settings), server_time.SERVER_TIME.now())
        async with self._services.endpoint.serve(context, port=settings.progress_port):
            await asyncio.Event().wait()

    def _gauges(self) -> tuple[Gauge, ...]:
        services = self._services
        return (
            Gauge(
                "boathouse_learned_bytes",
                "Size of the saved estimates by the part of a policy; other: those of other profiles",
                self._saved_state.sizes,
                ("part",),
            ),
            Gauge(
                "boathouse_tenant_limited",
                "Operations that were dropped or delayed by a namespace's limit",
                lambda: {(name,): read() for name, read in services.limited.items()},
                ("kind",),
                counts=True,
            ),
            Gauge(
                "boathouse_held_back",
                "Namespaces and jobs whose tasks are held back because the API server refused pods",
                self._scheduling.scheduler.backoffs,
                ("reason",),
            ),
            Gauge(
                "boathouse_reconcile_queue_depth",
                "Objects in the reconcile queue",
                lambda: services.controllers.queue.depth,
            ),
        )


class PartEnded(Exception):  # noqa: N818 - what happened
    """A part that should run until the process stops has ended."""


def start(group: asyncio.TaskGroup, work: Awaitable[object], name: str) -> None:
    """Run a part of the operator without which the others must not go on."""

    async def essential() -> None:
        await work
        raise PartEnded(name)

    group.create_task(essential(), name=name)


def _shadow(settings: OperatorConfig) -> shadow.Shadow | None:
    if not settings.shadow_profile:
        return None
    profile = profiles.build(settings.shadow_profile, switches=_switches(settings))
    return shadow.Shadow(profile, server_time.SERVER_TIME.now_s())


def _scheduling(
    context: LeaderContext, settings: OperatorConfig, profile: framework.Profile, shadow_: shadow.Shadow | None
) -> assembly.Scheduling:
    return assembly.Scheduling(
        context.api,
        context.election,
        context.events,
        context.metrics,
        profile=profile,
        queues=options.queues(settings),
        on_fatal=context.on_fatal,
        options=options.Options(
            namespaces=frozenset(settings.watch_namespaces),
            autoscaling=settings.autoscaling,
            pending_ahead=settings.pending_ahead,
            pod_labels=frozenset().union(*(kind.pod_labels for kind in KINDS)),
            pod_containers=frozenset().union(*(kind.pod_containers for kind in KINDS)),
            tenant_limits=settings.tenant_limits,
            switches=_switches(settings),
        ),
        queue_of=options.queue_of(settings),
        shadow_=shadow_,
    )


def _switches(settings: OperatorConfig) -> profiles.Switches:
    allowed = settings.actuators
    return profiles.Switches(
        suspend=allowed.suspend,
        resize=allowed.resize,
        speculate=allowed.speculate,
        scale=allowed.scale and any(kind.scales for kind in KINDS),
        per_site=settings.hadoop.partition == "PerSite",
        probe=settings.prediction.probe,
        switchback_s=settings.switchback.block_seconds if settings.switchback.enabled else 0.0,
    )


def _hosts(settings: OperatorConfig) -> list[str]:
    service = f"{settings.progress_service}.{settings.namespace}"
    return [settings.progress_service, service, f"{service}.svc", f"{service}.svc.cluster.local"]
