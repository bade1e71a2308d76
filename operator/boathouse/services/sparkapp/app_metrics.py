"""Count the attempts and the executors of SparkApps. No label holds an application's name."""

from collections.abc import Callable, Iterable

import prometheus_client as prometheus

from boathouse.resources import names
from boathouse.resources.sparkapp import names as spark_names
from boathouse.services.sparkapp.model import AppState
from boathouse.telemetry import metrics

_CAUSES = ("none", "application", "infrastructure", "suspended")
_REASONS = frozenset({*map(str, names.Reason), *map(str, spark_names.Reason), *names.POD_REASONS})


class AppMetrics:
    """Counters of attempts."""

    def __init__(self, target: metrics.Metrics, executors: Callable[[], Iterable[tuple[int, int, int]]]) -> None:
        self._begun = prometheus.Counter(
            "boathouse_sparkapp_attempts", "Attempts of Spark applications that were begun", registry=target.registry
        )
        self._ended = prometheus.Counter(
            "boathouse_sparkapp_attempts_ended",
            "Attempts of Spark applications that ended, by who is to blame",
            ["cause", "reason"],
            registry=target.registry,
        )
        for cause in _CAUSES:
            self._ended.labels(cause, "")
        target.gauges.add(
            metrics.Gauge(
                name="boathouse_spark_executors",
                documentation="Executors of drivers by state",
                labels=("state",),
                read=lambda: {
                    ("pending",): float(sum(pending for pending, *_ in executors())),
                    ("running",): float(sum(running for _, running, _ in executors())),
                },
            )
        )

    def changed(self, before: AppState, after: AppState) -> None:
        """Count what a reconcile changed."""
        if after.attempt > before.attempt:
            self._begun.inc()
        counted = {attempt.number for attempt in before.past_attempts}
        for attempt in after.past_attempts:
            if attempt.number not in counted:
                reason = attempt.reason if attempt.reason in _REASONS or not attempt.reason else "other"
                self._ended.labels((attempt.cause or "none").lower(), reason).inc()
