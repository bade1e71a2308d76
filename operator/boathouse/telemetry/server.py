"""Two small HTTP servers: metrics on one port, health on another, so that each can be opened to those who need it."""

import contextlib
import math
import time
from collections.abc import AsyncIterator
from typing import Final

from aiohttp import web
from prometheus_client import exposition, registry

from boathouse.listening import http_server
from boathouse.telemetry import health

CONNECTIONS: Final = 128
"""Open at a time, for each of the two: scrapers and kubelets need a few."""
PAGE_S: Final = 0.5
_OPEN_METRICS: Final = "application/openmetrics-text; version=1.0.0"


@contextlib.asynccontextmanager
async def serve(application: web.Application, *, port: int, host: str | None = None) -> AsyncIterator[int]:
    """Serve an application and give the port, which is chosen by the system when `port` is 0.

    Raises:
        OSError: The port is taken.
    """
    async with http_server.serve(application, port=port, most=CONNECTIONS, host=host or "") as listener:
        yield listener.port


def metrics_application(source: registry.CollectorRegistry) -> web.Application:
    """Return the application that answers `/metrics` in the format that the scraper asks for.

    A page is made at most once in `PAGE_S`, however often it is asked for: it takes milliseconds of the event loop.
    """
    pages: dict[str, tuple[float, bytes]] = {}

    async def metrics(request: web.Request) -> web.Response:
        accepted = _OPEN_METRICS if _OPEN_METRICS.partition(";")[0] in request.headers.get("Accept", "") else ""
        encode, content_type = exposition.choose_encoder(accepted)
        made_s, page = pages.get(content_type, (-math.inf, b""))
        now_s = time.monotonic()
        if now_s - made_s > PAGE_S:
            page = encode(source)
            pages[content_type] = (now_s, page)
        return web.Response(body=page, headers={"Content-Type": content_type})

    application = web.Application()
    application.router.add_get("/metrics", metrics)
    return application


def health_application(state: health.Health) -> web.Application:
    """Return the application that answers `/healthz` and `/readyz`: 200, or 503 and what is wrong, a line each."""

    async def healthz(_request: web.Request) -> web.Response:
        return _answer(state.liveness_problems())

    async def readyz(_request: web.Request) -> web.Response:
        return _answer(state.readiness_problems())

    application = web.Application()
    application.router.add_get("/healthz", healthz)
    application.router.add_get("/readyz", readyz)
    return application


def _answer(problems: dict[str, str]) -> web.Response:
    if not problems:
        return web.Response(text="ok\n")
    return web.Response(status=503, text="".join(f"{name}: {problem}\n" for name, problem in sorted(problems.items())))
