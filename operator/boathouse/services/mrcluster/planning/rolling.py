"""Restart nodes with new settings: transient ones by new ones, then core nodes one after the other, the master last.

Nothing rolls while a node leaves. Transient nodes are not replaced while new ones on Kubernetes nodes are not ready. A
core node or master that serves is restarted only while HDFS has all replicas and all other nodes are ready. One that
does not serve is restarted at once, so that a spec that repairs it takes effect. A core node that is not ready but has
a live DataNode comes first, though only while all other DataNodes are there. Pure.
"""

from collections.abc import Set as AbstractSet

from boathouse.resources.mrcluster.names import Role
from boathouse.services.mrcluster.planning import draining, membership
from boathouse.services.mrcluster.planning.observation import FRESH_S, Draft, Observation
from boathouse.services.mrcluster.pods.node_pod import NodePod
from boathouse_task.cluster_contract import DfsState


def roll(observation: Observation, draft: Draft) -> Draft:
    """Restart the next nodes whose settings are old, and record the settings that all nodes have."""
    old = [pod for pod in observation.nodes if pod.settings != observation.digest]
    if not old:
        return draft.with_state(settings=observation.digest) if observation.nodes else draft
    if draft.state.leaving or draft.delete:
        return draft
    transient = [pod.host for pod in old if pod.role is Role.TRANSIENT]
    if transient and not _are_starting(observation):
        most = observation.cluster.spec.resizing.shrink_by
        chosen = [host for host in draining.transient_candidates(observation, draft) if host in transient][:most]
        if chosen:
            return draining.begin(observation, draft, chosen, draining.Leave.ROLLING)
    return draft.deleting(_next(observation, draft, old, waits=bool(transient)))


def _are_starting(observation: Observation) -> bool:
    """Return whether transient nodes with the new settings have a Kubernetes node and do not serve yet."""
    return any(
        pod.role is Role.TRANSIENT
        and pod.settings == observation.digest
        and pod.node is not None
        and not (pod.is_ready or pod.is_over)
        for pod in observation.nodes
    )


def _next(observation: Observation, draft: Draft, old: list[NodePod], *, waits: bool) -> NodePod | None:
    lasting = sorted((pod for pod in old if pod.role is not Role.TRANSIENT), key=_turn)
    live = _live_data_nodes(observation)
    broken = next((pod for pod in lasting if not pod.is_ready and pod.host not in live), None)
    if broken is not None or not lasting or (waits and lasting[0].is_ready):
        return broken
    return lasting[0] if _may_restart(observation, draft, lasting[0], live) else None


def _turn(pod: NodePod) -> tuple[bool, bool, int]:
    return pod.is_ready, pod.role is Role.MASTER, pod.number


def _live_data_nodes(observation: Observation) -> frozenset[str]:
    report = observation.report_within(FRESH_S)
    return frozenset(node.host for node in report.nodes if node.dfs is DfsState.LIVE) if report else frozenset()


def _may_restart(observation: Observation, draft: Draft, pod: NodePod, live: AbstractSet[str]) -> bool:
    """Return whether a node that serves may be away: all others are there, and all replicas too.

    One with a problem does not wait for replicas. One that is not ready does not wait for others that are not ready and
    have former settings: those may wait for the same repair.
    """
    if pod.problem is None and not draining.is_whole(observation):
        return False
    lasting = (observation.pod(host) for host in draft.state.wanted_hosts if not host.startswith("t"))
    for other in lasting:
        if other is None or other.is_over:
            return False
        if not other.is_ready and (pod.is_ready or other.settings == observation.digest):
            return False
    return live >= set(membership.staying_hosts(draft.state, Role.CORE))
