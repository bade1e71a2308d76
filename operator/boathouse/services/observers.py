"""Keep the faults of a profile's observers from ending the process."""

from collections.abc import Iterable

from typing_extensions import override

from boathouse.telemetry import gauges, logs
from boathouse_policies import framework, model

_log = logs.get(__name__)


class GuardedObservers(framework.Observer):
    """Passes events to observers. What one raises costs that observer that event, and no other.

    No observer is left out for good: a tenant whose tasks make it raise would take it from all tenants.

    Args:
        observers: The observers of a profile.
        scrape: Where to count.
    """

    def __init__(self, observers: Iterable[framework.Observer], scrape: gauges.ScrapeGauges) -> None:
        self._observers = [(type(observer).__name__, observer) for observer in observers]
        self._failures = dict.fromkeys((name for name, _ in self._observers), 0)
        scrape.add(
            gauges.Gauge(
                name="boathouse_observer_failures",
                documentation="Events of which an observer of the profile raised an error",
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
            except Exception:  # noqa: BLE001 - an observer's fault concerns that observer only
                self._failures[name] += 1
                if self._failures[name].bit_count() == 1:
                    _log.exception("an observer of the profile raised an error", observer=name)
