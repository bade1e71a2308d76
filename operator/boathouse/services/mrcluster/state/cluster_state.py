"""What an MRCluster's status remembers, as values that the planner can count with; to and from the wire.

A state is all that survives when pods vanish: the ID of the HDFS, the first number of core nodes, which nodes exist or
shall exist, and which of them leave. Numbers of transient nodes are never used twice.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from boathouse.resources import base
from boathouse.resources.mrcluster import status as wire
from boathouse.resources.mrcluster.names import ConditionType, Role
from boathouse.services import times
from boathouse.services.frame import conditions, merge_patch, tolerant
from boathouse.services.mrcluster import naming
from boathouse.services.mrcluster.state import ranges

TERMINAL: Final = frozenset({"Expired"})
URGENT_FIELDS: Final = ("clusterID", "nextTransient", "wantedCore", "wantedTransient", "leaving", "core", "transient")
"""Written at once: orders, submissions and deletions rest on the written status."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LeavingNode:
    """A node that is drained.

    Attributes:
        deadline_s: When it leaves at the latest; None: when it is drained.
    """

    host: str
    since_s: float
    deadline_s: float | None = None
    reason: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SizeReason:
    """Why the cluster has the nodes that it has.

    Attributes:
        offer: Nodes of the last offer; negative: asked back.
    """

    time_s: float
    reason: str
    offer: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SizeChange:
    """The nodes since a time."""

    time_s: float
    core: int
    transient: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """A cluster's status.

    Attributes:
        ready_s: When it became ready for the first time.
        completion_s: When it expired.
        cluster_id: The ID of its HDFS; empty until the NameNode reported it.
        first_core_nodes: Core nodes at first; 0 until the first pod is submitted.
        replication: Copies of each block of new files, by the spec that the state follows; 0 before the first plan.
        next_transient: The number of the next transient node, more than all that were ever used.
        wanted_core: Numbers of the core nodes that exist or shall exist, sorted.
        wanted_transient: Numbers of the transient nodes that exist or shall exist, sorted.
        leaving: In the order in which they began to leave, at most `MAX_LEAVING`.
        sizes: The latest last.
        load_percent: As figures reported by the cluster's image, None without a recent report.
        settings: Digest of the settings that all nodes started with.
    """

    phase: wire.Phase = "Pending"
    observed_generation: int = 0
    queue: str = ""
    reason: str = ""
    conditions: tuple[base.Condition, ...] = ()
    start_s: float | None = None
    ready_s: float | None = None
    completion_s: float | None = None
    cluster_id: str = ""
    first_core_nodes: int = 0
    replication: int = 0
    next_transient: int = 0
    wanted_core: tuple[int, ...] = ()
    wanted_transient: tuple[int, ...] = ()
    core: wire.NodeCounts | None = None
    transient: wire.NodeCounts | None = None
    leaving: tuple[LeavingNode, ...] = ()
    size: SizeReason | None = None
    sizes: tuple[SizeChange, ...] = ()
    load_percent: int | None = None
    slots: int | None = None
    containers: wire.Containers | None = None
    applications: int | None = None
    hdfs: wire.HdfsUsage | None = None
    addresses: wire.Addresses | None = None
    settings: str = ""
    last_active_s: float | None = None

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

    def condition(self, condition_type: ConditionType) -> base.Condition | None:
        """Return the condition of a type."""
        return next((each for each in self.conditions if each.type == condition_type), None)

    def holds(self, condition_type: ConditionType) -> bool:
        """Return whether a condition is True."""
        condition = self.condition(condition_type)
        return condition is not None and condition.status == "True"


def from_status(status: Mapping[str, Any] | None) -> ClusterState:
    """Return the state that a status holds; what another version wrote and this one cannot read is left out."""
    read = tolerant.read(wire.MRClusterStatus, status)
    leaving = tuple(node for each in read.leaving or () if (node := _leaving_node(each)))
    wanted_transient = ranges.parse(read.wanted_transient or "")
    return ClusterState(
        phase=read.phase or "Pending",
        observed_generation=read.observed_generation or 0,
        queue=read.queue or "",
        reason=read.reason or "",
        conditions=tuple(read.conditions or ()),
        start_s=_epoch(read.start_time),
        ready_s=_epoch(read.ready_time),
        completion_s=_epoch(read.completion_time),
        cluster_id=read.cluster_id or "",
        first_core_nodes=max(0, read.first_core_nodes or 0),
        replication=max(0, read.replication or 0),
        next_transient=max(0, read.next_transient or 0, *(number + 1 for number in _used(wanted_transient, leaving))),
        wanted_core=ranges.parse(read.wanted_core or ""),
        wanted_transient=wanted_transient,
        core=read.core,
        transient=read.transient,
        leaving=leaving,
        size=_size_reason(read.size),
        sizes=tuple(change for each in read.sizes or () if (change := _size_change(each))),
        load_percent=read.load_percent,
        slots=read.slots,
        containers=read.containers,
        applications=read.applications,
        hdfs=read.hdfs,
        addresses=read.addresses,
        settings=read.settings or "",
        last_active_s=_epoch(read.last_active_time),
    )


def to_status(state: ClusterState) -> dict[str, Any]:
    """Return the status as JSON, every field present, so that a merge patch clears what is gone."""
    status = wire.MRClusterStatus(
        observed_generation=state.observed_generation,
        phase=state.phase,
        conditions=list(map(_short, state.conditions)),
        queue=state.queue or None,
        reason=state.reason or None,
        start_time=times.rfc3339(state.start_s),
        ready_time=times.rfc3339(state.ready_s),
        completion_time=times.rfc3339(state.completion_s),
        clusterID=state.cluster_id or None,
        first_core_nodes=state.first_core_nodes or None,
        replication=state.replication or None,
        next_transient=state.next_transient or None,
        wanted_core=ranges.text(state.wanted_core) or None,
        wanted_transient=ranges.text(state.wanted_transient) or None,
        core=state.core,
        transient=state.transient,
        leaving=list(map(_leaving, state.leaving)) or None,
        size=_size(state.size),
        sizes=list(map(_change, state.sizes[-wire.MAX_SIZES :])) or None,
        load_percent=state.load_percent,
        slots=state.slots,
        containers=state.containers,
        applications=state.applications,
        hdfs=state.hdfs,
        addresses=state.addresses,
        settings=state.settings or None,
        last_active_time=times.rfc3339(state.last_active_s),
    )
    return merge_patch.cleared(status)


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


def _leaving_node(node: wire.Leaving) -> LeavingNode | None:
    since_s = _epoch(node.since)
    if since_s is None or naming.role_of(node.host) is None:
        return None
    return LeavingNode(host=node.host, since_s=since_s, deadline_s=_epoch(node.deadline), reason=node.reason)


def _leaving(node: LeavingNode) -> wire.Leaving:
    return wire.Leaving(
        host=node.host, since=_time(node.since_s), deadline=times.rfc3339(node.deadline_s), reason=node.reason
    )


def _size_reason(size: wire.Size | None) -> SizeReason | None:
    time_s = _epoch(size.time) if size else None
    return SizeReason(time_s=time_s, reason=size.reason, offer=size.offer) if size and time_s is not None else None


def _size(size: SizeReason | None) -> wire.Size | None:
    if size is None:
        return None
    reason = conditions.printable(size.reason, wire.MAX_SIZE_REASON)
    return wire.Size(time=_time(size.time_s), reason=reason, offer=size.offer)


def _size_change(change: wire.SizeChange) -> SizeChange | None:
    time_s = _epoch(change.time)
    return None if time_s is None else SizeChange(time_s=time_s, core=change.core, transient=change.transient)


def _change(change: SizeChange) -> wire.SizeChange:
    return wire.SizeChange(time=_time(change.time_s), core=change.core, transient=change.transient)


def _time(epoch_s: float) -> str:
    return times.rfc3339(epoch_s) or ""


def _epoch(timestamp: str | None) -> float | None:
    return tolerant.value(lambda: times.epoch(timestamp), None)
