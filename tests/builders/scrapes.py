"""Metrics as a scraper reads them."""

from __future__ import annotations

import prometheus_client

from boathouse.telemetry import metrics


class Scrape:
    """A registry with gauges that are read at scrape; `value` reads one sample."""

    def __init__(self) -> None:
        self.registry, self.gauges = prometheus_client.CollectorRegistry(), metrics.ScrapeGauges()
        self.registry.register(self.gauges)

    def value(self, name: str, **labels: str) -> float | None:
        """Return the value of a metric whose name is given without `boathouse_`."""
        return self.registry.get_sample_value(f"boathouse_{name}", labels)
