"""Answer the agents with orders that follow from written statuses.

The version of orders is the epoch of the leader and the resource version of the status. An agent ignores orders of a
smaller version than its own. So a former leader that resumes cannot take back what its successor has ordered, and two
answers that overtake one another do no harm.

After etcd was restored from a backup, or the Lease was deleted, both numbers may be smaller than those that an agent
holds, and it would refuse all orders. The leader sees this in the report, and from then on orders under the epoch of
that report plus one. Only a process that holds the lease may do so: a former leader also sees the larger version of
its successor's orders. It gives no orders at all. A leader that is suspended after it has checked this does no harm
either: the agent waits for this answer alone, and only until its request times out, before it talks to a successor.
"""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Final

from boathouse.resources.mrcluster.names import Role
from boathouse.resources.mrcluster.status import LeavingNode
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.hadoop.applications import Applications
from boathouse.services.mrcluster import naming
from boathouse.services.mrcluster.state.cluster_state import ClusterState
from boathouse.telemetry import logs
from boathouse_task.cluster_contract import MOST_LEAVING, NO_TIMEOUT, AgentOrders, Leaving, Version

_log = logs.get(__name__)
_LARGEST_EPOCH: Final = 2**62


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A status that was written.

    Attributes:
        leaving: The nodes that are drained.
        revision: The resource version.
        since: The resource version since which this leader has ordered these hosts to leave.
    """

    leaving: tuple[LeavingNode, ...]
    revision: int
    since: int


class OrderBook:
    """Orders for the agents of all clusters that this leader has reconciled.

    Args:
        applications: Tags and applications that the agents shall ask for and kill.
        epoch: Returns the epoch of this process's leadership; None before it leads.
        may_lead: Returns whether this process is still the leader.
    """

    def __init__(
        self, applications: Applications, *, epoch: Callable[[], int | None], may_lead: Callable[[], bool]
    ) -> None:
        self._applications, self._epoch, self._may_lead = applications, epoch, may_lead
        self._written: dict[ObjectUid, Written] = {}
        self._raised: dict[ObjectUid, int] = {}

    def publish(self, uid: ObjectUid, state: ClusterState, revision: int) -> None:
        """Order what a status demands.

        Args:
            uid: The cluster.
            state: Of the status as it was written, not as it is planned.
            revision: The resource version of the object with this status.
        """
        known = self._written.get(uid)
        is_same = known is not None and _hosts(known.leaving) == _hosts(state.leaving)
        since = known.since if known is not None and is_same else revision
        self._written[uid] = Written(leaving=state.leaving, revision=revision, since=since)

    def holds(self, uid: ObjectUid, held: Version) -> bool:
        """Return whether an agent holds orders to drain the nodes of the written status.

        Args:
            uid: The cluster.
            held: Version of the orders that the agent holds.
        """
        written, epoch = self._written.get(uid), self._epoch()
        if written is None or epoch is None:
            return False
        return held >= Version(max(epoch, self._raised.get(uid, 0)), written.since)

    def forget(self, uid: ObjectUid) -> None:
        """Give no orders until the next status: the cluster was deleted, or etcd restored."""
        self._written.pop(uid, None)
        self._raised.pop(uid, None)

    def answer(self, uid: ObjectUid, held: Version, *, number: int, next_s: float) -> AgentOrders:
        """Return the response to a report.

        Args:
            uid: The cluster.
            held: Version of the orders that the agent holds.
            number: Of the response.
            next_s: Seconds until the next report.
        """
        written, epoch = self._written.get(uid), self._epoch()
        if written is None or epoch is None or not self._may_lead():
            return AgentOrders(next_s=next_s, number=number)
        tags, kill = self._applications.orders(uid)
        return AgentOrders(
            next_s=next_s,
            number=number,
            version=self._version(uid, epoch, written.revision, held),
            leaving=leaving(written),
            tags=list(tags),
            kill=list(kill),
        )

    def _version(self, uid: ObjectUid, epoch: int, revision: int, held: Version) -> Version:
        """Return a version that is not smaller than the one that the agent holds."""
        version = Version(max(epoch, self._raised.get(uid, 0)), revision)
        if held <= version:
            return version
        raised = self._raised[uid] = min(held.epoch + 1, _LARGEST_EPOCH)
        _log.warning("an agent held orders of a later leader: etcd was restored", cluster=uid, epoch=raised)
        return Version(raised, revision)


def _hosts(leaving: Iterable[LeavingNode]) -> frozenset[str]:
    return frozenset(node.host for node in leaving)


def leaving(written: Written) -> list[Leaving]:
    """Return the nodes that the agent shall drain.

    The timeout is the one at the start of the drain. YARN counts it from there, also when it reads a changed list.
    """
    return [
        Leaving(
            host=node.host,
            timeout_s=NO_TIMEOUT if node.deadline_s is None else round(node.deadline_s - node.since_s),
            stores=naming.role_of(node.host) is Role.CORE,
        )
        for node in written.leaving[:MOST_LEAVING]
    ]
