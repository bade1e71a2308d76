"""Serves the progress endpoint over TLS, and counts what it refuses."""

import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import Final

import prometheus_client as prometheus
from aiohttp import web
from prometheus_client import registry

from boathouse.services.progress.listener import Listener
from boathouse.services.progress.rejections import Reason
from boathouse.services.progress.server import ProgressServer
from boathouse.telemetry import gauges

REQUEST_S: Final = 10.0
"""How long a connection may take from its handshake to the end of its request's headers."""
READ_BUFFER_BYTES: Final = 16 * 1024
REVIEWS: Final = ("accepted", "denied", "error")


class EndpointMetrics:
    """What the endpoint refused and asked, all labels present from the start."""

    def __init__(self, target: registry.CollectorRegistry, scrape: gauges.ScrapeGauges) -> None:
        self.listener: Listener | None = None
        rejections = prometheus.Counter(
            "boathouse_progress_rejections",
            "Requests and connections that the progress endpoint refused",
            ["reason"],
            registry=target,
        )
        reviews = prometheus.Counter(
            "boathouse_token_reviews", "Tokens of tasks that the API server reviewed", ["result"], registry=target
        )
        self._rejections = {reason: rejections.labels(reason.value) for reason in Reason}
        self._reviews = {result: reviews.labels(result) for result in REVIEWS}
        scrape.add(
            gauges.Gauge(
                name="boathouse_progress_connections",
                documentation="Connections to the progress endpoint",
                read=lambda: {(): float(self.listener.open if self.listener is not None else 0)},
            )
        )

    def rejected(self, reason: Reason) -> None:
        """Count one request or connection that was refused."""
        self._rejections[reason].inc()

    def reviewed(self, result: str) -> None:
        """Count one TokenReview."""
        self._reviews[result].inc()


@contextlib.asynccontextmanager
async def serve(
    endpoint: ProgressServer, context: ssl.SSLContext, metrics: EndpointMetrics, *, port: int, host: str = ""
) -> AsyncIterator[int]:
    """Serve the endpoint for the time of the block; gives the port.

    Raises:
        OSError: The port is taken.
    """
    runner = web.AppRunner(
        endpoint.application(),
        access_log=None,
        shutdown_timeout=1.0,
        keepalive_timeout=REQUEST_S,  # that of a connection which has sent no request yet, too
        lingering_time=0.0,
        auto_decompress=False,
        read_bufsize=READ_BUFFER_BYTES,
    )
    await runner.setup()
    assert runner.server is not None
    listener = Listener(runner.server, context, rejected=metrics.rejected)
    metrics.listener = listener
    endpoint.on_verified(lambda request: listener.verified(request.protocol))
    try:
        yield listener.start(port, host)
    finally:
        listener.close()
        await runner.cleanup()
        metrics.listener = None
