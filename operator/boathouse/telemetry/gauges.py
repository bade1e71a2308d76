"""Gauges that are computed from the state when they are scraped, so that they always agree with it.

Tenants create objects without limit, so only a bounded number of objects have series of their own.
"""

import collections
import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Final, Generic, TypeVar

from prometheus_client import core, registry
from typing_extensions import override

from boathouse.telemetry import logs

IN_NAMESPACE: Final = 20
"""Maximum objects of a namespace that have series."""
IN_ALL: Final = 200
"""Maximum objects of a kind that have series."""
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclasses.dataclass(frozen=True, slots=True)
class _Entry(Generic[V]):
    namespace: str
    value: V


class BoundedSeries(Generic[K, V]):
    """Objects by key, of which a bounded number is listed: the oldest, the first of each namespace before any second.

    Args:
        in_namespace: Maximum listed objects of a namespace.
        in_all: Maximum listed objects.
    """

    def __init__(self, *, in_namespace: int = IN_NAMESPACE, in_all: int = IN_ALL) -> None:
        self._in_namespace = in_namespace
        self._in_all = in_all
        self._entries: dict[K, _Entry[V]] = {}
        self._listed: tuple[K, ...] | None = ()

    def put(self, key: K, namespace: str, value: V) -> None:
        """Add an object, or replace its value."""
        if key not in self._entries:
            self._listed = None
        self._entries[key] = _Entry(namespace, value)

    def drop(self, key: K) -> None:
        """Drop an object, if it is known; another one may take its place."""
        if self._entries.pop(key, None) is not None:
            self._listed = None

    def listed(self) -> Iterable[tuple[K, V]]:
        """Return the keys and values of the objects that have series."""
        return ((key, self._entries[key].value) for key in self._chosen())

    def unlisted(self) -> int:
        """Return the number of objects without series."""
        return len(self._entries) - len(self._chosen())

    def _chosen(self) -> tuple[K, ...]:
        if self._listed is None:
            older: collections.Counter[str] = collections.Counter()
            ranked: list[tuple[int, K]] = []
            for key, entry in self._entries.items():
                if older[entry.namespace] < self._in_namespace:
                    ranked.append((older[entry.namespace], key))
                    older[entry.namespace] += 1
            ranked.sort(key=lambda one: one[0])  # stable: the oldest of a rank first
            self._listed = tuple(key for _, key in ranked[: self._in_all])
        return self._listed


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
