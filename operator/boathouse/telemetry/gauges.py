"""Gauges that are computed from the state when they are scraped, so that they always agree with it."""

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
    """Name, documentation and source of a gauge.

    Attributes:
        name: Full name, in base units.
        documentation: One line for `# HELP`.
        labels: Label names.
        read: Returns the current values.
        counts: Whether it is a counter, whose name is given without `_total`.
    """

    name: str
    documentation: str
    labels: tuple[str, ...] = ()
    read: Callable[[], Reading]
    counts: bool = False


class ScrapeGauges(registry.Collector):
    """Gauges of all parts of the operator."""

    def __init__(self) -> None:
        self._gauges: dict[str, Gauge] = {}
        self._failures: collections.Counter[tuple[str, ...]] = collections.Counter()
        self.add(
            Gauge(
                name="boathouse_gauge_failures",
                documentation="Scrapes without a gauge because reading it failed; the log has the error",
                labels=("gauge",),
                read=lambda: self._failures,
                counts=True,
            )
        )

    def add(self, *gauges: Gauge) -> None:
        """Expose gauges from the next scrape on.

        Raises:
            ValueError: A name is in use.
        """
        for gauge in gauges:
            if gauge.name in self._gauges:
                raise ValueError(f"the gauge {gauge.name} exists already")
            self._gauges[gauge.name] = gauge

    def describe(self) -> list[core.Metric]:
        """Return no metrics, so that registering the collector does not read gauges."""
        return []

    @override
    def collect(self) -> Iterator[core.Metric]:
        """Read all gauges, except those whose read fails."""
        for gauge in tuple(self._gauges.values()):
            kind = core.CounterMetricFamily if gauge.counts else core.GaugeMetricFamily
            family = kind(gauge.name, gauge.documentation, labels=gauge.labels)
            try:
                for label_values, value in sorted(gauge.read().items()):
                    family.add_metric(label_values, value)
            except Exception:  # noqa: BLE001 - one gauge must not hide the others
                self._failures[gauge.name,] += 1
                _log.exception("cannot read a gauge; other gauges are not affected", gauge=gauge.name)
            else:
                yield family
