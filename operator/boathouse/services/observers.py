"""Keep the faults of a profile's observers from ending the process."""

import collections
from collections.abc import Iterable
from typing import Final

from typing_extensions import override

from boathouse.telemetry import gauges, logs
from boathouse_policies import framework, model

_log = logs.get(__name__)

MOST_IN_A_ROW: Final = 10
"""An observer that raises so often in a row receives no more events."""


class GuardedObservers(framework.Observer):
    """Passes events to observers. Each of them observes on its own: what one raises concerns no other.

    Args:
        observers: The observers of a profile.
        scrape: Where to count.
    """

    def __init__(self, observers: Iterable[framework.Observer], scrape: gauges.ScrapeGauges) -> None:
        self._observers = [(type(observer).__name__, observer) for observer in observers]
        self._in_a_row: collections.Counter[str] = collections.Counter()
        self._failures = {name: 0.0 for name, _ in self._observers}
        scrape.add(
            gauges.Gauge(
                name="boathouse_observer_failures",
                documentation="Events of which an observer of the profile raised an error",
                labels=("observer",),
                read=lambda: {(name,): count for name, count in self._failures.items()},
                counts=True,
            )
        )

    @override
    def observe(self, event: model.Event) -> None:
        """Pass an event to the observers that did not fail too often in a row."""
        for name, observer in self._observers:
            if self._in_a_row[name] >= MOST_IN_A_ROW:
                continue
            try:
                observer.observe(event)
                self._in_a_row[name] = 0
            except Exception:  # noqa: BLE001 - an observer's fault concerns that observer only
                self._in_a_row[name] += 1
                self._failures[name] += 1
                is_left_out = self._in_a_row[name] == MOST_IN_A_ROW
                _log.exception("an observer of the profile raised an error", observer=name, is_left_out=is_left_out)
