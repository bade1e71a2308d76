"""Routes of MRJob on the progress endpoint: reports, orders, acknowledgements, the split plan, an output's owner.

Tasks' messages are hints, except the posted plan, which setup's result confirms by its digest.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from aiohttp import web

from boathouse import failpoints
from boathouse.services.frame.pod_index import PodIndex
from boathouse.services.mrjob.attempts.attempt_pod import AttemptPod
from boathouse.services.mrjob.job.model import JobUid
from boathouse.services.mrjob.output_owners import Owners
from boathouse.services.mrjob.progress.task_orders import Poll, TaskOrders
from boathouse.services.mrjob.progress.task_reports import TaskReports
from boathouse.services.mrjob.splits.intake import PlanIntake
from boathouse.services.mrjob.splits.split_plans import Plans
from boathouse.services.progress.claims import Caller
from boathouse.services.progress.limits import Limits
from boathouse.services.progress.rejections import Reason, Rejected
from boathouse.services.progress.server import Route, Sender
from boathouse_task import contract
from boathouse_task.contract import TaskType

MAX_WAIT_S: Final = 55.0
_REPORT: Final = msgspec.json.Decoder(contract.TaskReport)
_ACKNOWLEDGEMENT: Final = msgspec.json.Decoder(contract.Acknowledgement)


class TaskRoutes:
    """Handles requests of MRJobs' tasks.

    Args:
        orders: Orders for tasks.
        reports: Reports of tasks.
        pods: The pods that may send requests.
        plans: Stores posted plans.
        owners: Returns the state of an output's owner, for setup tasks.
        on_plan: Called with the job of a posted plan.
        clock: Returns monotonic seconds.
    """

    def __init__(
        self,
        *,
        orders: TaskOrders,
        reports: TaskReports,
        pods: PodIndex[AttemptPod],
        plans: Plans,
        owners: Owners,
        on_plan: Callable[[JobUid], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._orders, self._reports = orders, reports
        self._pods = pods
        self._plans = plans
        self._owners = owners
        self._on_plan = on_plan
        self._limits = Limits(clock)
        self._intake = PlanIntake(clock)

    def find(self, object_uid: str, caller: Caller) -> AttemptPod | None:
        """Return a live pod of an unfinished job."""
        uid = JobUid(object_uid)
        pod = self._pods.find(uid, caller.pod_name) if self._orders.knows(uid, caller.namespace) else None
        return pod if pod is not None and pod.state.is_live else None

    def routes(self) -> Sequence[Route[AttemptPod]]:
        """Return all routes."""
        return (
            Route(
                method="POST",
                path="tasks/{pod}/report",
                handle=self._report,
                check=lambda sender: self._limits.check_report(sender.pod.uid),
                most_bytes=contract.REPORT_MAX_BYTES,
            ),
            Route(method="GET", path="tasks/{pod}/orders", handle=self._poll),
            Route(
                method="POST",
                path="tasks/{pod}/acknowledge",
                handle=self._acknowledge,
                check=lambda sender: self._limits.check_acknowledgement(sender.pod.uid),
                most_bytes=contract.ACKNOWLEDGEMENT_MAX_BYTES,
            ),
            Route(
                method="POST",
                path="plan",
                handle=self._post_plan,
                check=self._check_plan,
                most_bytes=contract.PLAN_POST_MAX_BYTES,
            ),
            Route(method="GET", path="tasks/{pod}/owner", handle=self._owner, check=_check_setup),
        )

    async def _report(self, request: web.Request, sender: Sender[AttemptPod]) -> contract.ReportTaken:
        body = await self._limits.receive_report(
            request.content, sender.claimed.namespace, sender.pod.uid, most_bytes=contract.REPORT_MAX_BYTES
        )
        self._reports.report(JobUid(sender.object_uid), sender.pod.name, _REPORT.decode(body))
        return contract.ReportTaken(next_s=self._limits.report_distance_s)

    async def _poll(self, request: web.Request, sender: Sender[AttemptPod]) -> contract.Orders:
        query = request.query
        poll = Poll(
            uid=JobUid(sender.object_uid),
            pod=sender.pod.name,
            since=int(query.get("since", "0")),
            carried_out=query.get("order"),
        )
        wait_s = min(MAX_WAIT_S, max(0.0, float(query.get("wait_s", "0"))))
        news = self._orders.orders_since(poll)
        if news is not None:
            return news
        with self._limits.poll(sender.claimed.namespace, sender.pod.uid):
            return await self._orders.orders(poll, wait_s)

    async def _acknowledge(self, request: web.Request, sender: Sender[AttemptPod]) -> dict[str, object]:
        body = await self._limits.receive_acknowledgement(
            request.content, sender.pod.uid, most_bytes=contract.ACKNOWLEDGEMENT_MAX_BYTES
        )
        self._orders.acknowledge(JobUid(sender.object_uid), sender.pod.name, _ACKNOWLEDGEMENT.decode(body))
        return {}

    async def _post_plan(self, request: web.Request, sender: Sender[AttemptPod]) -> dict[str, object]:
        uid, namespace = JobUid(sender.object_uid), sender.claimed.namespace
        gzipped = request.headers.get("Content-Encoding") == "gzip"
        plan = await self._intake.read(namespace, request.content, request.content_length, gzipped=gzipped)
        self._check_wanted(uid)  # checked again, because the state may have changed while the plan was read
        if not self._plans.has_room(uid, namespace, plan):
            raise Rejected(Reason.TOO_MANY_PLANS)
        failpoints.hit("before-plan.posted")
        self._plans.post(uid, namespace, plan)
        failpoints.hit("after-plan.posted")
        self._on_plan(uid)
        return {"digest": plan.digest, "shards": plan.shards}

    def _check_plan(self, sender: Sender[AttemptPod]) -> None:
        _check_setup(sender)
        self._check_wanted(JobUid(sender.object_uid))
        self._intake.check(sender.claimed.namespace)

    def _check_wanted(self, uid: JobUid) -> None:
        if not self._orders.wants_plan(uid):
            raise Rejected(Reason.NO_PLAN_WANTED)

    async def _owner(self, request: web.Request, _: Sender[AttemptPod]) -> contract.Owner:
        mark = request.query
        uid = JobUid(mark.get("uid", ""))
        return self._owners.state(uid, namespace=mark.get("namespace", ""), cluster=mark.get("cluster", ""))


def _check_setup(sender: Sender[AttemptPod]) -> None:
    if sender.pod.task_type is not TaskType.SETUP:
        raise Rejected(Reason.NOT_SETUP)
