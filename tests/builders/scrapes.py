"""Metrics as a scraper reads them."""

from __future__ import annotations

import prometheus_client

from boathouse.telemetry import gauges


class Scrape:
    """A registry with gauges that are read at scrape; `value` reads one sample."""

    def __init__(self, prefix: str = "boathouse_") -> None:
        self.registry, self.gauges = prometheus_client.CollectorRegistry(), gauges.ScrapeGauges()
        self.registry.register(self.gauges)
        self._prefix = prefix

    def value(self, name: str, **labels: str) -> float | None:
        """Return the value of a metric whose name is given without the prefix."""
        return self.registry.get_sample_value(f"{self._prefix}{name}", labels)
