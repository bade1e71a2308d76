"""Serve metrics and health probes over HTTP on separate ports, which network policies can open separately."""

import asyncio
import dataclasses
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from aiohttp import web
from prometheus_client import core, exposition, registry
from typing_extensions import override

from boathouse.listening.connections import Limits, Rate
from boathouse.telemetry import health

LIMITS: Final = Limits(
    most=32,
    unverified=32,
    of_address=8,
    unverified_of_address=8,
    rate=Rate(per_s=400, burst=400),
    address_rate=Rate(per_s=20, burst=40),
    few=Rate(per_s=1, burst=3),
    queues=False,
    head_s=5,
    life_s=30,
)
"""Limits of the metrics port. Scrapers and kubelets need a few connections, and send a request as soon as they are
connected. Kubelets probe each replica 0.6 times per second (`few`). A request takes 0.25 ms of CPU time: `rate` is a
tenth of a core. Requests use at most 32 × 16 KiB, and as many pages of metrics while their clients read them."""
PROBE_LIMITS: Final = dataclasses.replace(LIMITS, most=128, unverified=128)
"""Limits of the health port. Its answers are small, and under a flood at the full rate the newest connection stays open
for 0.3 s, in which a kubelet on a busy node sends its request."""
PAGE_S: Final = 0.5
_OPEN_METRICS: Final = "application/openmetrics-text; version=1.0.0"


class _Families(registry.Collector):
    """Metrics that were read, for the encoders of the library."""

    def __init__(self, families: Iterable[core.Metric]) -> None:
        self._families = families

    @override
    def collect(self) -> Iterable[core.Metric]:
        return self._families


async def _read(source: registry.CollectorRegistry) -> _Families:
    """Read all metrics; between two of them, whatever waits for the event loop has its turn."""
    families = []
    for family in source.collect():
        families.append(family)
        await asyncio.sleep(0)
    return _Families(families)


def metrics_application(source: registry.CollectorRegistry) -> web.Application:
    """Return the application for `/metrics`, which responds in the format that the scraper requests.

    It builds one page at a time, each format at most once in `PAGE_S`. Values are read on the event loop, one metric at
    a time; the text, which is most of the work, is made in a thread.
    """
    pages: dict[str, tuple[float, bytes]] = {}
    building = asyncio.Lock()

    async def metrics(request: web.Request) -> web.Response:
        accepted = _OPEN_METRICS if _OPEN_METRICS.partition(";")[0] in request.headers.get("Accept", "") else ""
        encode, content_type = exposition.choose_encoder(accepted)
        async with building:
            made_s, page = pages.get(content_type, (-math.inf, b""))
            if time.monotonic() - made_s > PAGE_S:
                page = await asyncio.to_thread(encode, await _read(source))
                pages[content_type] = time.monotonic(), page
        return web.Response(body=page, headers={"Content-Type": content_type})

    application = web.Application()
    application.router.add_get("/metrics", metrics)
    return application


def health_application(state: health.Health) -> web.Application:
    """Return the application for `/healthz` and `/readyz`: 200, or 503 with a line for each problem."""

    def answering(*probes: Mapping[str, health.Probe]) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(_request: web.Request) -> web.Response:
            problems = sorted(health.problems(*probes).items())
            text = "".join(f"{name}: {problem}\n" for name, problem in problems)
            return web.Response(status=503 if problems else 200, text=text or "ok\n")

        return answer

    application = web.Application()
    application.router.add_get("/healthz", answering(state.liveness))
    application.router.add_get("/readyz", answering(state.liveness, state.readiness))
    return application
