"""Replace nodes that were lost. Pure.

A transient node that is lost gives its number up, and `sizing` adds another one. So does one that has no pod and is
not about to get one: it may have had a pod while no operator ran, and names of transient nodes are never used twice.
Master and core nodes come again under their names, on their claims, once the old pod's object is gone: so there are
never two NameNodes on one volume.
"""

from typing import Final

from boathouse.resources.mrcluster.names import EventReason, Reason, Role
from boathouse.services.frame.pod_life import Problem
from boathouse.services.mrcluster.planning import draining, membership
from boathouse.services.mrcluster.planning.observation import Draft, Observation
from boathouse.services.mrcluster.pods.node_pod import NodePod

LOST_AFTER_S: Final = 60.0


def replace(observation: Observation, draft: Draft) -> Draft:
    """Remove pods that serve no more, and take unknown ones in."""
    for pod in observation.nodes:
        is_known = pod.role is Role.MASTER or pod.number in membership.numbers(draft.state, pod.role)
        if not is_known:
            draft = _found(observation, draft, pod)
        elif pod.is_over and pod.host not in draft.state.leaving_hosts:
            draft = _lost(draft, pod)
        elif pod.is_over and pod.role is Role.CORE:
            draft = draft.deleting(pod)  # it is needed until its blocks are copied
    for host in membership.staying_hosts(draft.state, Role.TRANSIENT):
        if observation.is_absent(host) and host in observation.state.wanted_hosts:
            draft = membership.removed(draft, host)
    return draft


def _lost(draft: Draft, pod: NodePod) -> Draft:
    draft = draft.deleting(pod)
    if pod.role is not Role.TRANSIENT:
        return draft
    return membership.removed(draft, pod.host).with_event(
        EventReason.NODE_REPLACED, f"{pod.host} was lost: {_why(pod)}"
    )


def _why(pod: NodePod) -> str:
    if pod.node_gone:
        return f"node {pod.node} does not exist any more"
    return "its pod was deleted" if pod.deleting_since_s is not None else "its pod has ended"


def _found(observation: Observation, draft: Draft, pod: NodePod) -> Draft:
    """Take in a pod that the status does not have, because an older status was restored.

    A core node may have blocks, so that it stays. A transient node leaves.
    """
    if pod.role is Role.CORE:
        return draft if pod.is_over else membership.added(draft, Role.CORE, [pod.number])
    draft = draft.with_state(next_transient=max(draft.state.next_transient, pod.number + 1))
    if pod.is_over:
        return draft.deleting(pod)
    if not draining.places(draft.state):
        return draft
    draft = membership.added(draft, Role.TRANSIENT, [pod.number])
    return draining.begin(observation, draft, [pod.host], draining.Leave.UNKNOWN)


def lost_core_node(observation: Observation, draft: Draft) -> Problem | None:
    """Return which host can never run again, because its volume is on a Kubernetes node that does not exist."""
    for host, since_s in draft.marks.unplaced_s.items():
        claim = observation.claims.get(host)
        if claim is not None and claim.is_lost and observation.now_s - since_s >= LOST_AFTER_S:
            message = (
                f"the volume of {host} is on a node that does not exist any more: bring the node back, or delete the "
                "claim to give up the data on it"
            )
            return Problem(reason=Reason.CORE_NODE_LOST, message=message)
    return None
