"""SparkApp on the frame: observe an application, plan, and create what its attempts need."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any, ClassVar, Final

from boathouse.cluster import boundary, catalogue, errors, informer, store, wire
from boathouse.resources import names
from boathouse.resources.sparkapp.names import LABEL_ATTEMPT, LABEL_TASK_TYPE, TASK_TYPE_EXECUTOR, ConditionType, Reason
from boathouse.resources.sparkapp.status import ExecutorCounts
from boathouse.scheduling import scheduler
from boathouse.scheduling.pods import facts
from boathouse.services import hadoop
from boathouse.services.frame import controllers, pod_index, pod_life, protocols, related_objects, status_writer
from boathouse.services.frame.kind import (
    OBSTACLE_REQUEUE_S,
    PENDING_REQUEUE_S,
    Body,
    KindDefinition,
    ObjectUid,
    Refusal,
    is_submission_due,
)
from boathouse.services.frame.writes import ObjectEvents, Writes, problem_of
from boathouse.services.sparkapp import (
    app_metrics,
    conditions,
    executor_pods,
    gang,
    model,
    objects,
    planner,
    pods,
    policy_events,
    rest,
    user_properties,
)
from boathouse.services.sparkapp.observation import (
    DRIVER_FAILED,
    AppPod,
    DriverPod,
    Observation,
    Plan,
    driver_pod,
    ended,
)
from boathouse_policies import model as policy, run_times

DELETED_AT_ONCE: Final = 100
"""Executors of a driver that ended that one reconcile deletes."""

SPARKAPP: Final = KindDefinition(
    resource=model.SPARKAPPS,
    noun="application",
    phases=("Pending", "Suspended", "Starting", "Running", "Restarting", "Succeeded", "Failed"),
    terminal_phases=model.TERMINAL,
    urgent_fields=("attempt",),
    phase_events={"Starting": "DriverPlaced", "Running": "DriverStarted"},
)
_CONDITION_OF_PHASE: Final = {
    "Pending": ConditionType.SCHEDULED,
    "Starting": ConditionType.SCHEDULED,
    "Suspended": ConditionType.SUSPENDED,
    "Succeeded": ConditionType.SUCCEEDED,
    "Failed": ConditionType.FAILED,
}
"""The condition whose message is the text of the event about a phase."""


@dataclasses.dataclass(slots=True)
class AppMemory(status_writer.Memory[model.AppState]):
    """The data about an application that this process keeps beyond its status.

    The ConfigMap of the attempt `created` exists. `has_service` is None before it is known whether the Service of the
    UI exists. The pod of the attempt `vanished` came and went, as far as the scheduler knows.
    """

    submitted: tuple[gang.Gang, float] | None = None
    created: int = 0
    has_service: bool | None = None
    obstacle: pod_life.Problem | None = None
    vanished: int = 0


class SparkAppKind:
    """Implements `protocols.Kind` for SparkApps, with the drivers and executors of all applications."""

    definition: ClassVar[KindDefinition] = SPARKAPP
    status_format: ClassVar[status_writer.StatusFormat[model.AppState]] = model
    remember: ClassVar[type[AppMemory]] = AppMemory
    refuse = staticmethod(conditions.refused)

    def __init__(self, leader: controllers.LeaderServices) -> None:
        later = asyncio.get_running_loop().call_later
        self._context, self._settings = leader.controllers.context, leader.settings
        self._scheduler, self._mark = leader.scheduling.scheduler, leader.controllers.mark
        self.executors = executor_pods.ExecutorPods(self._mark_owner, later)
        self.drivers = pod_index.PodIndex(
            driver_pod, self._mark, later, on_gone=lambda driver: self.executors.forget(driver.namespace, driver.uid)
        )
        self.reports = rest.Reports(self._mark, self._context.monotonic)
        self.learner = run_times.Learner()
        self.policy_events = policy_events.PolicyEvents(
            leader.profile.observers, self.learner, scheduler.steady_clock(), self._context.now
        )
        self._clusters = leader.clusters
        self._events = ObjectEvents(SPARKAPP, self._context.events)
        self._related = related_objects.RelatedObjects(self._context.api, self._context.monotonic)
        self._metrics = app_metrics.AppMetrics(
            leader.metrics, lambda: [self.executors.count(pod.namespace, pod.uid) for _, pod in self.drivers]
        )

    def parse(self, body: Body) -> model.App | Refusal:
        """Return the application, or why it cannot run."""
        return model.from_resource(body, self._settings)

    def life(self, app: model.App) -> protocols.Life:
        """Return when the application was created, and what happens after its end."""
        return protocols.Life(created_s=app.created_s, ttl_s=app.spec.ttl_seconds_after_finished, wants_finalizer=False)

    def load(self, status: Mapping[str, Any], _app: model.App | None) -> model.AppState:
        """Return the state that a status describes."""
        return model.from_status(status)

    def note(self, app: model.App, state: model.AppState) -> str:
        """Return the text of the event about the phase."""
        condition = state.condition(_CONDITION_OF_PHASE.get(state.phase, ConditionType.RUNNING))
        return (condition.message if condition else "") or f"in queue {app.queue}"

    def restored(self, uid: ObjectUid) -> None:
        """Do nothing: all that is kept of an application is in its memory."""

    def forget(self, uid: ObjectUid, namespace: str) -> None:
        """Drop everything about an application that is gone, and withdraw its driver."""
        self.reports.forget(uid)
        self._clusters.use(uid, ())
        self.policy_events.ended(uid, succeeded=False)
        for pod in self.drivers.of(uid):
            self.executors.forget(namespace, pod.uid)
        self.executors.forget_app(uid)
        self._scheduler.withdraw(policy.JobId(uid))

    async def observe(self, app: model.App, memory: AppMemory) -> Observation:
        """Collect everything that the plan depends on."""
        state, drivers = memory.state, list(self.drivers.of(app.uid))
        current = next((pod for pod in drivers if pod.attempt == state.attempt), None)
        may_be_lost = state.phase in {"Starting", "Running"} or memory.vanished == state.attempt
        is_lost = False
        if current is None and not state.is_settled and may_be_lost:
            current = await self._read_driver(app, state.attempt)
            is_lost = current is None
            drivers += [current] if current is not None else []
        if app.mounts_objects:
            drivers = [await self._related.with_mounts(pod, app.namespace, self._context.now()) for pod in drivers]
        waits = current is None and not (state.is_finished or app.spec.suspend)
        return Observation(
            app=app,
            state=state,
            now_s=self._context.now(),
            drivers=[pod_life.with_node(pod, self._scheduler.state.pods.nodes) for pod in drivers],
            executors=self._executors(app, state, current),
            is_lost=is_lost,
            is_in_flight=state.is_settled and self._scheduler.may_create(policy.JobId(app.uid)),
            obstacle=memory.obstacle,
            diagnosis=self._scheduler.diagnosis(policy.JobId(app.uid)),
            report=self.reports.of(app.uid, current.uid) if current else rest.Report(),
            refusal=await self._refusal(app, memory) if waits else None,
            has_service=memory.has_service,
        )

    def plan(self, observation: Observation, memory: AppMemory) -> protocols.Desired[model.AppState]:
        """Return the desired state of an application, with the effects of the frame's order."""
        plan = planner.plan(observation)
        orphans = [
            pod
            for driver in plan.orphaned
            for pod in self.executors.some(observation.app.namespace, driver.uid, DELETED_AT_ONCE)
        ]
        then = self._withdraw if plan.submit is None else self._go_on
        return protocols.Desired(
            state=plan.state,
            after_status=[partial(self._count, observation.app, memory.state, plan.state)],
            delete=[*((pod.name, pod.uid) for pod in plan.delete), *orphans],
            after=[partial(then, memory, plan, observation)],
            recheck_at_s=plan.requeue_s,
            is_at_rest=plan.state.phase == "Suspended" and not (observation.drivers or observation.is_in_flight),
        )

    def _mark_owner(self, namespace: str, driver_uid: str) -> None:
        uid = self.drivers.object_of(driver_uid)
        drivers = self.drivers.of(uid) if uid is not None else ()
        if uid is not None and any((pod.uid, pod.namespace) == (driver_uid, namespace) for pod in drivers):
            self._mark(uid)
        else:
            self.executors.forget(namespace, driver_uid)

    def _executors(self, app: model.App, state: model.AppState, driver: DriverPod | None) -> ExecutorCounts:
        """Return the executors of the current attempt; those that failed before this process are in the status."""
        if driver is None:
            return ExecutorCounts()
        failed = state.executors.failed if state.executors else 0
        self.executors.follow(app.namespace, driver.uid, app=app.uid, failed=failed)
        pending, running, failed = self.executors.count(app.namespace, driver.uid)
        return ExecutorCounts(pending=pending, running=running, failed=failed)

    async def _read_driver(self, app: model.App, attempt: int) -> DriverPod | None:
        """Read a driver's pod that no watch shows; None if there is none."""
        try:
            view = await self._context.api.get(catalogue.PODS, app.attempt(attempt).driver_pod, app.namespace)
        except errors.NotFound:
            return None
        pod = self._scheduler.transform_pod(view)
        return driver_pod(pod) if pod.task_of == app.uid else None

    async def _refusal(self, app: model.App, memory: AppMemory) -> Refusal | None:
        if not await self._related.has_account(app.namespace, app.account):
            message = (
                f'the namespace {app.namespace} has no service account "{app.account}" for drivers: run kubectl '
                f"boathouse enable-spark -n {app.namespace}, or add the namespace to spark.namespaces of the chart"
            )
            return Refusal(reason=Reason.SERVICE_ACCOUNT_NOT_FOUND, message=message)
        if memory.created == memory.state.attempt != 0:
            return None
        for cluster in self._clusters.unlisted(app.namespace, app.hadoop_clusters):
            if await self._related.uid(hadoop.MRCLUSTERS, app.namespace, cluster) is not None:
                return Refusal(reason=names.Reason.CLUSTER_NOT_READY, message=hadoop.not_reconciled(cluster))
            return Refusal(reason=names.Reason.CLUSTER_NOT_FOUND, message=hadoop.not_found(app.namespace, cluster))
        for volume in app.spec.volumes or ():
            name = volume.config_map_name
            if name and (why := await self._related.missing_config_map(app.namespace, name)):
                return Refusal(
                    reason=names.Reason.CONFIG_MAP_NOT_FOUND, message=f"volume {volume.name}: {why}: create it"
                )
        return None

    async def _count(
        self, app: model.App, before: model.AppState, after: model.AppState, _writes: Writes
    ) -> float | None:
        self._metrics.changed(before, after)
        used = () if after.is_finished else self._clusters.find_all(app.namespace, app.hadoop_clusters)
        self._clusters.use(app.uid, [cluster.uid for cluster in used])
        is_known = after.is_finished or not self._clusters.unlisted(app.namespace, app.hadoop_clusters)
        return None if is_known else hadoop.UNKNOWN_REQUEUE_S

    def _follow(self, app: model.App, pod: DriverPod | None) -> None:
        if pod is not None and self.reports.follows(app.uid, pod.uid, pod.address):
            return
        port = user_properties.ports(app.conf)[user_properties.UI]
        if pod is None or pod.state is not pod_life.PodLife.RUNNING or not pod.address or not port:
            self.reports.forget(app.uid)
            return
        attempt = app.attempt(pod.attempt)
        self.reports.follow(
            rest.Target(
                uid=app.uid,
                namespace=app.namespace,
                pod_uid=pod.uid,
                address=pod.address,
                port=port,
                application_id=attempt.application_id,
                expected=rest.relied_on(objects.properties(app, attempt)),
                reads_spills=app.ideal_executor is not None,
            )
        )

    def _pods(self, observation: Observation) -> list[AppPod]:
        """Return the drivers and executors of all attempts. A driver that failed takes its executors with it."""
        found: list[AppPod] = []
        for driver in observation.drivers:
            executors = self.executors.take(observation.app.namespace, driver.uid)
            if driver.state is pod_life.PodLife.FAILED:
                executors = [ended(pod, DRIVER_FAILED) for pod in executors]
            found += [driver, *executors]
        return found

    async def _withdraw(self, memory: AppMemory, plan: Plan, observation: Observation, _writes: Writes) -> None:
        uid, pods = observation.app.uid, self._pods(observation)
        if plan.state.is_finished or observation.app.spec.suspend:
            self.policy_events.ended(uid, succeeded=plan.state.phase == "Succeeded", pods=pods)
        else:
            self.policy_events.update_pods(uid, pods)
        self.reports.forget(uid)
        memory.submitted = None
        self._scheduler.withdraw(policy.JobId(uid))

    async def _go_on(self, memory: AppMemory, plan: Plan, observation: Observation, writes: Writes) -> float | None:
        attempt = plan.submit or 0
        if memory.written.get("attempt") != attempt:
            return None  # its number must be in the status before anything has it
        pod = observation.driver(attempt)
        app = gang.with_chosen_memory(observation.app, pod)
        self._follow(app, pod)
        if pod is None and memory.created != attempt and not await self._create(memory, app, attempt, writes):
            return OBSTACLE_REQUEUE_S if memory.obstacle == observation.obstacle else 0.0
        await self._ensure_service(memory, app, plan, writes)
        wanted = gang.of(
            app,
            attempt,
            minimum=plan.reserve,
            driver_uid=pod.uid if pod is not None and pod.node is None else "",
            priority=await self._related.priority(app.priority_class),
            estimates=self._estimates(app, plan, pod),
        )
        spilled = observation.report.spilled_bytes
        self.policy_events.update(app.uid, wanted, self._pods(observation), spilled_bytes=spilled)
        self._submit(memory, wanted, plan, observation, writes)
        if memory.vanished == attempt:
            return 0.0
        return PENDING_REQUEUE_S if pod is None or pod.state is pod_life.PodLife.UNPLACED else None

    def _estimates(self, app: model.App, plan: Plan, driver: DriverPod | None) -> policy.Estimates:
        """Return the executors' run times by memory before there is a driver; after a failure they have all of it."""
        stage = gang.executor_stage(app)
        if stage is None or driver is not None or plan.state.failures.application:
            return policy.UNKNOWN
        return self.learner.estimates(stage, 0.0)

    async def _create(self, memory: AppMemory, app: model.App, attempt: int, writes: Writes) -> bool:
        """Create the ConfigMap of an attempt; returns False if the driver's pod must not be created yet."""
        clusters = self._clusters.find_all(app.namespace, app.hadoop_clusters)
        manifest = objects.config_map(app, app.attempt(attempt), clusters)
        memory.obstacle = await _problem(writes.ensure(catalogue.CONFIG_MAPS, manifest, "config-map"))
        if memory.obstacle is None:
            memory.created, memory.has_service = attempt, None
        return memory.obstacle is None

    async def _ensure_service(self, memory: AppMemory, app: model.App, plan: Plan, writes: Writes) -> None:
        """Create the Service of the UI once for each attempt, and for a driver of an earlier process that has none."""
        driver, attempt = plan.state.driver, plan.submit or 0
        has_address = driver is not None and driver.ui_address is not None
        if memory.has_service is not None or not app.has_service or (has_address and memory.created != attempt):
            return
        why = await _problem(writes.ensure(catalogue.SERVICES, objects.service(app, app.attempt(attempt)), "service"))
        memory.has_service = why is None
        if why is not None:  # a driver runs without it
            self._events.publish(app.key, app.uid, "NoService", f"Spark's UI has no Service: {why.message}")

    def _submit(
        self, memory: AppMemory, wanted: gang.Gang, plan: Plan, observation: Observation, writes: Writes
    ) -> None:
        now_s, app, attempt = self._context.monotonic(), observation.app, plan.submit or 0
        if not is_submission_due(memory.submitted, wanted, now_s):
            return
        factory = gang.DriverFactory(app=app, attempt=app.attempt(attempt))
        with writes.attempt("submit"):
            over = self._scheduler.submit(wanted.job, (wanted.driver, wanted.executor), wanted.tasks, factory)
        is_known = any(pod.attempt == attempt for pod in self.drivers.of(app.uid))
        memory.submitted = None if over else (wanted, now_s)
        memory.vanished = attempt if over and not is_known else 0


async def _problem(write: Awaitable[wire.Manifest | None]) -> pod_life.Problem | None:
    return await problem_of(write, refused=Reason.CONFIG_MAP_REFUSED, taken=Reason.NAME_TAKEN, noun="application")


def add(leader: controllers.LeaderServices) -> None:
    """Let a leader reconcile SparkApps, with their watches."""
    kind = SparkAppKind(leader)
    leader.controllers.add(kind)
    scheduling = leader.scheduling
    scheduling.nodes.subscribe(kind.drivers.on_node)
    scheduling.pods.subscribe(kind.drivers.on_pod)
    scheduling.pods.subscribe(kind.executors.on_pod)
    scheduling.ended.subscribe(kind.drivers.on_ended)
    leader.saved["spark-estimates"] = kind.learner
    leader.controllers.loops += [kind.reports, _ended_executors(leader, kind)]


def _ended_executors(leader: controllers.LeaderServices, kind: SparkAppKind) -> informer.Informer[facts.PodFacts]:
    """Return the watch of executors that ended: Boathouse's other watch of ended pods shows only its own."""
    context = leader.controllers.context

    def changed(change: store.Change[facts.PodFacts]) -> None:
        if watch.synced.is_set():  # those of the first list ended before this process
            context.aside.run(
                catalogue.PODS,
                store.subject(change).metadata,
                boundary.Reason.HANDLING,
                kind.executors.on_ended,
                change,
            )

    watch = informer.Informer(
        context.api,
        catalogue.PODS,
        on_change=changed,
        namespaces=sorted(leader.settings.watch_namespaces),
        labels=f"{executor_pods.LABEL_ROLE}={TASK_TYPE_EXECUTOR}",
        fields=catalogue.PODS_THAT_ENDED,
        transform=leader.scheduling.scheduler.transform_pod,
        aside=context.aside,
    )
    return watch


ENTRY: Final = controllers.KindEntry(
    pod_labels=frozenset({LABEL_TASK_TYPE, LABEL_ATTEMPT, executor_pods.LABEL_ROLE}),
    pod_containers=frozenset({pods.DRIVER_CONTAINER, pods.EXECUTOR_CONTAINER}),
    add=add,
)
