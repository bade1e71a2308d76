"""The entry of MRJob, and its routes on the progress endpoint: reports, orders, split plans, owners, leave to submit.

Tasks' messages are hints, except the posted plan, which setup's result confirms by its digest.

The owner of an output is the job that its ownership mark names (`boathouse_task.ownership`). Another job may take over
the output only if that job has certainly ended: this leader has listed all MRJobs, and no pod of the job runs or can
still be created. For namespaces and clusters that the operator does not watch, the answer is `OUTSIDE`.
"""

import asyncio
import dataclasses
import time
from collections.abc import Callable, Collection, Sequence
from typing import Final

import msgspec
from aiohttp import web

from boathouse import failpoints
from boathouse.cluster import retries
from boathouse.resources.mrjob.names import POD_LABELS
from boathouse.resources.names import CONTAINER
from boathouse.scheduling.scheduler import Scheduler
from boathouse.services.frame.controllers import KindEntry, LeaderServices
from boathouse.services.frame.object_store import ObjectStore
from boathouse.services.frame.pod_index import PodIndex
from boathouse.services.mrjob.attempt_pods import AttemptPod
from boathouse.services.mrjob.hadoop.hadoop_jobs import HadoopJobs
from boathouse.services.mrjob.hadoop.observation import RUNTIME, ClientPod
from boathouse.services.mrjob.kind import MRJOB, MRJobKind
from boathouse.services.mrjob.model import JobUid
from boathouse.services.mrjob.split_plans import PlanIntake
from boathouse.services.mrjob.task_orders import Poll
from boathouse.services.progress.auth import Caller
from boathouse.services.progress.limits import Limits, Reason, Rejected
from boathouse.services.progress.server import Route, Sender
from boathouse.telemetry import metrics
from boathouse_policies import model
from boathouse_task import contract
from boathouse_task.cluster_contract import Leave

_MOST_LEAVE_BYTES: Final = 64
TICK_S: Final = 1.0  # interval of ticks to observers
MAX_WAIT_S: Final = 55.0
_REPORT: Final = msgspec.json.Decoder(contract.TaskReport)
_ACKNOWLEDGEMENT: Final = msgspec.json.Decoder(contract.Acknowledgement)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """Looks up owners for setup tasks. The operator runs jobs in the `namespaces`; empty for all."""

    jobs: ObjectStore
    pods: PodIndex[AttemptPod]
    scheduler: Scheduler
    cluster: str
    namespaces: Collection[str]
    listed: Callable[[], bool]

    def state(self, uid: JobUid, *, namespace: str, cluster: str) -> contract.Owner:
        """Return the state of a job, by what the mark says, which any writer of the output may have written."""
        key, state, detail = self.jobs.key(uid), contract.OwnerState.ENDED, ""
        body = self.jobs.get(key) if key is not None else None
        is_here = bool(cluster) and cluster == self.cluster and (not self.namespaces or namespace in self.namespaces)
        if body is None and not is_here:
            state = contract.OwnerState.OUTSIDE
        elif body is None and not self.listed():
            state, detail = contract.OwnerState.UNKNOWN, "the leader has not listed all MRJobs yet"
        elif body is not None and not MRJOB.has_ended(body):
            state = contract.OwnerState.ACTIVE
        elif any(pod.state.is_live for pod in self.pods.of(uid)) or self.scheduler.may_create(model.JobId(uid)):
            state, detail = contract.OwnerState.UNKNOWN, "the job has ended, but some of its pods have not"
        return contract.Owner(state=state, detail=detail)


def leave_route(jobs: HadoopJobs) -> Route[ClientPod]:
    """Return the route that gives leave to the clients of open attempts."""

    def check(sender: Sender[ClientPod]) -> None:
        if not jobs.may_submit(sender.object_uid, sender.pod):
            raise Rejected(Reason.NO_LEAVE)

    async def leave(_: web.Request, sender: Sender[ClientPod]) -> Leave:
        with failpoints.around("mrjob.leave"):
            return Leave(attempt=sender.pod.attempt)

    return Route(method="POST", path="tasks/{pod}/leave", handle=leave, check=check, most_bytes=_MOST_LEAVE_BYTES)


class TaskRoutes:
    """Handles requests of MRJobs' tasks."""

    def __init__(
        self,
        kind: MRJobKind,
        owners: Owners,
        on_plan: Callable[[JobUid], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._orders, self._pods, self._plans = kind.orders, kind.pods, kind.plans
        self._owners, self._on_plan = owners, on_plan
        self._limits, self._intake = Limits(clock), PlanIntake(clock)

    def find(self, uid: JobUid, caller: Caller) -> AttemptPod | None:
        """Return a live pod of an unfinished job."""
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
        self._orders.report(sender.object_uid, sender.pod.name, _REPORT.decode(body))
        return contract.ReportTaken(next_s=self._limits.report_distance_s)

    async def _poll(self, request: web.Request, sender: Sender[AttemptPod]) -> contract.Orders:
        query, pod = request.query, sender.pod.name
        since = int(query.get("since", "0"))
        poll = Poll(uid=sender.object_uid, pod=pod, since=since, carried_out=query.get("order"))
        wait_s = min(MAX_WAIT_S, max(0.0, float(query.get("wait_s", "0"))))
        if (news := self._orders.orders_since(poll)) is not None:
            return news
        with self._limits.poll(sender.claimed.namespace, sender.pod.uid):
            return await self._orders.orders(poll, wait_s)

    async def _acknowledge(self, request: web.Request, sender: Sender[AttemptPod]) -> dict[str, object]:
        body = await self._limits.receive_acknowledgement(
            request.content, sender.pod.uid, most_bytes=contract.ACKNOWLEDGEMENT_MAX_BYTES
        )
        self._orders.acknowledge(sender.object_uid, sender.pod.name, _ACKNOWLEDGEMENT.decode(body))
        return {}

    async def _post_plan(self, request: web.Request, sender: Sender[AttemptPod]) -> dict[str, object]:
        uid, namespace, body = sender.object_uid, sender.claimed.namespace, request.content
        gzipped = request.headers.get("Content-Encoding") == "gzip"
        plan = await self._intake.read(namespace, body, request.content_length, gzipped=gzipped)
        self._check_wanted(uid)  # checked again, because the state may have changed while the plan was read
        if not self._plans.has_room(uid, namespace, plan):
            raise Rejected(Reason.TOO_MANY_PLANS)
        with failpoints.around("plan.posted"):
            self._plans.post(uid, namespace, plan)
        self._on_plan(uid)
        return {"digest": plan.digest, "shards": len(plan.pieces)}

    def _check_plan(self, sender: Sender[AttemptPod]) -> None:
        _check_setup(sender)
        self._check_wanted(sender.object_uid)
        self._intake.check(sender.claimed.namespace)

    def _check_wanted(self, uid: JobUid) -> None:
        if not self._orders.wants_plan(uid):
            raise Rejected(Reason.NO_PLAN_WANTED)

    async def _owner(self, request: web.Request, _: Sender[AttemptPod]) -> contract.Owner:
        mark = request.query
        return self._owners.state(
            JobUid(mark.get("uid", "")), namespace=mark.get("namespace", ""), cluster=mark.get("cluster", "")
        )


def _check_setup(sender: Sender[AttemptPod]) -> None:
    if sender.pod.task_type is not contract.TaskType.SETUP:
        raise Rejected(Reason.NOT_SETUP)


def add(leader: LeaderServices) -> None:
    """Add the kind MRJob with its routes, gauges and watches."""
    kind, placing = MRJobKind(leader, asyncio.get_running_loop().call_later), leader.scheduling.scheduler
    compared, pods, observers = leader.controllers.add(kind), kind.pods, kind.policy_events
    owners = Owners(
        jobs=compared.objects,
        pods=pods,
        scheduler=placing,
        cluster=leader.cluster_id,
        namespaces=frozenset(leader.settings.watch_namespaces),
        listed=lambda: compared.listed,
    )
    tasks = TaskRoutes(kind, owners, leader.controllers.mark)
    leader.endpoint.add(tasks.find, tasks.routes())
    leader.endpoint.add(kind.hadoop.find, [leave_route(kind.hadoop)])
    leader.scheduling.nodes.subscribe(
        lambda change: observers.node_changed(name := model.NodeName(change.key), placing.state.pods.nodes.get(name))
    )
    for index in (pods, kind.hadoop.clients):
        leader.scheduling.pods.subscribe(index.on_pod)
        leader.scheduling.ended.subscribe(index.on_ended)
    leader.saved["estimates"] = kind.learner
    leader.limited["retries"] = lambda: kind.retries.refused
    leader.controllers.loops.append(retries.Loop("ticks", observers.tick, every_s=TICK_S))
    leader.metrics.gauges.add(
        metrics.Gauge(
            name="boathouse_mrjob_reporting_tasks",
            documentation="Running tasks that have reported",
            read=lambda: {(): float(kind.orders.reporting)},
        )
    )


ENTRY: Final = KindEntry(pod_labels=POD_LABELS, pod_containers=frozenset({CONTAINER, RUNTIME}), add=add)
