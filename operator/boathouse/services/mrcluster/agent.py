"""The agents in the masters' pods: their reports, and the orders that they get in response.

Reports are only in memory, because agents send them again. They have figures of a user's programs, which are hints:
they can change what becomes of this cluster only. Orders follow from written statuses.

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
import random
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from aiohttp import web
from msgspec.structs import replace

from boathouse.cluster import server_time
from boathouse.resources.mrcluster.names import Role
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.frame.pod_index import PodIndex
from boathouse.services.hadoop import Applications
from boathouse.services.mrcluster import model
from boathouse.services.mrcluster.planning.observation import NodePod
from boathouse.services.progress.auth import Caller
from boathouse.services.progress.limits import Limits, Reason, Rejected
from boathouse.services.progress.server import Route, Sender
from boathouse.telemetry import logs
from boathouse_task.cluster_contract import (
    DEFAULT_DISTANCE_S,
    MOST_LEAVING,
    NO_TIMEOUT,
    REPORT_MAX_BYTES,
    AgentOrders,
    AgentReport,
    Leaving,
    Version,
)

_log = logs.get(__name__)
_LARGEST_EPOCH: Final = 2**62
_REPORT: Final = msgspec.json.Decoder(AgentReport)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _NameNode:
    """The NameNode of the last report that had one: its start by its node's clock, and as far as that can be right."""

    reported_start_s: int
    started_s: int
    seen_s: float


@dataclasses.dataclass(slots=True)
class _Received:
    """A cluster's last report, and when the responses were made that its next report may follow."""

    report: AgentReport
    arrival: float
    answers: dict[int, float]
    name_node: _NameNode | None


class Reports:
    """Last reports of the agents of all clusters; `mark` is called with a cluster whose report has news."""

    def __init__(
        self,
        mark: Callable[[ObjectUid], None],
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = server_time.SERVER_TIME.now_s,
    ) -> None:
        self._mark, self._monotonic, self._now = mark, monotonic, now
        self._received: dict[ObjectUid, _Received] = {}

    def last(self, uid: ObjectUid) -> AgentReport | None:
        """Return the last report of a cluster."""
        received = self._received.get(uid)
        return received.report if received else None

    def age_s(self, uid: ObjectUid) -> float | None:
        """Return how long ago the last report of a cluster arrived."""
        received = self._received.get(uid)
        return self._monotonic() - received.arrival if received else None

    def arrive(self) -> float:
        """Return the time of a report's request, for `take`, in seconds of the clock of ages."""
        return self._monotonic()

    def take(self, uid: ObjectUid, report: AgentReport, arrival: float) -> float | None:
        """Keep a report in the place of the cluster's last, with the start of the NameNode as far as it can be right.

        Returns a time, in epoch seconds, before the agent began the round of the report. None: it is unknown, because
        the report is the agent's first to this leader, or the agent did not get the last responses. Raises `Rejected`
        if a later request was taken: the body of this one was slower.
        """
        last = self._received.get(uid)
        if last is not None and arrival < last.arrival:
            raise Rejected(Reason.OUT_OF_ORDER)
        began_s = last.answers.get(report.follows) if last else None
        answers = {} if began_s is None else {report.follows: began_s}
        name_node = last.name_node if last else None
        if report.hdfs is not None:
            name_node = _name_node(report.hdfs.started_s, name_node, self._now())
            report = replace(report, hdfs=replace(report.hdfs, started_s=name_node.started_s))
        self._received[uid] = _Received(report=report, arrival=arrival, answers=answers, name_node=name_node)
        if last is None or _comparable(last.report) != _comparable(report):
            self._mark(uid)
        return began_s

    def number(self, uid: ObjectUid) -> int:
        """Return the number of the response to the report just taken: random, so that nobody has it before."""
        number = 1 + random.getrandbits(61)
        self._received[uid].answers[number] = self._now()
        return number

    def forget(self, uid: ObjectUid) -> None:
        """Drop the report of a deleted cluster."""
        self._received.pop(uid, None)


def _name_node(reported_start_s: int, last: _NameNode | None, now_s: float) -> _NameNode:
    """Return the NameNode that started at a time by its node's clock, which may be wrong and may step."""
    if last is not None and last.reported_start_s == reported_start_s:
        return dataclasses.replace(last, seen_s=now_s)
    after_s = last.seen_s if last is not None else 0.0
    return _NameNode(
        reported_start_s=reported_start_s, started_s=int(min(max(reported_start_s, after_s), now_s)), seen_s=now_s
    )


def _comparable(report: AgentReport) -> AgentReport:
    """Return a report without the parts that change in each, and without tags, which concern jobs."""
    yarn = replace(report.yarn, up_s=0) if report.yarn else None
    return replace(report, yarn=yarn, tags={}, took_ms=0, follows=0)


@dataclasses.dataclass(slots=True, kw_only=True)
class _Written:
    """A status that was written.

    Attributes:
        since: The resource version since which this leader has ordered these hosts to leave.
        raised: The least epoch of orders, after an agent held some of a later leader.
    """

    state: model.ClusterState
    revision: int
    since: int
    raised: int = 0


class OrderBook:
    """Orders for the agents of all clusters that this leader has reconciled; its epoch is None before it leads."""

    def __init__(
        self, applications: Applications, *, epoch: Callable[[], int | None], may_lead: Callable[[], bool]
    ) -> None:
        self._applications, self._epoch, self._may_lead = applications, epoch, may_lead
        self._written: dict[ObjectUid, _Written] = {}

    def publish(self, uid: ObjectUid, state: model.ClusterState, revision: int) -> None:
        """Order what a status demands: as it was written, with this resource version, not as it is planned."""
        written = self._written.setdefault(uid, _Written(state=state, revision=revision, since=revision))
        if written.state.leaving_hosts != state.leaving_hosts:
            written.since = revision
        written.state, written.revision = state, revision

    def holds(self, uid: ObjectUid, held: Version) -> bool:
        """Return whether an agent with orders of this version holds those to drain the nodes of the written status."""
        written, epoch = self._written.get(uid), self._epoch()
        if written is None or epoch is None:
            return False
        return held >= Version(max(epoch, written.raised), written.since)

    def forget(self, uid: ObjectUid) -> None:
        """Give no orders until the next status: the cluster was deleted, or etcd restored."""
        self._written.pop(uid, None)

    def answer(self, uid: ObjectUid, held: Version, *, number: int, next_s: float) -> AgentOrders:
        """Return the response with this number to an agent that holds orders of a version."""
        written, epoch = self._written.get(uid), self._epoch()
        if written is None or epoch is None or not self._may_lead():
            return AgentOrders(next_s=next_s, number=number)
        tags, kill = self._applications.orders(uid)
        return AgentOrders(
            next_s=next_s,
            number=number,
            version=_version(uid, written, epoch, held),
            leaving=_leaving(written.state),
            tags=list(tags),
            kill=list(kill),
        )


def _version(uid: ObjectUid, written: _Written, epoch: int, held: Version) -> Version:
    """Return a version that is not smaller than the one that the agent holds."""
    version = Version(max(epoch, written.raised), written.revision)
    if held <= version:
        return version
    written.raised = min(held.epoch + 1, _LARGEST_EPOCH)
    _log.warning("an agent held orders of a later leader: etcd was restored", cluster=uid, epoch=written.raised)
    return Version(written.raised, written.revision)


def _leaving(state: model.ClusterState) -> list[Leaving]:
    """Return the nodes that the agent shall drain, each with the timeout at the start of its drain.

    YARN counts it from there, also when it reads a changed list.
    """
    return [
        Leaving(
            host=node.host,
            timeout_s=NO_TIMEOUT if node.deadline_s is None else round(node.deadline_s - node.since_s),
            stores=model.role_of(node.host) is Role.CORE,
        )
        for node in state.leaving[:MOST_LEAVING]
    ]


class AgentRoutes:
    """Handles requests of agents."""

    def __init__(
        self,
        *,
        pods: PodIndex[NodePod],
        namespace_of: Callable[[ObjectUid], str | None],
        reports: Reports,
        orders: OrderBook,
        applications: Applications,
        now: Callable[[], float] = server_time.SERVER_TIME.now_s,
    ) -> None:
        self._pods, self._namespace_of = pods, namespace_of
        self._reports, self._orders, self._applications = reports, orders, applications
        self._now = now
        self._limits = Limits(time.monotonic)

    def find(self, object_uid: str, caller: Caller) -> NodePod | None:
        """Return the pod if it is the live master of a cluster: no other pod of a cluster may report."""
        uid = ObjectUid(object_uid)
        pod = self._pods.find(uid, caller.pod_name) if self._namespace_of(uid) == caller.namespace else None
        return pod if pod is not None and pod.role is Role.MASTER and pod.life.is_live else None

    def routes(self) -> Sequence[Route[NodePod]]:
        """Return all routes."""
        return (
            Route(
                method="POST",
                path="cluster/{pod}/report",
                handle=self._report,
                check=lambda sender: self._limits.check_report(sender.pod.uid),
                most_bytes=REPORT_MAX_BYTES,
            ),
        )

    async def _report(self, request: web.Request, sender: Sender[NodePod]) -> AgentOrders:
        uid, arrival = ObjectUid(sender.object_uid), self._reports.arrive()
        body = await self._limits.receive_report(
            request.content, sender.claimed.namespace, sender.pod.uid, most_bytes=REPORT_MAX_BYTES
        )
        report = _REPORT.decode(body)
        if self._namespace_of(uid) != sender.claimed.namespace:  # it was deleted while the body arrived
            raise Rejected(Reason.UNKNOWN_POD)
        began_s = self._reports.take(uid, report, arrival)
        if report.yarn is not None and began_s is not None:
            rm_started_s = self._now() - report.yarn.up_s
            self._applications.answered(uid, began_s=began_s, rm_started_s=rm_started_s, found=report.tags)
        next_s = max(DEFAULT_DISTANCE_S, self._limits.report_distance_s)
        return self._orders.answer(uid, report.version, number=self._reports.number(uid), next_s=next_s)
