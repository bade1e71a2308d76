"""Gauges that are computed when they are scraped, from the state itself: they cannot drift from it, nor go negative."""

import collections
import dataclasses
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import core, registry
from typing_extensions import override

from boathouse.telemetry import logs

_log = logs.get(__name__)

Reading = Mapping[tuple[str, ...], float]
"""Label values, in the order of the gauge's label names, to the value; an unlabelled gauge has the one key `()`."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One gauge: what it is called, and how to read it.

    Attributes:
        name: The full name, in base units.
        documentation: One line for `# HELP`.
        labels: The label names.
        read: Gives the values of this moment.
        counts: Whether it only grows: then it is a counter, and its name is given without `_total`.
    """

    name: str
    documentation: str
    labels: tuple[str, ...] = ()
    read: Callable[[], Reading]
    counts: bool = False


class ScrapeGauges(registry.Collector):
    """The gauges of all parts of the operator."""

    def __init__(self) -> None:
        self._gauges: dict[str, Gauge] = {}
        self._failures: collections.Counter[tuple[str, ...]] = collections.Counter()
        self.add(
            Gauge(
                name="boathouse_gauge_failures",
                documentation="Scrapes that left a gauge out because it could not be read; the log has the error",
                labels=("gauge",),
                read=lambda: self._failures,
                counts=True,
            )
        )

    def add(self, *gauges: Gauge) -> None:
        """Expose gauges from the next scrape on.

        Raises:
            ValueError: A name is taken.
        """
        for gauge in gauges:
            if gauge.name in self._gauges:
                raise ValueError(f"there is already a gauge {gauge.name}")
            self._gauges[gauge.name] = gauge

    def describe(self) -> list[core.Metric]:
        """Return nothing, so that registering does not read gauges that are not there yet."""
        return []

    @override
    def collect(self) -> Iterator[core.Metric]:
        """Read all gauges; leave out those that cannot be read."""
        for gauge in self._gauges.values():
            kind = core.CounterMetricFamily if gauge.counts else core.GaugeMetricFamily
            family = kind(gauge.name, gauge.documentation, labels=gauge.labels)
            try:
                for label_values, value in sorted(gauge.read().items()):
                    family.add_metric(label_values, value)
            except Exception:  # noqa: BLE001 - one gauge must not hide the others
                self._failures[gauge.name,] += 1
                _log.exception("cannot read a gauge; the others are shown", gauge=gauge.name)
            else:
                yield family
