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

import functools
from collections.abc import Callable, Sequence
from typing import Final

from boathouse.resources.mrcluster.names import Role
from boathouse.services.mrcluster import naming
from boathouse.services.mrcluster.cluster import Cluster
from boathouse.services.mrcluster.planning import (
    conditions,
    draining,
    failing,
    idle,
    lifecycle,
    replacing,
    rolling,
    sizing,
)
from boathouse.services.mrcluster.planning.observation import Draft, Observation, Plan, Wanted
from boathouse.services.mrcluster.state.cluster_state import ClusterState

BUSY_REQUEUE_S: Final = 5.0
CALM_REQUEUE_S: Final = 20.0
_Step = Callable[[Observation, Draft], Draft]
_ALWAYS: Final[tuple[_Step, ...]] = (lifecycle.record, lifecycle.remember, failing.remember, draining.remember)
_UNLESS_HALTED: Final[tuple[_Step, ...]] = (
    replacing.replace,
    draining.advance,
    draining.undo_stalled,
    sizing.size,
    rolling.roll,
    idle.watch,
)


def plan(observation: Observation) -> Plan:
    """Return what to do next; the same for the same observation."""
    if observation.state.is_finished:
        return Plan(state=observation.state, marks=observation.marks)
    halt = observation.halt
    steps = _ALWAYS if halt else (*_ALWAYS, *_UNLESS_HALTED)
    draft = functools.reduce(
        lambda draft, step: step(observation, draft), steps, Draft(state=observation.state, marks=observation.marks)
    )
    if draft.state.is_finished:
        return Plan(state=conditions.expired(observation, draft), marks=draft.marks)
    draft = conditions.in_progress(observation, draft)
    submit = () if halt else wanted(draft.state, observation)
    return Plan(
        state=draft.state,
        delete=draft.delete,
        submit=submit,
        ensure=() if halt else claims(observation.cluster, draft.state),
        consumed=draft.consumed,
        requeue_s=_requeue_s(observation, draft, submit),
        events=draft.events,
        marks=draft.marks,
    )


def wanted(state: ClusterState, observation: Observation) -> Sequence[Wanted]:
    """Return the hosts of a written state that shall have a pod and have none: the master, core, transient nodes.

    A core node that leaves is needed until its blocks are copied.
    """
    unneeded = {
        node.host for node in state.leaving if draining.has_ended(node) or naming.role_of(node.host) is Role.TRANSIENT
    }
    hosts = [host for host in state.wanted_hosts if host not in unneeded and observation.pod(host) is None]
    return [Wanted(host=host, role=role) for host in hosts if (role := naming.role_of(host)) is not None]


def claims(cluster: Cluster, state: ClusterState) -> Sequence[str]:
    """Return the hosts of a state that need a claim."""
    master = () if cluster.spec.master.volume.empty_dir else (naming.MASTER,)
    core = () if cluster.spec.core.volume.empty_dir else state.wanted_core
    return (*master, *(naming.host_of(Role.CORE, number) for number in core))


def _requeue_s(observation: Observation, draft: Draft, submit: Sequence[Wanted]) -> float:
    is_busy = bool(submit or draft.delete or draft.state.leaving or draft.state.phase != "Ready")
    later_s = observation.now_s + (BUSY_REQUEUE_S if is_busy else CALM_REQUEUE_S)
    return max(observation.now_s + 1.0, min(later_s, idle.expiry_s(observation, draft)))
