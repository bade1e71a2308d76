"""Two small HTTP servers: metrics on one port, health on another, so that each can be opened to those who need it."""

import contextlib
from collections.abc import AsyncIterator

from aiohttp import web
from prometheus_client import exposition, registry

from boathouse.telemetry import health


@contextlib.asynccontextmanager
async def serve(application: web.Application, *, port: int, host: str | None = None) -> AsyncIterator[int]:
    """Serve an application and give the port, which is chosen by the system when `port` is 0.

    Raises:
        OSError: The port is taken.
    """
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host=host, port=port)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def metrics_application(source: registry.CollectorRegistry) -> web.Application:
    """Return the application that answers `/metrics` in the format that the scraper asks for."""

    async def metrics(request: web.Request) -> web.Response:
        encode, content_type = exposition.choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(source), headers={"Content-Type": content_type})

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
