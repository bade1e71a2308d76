"""Route of MRCluster on the progress endpoint: the agent's reports, answered with orders.

A report has figures of a user's programs. They are hints: they can change what becomes of this cluster only.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec
from aiohttp import web

from boathouse.cluster import server_time
from boathouse.resources.mrcluster.names import Role
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.hadoop.applications import Applications
from boathouse.services.mrcluster.agent.orders import OrderBook
from boathouse.services.mrcluster.agent.reports import Reports
from boathouse.services.mrcluster.pods.node_pod import NodePod
from boathouse.services.progress.claims import Caller
from boathouse.services.progress.limits import Limits
from boathouse.services.progress.rejections import Reason, Rejected
from boathouse.services.progress.server import Route, Sender
from boathouse_task.cluster_contract import DEFAULT_DISTANCE_S, REPORT_MAX_BYTES, AgentOrders, AgentReport

_REPORT: Final = msgspec.json.Decoder(AgentReport)


class Pods(Protocol):
    """The pods of clusters; `PodIndex` implements it."""

    def find(self, uid: ObjectUid, pod_name: str) -> NodePod | None:
        """Return one pod of a cluster."""


class AgentRoutes:
    """Handles requests of agents.

    Args:
        pods: The pods of all clusters.
        namespace_of: Returns the namespace of a cluster that the operator reconciles; None for others.
        reports: Keeps the reports.
        orders: Gives the orders.
        applications: Takes what the agents found about the tags of jobs.
        now: Returns epoch seconds.
        monotonic: Clock of the limits.
    """

    def __init__(
        self,
        *,
        pods: Pods,
        namespace_of: Callable[[ObjectUid], str | None],
        reports: Reports,
        orders: OrderBook,
        applications: Applications,
        now: Callable[[], float] = server_time.SERVER_TIME.now_s,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pods, self._namespace_of = pods, namespace_of
        self._reports, self._orders, self._applications = reports, orders, applications
        self._now = now
        self._limits = Limits(monotonic)

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
            at_s = self._now()
            rm_started_s = at_s - report.yarn.up_s
            self._applications.answered(uid, at_s=at_s, began_s=began_s, rm_started_s=rm_started_s, found=report.tags)
        next_s = max(DEFAULT_DISTANCE_S, self._limits.report_distance_s)
        return self._orders.answer(uid, report.version, number=self._reports.number(uid), next_s=next_s)
