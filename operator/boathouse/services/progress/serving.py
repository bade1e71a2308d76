"""Serves the progress endpoint over TLS, and counts what it refuses."""

import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import Final

import prometheus_client as prometheus
from prometheus_client import registry

from boathouse.listening import http_server, listener
from boathouse.services.progress.rejections import Reason
from boathouse.services.progress.server import ProgressServer
from boathouse.telemetry import gauges

CONNECTIONS: Final = 1536
"""Open at a time: 100 MiB. A connection lasts for one request, so the tasks of 3,000 nodes need a few hundred."""
REVIEWS: Final = ("accepted", "denied", "error")


class EndpointMetrics:
    """What the endpoint refused and asked, all labels present from the start."""

    def __init__(self, target: registry.CollectorRegistry, scrape: gauges.ScrapeGauges) -> None:
        self.listener: listener.Listener | None = None
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
    async with http_server.serve(
        endpoint.application(),
        port=port,
        most=CONNECTIONS,
        host=host,
        context=context,
        rejected=lambda refusal: metrics.rejected(Reason(refusal.value)),
    ) as listening:
        metrics.listener = listening
        endpoint.on_verified(lambda request: listening.verified(request.protocol))
        try:
            yield listening.port
        finally:
            metrics.listener = None
