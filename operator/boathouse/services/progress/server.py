"""Serve the progress endpoint: HTTP over TLS for requests of authenticated pods.

Each kind adds its routes. The endpoint shares the event loop with leader election and the scheduler, so all its work is
limited. It checks that the pod that a token claims is live before it reviews the token, and verifies the sender before
it reads a body. Each connection serves one request, so that limits of connections also limit requests.
"""

import contextlib
import dataclasses
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Final, Generic, TypeVar

import msgspec
from aiohttp import web

from boathouse.cluster import client, server_time
from boathouse.listening import listener
from boathouse.listening.connections import Limits, Rate
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.frame.pod_life import ObservedPod
from boathouse.services.progress.auth import RESULTS, Authenticator, Caller, read_claims
from boathouse.services.progress.limits import Reason, Rejected
from boathouse.telemetry import metrics
from boathouse_task import contract

LIMITS: Final = Limits(
    most=1536,
    unverified=512,
    of_address=512,
    unverified_of_address=256,
    rate=Rate(per_s=300, burst=300),
    address_rate=Rate(per_s=60, burst=250),
    few=Rate(per_s=2, burst=20),
    queues=True,
    head_s=10,
    life_s=120,
)
"""Each connection serves one request, so the tasks of 3,000 nodes need some 100s. Connections and their requests use at
most 150 MiB. A handshake takes 0.8 ms of CPU time (OpenSSL 3, P-256): `rate` is a quarter of a core. Some networks map
all pods of a node to one address: 250 pods with a report and a poll each, which report every 5 s. The longest poll and
the slowest plan take a minute."""
_BASE: Final = "/v1/jobs/{namespace}/{uid}/"
_BEARER: Final = "Bearer "
_DETAIL_CHARS: Final = 200
PodT = TypeVar("PodT", bound=ObservedPod)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sender(Generic[PodT]):
    """The live pod, and what its token claims, of a request that a handler gets after their verification."""

    claimed: Caller
    object_uid: ObjectUid
    pod: PodT


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Route(Generic[PodT]):
    """One route of a kind, below `/v1/jobs/{namespace}/{uid}/`; a part `{pod}` is the sender's name.

    `check` raises `Rejected`, and must be cheap: it runs before the token is reviewed, and again afterwards.
    """

    method: str
    path: str
    handle: Callable[[web.Request, Sender[PodT]], Awaitable[object]]
    check: Callable[[Sender[PodT]], None] = lambda _: None
    most_bytes: int = 0


Find = Callable[[ObjectUid, Caller], PodT | None]


class ProgressServer:
    """Serves the routes of the kinds."""

    listener: "listener.Listener | None" = None

    def __init__(self, api: client.ApiClient, metrics_: metrics.Metrics) -> None:
        self.application = web.Application(middlewares=[self._answer])
        target, rejected = metrics_.registry, "Requests and connections that the progress endpoint refused"
        self._reject = metrics.counter(target, "progress_rejections", rejected, reason=tuple(Reason))
        reviewed, connections = "Tokens of tasks that the API server reviewed", "Connections to the progress endpoint"
        reviews = metrics.counter(target, "token_reviews", reviewed, result=RESULTS)
        metrics_.gauges.add(
            metrics.Gauge(
                "boathouse_progress_connections",
                connections,
                lambda: 0 if self.listener is None else self.listener.open,
            )
        )
        self._authenticator = Authenticator(api, contract.TOKEN_AUDIENCE, reviewed=reviews)

    def add(self, find: Find[PodT], routes: Iterable[Route[PodT]]) -> None:
        """Add the routes of a kind, for the pods that `find` returns."""
        for route in routes:
            self.application.router.add_route(route.method, _BASE + route.path, self._handler(find, route))

    @contextlib.asynccontextmanager
    async def serve(self, context: ssl.SSLContext, *, port: int, host: str = "") -> AsyncIterator[int]:
        """Serve the endpoint during the block; yields the port. Raises OSError if the port is in use."""
        async with listener.serve(
            self.application, port=port, limits=LIMITS, host=host, context=context, rejected=self._reject
        ) as self.listener:
            yield self.listener.port

    def _handler(self, find: Find[PodT], route: Route[PodT]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.Response:
            uid = ObjectUid(request.match_info["uid"])
            token, claimed = _claim(request)
            sender = Sender(claimed=claimed, object_uid=uid, pod=_live(find(uid, claimed), claimed))
            if (request.content_length or 0) > route.most_bytes:
                raise Rejected(Reason.TOO_LARGE, f"more than {route.most_bytes} bytes")
            route.check(sender)
            verdict = await self._authenticator.caller(token, claimed)
            if isinstance(verdict, Reason):
                raise Rejected(verdict)
            _live(find(uid, claimed), claimed)  # the object may have been deleted since
            route.check(sender)  # and other requests of the pod may have been accepted
            if self.listener is not None:
                self.listener.verified(request.protocol)
            answer = await route.handle(request, sender)
            return web.Response(body=msgspec.json.encode(answer), content_type="application/json")

        return handle

    @web.middleware
    async def _answer(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        try:
            return await handler(request)
        except Rejected as error:
            refusal = error
        except web.HTTPException:
            refusal = Rejected(Reason.UNKNOWN_PATH)
        except (ValueError, RecursionError, web.RequestPayloadError) as error:
            refusal = Rejected(Reason.MALFORMED, str(error)[:_DETAIL_CHARS])
        self._reject(refusal.reason)
        return refusal.response()


def _claim(request: web.Request) -> tuple[str, Caller]:
    header = request.headers.get("Authorization", "")
    if not header.startswith(_BEARER):
        raise Rejected(Reason.NO_TOKEN)
    token = header.removeprefix(_BEARER)
    claimed = read_claims(token, contract.TOKEN_AUDIENCE, server_time.SERVER_TIME.now_s())
    if claimed is None:
        raise Rejected(Reason.INVALID_TOKEN)
    path = request.match_info
    if claimed.namespace != path["namespace"] or path.get("pod", claimed.pod_name) != claimed.pod_name:
        raise Rejected(Reason.ANOTHER_POD)
    return token, claimed


def _live(pod: PodT | None, claimed: Caller) -> PodT:
    if pod is None:
        raise Rejected(Reason.UNKNOWN_POD)
    if pod.uid != claimed.pod_uid:
        raise Rejected(Reason.ANOTHER_POD)
    return pod
