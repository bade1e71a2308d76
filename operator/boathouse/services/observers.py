"""Isolate errors of a profile's observers from the process."""

from collections.abc import Iterable

from typing_extensions import override

from boathouse.telemetry import logs, metrics
from boathouse_policies import framework, model

_log = logs.get(__name__)


class GuardedObservers(framework.Observer):
    """Passes events to observers. If an observer raises an error, it misses this event and others are not affected.

    An observer that raised still gets later events. Otherwise one tenant's tasks could disable it for all tenants.
    """

    def __init__(self, observers: Iterable[framework.Observer], scrape: metrics.ScrapeGauges) -> None:
        self._observers = [(type(observer).__name__, observer) for observer in observers]
        self.report_every_s = _shortest(observer.report_every_s for _, observer in self._observers)
        self.measure_every_s = _shortest(observer.measure_every_s for _, observer in self._observers)
        self._failures = {name: 0 for name, _ in self._observers}
        scrape.add(
            metrics.Gauge(
                name="boathouse_observer_failures",
                documentation="Events for which an observer of the profile raised an error",
                labels=("observer",),
                read=lambda: {(name,): float(count) for name, count in self._failures.items()},
                counts=True,
            )
        )

    @override
    def observe(self, event: model.Event) -> None:
        """Pass an event to each observer; log the first, second, fourth, eighth ... failure of each."""
        for name, observer in self._observers:
            try:
                observer.observe(event)
            except Exception:  # noqa: BLE001 - an observer's error must not affect others
                self._failures[name] += 1
                if self._failures[name].bit_count() == 1:
                    _log.exception("an observer of the profile raised an error", observer=name)


def _shortest(intervals_s: Iterable[float]) -> float:
    return min((interval_s for interval_s in intervals_s if interval_s > 0), default=0.0)
