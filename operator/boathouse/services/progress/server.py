"""The progress endpoint: HTTP over TLS, and the proof that a request comes from a pod of an object.

Each kind adds its routes. The endpoint shares the event loop with leader election and the scheduler, so everything here
is bounded. A token is compared with the pod that it claims before it is reviewed. A body is not read before its sender
is verified. Each connection serves one request, so that the limits of connections are limits of requests too.
"""

import contextlib
import dataclasses
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Final, Generic, Protocol, TypeVar

import msgspec
import prometheus_client as prometheus
from aiohttp import web

from boathouse.listening import http_server
from boathouse.listening.listener import Listener
from boathouse.services.progress import auth, claims
from boathouse.services.progress.claims import Caller
from boathouse.services.progress.rejections import Reason, Rejected
from boathouse.telemetry import gauges, metrics
from boathouse_task import contract

CONNECTIONS: Final = 1536
"""Open at a time: 100 MiB. A connection lasts for one request, so the tasks of 3,000 nodes need a few hundred."""
_BASE: Final = "/v1/jobs/{namespace}/{uid}/"
_BEARER: Final = "Bearer "
_DETAIL_CHARS: Final = 200


class Pod(Protocol):
    """A pod of an object."""

    @property
    def uid(self) -> str:
        """The pod's UID."""
        ...


PodT = TypeVar("PodT", bound=Pod)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sender(Generic[PodT]):
    """The live pod that a request claims to come from; a handler gets it when that is verified.

    Attributes:
        claimed: The pod as its token names it.
        object_uid: Of the object that the pod belongs to.
        pod: The pod as its kind knows it.
    """

    claimed: Caller
    object_uid: str
    pod: PodT


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Route(Generic[PodT]):
    """One route of a kind.

    Attributes:
        method: The HTTP method.
        path: Below `/v1/jobs/{namespace}/{uid}/`. If it has a part `{pod}`, that is the sender's own name.
        handle: Returns the answer, to be sent as JSON.
        check: Raises `Rejected` for a request that needs no review. It must cost little: it is called before the
            token is reviewed, and again afterwards.
        most_bytes: Of the body.
    """

    method: str
    path: str
    handle: Callable[[web.Request, Sender[PodT]], Awaitable[object]]
    check: Callable[[Sender[PodT]], None] = lambda _: None
    most_bytes: int = 0


Find = Callable[[str, Caller], PodT | None]
"""Returns a live pod of an object, by the object's UID and the pod's names."""


class ProgressServer:
    """Serves the routes of the kinds.

    Args:
        reviewer: Reviews tokens.
        figures: The process's metrics.

    Attributes:
        application: The routes, for a server that does not decompress bodies.
        listener: Of the endpoint, once it is served.
    """

    listener: Listener | None = None

    def __init__(self, reviewer: auth.Reviewer, figures: metrics.Metrics) -> None:
        self.application = web.Application(middlewares=[self._answer])
        self._rejections = _counter(
            figures,
            "boathouse_progress_rejections",
            "Requests and connections that the progress endpoint refused",
            reason=Reason,
        )
        reviews = _counter(
            figures, "boathouse_token_reviews", "Tokens of tasks that the API server reviewed", result=auth.RESULTS
        )
        figures.gauges.add(
            gauges.Gauge(
                name="boathouse_progress_connections",
                documentation="Connections to the progress endpoint",
                read=lambda: {(): float(self.listener.open if self.listener is not None else 0)},
            )
        )
        self._authenticator = auth.Authenticator(
            reviewer, contract.TOKEN_AUDIENCE, reviewed=lambda result: reviews.labels(result).inc()
        )

    def add(self, find: Find[PodT], routes: Iterable[Route[PodT]]) -> None:
        """Serve the routes of a kind, which are for the pods that `find` returns."""
        for route in routes:
            self.application.router.add_route(route.method, _BASE + route.path, self._handler(find, route))

    @contextlib.asynccontextmanager
    async def serve(self, context: ssl.SSLContext, *, port: int, host: str = "") -> AsyncIterator[int]:
        """Serve the endpoint for the time of the block; gives the port.

        Raises:
            OSError: The port is taken.
        """
        async with http_server.serve(
            self.application,
            port=port,
            most=CONNECTIONS,
            host=host,
            context=context,
            rejected=lambda refusal: self._rejections.labels(refusal.value).inc(),
        ) as self.listener:
            yield self.listener.port

    def _handler(self, find: Find[PodT], route: Route[PodT]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.Response:
            uid = request.match_info["uid"]
            token, claimed = _claim(request)
            sender = Sender(claimed=claimed, object_uid=uid, pod=_live(find(uid, claimed), claimed))
            if (request.content_length or 0) > route.most_bytes:
                raise Rejected(Reason.TOO_LARGE, f"more than {route.most_bytes} bytes")
            route.check(sender)
            verdict = await self._authenticator.caller(token, claimed)
            if isinstance(verdict, Reason):
                raise Rejected(verdict)
            _live(find(uid, claimed), claimed)  # the object may be deleted meanwhile
            route.check(sender)  # and other requests of the pod may be accepted
            if self.listener is not None:
                self.listener.verified(request.protocol)
            answer = await route.handle(request, sender)
            return web.Response(body=msgspec.json.encode(answer), content_type="application/json")

        return handle

    @web.middleware
    async def _answer(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Answer a request. Count a refusal; a request that cannot be read is refused."""
        try:
            return await handler(request)
        except Rejected as error:
            refusal = error
        except web.HTTPException:
            refusal = Rejected(Reason.UNKNOWN_PATH)
        except (ValueError, RecursionError, web.RequestPayloadError) as error:
            refusal = Rejected(Reason.MALFORMED, str(error)[:_DETAIL_CHARS])
        self._rejections.labels(refusal.reason.value).inc()
        return refusal.response()


def _claim(request: web.Request) -> tuple[str, Caller]:
    """Return the token of a request, and the pod that it claims to be of, which is what the path names."""
    header = request.headers.get("Authorization", "")
    if not header.startswith(_BEARER):
        raise Rejected(Reason.NO_TOKEN)
    token = header.removeprefix(_BEARER)
    claimed = claims.read(token, contract.TOKEN_AUDIENCE, time.time())
    if claimed is None:
        raise Rejected(Reason.INVALID_TOKEN)
    path = request.match_info
    if claimed.namespace != path["namespace"] or path.get("pod", claimed.pod_name) != claimed.pod_name:
        raise Rejected(Reason.ANOTHER_POD)
    return token, claimed


def _live(pod: PodT | None, claimed: Caller) -> PodT:
    """Return the pod if it is the claimed one."""
    if pod is None:
        raise Rejected(Reason.UNKNOWN_POD)
    if pod.uid != claimed.pod_uid:
        raise Rejected(Reason.ANOTHER_POD)
    return pod


def _counter(figures: metrics.Metrics, name: str, documentation: str, **label: Iterable[str]) -> prometheus.Counter:
    """Return a counter with one label, whose values are all present from the start."""
    ((key, values),) = label.items()
    counter = prometheus.Counter(name, documentation, [key], registry=figures.registry)
    for value in values:
        counter.labels(value)
    return counter
