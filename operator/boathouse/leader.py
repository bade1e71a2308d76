"""What only the leader runs: the watches and the scheduler, the reconcilers, the progress endpoint, Kopf.

Part of the composition root: it wires, and decides nothing.
"""

import asyncio
import dataclasses
import datetime as dt
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

import kopf

from boathouse.cluster import client, config, election, errors, loops, retries, store, wire
from boathouse.cluster import events as event_writer
from boathouse.handlers import objects as handlers
from boathouse.handlers import settings as kopf_settings
from boathouse.options import Options
from boathouse.resources import quantity
from boathouse.resources.config import OperatorConfig
from boathouse.scheduling import assembly, configured, scheduler
from boathouse.scheduling.tenants import variety
from boathouse.services import leadership, learned
from boathouse.services.frame import admission, metrics, object_store, reconciler, resync, status_writer, work_queue
from boathouse.services.frame.writes import NotLeading
from boathouse.services.mrjob import output_owners, podindex, policy_events, shares, task_metrics
from boathouse.services.mrjob.job.model import JobUid
from boathouse.services.mrjob.kind import MRJOB, MRJobKind
from boathouse.services.mrjob.placement import pod_builder
from boathouse.services.mrjob.progress import routes, task_messages
from boathouse.services.mrjob.splits import split_plans
from boathouse.services.progress import server, tls, trust_bundle
from boathouse.telemetry import gauges, health, logs
from boathouse.telemetry import metrics as telemetry
from boathouse_policies import framework, model, profiles, run_times

_log = logs.get(__name__)

WORKERS: Final = 4
BUNDLE_REFRESH_S: Final = 30.0
TICK_S: Final = 1.0
"""How often observers are told that time passed."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LeaderContext:
    """What the process has before it leads.

    Attributes:
        on_fatal: ends the process at once.
        cluster_id: identifies the cluster; empty when that is not known.
        after_kopf: called when Kopf has started (it takes the signals for itself).
    """

    asked: Options
    cluster: config.ClusterConfig
    api: client.ApiClient
    state: health.Health
    metrics: telemetry.Metrics
    election: election.LeaderElection
    events: event_writer.EventWriter
    bundles: trust_bundle.Bundles
    authority: tls.Authority
    cluster_id: str
    on_fatal: Callable[[str], None]
    after_kopf: Callable[[], None]


class Leader:
    """The leader's parts; `run` ends when one of them does."""

    def __init__(self, context: LeaderContext) -> None:
        self._context = context
        settings = context.asked.config
        profile = profiles.build(settings.profile)
        self._scheduling = _scheduling(context, settings, profile)
        settings.follow(self._scheduling.queue_of_namespace)
        self._learner = run_times.Learner()
        self._policy_events = policy_events.PolicyEvents(profile.observers, self._learner, scheduler.steady_clock())
        self._learned = learned.SavedState(
            context.api, settings.namespace, _memory(profile, self._learner), context.election.valid
        )
        self._queue = work_queue.WorkQueue(self._reconcile, workers=WORKERS, metrics=context.metrics.registry)
        limits = settings.tenant_limits
        self._jobs = object_store.ObjectStore(
            MRJOB, self._queue.add, admission.Admission(limits.max_unfinished_jobs, limits.max_job_mebibytes * 2**20)
        )
        self._pods = podindex.PodIndex(self._mark, asyncio.get_running_loop().call_later)
        self._plans = split_plans.Plans(context.api, limit_bytes=limits.max_plan_mebibytes * 2**20)
        self._task_messages = task_messages.TaskMessages(self._policy_events.report)
        self._endpoint = server.ProgressServer(context.api, context.metrics)
        self._statuses = status_writer.StatusShare(limits.status_writes_per_second, time.monotonic)
        self._shares = shares.Shares(limits, time.monotonic)
        frame = reconciler.Context(
            api=context.api,
            objects=self._jobs,
            events=context.events,
            metrics=metrics.ObjectMetrics(MRJOB, context.metrics.registry, context.metrics.gauges),
            statuses=self._statuses,
            may_lead=context.election.valid,
            aside=self._scheduling.aside,
        )
        kind = MRJobKind(
            frame=frame,
            pod_index=self._pods,
            plans=self._plans,
            scheduler=self._scheduling.scheduler,
            task_messages=self._task_messages,
            bundle=context.bundles,
            metrics=task_metrics.TaskMetrics(context.metrics.registry),
            config=settings,
            pod_settings=_pod_settings(settings, context.cluster_id),
            shares=self._shares,
            learner=self._learner,
            policy_events=self._policy_events,
        )
        self._reconciler = reconciler.Reconciler(kind, frame)
        self._resync = resync.Resync(MRJOB, context.api, self._jobs, tuple(settings.watch_namespaces))
        self._scheduling.on_node.subscribe(self._node_changed)
        self._scheduling.on_pod.subscribe(self._pods.on_pod)
        self._scheduling.on_ended.subscribe(self._pods.on_ended)
        self._add_gauges(context.metrics.gauges)

    async def run(self) -> None:
        """Watch first; decide when the first lists are through."""
        around = self._context
        self._scheduling.add_probes(around.state)
        async with asyncio.TaskGroup() as group:
            self._start(group, self._scheduling.watch(), "watches")
            await self._scheduling.synced()
            self._start(group, self._scheduling.run(), "scheduler")
            self._start(group, self._serve(), "progress endpoint")
            group.create_task(self._mark_leader(), name="mark")
            await self._load_learned()
            self._start(group, self._queue.run(), "reconciling")
            for name, action, every_s in (
                ("learning", self._learned.save, learned.EVERY_S),
                ("ticks", self._policy_events.tick, TICK_S),
                ("authorities", around.bundles.refresh, BUNDLE_REFRESH_S),
            ):
                self._start(group, loops.Loop(name, action, every_s=every_s).run(), name)
            self._start(group, self._resync.run(), "resync")
            await self._start_kopf(group)

    async def _mark_leader(self) -> None:
        around = self._context
        await retries.until_done(
            lambda: leadership.mark(around.api, around.asked.config.namespace, around.asked.identity),
            what="mark this replica as the leader",
        )

    async def _load_learned(self) -> None:
        """Go on from what was learnt, or after a while without it."""
        try:
            await retries.retrying(self._learned.load, idempotent=True)
        except errors.ClusterError as error:
            _log.warning("cannot read the saved estimates, starting without them", error=str(error))

    def _start(self, group: asyncio.TaskGroup, work: Coroutine[Any, Any, object], name: str) -> None:
        async def essential() -> None:
            await work
            raise RuntimeError(f"{name} has ended")

        group.create_task(essential(), name=name)

    async def _start_kopf(self, group: asyncio.TaskGroup) -> None:
        """Kopf runs as some tasks among ours; when they end, it cancels only what it started."""
        ours = asyncio.all_tasks()
        registry = handlers.registry(self._jobs)
        kopf_settings.login(registry, self._context.cluster)
        namespaces = self._context.asked.config.watch_namespaces
        tasks = await kopf.spawn_tasks(
            registry=registry,
            settings=kopf_settings.settings(),
            standalone=True,
            clusterwide=not namespaces,
            namespaces=namespaces,
        )
        self._context.after_kopf()
        self._start(group, kopf.run_tasks(tasks, ignored=ours), "kopf")

    async def _serve(self) -> None:
        around, settings = self._context, self._context.asked.config
        tasks = routes.TaskRoutes(
            task_messages=self._task_messages,
            pods=self._pods,
            plans=self._plans,
            owners=self._owners(),
            on_plan=self._mark,
        )
        self._endpoint.add(tasks.find, tasks.routes())
        context = tls.server_context(around.authority, _hosts(settings), dt.datetime.now(dt.UTC))
        async with self._endpoint.serve(context, port=settings.progress_port):
            await asyncio.Event().wait()

    def _owners(self) -> output_owners.Owners:
        return output_owners.Owners(
            jobs=self._jobs,
            pods=self._pods,
            scheduler=self._scheduling.scheduler,
            cluster=self._context.cluster_id,
            namespaces=frozenset(self._context.asked.config.watch_namespaces),
            listed=self._resync.listed,
        )

    def _node_changed(self, change: store.Change[wire.NodeView]) -> None:
        name = model.NodeName(change.key)
        self._policy_events.node_changed(
            name, self._scheduling.scheduler.state.pods.nodes.get(name)
        )  # as the scheduler took it in

    async def _reconcile(self, key: str) -> float | None:
        try:
            return await self._reconciler.reconcile(key)
        except NotLeading:
            return TICK_S  # this process is about to end; what is due is its successor's

    def _limited(self) -> gauges.Reading:
        return {
            ("events",): float(self._context.events.stats.limited),
            ("conditions",): float(self._scheduling.scheduler.state.conditions.shares.refused),
            ("statuses",): float(self._statuses.refused),
            ("retries",): float(self._shares.retries.refused),
        }

    def _mark(self, uid: JobUid) -> None:
        key = self._jobs.key(uid)
        if key is not None:
            self._queue.add(key)

    def _add_gauges(self, target: gauges.ScrapeGauges) -> None:
        target.add(
            gauges.Gauge(
                name="boathouse_tenant_limited",
                documentation="Operations dropped or delayed because a namespace used up its limit",
                labels=("kind",),
                read=self._limited,
                counts=True,
            ),
            gauges.Gauge(
                name="boathouse_held_back",
                documentation="Namespaces and jobs whose tasks are held back because the API server refused pods",
                labels=("reason",),
                read=self._scheduling.scheduler.held_back,
            ),
            gauges.Gauge(
                name="boathouse_reconcile_queue_depth",
                documentation="Objects in the reconcile queue",
                read=lambda: {(): float(self._queue.depth)},
            ),
            gauges.Gauge(
                name="boathouse_mrjob_reporting_tasks",
                documentation="Running tasks that have reported",
                read=lambda: {(): float(sum(map(len, self._task_messages.all_reports().values())))},
            ),
        )


def _memory(profile: framework.Profile, learner: run_times.Learner) -> dict[str, learned.Part]:
    """Who has something to remember, by names that stay."""
    return {
        "estimates": learner,
        **{f"{profile.name}/{type(each).__name__}": each for each in profile.observers},
    }


def _scheduling(context: LeaderContext, settings: OperatorConfig, profile: framework.Profile) -> assembly.Scheduling:
    return assembly.assemble(
        context.api,
        context.election,
        context.events,
        context.metrics,
        profile=profile,
        queues=configured.queues(settings),
        on_fatal=context.on_fatal,
        options=scheduler.Options(
            namespaces=frozenset(settings.watch_namespaces),
            pending_ahead=settings.pending_ahead,
            conditions_per_s=settings.tenant_limits.status_writes_per_second,
            shape_limits=variety.Limits(
                shapes=settings.tenant_limits.max_shapes, constraints=settings.tenant_limits.max_constraints
            ),
        ),
        queue_of=configured.queue_of(settings),
    )


def _hosts(settings: OperatorConfig) -> list[str]:
    """The names by which tasks may know the endpoint's Service."""
    service = f"{settings.progress_service}.{settings.namespace}"
    return [settings.progress_service, service, f"{service}.svc", f"{service}.svc.cluster.local"]


def _pod_settings(settings: OperatorConfig, cluster_id: str) -> pod_builder.PodSettings:
    return pod_builder.PodSettings(
        progress_url=f"https://{settings.progress_service}.{settings.namespace}.svc",
        scratch_bytes=quantity.units(settings.task.scratch_size),
        image_pull_secrets=tuple(settings.task.image_pull_secrets),
        not_ready_toleration_s=settings.task.not_ready_toleration_seconds,
        cluster=cluster_id,
    )
