"""The HTTP side of the progress endpoint. What tasks say are hints; only the posted plan is more, by its digest."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec
from aiohttp import web

from boathouse import failpoints
from boathouse.cluster import errors
from boathouse.services.mrjob.model import JobUid
from boathouse.services.mrjob.shards import KeptPlan
from boathouse.services.mrjob.taskpods import TaskPod
from boathouse.services.progress.auth import Authenticator, Caller
from boathouse.services.progress.hub import Hub
from boathouse_task import contract
from boathouse_task.contract import TaskType

PLAN_MAX_BYTES: Final = 64 * 1024 * 1024
MAX_WAIT_S: Final = 55.0
REPORT_DISTANCE_S: Final = 2.0
"""Tasks report every 5 s; whoever reports much more often is told to wait."""
_BEARER: Final = "Bearer "


class Pods(Protocol):
    """Knows the pods of each job: `PodIndex` is one."""

    def find(self, uid: JobUid, pod_name: str) -> TaskPod | None:
        """One pod of a job."""
        ...


class PlanSink(Protocol):
    """Keeps posted plans: `Plans` is one."""

    def post(self, uid: JobUid, plan: contract.Plan) -> KeptPlan:
        """Remember a plan."""
        ...


class ProgressServer:
    """The routes under `/v1/jobs/{namespace}/{uid}/`.

    Args:
        hub: Orders and reports.
        pods: The pods that may speak.
        plans: Where posted plans go.
        authenticator: Tells who is asking.
        on_plan: Called with a job whose plan was posted.
    """

    def __init__(
        self,
        *,
        hub: Hub,
        pods: Pods,
        plans: PlanSink,
        authenticator: Authenticator,
        on_plan: Callable[[JobUid], None],
    ) -> None:
        self._hub = hub
        self._pods = pods
        self._plans = plans
        self._authenticator = authenticator
        self._on_plan = on_plan
        self._last_report_s: dict[str, float] = {}
        self._reports = msgspec.json.Decoder(contract.TaskReport)
        self._plan = msgspec.json.Decoder(contract.Plan)

    def application(self) -> web.Application:
        """The aiohttp application; bodies may be gzipped, sizes are limited after decompression."""
        application = web.Application(client_max_size=PLAN_MAX_BYTES, middlewares=[_say_what_failed])
        base = "/v1/jobs/{namespace}/{uid}"
        application.router.add_post(f"{base}/tasks/{{pod}}/report", self._report)
        application.router.add_get(f"{base}/tasks/{{pod}}/orders", self._orders)
        application.router.add_post(f"{base}/plan", self._post_plan)
        return application

    async def _report(self, request: web.Request) -> web.Response:
        uid, pod = await self._task(request, request.match_info["pod"])
        if (request.content_length or 0) > contract.REPORT_MAX_BYTES:
            raise web.HTTPRequestEntityTooLarge(contract.REPORT_MAX_BYTES, request.content_length or 0)
        body = await request.content.read(contract.REPORT_MAX_BYTES + 1)
        if len(body) > contract.REPORT_MAX_BYTES:
            raise web.HTTPRequestEntityTooLarge(contract.REPORT_MAX_BYTES, len(body))
        now = time.monotonic()
        if now - self._last_report_s.get(pod.uid, -REPORT_DISTANCE_S) < REPORT_DISTANCE_S:
            raise web.HTTPTooManyRequests(text="report every 5 s", headers={"Retry-After": "5"})
        self._last_report_s = {k: v for k, v in self._last_report_s.items() if now - v < REPORT_DISTANCE_S}
        self._last_report_s[pod.uid] = now
        self._hub.report(uid, pod.name, self._reports.decode(body))
        return _json({})

    async def _orders(self, request: web.Request) -> web.Response:
        uid, _ = await self._task(request, request.match_info["pod"])
        since = int(request.query.get("since", "0"))
        wait_s = min(MAX_WAIT_S, max(0.0, float(request.query.get("wait_s", "0"))))
        return _json(await self._hub.orders(uid, since, wait_s))

    async def _post_plan(self, request: web.Request) -> web.Response:
        uid, pod = await self._task(request, None)
        if pod.task_type is not TaskType.SETUP:
            raise web.HTTPForbidden(text="only the setup task posts the plan")
        body = await request.read()
        plan = await asyncio.to_thread(self._plan.decode, body)
        if not self._hub.wants_plan(uid):  # asked now, for all that takes a while
            raise web.HTTPConflict(text="the job has its plan, or is gone")
        failpoints.hit("before-plan.posted")
        kept = self._plans.post(uid, plan)
        failpoints.hit("after-plan.posted")
        self._on_plan(uid)
        return _json({"digest": kept.digest, "shards": kept.shards})

    async def _task(self, request: web.Request, pod_name: str | None) -> tuple[JobUid, TaskPod]:
        """The job and the pod that asks; it speaks for itself only."""
        caller = await self._caller(request)
        uid = JobUid(request.match_info["uid"])
        if caller.namespace != request.match_info["namespace"] or pod_name not in (None, caller.pod_name):
            raise web.HTTPForbidden(text="a pod speaks for itself only")
        if not self._hub.knows(uid, caller.namespace):
            raise web.HTTPNotFound(text="there is no such job, or this replica has not seen it yet")
        pod = self._pods.find(uid, caller.pod_name)
        if pod is None:
            raise web.HTTPNotFound(text="the job has no such pod, or this replica has not seen it yet")
        if pod.uid != caller.pod_uid:
            raise web.HTTPForbidden(text="a pod speaks for itself only")
        return uid, pod

    async def _caller(self, request: web.Request) -> Caller:
        header = request.headers.get("Authorization", "")
        if not header.startswith(_BEARER):
            raise web.HTTPUnauthorized(text="send the projected token: Authorization: Bearer TOKEN")
        try:
            caller = await self._authenticator.caller(header.removeprefix(_BEARER))
        except errors.ClusterError as error:
            raise web.HTTPServiceUnavailable(
                text="tokens cannot be reviewed now", headers={"Retry-After": "2"}
            ) from error
        if caller is None:
            raise web.HTTPUnauthorized(text="the token is no pod's, expired, or meant for another audience")
        return caller


@web.middleware
async def _say_what_failed(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """A body or a number that cannot be read is the caller's mistake."""
    try:
        return await handler(request)
    except (msgspec.MsgspecError, ValueError) as error:
        raise web.HTTPBadRequest(text=str(error)) from error


def _json(value: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")
