"""Count the objects of a kind by phase, and measure their duration. No label contains an object's name."""

import collections

import prometheus_client as prometheus
from prometheus_client import registry

from boathouse.services.frame.kind import KindDefinition
from boathouse.telemetry import metrics

_DURATIONS_S = (10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200)


class ObjectMetrics:
    """Metrics of the objects of one kind; the number in each phase is read at scrape.

    Attributes:
        phases: The phase of each object by its key.
    """

    def __init__(self, kind: KindDefinition, target: registry.CollectorRegistry, scrape: metrics.ScrapeGauges) -> None:
        self._kind = kind
        self.phases: dict[str, str] = {}
        prefix, objects = f"boathouse_{kind.resource.kind.lower()}", f"{kind.noun.capitalize()}s"
        self._finished = prometheus.Counter(f"{prefix}s_finished", f"{objects} that ended", ["result"], registry=target)
        self._duration_s = prometheus.Histogram(
            f"{prefix}_duration_seconds",
            f"From the {kind.noun}'s creation to its end",
            ["result"],
            buckets=_DURATIONS_S,
            registry=target,
        )
        for phase in sorted(kind.terminal_phases):
            self._finished.labels(phase.lower())
            self._duration_s.labels(phase.lower())
        scrape.add(metrics.Gauge(name=f"{prefix}s", documentation=objects, labels=("phase",), read=self._by_phase))

    def ended(self, phase: str, duration_s: float | None) -> None:
        """Count an object that has just entered a terminal phase."""
        self._finished.labels(phase.lower()).inc()
        if duration_s is not None:
            self._duration_s.labels(phase.lower()).observe(max(0.0, duration_s))

    def _by_phase(self) -> metrics.Reading:
        count = collections.Counter(self.phases.values())
        return {(phase,): float(count[phase]) for phase in self._kind.phases}
