"""Metrics of the reads of kubelets. No label contains a node's name."""

import prometheus_client as prometheus
from prometheus_client import registry

from boathouse.services.instruments.kubelet_client import Result

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 3)


class ReadMetrics:
    """Counts reads and measures their duration."""

    def __init__(self, target: registry.CollectorRegistry) -> None:
        reads = prometheus.Counter(
            "boathouse_kubelet_reads", "Reads of kubelets' metrics by how they ended", ["result"], registry=target
        )
        self._reads = {result: reads.labels(result.value) for result in Result}
        self._duration_s = prometheus.Histogram(
            "boathouse_kubelet_read_duration_seconds",
            "Time from a request to a kubelet to the end of its answer, or to its failure",
            buckets=_SECONDS,
            registry=target,
        )

    def count(self, result: Result, duration_s: float) -> None:
        """Count a read."""
        self._reads[result].inc()
        self._duration_s.observe(duration_s)
