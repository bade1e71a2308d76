"""Which nodes a state has, which of them stay, how nodes are added and removed, and what is recorded of them. Pure.

The numbers in a state are those of nodes that exist or shall exist, those that leave included. A number is in the
written status before its pod is submitted, and leaves it when its pod does not exist.
"""

from collections.abc import Iterable

from boathouse.resources.mrcluster import status as wire
from boathouse.resources.mrcluster.names import Role
from boathouse.services.mrcluster import model
from boathouse.services.mrcluster.model import ClusterState
from boathouse.services.mrcluster.planning.observation import Observation, Plan


def numbers(state: ClusterState, role: Role) -> tuple[int, ...]:
    """Return the numbers of all nodes of a role."""
    return state.wanted_core if role is Role.CORE else state.wanted_transient


def staying(state: ClusterState, role: Role) -> tuple[int, ...]:
    """Return the numbers of the nodes of a role that do not leave."""
    gone = state.leaving_hosts
    return tuple(number for number in numbers(state, role) if model.host_of(role, number) not in gone)


def staying_hosts(state: ClusterState, role: Role) -> tuple[str, ...]:
    """Return the hosts of a role that do not leave."""
    return tuple(model.host_of(role, number) for number in staying(state, role))


def wanted(state: ClusterState, role: Role) -> int:
    """Return how many nodes of a role the cluster shall have."""
    counts = state.core if role is Role.CORE else state.transient
    return counts.wanted if counts else len(staying(state, role))


def with_wanted(draft: Plan, role: Role, count: int) -> Plan:
    """Return a draft whose cluster shall have so many nodes of a role."""
    counts = (draft.state.core if role is Role.CORE else draft.state.transient) or wire.NodeCounts()
    return draft.with_state(**{role.value: counts.model_copy(update={"wanted": count})})


def added(draft: Plan, role: Role, new: Iterable[int]) -> Plan:
    """Return a draft with more nodes. The counter passes each number of a transient node: none is used twice."""
    merged = tuple(sorted({*numbers(draft.state, role), *new}))
    if role is Role.CORE:
        return draft.with_state(wanted_core=merged)
    following = max((draft.state.next_transient, *(number + 1 for number in merged)))
    return draft.with_state(wanted_transient=merged, next_transient=following)


def removed(draft: Plan, host: str) -> Plan:
    """Return a draft without a node."""
    role, number = model.role_of(host) or Role.TRANSIENT, model.number_of(host)
    left = tuple(other for other in numbers(draft.state, role) if other != number)
    return kept(draft, host).with_state(**{f"wanted_{role}": left})


def kept(draft: Plan, host: str) -> Plan:
    """Return a draft in which a node does not leave."""
    return draft.with_state(leaving=tuple(node for node in draft.state.leaving if node.host != host))


def record(observation: Observation, draft: Plan) -> Plan:
    """Record what holds for the whole life, the first core nodes and the ID of the HDFS, and the replication now.

    The ID is recorded when the NameNode first reports it; from then on no NameNode of the cluster may format a volume.
    """
    cluster = observation.cluster
    fields = {"observed_generation": cluster.generation, "queue": cluster.queue, "replication": cluster.replication}
    draft = draft.with_state(**fields)
    if not draft.state.first_core_nodes:
        first, start_s = cluster.spec.core.count, draft.state.start_s
        start_s = observation.now_s if start_s is None else start_s
        draft = draft.with_state(first_core_nodes=first, start_s=start_s)
        draft = with_wanted(added(draft, Role.CORE, range(first)), Role.CORE, first)
        draft = with_wanted(draft, Role.TRANSIENT, cluster.spec.transient.minimum)
    hdfs = observation.report.hdfs if observation.report else None
    if hdfs is not None and not draft.state.cluster_id:
        draft = draft.with_state(cluster_id=hdfs.cluster_id)
    return draft


def remember(observation: Observation, draft: Plan) -> Plan:
    """Note when the agent was last heard, and since when hosts have no Kubernetes node."""
    now_s, marks, age_s = observation.now_s, draft.marks, observation.report_age_s
    first_s = now_s if marks.last_report_s is None else marks.last_report_s
    hosts = [host for host in draft.state.wanted_hosts if host not in draft.state.leaving_hosts]
    unplaced_s = {host: marks.unplaced_s.get(host, now_s) for host in hosts if observation.is_unplaced(host)}
    return draft.with_marks(unplaced_s=unplaced_s, last_report_s=first_s if age_s is None else now_s - age_s)
