"""An MRCluster's status, as the planner counts with it.

A state is all that survives when pods vanish: the ID of the HDFS, the first number of core nodes, which nodes exist or
shall exist, and which of them leave. Numbers of transient nodes are never used twice.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from boathouse.resources import base
from boathouse.resources.mrcluster import status as wire
from boathouse.resources.mrcluster.names import Role
from boathouse.resources.mrcluster.status import LeavingNode, MRClusterStatus
from boathouse.services.frame import conditions
from boathouse.services.frame.status_codec import StatusCodec
from boathouse.services.mrcluster import naming

TERMINAL: Final = frozenset({"Expired"})
URGENT_FIELDS: Final = ("clusterID", "nextTransient", "wantedCore", "wantedTransient", "leaving", "core", "transient")
"""Written at once: orders, submissions and deletions rest on the written status."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState(MRClusterStatus):
    """A cluster's status.

    Attributes:
        cluster_id: The ID of its HDFS; empty until the NameNode reported it.
        first_core_nodes: 0 until the first pod is submitted.
        replication: By the spec that the state follows; 0 before the first plan.
        next_transient: More than all that were ever used.
        leaving: In the order in which they began to leave, at most `MAX_LEAVING`.
        load_percent: With the fields below a figure reported by the cluster's image, None without a recent report.
    """

    @property
    def is_finished(self) -> bool:
        """Return whether the cluster has expired."""
        return self.phase in TERMINAL

    @property
    def leaving_hosts(self) -> frozenset[str]:
        """Return the hosts that are drained."""
        return frozenset(node.host for node in self.leaving)

    @property
    def wanted_hosts(self) -> tuple[str, ...]:
        """Return all hosts that exist or shall exist, once the cluster has begun: master, core, transient."""
        if not self.wanted_core:
            return ()
        core = (naming.host_of(Role.CORE, number) for number in self.wanted_core)
        transient = (naming.host_of(Role.TRANSIENT, number) for number in self.wanted_transient)
        return (naming.MASTER, *core, *transient)


_CODEC: Final = StatusCodec(ClusterState)


def from_status(status: Mapping[str, Any] | None) -> ClusterState:
    """Return the state that a status holds; what another version wrote and this one cannot read is left out."""
    read = _CODEC.read(status)
    leaving = tuple(node for node in read.leaving if naming.role_of(node.host) is not None)
    unused = max((read.next_transient, *(number + 1 for number in _used(read.wanted_transient, leaving))))
    return dataclasses.replace(read, leaving=leaving, next_transient=unused)


def to_status(state: ClusterState) -> dict[str, Any]:
    """Return the status as JSON, every field present, so that a merge patch clears what is gone."""
    size = state.size and dataclasses.replace(
        state.size, reason=conditions.printable(state.size.reason, wire.MAX_SIZE_REASON)
    )
    short = tuple(map(_short, state.conditions))
    return _CODEC.write(dataclasses.replace(state, conditions=short, size=size, sizes=state.sizes[-wire.MAX_SIZES :]))


def without_free_parts(state: ClusterState) -> ClusterState:
    """Return the state without what only informs people or comes from the cluster's image."""
    return dataclasses.replace(without_figures(state), size=None, sizes=())


def without_figures(state: ClusterState) -> ClusterState:
    """Return the state without the figures of the cluster's image, as when its last report is old."""
    return dataclasses.replace(state, load_percent=None, slots=None, containers=None, applications=None, hdfs=None)


def _used(wanted: tuple[int, ...], leaving: tuple[LeavingNode, ...]) -> tuple[int, ...]:
    """Return numbers of transient nodes that must not be used again, whatever the counter says."""
    left = (naming.number_of(node.host) for node in leaving if naming.role_of(node.host) is Role.TRANSIENT)
    return (*wanted, *left)


def _short(condition: base.Condition) -> base.Condition:
    message = conditions.printable(condition.message, wire.MAX_MESSAGE)
    return condition if message == condition.message else condition.model_copy(update={"message": message})
