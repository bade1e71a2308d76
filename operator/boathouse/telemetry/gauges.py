"""Gauges that are computed when they are scraped, from the state itself: they cannot drift from it, nor go negative."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import core, registry
from typing_extensions import override

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
        """Read all gauges."""
        for gauge in self._gauges.values():
            kind = core.CounterMetricFamily if gauge.counts else core.GaugeMetricFamily
            family = kind(gauge.name, gauge.documentation, labels=gauge.labels)
            for label_values, value in sorted(gauge.read().items()):
                family.add_metric(label_values, value)
            yield family


def constant(value: float) -> Callable[[], Reading]:
    """Return a reader of an unlabelled gauge that never changes."""
    return lambda: {(): value}
