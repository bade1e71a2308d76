"""Which nodes a state has, which of them stay, and how nodes are added and removed. Pure.

The numbers in a state are those of nodes that exist or shall exist, those that leave included. A number is in the
written status before its pod is submitted, and leaves it when its pod does not exist.
"""

from collections.abc import Iterable

from boathouse.resources.mrcluster import status as wire
from boathouse.resources.mrcluster.names import Role
from boathouse.services.mrcluster import naming
from boathouse.services.mrcluster.planning.observation import Draft
from boathouse.services.mrcluster.state.cluster_state import ClusterState


def numbers(state: ClusterState, role: Role) -> tuple[int, ...]:
    """Return the numbers of all nodes of a role."""
    return state.wanted_core if role is Role.CORE else state.wanted_transient


def staying(state: ClusterState, role: Role) -> tuple[int, ...]:
    """Return the numbers of the nodes of a role that do not leave."""
    gone = state.leaving_hosts
    return tuple(number for number in numbers(state, role) if naming.host_of(role, number) not in gone)


def staying_hosts(state: ClusterState, role: Role) -> tuple[str, ...]:
    """Return the hosts of a role that do not leave."""
    return tuple(naming.host_of(role, number) for number in staying(state, role))


def wanted(state: ClusterState, role: Role) -> int:
    """Return how many nodes of a role the cluster shall have."""
    counts = state.core if role is Role.CORE else state.transient
    return counts.wanted if counts else len(staying(state, role))


def with_wanted(draft: Draft, role: Role, count: int) -> Draft:
    """Return a draft whose cluster shall have so many nodes of a role."""
    counts = (draft.state.core if role is Role.CORE else draft.state.transient) or wire.NodeCounts()
    counts = counts.model_copy(update={"wanted": count})
    return draft.with_state(core=counts) if role is Role.CORE else draft.with_state(transient=counts)


def added(draft: Draft, role: Role, new: Iterable[int]) -> Draft:
    """Return a draft with more nodes. The counter passes each number of a transient node: none is used twice."""
    merged = tuple(sorted({*numbers(draft.state, role), *new}))
    if role is Role.CORE:
        return draft.with_state(wanted_core=merged)
    following = max((draft.state.next_transient, *(number + 1 for number in merged)))
    return draft.with_state(wanted_transient=merged, next_transient=following)


def removed(draft: Draft, host: str) -> Draft:
    """Return a draft without a node."""
    role, number = naming.role_of(host), naming.number_of(host)
    leaving = tuple(node for node in draft.state.leaving if node.host != host)
    if role is Role.CORE:
        left = tuple(each for each in draft.state.wanted_core if each != number)
        return draft.with_state(wanted_core=left, leaving=leaving)
    left = tuple(each for each in draft.state.wanted_transient if each != number)
    return draft.with_state(wanted_transient=left, leaving=leaving)
