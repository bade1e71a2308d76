"""Replace nodes that were lost, and restart nodes with new settings. Pure.

A transient node that is lost gives its number up, and `sizing` adds another one. So does one that has no pod and is
not about to get one: it may have had a pod while no operator ran, and names of transient nodes are never used twice.
Master and core nodes come again under their names, on their claims, once the old pod's object is gone: so there are
never two NameNodes on one volume.

New settings roll transient nodes by new ones, then core nodes one after the other, the master last.
Nothing rolls while a node leaves. Transient nodes are not replaced while new ones on Kubernetes nodes are not ready. A
core node or master that serves is restarted only while HDFS has all replicas and all other nodes are ready. One that
does not serve is restarted at once, so that a spec that repairs it takes effect. A core node that is not ready but has
a live DataNode comes first, though only while all other DataNodes are there.
"""

from collections.abc import Set as AbstractSet
from typing import Final

from boathouse.resources.mrcluster.names import EventReason, Reason, Role
from boathouse.services.frame.pod_life import Problem
from boathouse.services.mrcluster.planning import draining
from boathouse.services.mrcluster.planning.observation import FRESH_S, NodePod, Observation, Plan
from boathouse_task.cluster_contract import DfsState

LOST_AFTER_S: Final = 60.0


def replace(observation: Observation, draft: Plan) -> Plan:
    """Remove pods that serve no more, and take unknown ones in."""
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
    """Take in a pod that the status does not have, because an older status was restored.

    A core node may have blocks, so that it stays. A transient node leaves.
    """
    if pod.role is Role.CORE:
        return draft if pod.is_over else draft.added(Role.CORE, [pod.number])
    draft = draft.with_state(next_transient=max(draft.state.next_transient, pod.number + 1))
    if pod.is_over:
        return draft.deleting(pod)
    if not draining.places(draft.state):
        return draft
    draft = draft.added(Role.TRANSIENT, [pod.number])
    return draining.begin(observation, draft, [pod.host], draining.Leave.UNKNOWN)


def lost_core_node(observation: Observation, draft: Plan) -> Problem | None:
    """Return which host can never run again, because its volume is on a Kubernetes node that does not exist."""
    for host, since_s in draft.marks.unplaced_s.items():
        if host in observation.lost_claims and observation.now_s - since_s >= LOST_AFTER_S:
            message = (
                f"the volume of {host} is on a node that does not exist any more: bring the node back, or delete the "
                "claim to give up the data on it"
            )
            return Problem(reason=Reason.CORE_NODE_LOST, message=message)
    return None


def roll(observation: Observation, draft: Plan) -> Plan:
    """Restart the next nodes whose settings are old, and record the settings that all nodes have."""
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
