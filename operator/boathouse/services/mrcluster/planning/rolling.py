"""Restart nodes with new settings: transient ones by new ones, then core nodes one after the other, the master last.

Nothing rolls while a node leaves. A core node or master that serves is restarted only while HDFS has all replicas and
all other nodes are ready. One that does not serve is restarted at once, so that a spec that repairs it takes effect.
Pure.
"""

from boathouse.resources.mrcluster.names import Role
from boathouse.services.mrcluster.planning import draining, membership
from boathouse.services.mrcluster.planning.observation import FRESH_S, Draft, Observation, figures
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
    if transient:
        most = observation.cluster.spec.resizing.shrink_by
        chosen = [host for host in draining.transient_candidates(observation, draft) if host in transient][:most]
        if chosen:
            return draining.begin(observation, draft, chosen, draining.Leave.ROLLING)
    return draft.deleting(_next(observation, draft, old, waits=bool(transient)))


def _next(observation: Observation, draft: Draft, old: list[NodePod], *, waits: bool) -> NodePod | None:
    lasting = sorted((pod for pod in old if pod.role is not Role.TRANSIENT), key=lambda pod: (-_rank(pod), pod.number))
    broken = next((pod for pod in lasting if not pod.is_ready), None)
    if broken is not None or waits or not lasting:
        return broken
    return lasting[0] if _is_calm(observation, draft) else None


def _rank(pod: NodePod) -> int:
    return 0 if pod.role is Role.MASTER else 1


def _is_calm(observation: Observation, draft: Draft) -> bool:
    """Return whether a node may be away: all are there, and all replicas too."""
    report = observation.report_within(FRESH_S)
    pods = [observation.pod(host) for host in draft.state.wanted_hosts if not host.startswith("t")]
    if report is None or not draining.is_whole(observation):
        return False
    if any(pod is None or pod.is_over or not pod.is_ready for pod in pods):
        return False
    known = figures(report)
    hosts = membership.staying_hosts(draft.state, Role.CORE)
    return all(host in known and known[host].dfs is DfsState.LIVE for host in hosts)
