"""The HTTP side of the progress endpoint. What tasks say are hints; only the posted plan is more, by its digest.

It shares the event loop with leader election and the scheduler. So everything here is bounded: a token is judged by
what it claims before it is reviewed, a body is not read before its sender may send it, plans are read beside the loop,
and each connection serves one request, so that the limits of connections are limits of requests too.
"""

import collections
import dataclasses
import time
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec
from aiohttp import web

from boathouse import failpoints
from boathouse.listening.budget import Places
from boathouse.services.mrjob.attempts.attempt_pod import AttemptPod
from boathouse.services.mrjob.job.model import JobUid
from boathouse.services.mrjob.progress.task_messages import TaskMessages
from boathouse.services.mrjob.splits import intake
from boathouse.services.mrjob.splits.shards import StoredPlan
from boathouse.services.progress import claims
from boathouse.services.progress.auth import Authenticator
from boathouse.services.progress.claims import Caller
from boathouse.services.progress.rejections import Reason, Rejected
from boathouse_task import contract
from boathouse_task.contract import TaskType

MAX_WAIT_S: Final = 55.0
REPORT_DISTANCE_S: Final = 2.0
"""Tasks report every 5 s; whoever reports much more often is told to wait."""
REPORT_READ_S: Final = 5.0
REPORTERS_S: Final = 60.0
"""Tasks that reported within so long are those that report."""
REPORTS_A_S: Final = 100.0
"""How many reports a second are wanted: a tenth of a core. Where more tasks report, each is asked for fewer."""
REPORTS, REPORTS_OF_NAMESPACE = 256, 192
"""Reports that are received at a time: one takes milliseconds, unless its sender is slow on purpose."""
POLLS, POLLS_OF_NAMESPACE, POLLS_OF_POD = 1024, 768, 2
"""Polls that are held at a time. Reduces start when the maps are done, so few have anything to wait for."""
_BEARER: Final = "Bearer "
_DETAIL_CHARS: Final = 200


class Pods(Protocol):
    """Knows the pods of each job: `PodIndex` is one."""

    def find(self, uid: JobUid, pod_name: str) -> AttemptPod | None:
        """One pod of a job."""
        ...


class PlanSink(Protocol):
    """Keeps posted plans: `Plans` is one."""

    def has_room(self, uid: JobUid, namespace: str, kept: StoredPlan) -> bool:
        """Whether a plan may be kept beside those of the namespace's other jobs."""
        ...

    def post(self, uid: JobUid, namespace: str, kept: StoredPlan) -> None:
        """Remember a plan."""
        ...


class Owners(Protocol):
    """Knows what became of jobs: `owners.Owners` is one."""

    def state(self, uid: JobUid, *, namespace: str, cluster: str) -> contract.Owner:
        """What is known of the job that an ownership mark names."""
        ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Speaker:
    """Who a token claims to be; nothing is proved yet."""

    token: str
    claimed: Caller
    job: JobUid
    pod: AttemptPod


class ProgressServer:
    """The routes under `/v1/jobs/{namespace}/{uid}/`.

    Args:
        task_messages: Orders and reports.
        pods: The pods that may speak.
        plans: Where posted plans go.
        authenticator: Tells who is asking.
        on_plan: Called with a job whose plan was posted.
        owners: Tells setup tasks what became of an output's owner.
        rejected: Called with why a request was refused.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        *,
        task_messages: TaskMessages,
        pods: Pods,
        plans: PlanSink,
        authenticator: Authenticator,
        on_plan: Callable[[JobUid], None],
        owners: Owners,
        rejected: Callable[[Reason], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._task_messages = task_messages
        self._pods = pods
        self._plans = plans
        self._authenticator = authenticator
        self._on_plan = on_plan
        self._owners = owners
        self._rejected = rejected
        self._verified: Callable[[web.Request], None] = lambda _: None
        self._clock = clock
        self._desk = intake.PlanIntake(clock)
        self._reports = msgspec.json.Decoder(contract.TaskReport)
        self._reported: collections.OrderedDict[str, float] = collections.OrderedDict()
        self._bodies = Places(in_all=REPORTS, each=REPORTS_OF_NAMESPACE)
        self._polls = Places(in_all=POLLS, each=POLLS_OF_NAMESPACE)
        self._polls_of_pod = Places(in_all=POLLS, each=POLLS_OF_POD)

    def on_verified(self, verified: Callable[[web.Request], None]) -> None:
        """Call back with each request whose token was verified."""
        self._verified = verified

    def application(self) -> web.Application:
        """The aiohttp application, to be served without decompression: bodies are read here, piece by piece."""
        application = web.Application(middlewares=[self._answer])
        base = "/v1/jobs/{namespace}/{uid}"
        application.router.add_post(f"{base}/tasks/{{pod}}/report", self._report)
        application.router.add_get(f"{base}/tasks/{{pod}}/orders", self._orders)
        application.router.add_post(f"{base}/plan", self._post_plan)
        application.router.add_get(f"{base}/tasks/{{pod}}/owner", self._owner)
        application.on_cleanup.append(self._close)
        return application

    async def _close(self, _: web.Application) -> None:
        self._desk.close()

    async def _report(self, request: web.Request) -> web.Response:
        speaker = self._speaker(request, request.match_info["pod"])
        _check_length(request, contract.REPORT_MAX_BYTES)
        self._check_distance(speaker.pod)
        await self._verify(request, speaker)
        self._check_distance(speaker.pod)  # again: others of it may have come while the token was reviewed
        self._note_report(speaker.pod.uid)
        with self._bodies.place(speaker.claimed.namespace) as free:
            if not free:
                raise Rejected(Reason.TOO_OFTEN)
            body = await intake.receive(request.content, most_bytes=contract.REPORT_MAX_BYTES, within_s=REPORT_READ_S)
        self._task_messages.report(speaker.job, speaker.pod.name, self._reports.decode(body))
        return _json(contract.ReportTaken(next_s=min(REPORTERS_S, len(self._reported) / REPORTS_A_S)))

    def _check_distance(self, pod: AttemptPod) -> None:
        if self._clock() - self._reported.get(pod.uid, -REPORT_DISTANCE_S) < REPORT_DISTANCE_S:
            raise Rejected(Reason.TOO_OFTEN)

    def _note_report(self, pod_uid: str) -> None:
        """Remember when; the oldest are forgotten first, so that a report costs the same however many there are."""
        now_s = self._clock()
        self._reported[pod_uid] = now_s
        self._reported.move_to_end(pod_uid)
        while now_s - next(iter(self._reported.values())) > REPORTERS_S:
            self._reported.popitem(last=False)

    async def _orders(self, request: web.Request) -> web.Response:
        speaker = self._speaker(request, request.match_info["pod"])
        _check_length(request, 0)
        since = int(request.query.get("since", "0"))
        wait_s = min(MAX_WAIT_S, max(0.0, float(request.query.get("wait_s", "0"))))
        await self._verify(request, speaker)
        news = self._task_messages.orders_since(speaker.job, since)
        if news is not None:
            return _json(news)
        with (
            self._polls.place(speaker.claimed.namespace) as free,
            self._polls_of_pod.place(speaker.pod.uid) as free_of_pod,
        ):
            if not (free and free_of_pod):
                raise Rejected(Reason.TOO_MANY_POLLS)
            return _json(await self._task_messages.orders(speaker.job, since, wait_s))

    async def _post_plan(self, request: web.Request) -> web.Response:
        speaker = self._speaker(request, None)
        uid, namespace = speaker.job, speaker.claimed.namespace
        if speaker.pod.task_type is not TaskType.SETUP:
            raise Rejected(Reason.NOT_SETUP)
        self._check_wanted(uid)
        _check_length(request, contract.PLAN_POST_MAX_BYTES)
        self._desk.check(namespace)
        await self._verify(request, speaker)
        gzipped = request.headers.get("Content-Encoding") == "gzip"
        body = intake.Body(content=request.content, length=request.content_length, gzipped=gzipped)
        kept = await self._desk.read(namespace, body)
        self._check_wanted(uid)  # again, for all that takes a while
        if not self._plans.has_room(uid, namespace, kept):
            raise Rejected(Reason.TOO_MANY_PLANS)
        failpoints.hit("before-plan.posted")
        self._plans.post(uid, namespace, kept)
        failpoints.hit("after-plan.posted")
        self._on_plan(uid)
        return _json({"digest": kept.digest, "shards": kept.shards})

    async def _owner(self, request: web.Request) -> web.Response:
        speaker = self._speaker(request, request.match_info["pod"])
        if speaker.pod.task_type is not TaskType.SETUP:
            raise Rejected(Reason.NOT_SETUP)
        _check_length(request, 0)
        await self._verify(request, speaker)
        mark = request.query
        uid = JobUid(mark.get("uid", ""))
        return _json(self._owners.state(uid, namespace=mark.get("namespace", ""), cluster=mark.get("cluster", "")))

    def _check_wanted(self, uid: JobUid) -> None:
        if not self._task_messages.wants_plan(uid):
            raise Rejected(Reason.NO_PLAN_WANTED)

    def _speaker(self, request: web.Request, pod_name: str | None) -> _Speaker:
        """The live pod of the job that the token claims; it speaks for itself only. Costs no review."""
        header = request.headers.get("Authorization", "")
        if not header.startswith(_BEARER):
            raise Rejected(Reason.NO_TOKEN)
        token = header.removeprefix(_BEARER)
        said = claims.read(token, contract.TOKEN_AUDIENCE, time.time())
        if said is None:
            raise Rejected(Reason.INVALID_TOKEN)
        uid = JobUid(request.match_info["uid"])
        if said.namespace != request.match_info["namespace"] or pod_name not in (None, said.pod_name):
            raise Rejected(Reason.ANOTHER_POD)
        pod = self._pods.find(uid, said.pod_name) if self._task_messages.knows(uid, said.namespace) else None
        if pod is None or not pod.state.is_live:
            raise Rejected(Reason.UNKNOWN_POD)
        if pod.uid != said.pod_uid:
            raise Rejected(Reason.ANOTHER_POD)
        return _Speaker(token=token, claimed=said, job=uid, pod=pod)

    async def _verify(self, request: web.Request, speaker: _Speaker) -> None:
        """Pass a token that is what it claims to be, of a job that is still there."""
        verdict = await self._authenticator.caller(speaker.token, speaker.claimed)
        if isinstance(verdict, Reason):
            raise Rejected(verdict)
        if not self._task_messages.knows(speaker.job, speaker.claimed.namespace):
            raise Rejected(Reason.UNKNOWN_POD)
        self._verified(request)

    @web.middleware
    async def _answer(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Answer. A refusal is counted; what cannot be read is one."""
        try:
            response = await handler(request)
        except Rejected as refusal:
            response = self._refuse(refusal)
        except web.HTTPException:
            response = self._refuse(Rejected(Reason.UNKNOWN_PATH))
        except (ValueError, RecursionError, web.RequestPayloadError) as error:
            response = self._refuse(Rejected(Reason.MALFORMED, str(error)[:_DETAIL_CHARS]))
        return response

    def _refuse(self, refusal: Rejected) -> web.Response:
        self._rejected(refusal.reason)
        return refusal.response()


def _check_length(request: web.Request, most_bytes: int) -> None:
    """Refuse by its header a body that is too large, before any of it is read."""
    if (request.content_length or 0) > most_bytes:
        raise Rejected(Reason.TOO_LARGE, f"more than {most_bytes} bytes")


def _json(value: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")
