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
from collections.abc import Sequence
from typing import Final

from boathouse.resources.mrcluster.names import Role
from boathouse.services.mrcluster import model
from boathouse.services.mrcluster.planning import conditions, degradation, draining, replacing, sizing
from boathouse.services.mrcluster.planning.observation import READY_S, Observation, Plan

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
        steps += [replacing.replace, draining.advance, draining.undo_stalled, sizing.size, replacing.roll, _watch_use]
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
    """Return the hosts of a written state that shall have a pod and have none: the master, core, transient nodes.

    A core node that leaves is needed until its blocks are copied.
    """
    unneeded = {
        node.host for node in state.leaving if draining.has_ended(node) or model.role_of(node.host) is Role.TRANSIENT
    }
    return [host for host in state.wanted_hosts if host not in unneeded and observation.pod(host) is None]
