"""The life of a cluster and its nodes: one step after another, each of which adds to a draft. Pure.

| phase | goes to | when |
|---|---|---|
| Pending | Starting | the first pod is submitted |
| Starting, Degraded | Ready | the agent reports, HDFS is out of safe mode, and nodes are there |
| Ready | Degraded | something is lost, or the master does not report |
| Ready, Degraded | Starting | the master's pod is away |
| any | Expired | the cluster was not used for `ttlSecondsAfterIdle` |

The state is written before anything is deleted, ordered or submitted. What is submitted follows from the state alone
(`wanted`), so a crash leaves no pod that the status does not have.
"""

import dataclasses
from collections.abc import Sequence, Set as AbstractSet
from typing import Final

from boathouse.resources.mrcluster.names import EventReason, Role
from boathouse.services.mrcluster import model
from boathouse.services.mrcluster.planning import conditions, degradation, draining, sizing
from boathouse.services.mrcluster.planning.observation import FRESH_S, READY_S, NodePod, Observation, Plan
from boathouse_task.cluster_contract import DfsState

NOTED_EVERY_S: Final = 60.0
BUSY_REQUEUE_S: Final = 5.0
IDLE_REQUEUE_S: Final = 20.0


def _record(observation: Observation, draft: Plan) -> Plan:
    """Record what holds for the whole life, the first core nodes and the ID of the HDFS, and the replication now.

    The ID is recorded when the NameNode first reports it; from then on no NameNode of the cluster may format a volume.
    """
    cluster = observation.cluster
    draft = draft.with_state(
        observed_generation=cluster.generation, queue=cluster.queue, replication=cluster.replication
    )
    if not draft.state.first_core_nodes:
        first, start_s = cluster.spec.core.count, draft.state.start_s
        draft = draft.with_state(first_core_nodes=first, start_s=observation.now_s if start_s is None else start_s)
        draft = draft.added(Role.CORE, range(first)).with_wanted(Role.CORE, first)
        draft = draft.with_wanted(Role.TRANSIENT, cluster.spec.transient.minimum)
    hdfs = observation.report.hdfs if observation.report else None
    if hdfs is not None and not draft.state.cluster_id:
        draft = draft.with_state(cluster_id=hdfs.cluster_id)
    return draft


def _remember(observation: Observation, draft: Plan) -> Plan:
    """Note when the agent was last heard, and since when hosts have no Kubernetes node."""
    now_s, marks, age_s = observation.now_s, draft.marks, observation.report_age_s
    first_s = now_s if marks.last_report_s is None else marks.last_report_s
    hosts = [host for host in draft.state.wanted_hosts if host not in draft.state.leaving_hosts]
    unplaced_s = {host: marks.unplaced_s.get(host, now_s) for host in hosts if observation.is_unplaced(host)}
    return draft.with_marks(unplaced_s=unplaced_s, last_report_s=first_s if age_s is None else now_s - age_s)


def _replace(observation: Observation, draft: Plan) -> Plan:
    """Remove pods that serve no more, and take unknown ones in.

    A transient node that is lost gives its number up, and `sizing` adds another one. So does one that has no pod and is
    not about to get one: it may have had a pod while no operator ran, and names of transient nodes are never used
    twice. Master and core nodes come again under their names, on their claims, once the old pod's object is gone: so
    there are never two NameNodes on one volume.
    """
    for pod in observation.nodes:
        is_known = pod.role is Role.MASTER or pod.number in draft.state.numbers(pod.role)
        if not is_known:
            draft = _adopted(observation, draft, pod)
        elif pod.is_over and pod.host not in draft.state.leaving_hosts:
            draft = _lost(draft, pod)
        elif pod.is_over and pod.role is Role.CORE:
            draft = draft.deleting(pod)  # it is needed until its blocks are copied
    for host in draft.state.staying(Role.TRANSIENT):
        if observation.is_absent(host) and host in observation.state.wanted_hosts:
            draft = draft.removed(host)
    return draft


def _lost(draft: Plan, pod: NodePod) -> Plan:
    draft = draft.deleting(pod)
    if pod.role is not Role.TRANSIENT:
        return draft
    why = "its pod was deleted" if pod.deleting_since_s is not None else "its pod has ended"
    why = f"node {pod.node} does not exist any more" if pod.node_gone else why
    return draft.removed(pod.host).with_event(EventReason.NODE_REPLACED, f"{pod.host} was lost: {why}")


def _adopted(observation: Observation, draft: Plan, pod: NodePod) -> Plan:
    """Take in a pod that a restored status lacks: a core node stays, as it may have blocks; a transient one leaves."""
    if pod.role is Role.CORE:
        return draft if pod.is_over else draft.added(Role.CORE, [pod.number])
    draft = draft.with_state(next_transient=max(draft.state.next_transient, pod.number + 1))
    if pod.is_over:
        return draft.deleting(pod)
    if not draining.places(draft.state):
        return draft
    draft = draft.added(Role.TRANSIENT, [pod.number])
    return draining.begin(observation, draft, [pod.host], draining.Leave.UNKNOWN)


def _roll(observation: Observation, draft: Plan) -> Plan:
    """Restart the next nodes whose settings are old, and record the settings that all nodes have.

    Transient nodes are replaced by new ones, then core nodes restart one after the other, the master last. Nothing
    rolls while a node leaves. Transient nodes are not replaced while new ones on Kubernetes nodes are not ready. A core
    node or master that serves is restarted only while HDFS has all replicas and all other nodes are ready. One that
    does not serve is restarted at once, so that a spec that repairs it takes effect. A core node that is not ready but
    has a live DataNode comes first, though only while all other DataNodes are there.
    """
    old = [pod for pod in observation.nodes if pod.settings != observation.rendered.digest]
    if not old:
        return draft.with_state(settings=observation.rendered.digest) if observation.nodes else draft
    if draft.state.leaving or draft.delete:
        return draft
    transient = [pod.host for pod in old if pod.role is Role.TRANSIENT]
    is_starting = any(
        pod.role is Role.TRANSIENT and pod.node is not None and not (pod.is_ready or pod.is_over)
        for pod in observation.nodes
        if pod.settings == observation.rendered.digest
    )
    if transient and not is_starting:
        most = observation.cluster.spec.resizing.shrink_by
        chosen = [host for host in draining.transient_candidates(observation, draft) if host in transient][:most]
        if chosen:
            return draining.begin(observation, draft, chosen, draining.Leave.ROLLING)
    return draft.deleting(_next(observation, draft, old, waits=bool(transient)))


def _next(observation: Observation, draft: Plan, old: list[NodePod], *, waits: bool) -> NodePod | None:
    lasting = [pod for pod in old if pod.role is not Role.TRANSIENT]
    lasting.sort(key=lambda pod: (pod.is_ready, pod.role is Role.MASTER, pod.number))
    report = observation.report_within(FRESH_S)
    live = frozenset(node.host for node in report.nodes if node.dfs is DfsState.LIVE) if report else frozenset()
    broken = next((pod for pod in lasting if not pod.is_ready and pod.host not in live), None)
    if broken is not None or not lasting or (waits and lasting[0].is_ready):
        return broken
    return lasting[0] if _may_restart(observation, draft, lasting[0], live) else None


def _may_restart(observation: Observation, draft: Plan, pod: NodePod, live: AbstractSet[str]) -> bool:
    """Return whether a node that serves may be away: all others are there, and all replicas too.

    One with a problem does not wait for replicas. One that is not ready does not wait for others that are not ready and
    have former settings: those may wait for the same repair.
    """
    if pod.problem is None and draining.why_not_whole(observation):
        return False
    for host in draft.state.wanted_hosts:
        lasting = observation.pod(host)
        if host.startswith("t"):
            continue
        if lasting is None or lasting.is_over:
            return False
        if not lasting.is_ready and (pod.is_ready or lasting.settings == observation.rendered.digest):
            return False
    return live >= set(draft.state.staying(Role.CORE))


def _watch_use(observation: Observation, draft: Plan) -> Plan:
    """Note when the cluster was last in use, and let it expire once its time is over.

    Without a recent report it is unknown whether applications run, so the time does not count as idle. The time also
    counts from this process's first observation: the cluster may have been in use while no operator ran.
    """
    report, now_s, marks = observation.report_within(READY_S), observation.now_s, draft.marks
    if report is None or (report.yarn is None and observation.cluster.spec.compute):
        return draft.with_marks(idle_s=None, no_application_s=None)
    yarn = report.yarn
    has_application = yarn is not None and bool(yarn.apps_running or yarn.apps_pending or yarn.running or yarn.pending)
    unused_s, idle_s = (now_s if since_s is None else since_s for since_s in (marks.no_application_s, marks.idle_s))
    draft = draft.with_marks(
        no_application_s=None if has_application else unused_s,
        idle_s=None if has_application or observation.users else idle_s,
    )
    last_s = draft.state.last_active_s
    if draft.marks.idle_s is None:
        is_new = last_s is None or now_s - last_s >= NOTED_EVERY_S
        return draft.with_state(last_active_s=now_s) if is_new else draft
    return draft if _expiry_s(observation, draft) > now_s else draft.with_state(phase="Expired", completion_s=now_s)


def _expiry_s(observation: Observation, draft: Plan) -> float:
    """Return when the cluster expires if nobody uses it; infinity for never."""
    ttl_s, idle_s = observation.cluster.spec.ttl_seconds_after_idle, draft.marks.idle_s
    if ttl_s is None or idle_s is None or draft.state.ready_s is None:
        return float("inf")
    return max(idle_s, draft.state.last_active_s or 0.0) + ttl_s


def plan(observation: Observation) -> Plan:
    """Return what to do next; the same for the same observation."""
    draft = Plan(state=observation.state, marks=observation.marks)
    if draft.state.is_finished:
        return draft
    halt = observation.halt
    steps = [_record, _remember, degradation.remember, draining.remember]
    if not halt:
        steps += [_replace, draining.advance, draining.undo_stalled, sizing.size, _roll, _watch_use]
    for step in steps:
        draft = step(observation, draft)
    if draft.state.is_finished:
        return Plan(state=conditions.expired(observation, draft), marks=draft.marks)
    draft = conditions.in_progress(observation, draft)
    submit = () if halt else wanted(draft.state, observation)
    is_busy = bool(submit or draft.delete or draft.state.leaving or draft.state.phase != "Ready")
    later_s = observation.now_s + (BUSY_REQUEUE_S if is_busy else IDLE_REQUEUE_S)
    requeue_s = max(observation.now_s + 1.0, min(later_s, _expiry_s(observation, draft)))
    return dataclasses.replace(draft, submit=submit, requeue_s=requeue_s)


def wanted(state: model.ClusterState, observation: Observation) -> Sequence[str]:
    """Return the hosts without a pod that shall have one; a core node is needed until its blocks are copied."""
    unneeded = {
        node.host for node in state.leaving if draining.has_ended(node) or model.role_of(node.host) is Role.TRANSIENT
    }
    return [host for host in state.wanted_hosts if host not in unneeded and observation.pod(host) is None]
