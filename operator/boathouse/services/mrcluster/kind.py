"""MRCluster on the frame: observe a cluster, plan, and create what its nodes need.

The status says which nodes exist or shall exist. Only what was written of it is ordered, submitted or deleted, so a
process that ends at any point leaves a state from which its successor goes on.
"""

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from boathouse.resources.mrcluster import status as wire
from boathouse.resources.mrcluster.names import POD_LABELS, ConditionType, Role
from boathouse.resources.names import Reason
from boathouse.scheduling import scheduler
from boathouse.services.frame import (
    controllers,
    pod_index,
    pod_life,
    protocols,
    related_objects,
    status_codec,
    status_writer,
    writes,
)
from boathouse.services.frame.kind import (
    OBSTACLE_REQUEUE_S,
    Body,
    KindDefinition,
    ObjectUid,
    Refusal,
    is_submission_due,
    refusing,
    revision,
)
from boathouse.services.frame.writes import Writes
from boathouse.services.mrcluster import (
    cluster_metrics,
    files,
    model,
    network_probe,
    objects,
    placement,
    pods,
    scaling,
    sizes,
)
from boathouse.services.mrcluster.agent import AgentRoutes, OrderBook, Reports
from boathouse.services.mrcluster.planning import conditions, planner, sizing
from boathouse.services.mrcluster.planning.observation import NO_SIZES, Marks, NodePod, Observation, Plan, node_pod
from boathouse_policies import model as policy
from boathouse_task.cluster_contract import AgentReport

APPLY_AGAIN_S: Final = 600.0
"""The interval at which the Service, the NetworkPolicies and the settings are created again if a user deleted them."""

MRCLUSTER: Final = KindDefinition(
    resource=model.MRCLUSTERS,
    noun="cluster",
    phases=("Pending", "Starting", "Ready", "Degraded", "Expired"),
    terminal_phases=model.TERMINAL,
    urgent_fields=model.URGENT_FIELDS,
    phase_events={"Starting": "Started"},
)
_CONDITION_OF_PHASE: Final = {
    "Pending": ConditionType.SCHEDULED,
    "Degraded": ConditionType.DEGRADED,
    "Expired": ConditionType.IDLE,
}
"""The condition whose message is the text of the event about a phase."""


_Submission = tuple[placement.NodePods, Sequence[str], Sequence[NodePod], int]
"""What `placement.of` makes the scheduler's input of."""


@dataclasses.dataclass(slots=True)
class ClusterMemory(status_writer.Memory[model.ClusterState]):
    """The data about a cluster that this process keeps beyond its status.

    `digests` are of the settings that pods had, and `ensured` that of the ConfigMap that exists, or empty. `network` is
    the `networkPolicy` that was applied, with the Service. `claimed` are hosts whose claims were created or found, and
    `held` those that shall have a pod and are not submitted yet. The policies know the report `reported`.
    """

    marks: Marks = dataclasses.field(default_factory=Marks)
    rendered: tuple[model.Cluster, files.Rendered] | None = None
    digests: set[str] = dataclasses.field(default_factory=set)
    ensured: str = ""
    network: str = ""
    applied_s: float = 0.0
    claimed: set[str] = dataclasses.field(default_factory=set)
    obstacle: pod_life.Problem | None = None
    held: frozenset[str] = frozenset()
    submitted: tuple[_Submission, float] | None = None
    reported: AgentReport | None = None


class MRClusterKind:
    """Implements `protocols.Kind` for MRClusters, with the nodes of all clusters and their agents."""

    definition: ClassVar[KindDefinition] = MRCLUSTER
    status_format: ClassVar[status_writer.StatusFormat[model.ClusterState]] = model
    remember: ClassVar[type[ClusterMemory]] = ClusterMemory
    refuse = staticmethod(conditions.refused)

    def __init__(self, leader: controllers.LeaderServices) -> None:
        self._context, self._settings = leader.controllers.context, leader.settings
        self._scheduler, self._mark = leader.scheduling.scheduler, leader.controllers.mark
        self._clusters, self._applications, self._bundles = leader.clusters, leader.applications, leader.bundles
        self.pods = pod_index.PodIndex(node_pod, self._mark, asyncio.get_running_loop().call_later)
        self.reports = Reports(self._mark, self._context.monotonic, self._context.now)
        self.orders = OrderBook(
            leader.applications, epoch=lambda: self._scheduler.state.leader.epoch, may_lead=self._context.may_lead
        )
        self.scaling = scaling.Scaling(leader.profile, scheduler.steady_clock(), self._mark)
        self.network = network_probe.NetworkProbe(self._canaries, self._mark, monotonic=self._context.monotonic)
        self._events = writes.ObjectEvents(MRCLUSTER, self._context.events)
        self._related = related_objects.RelatedObjects(self._context.api, self._context.monotonic)
        self._metrics = cluster_metrics.ClusterMetrics(leader.metrics, self.reports.age_s)

    @refusing
    def parse(self, body: Body) -> model.Cluster | Refusal:
        """Return the cluster, or why it cannot run."""
        cluster = model.from_resource(body, self._settings)
        if isinstance(cluster, Refusal):
            return cluster
        if not self._settings.task.image:
            return Refusal(reason=Reason.INVALID_SPEC, message="no image of the agent: set the chart's task image")
        sizes.check(cluster)
        return cluster

    def life(self, cluster: model.Cluster) -> protocols.Life:
        """Return when the cluster was created. One that has expired is deleted at once."""
        return protocols.Life(created_s=cluster.created_s, ttl_s=0.0, wants_finalizer=False)

    def load(self, status: Mapping[str, Any], _cluster: model.Cluster | None) -> model.ClusterState:
        """Return the state that a status describes."""
        return model.from_status(status)

    def note(self, cluster: model.Cluster, state: model.ClusterState) -> str:
        """Return the text of the event about the phase."""
        condition = state.condition(_CONDITION_OF_PHASE.get(state.phase, ""))
        counts = f"{_ready(state.core)} core and {_ready(state.transient)} transient nodes are ready"
        return (condition.message if condition else counts) or f"in queue {cluster.queue}"

    def restored(self, uid: ObjectUid) -> None:
        """Give no orders before the restored status is reconciled."""
        self.orders.forget(uid)

    def forget(self, uid: ObjectUid, namespace: str) -> None:
        """Drop everything about a cluster that is gone, and withdraw its nodes."""
        self._scheduler.withdraw(policy.JobId(uid))
        self.scaling.end(uid, succeeded=True)
        self.orders.forget(uid)
        self.reports.forget(uid)
        self._applications.forget(uid)
        self._clusters.forget(uid)
        self._metrics.forget(uid)
        self._bundles.forget(namespace)

    async def observe(self, cluster: model.Cluster, memory: ClusterMemory) -> Observation:
        """Collect everything that the plan depends on."""
        uid = cluster.uid
        if memory.rendered is None or memory.rendered[0] != cluster:
            memory.rendered = cluster, files.render(cluster)
        nodes = [pod_life.with_node(pod, self._scheduler.state.pods.nodes) for pod in self.pods.of(uid)]
        memory.digests |= {pod.settings for pod in nodes if pod.settings}
        report = self.reports.last(uid)
        creating = (cluster.host(task.partition("/")[2]) for task in self._scheduler.creating(policy.JobId(uid)))
        return Observation(
            cluster=cluster,
            state=memory.state,
            rendered=memory.rendered[1],
            now_s=self._context.now(),
            nodes=nodes,
            report=report,
            report_age_s=self.reports.age_s(uid),
            taken=frozenset(filter(None, creating)) | memory.held,
            lost_claims=self._lost_claims(cluster, memory.state, nodes),
            target=self.scaling.target(uid),
            is_ordered=report is not None and self.orders.holds(uid, report.version),
            diagnosis=memory.obstacle or self._scheduler.diagnosis(policy.JobId(uid)),
            unreachable=memory.obstacle if not memory.network else None,
            sizes=sizes.of(cluster) if cluster.spec.compute else NO_SIZES,
            users=self._clusters.users(uid),
            probe=self.network.finding(uid),
            marks=memory.marks,
        )

    def plan(self, observation: Observation, memory: ClusterMemory) -> protocols.Desired[model.ClusterState]:
        """Return the desired state of a cluster, with the effects of the frame's order."""
        plan = planner.plan(observation)
        memory.marks = plan.marks
        then = self._withdraw if plan.state.is_finished else self._go_on
        return protocols.Desired(
            before_status=[partial(self._remove_settings, memory, memory.state.settings, plan, observation)],
            state=plan.state,
            after_status=[partial(self._publish, memory, memory.state, plan, observation)],
            delete=[(pod.name, pod.uid) for pod in plan.delete],
            after=[partial(self._order, observation), partial(then, memory, plan, observation)],
            recheck_at_s=plan.requeue_s,
        )

    def _lost_claims(
        self, cluster: model.Cluster, state: model.ClusterState, nodes: Sequence[NodePod]
    ) -> Sequence[str]:
        seen = self._scheduler.state
        placed = {pod.host for pod in nodes if pod.life is not pod_life.PodLife.UNPLACED}
        return [
            host
            for host in state.wanted_hosts
            if host not in placed
            and objects.has_claim(cluster, host)
            and objects.is_lost(seen.volumes.storage, seen.pods.nodes.values(), cluster.claim_key(host))
        ]

    def _canaries(self) -> dict[ObjectUid, str]:
        """Return the addresses of masters whose agents listen on the ports for the test of the network."""
        masters = ((uid, pod) for uid, pod in self.pods if pod.role is Role.MASTER and not pod.is_over and pod.address)
        reports = ((uid, pod, self.reports.last(uid)) for uid, pod in masters)
        return {uid: pod.address for uid, pod, report in reports if report is not None and report.canary}

    # Acting on a plan

    async def _remove_settings(
        self, memory: ClusterMemory, former: str, plan: Plan, observation: Observation, writes: Writes
    ) -> None:
        """Delete former settings once all pods have those of the spec, before the status says so.

        Those that this process does not know, because its predecessor ended while nodes got them, stay until the
        cluster is deleted: the operator may not list ConfigMaps.
        """
        digest = observation.rendered.digest
        if plan.state.settings != digest or any(pod.settings != digest for pod in observation.nodes):
            return
        await objects.remove_settings(observation.cluster, ({former} | memory.digests) - {"", digest}, writes)
        memory.digests = {digest}

    async def _publish(
        self, memory: ClusterMemory, before: model.ClusterState, plan: Plan, observation: Observation, _writes: Writes
    ) -> None:
        cluster = observation.cluster
        for event in plan.events:
            self._events.publish(cluster.key, cluster.uid, event.reason, event.message, is_warning=event.is_warning)
        self._metrics.changed(cluster, before, plan.state)
        self._clusters.put(conditions.cluster_facts(observation, plan.state))
        if _is_written(memory):
            self.scaling.use(cluster.uid, plan.consumed)
        sized = sizing.for_policy(observation, Plan(state=plan.state, marks=plan.marks))
        if sized is None or observation.report is not memory.reported:
            memory.reported = observation.report
            master = observation.pod(model.MASTER)
            task = policy.TaskId(f"{cluster.namespace}/{cluster.named(model.MASTER)}")
            self.scaling.report(cluster.uid, sized, master=task, node=master.node if master else None)

    async def _order(self, observation: Observation, writes: Writes) -> None:
        cluster = observation.cluster
        body = writes.objects.get(cluster.key)
        if body is None or body["metadata"]["uid"] != cluster.uid:
            return
        with writes.attempt("orders"):
            self.orders.publish(cluster.uid, model.from_status(body.get("status")), revision(body))

    async def _withdraw(self, _memory: ClusterMemory, _plan: Plan, observation: Observation, _writes: Writes) -> None:
        self._scheduler.withdraw(policy.JobId(observation.cluster.uid))

    async def _go_on(self, memory: ClusterMemory, plan: Plan, observation: Observation, writes: Writes) -> float | None:
        """Create what the nodes need, and have those scheduled that the written status has."""
        written, former = model.from_status(memory.written), memory.obstacle
        memory.held = frozenset(plan.submit)
        due = [host for host in planner.wanted(written, observation) if host in memory.held]
        wanted = await self._prepare(memory, due, observation, writes)
        unplaced = [pod for pod in observation.nodes if observation.is_unplaced(pod.host) and pod not in plan.delete]
        node_pods = placement.NodePods(
            cluster=observation.cluster,
            rendered=observation.rendered,
            may_format=not (written.cluster_id or plan.state.cluster_id),
        )
        priority = await self._related.priority(observation.cluster.priority_class)
        self._submit(memory, (node_pods, wanted, [] if observation.halt else unplaced, priority), observation, writes)
        memory.held -= set(wanted)
        if memory.obstacle is None:
            return None
        return OBSTACLE_REQUEUE_S if former and former.reason == memory.obstacle.reason else 0.0

    async def _prepare(
        self, memory: ClusterMemory, wanted: Sequence[str], observation: Observation, writes: Writes
    ) -> Sequence[str]:
        """Create what hosts need; returns those that have it."""
        cluster, rendered = observation.cluster, observation.rendered
        memory.obstacle, now_s = None, observation.now_s
        if memory.network != cluster.spec.network_policy or now_s >= memory.applied_s + APPLY_AGAIN_S:
            memory.obstacle = await objects.apply_network(cluster, writes)
            memory.network = "" if memory.obstacle else cluster.spec.network_policy
            memory.ensured, memory.applied_s = "", now_s
        if wanted or observation.nodes:  # agents that run must trust a new leader's certificate, too
            await self._bundles.ensure(cluster.namespace)
        if wanted and memory.obstacle is None and memory.ensured != rendered.digest:
            memory.obstacle = await objects.ensure_settings(cluster, rendered, writes)
            memory.ensured = "" if memory.obstacle else rendered.digest
        if memory.obstacle is not None:
            return []
        return [host for host in wanted if await self._has_claim(memory, cluster, host, writes)]

    async def _has_claim(self, memory: ClusterMemory, cluster: model.Cluster, host: str, writes: Writes) -> bool:
        """Create the claim of a host unless it exists, or the host has none; returns whether its pod may follow."""
        exists = cluster.claim_key(host) in self._scheduler.state.volumes.storage.claims
        if not objects.has_claim(cluster, host) or (exists and host in memory.claimed):
            return True
        problem = await objects.ensure_claim(cluster, host, writes)
        memory.obstacle = memory.obstacle or problem
        if problem is None:
            memory.claimed.add(host)
        return problem is None

    def _submit(self, memory: ClusterMemory, submission: _Submission, observation: Observation, writes: Writes) -> None:
        now_s, (node_pods, wanted, unplaced, priority) = self._context.monotonic(), submission
        if not is_submission_due(memory.submitted, submission, now_s, is_pending=bool(wanted or unplaced)):
            return
        nodes = placement.of(node_pods, wanted, unplaced, priority=priority)
        with writes.attempt("submit"):
            self.scaling.submit(observation.cluster.uid, nodes.submission(sizing.policy_constants(observation)))
            if nodes.tasks:
                placement.submit(self._scheduler, nodes)
            else:
                self._scheduler.withdraw(nodes.job.id)
        memory.submitted = submission, now_s


def _is_written(memory: ClusterMemory) -> bool:
    """Return whether the urgent parts of the state are in the written status."""
    status = status_codec.stripped(model.to_status(memory.state))
    return all(status.get(field) == memory.written.get(field) for field in model.URGENT_FIELDS)


def _ready(counts: wire.NodeCounts | None) -> str:
    return f"{counts.ready} of {counts.wanted}" if counts else "0"


def add(leader: controllers.LeaderServices) -> None:
    """Add the kind MRCluster with its routes and watches."""
    kind = MRClusterKind(leader)
    leader.controllers.add(kind)
    leader.controllers.loops.append(kind.network.loop)
    scheduling = leader.scheduling
    agents = AgentRoutes(
        pods=kind.pods,
        namespace_of=lambda uid: facts.namespace if (facts := leader.clusters.get(uid)) else None,
        reports=kind.reports,
        orders=kind.orders,
        applications=leader.applications,
        now=leader.controllers.context.now,
    )
    leader.endpoint.add(agents.find, agents.routes())
    scheduling.scheduler.adjuster.scaler = kind.scaling.take
    scheduling.nodes.subscribe(kind.pods.on_node)
    scheduling.pods.subscribe(kind.pods.on_pod)
    scheduling.ended.subscribe(kind.pods.on_ended)


ENTRY: Final = controllers.KindEntry(pod_labels=POD_LABELS, pod_containers=pods.CONTAINERS, scales=True, add=add)
