"""Metrics of the operator: one registry, the scheduler's counters and histograms, gauges, process metrics, their page.

Names follow kube-scheduler's where it has the same metric. Units are base units. No label contains a name of a job or
pod, because their number is unlimited. Gauges are computed from the state when they are scraped, so that they always
agree with it; only a bounded number of objects have series of their own.
"""

import collections
import dataclasses
import functools
import importlib.metadata
import itertools
import platform
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

import prometheus_client as prometheus
from prometheus_client import core, registry
from typing_extensions import override

from boathouse import fair
from boathouse.cluster import retries
from boathouse.suspension.stages import Reason
from boathouse.telemetry import logs

_log = logs.get(__name__)
IN_NAMESPACE, IN_ALL = 20, 200
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedSeries(Generic[K, V]):
    """Objects by key. A bounded number is listed: the oldest, the first of each namespace before any second."""

    def __init__(self, *, in_namespace: int = IN_NAMESPACE, in_all: int = IN_ALL) -> None:
        self._in_namespace, self._in_all = in_namespace, in_all
        self._entries: dict[K, tuple[str, V]] = {}  # namespace and value
        self._listed: tuple[K, ...] | None = ()

    def put(self, key: K, namespace: str, value: V) -> None:
        """Add an object, or replace its value."""
        if key not in self._entries:
            self._listed = None
        self._entries[key] = namespace, value

    def drop(self, key: K) -> None:
        """Drop an object, if it is known; another one may take its place."""
        if self._entries.pop(key, None) is not None:
            self._listed = None

    def listed(self) -> Iterable[tuple[K, V]]:
        """Return the keys and values of the objects that have series."""
        return ((key, self._entries[key][1]) for key in self._chosen())

    def unlisted(self) -> int:
        """Return the number of objects without series."""
        return len(self._entries) - len(self._chosen())

    def _chosen(self) -> tuple[K, ...]:
        if self._listed is None:
            ranked = fair.in_turns(self._entries, lambda key: self._entries[key][0])
            self._listed = tuple([key for rank, key in ranked if rank < self._in_namespace][: self._in_all])
        return self._listed


Reading = Mapping[tuple[str, ...], float]
"""Label values, in the order of the gauge's label names, to the value; an unlabelled gauge has the one key `()`."""


@dataclasses.dataclass(frozen=True, slots=True)
class Gauge:
    """A gauge or, with `counts`, a counter, whose name is without `_total`; without labels `read` returns its value."""

    name: str
    documentation: str
    read: Callable[[], Reading | float]
    labels: tuple[str, ...] = ()
    counts: bool = False


class ScrapeGauges(registry.Collector):
    """Gauges of all parts of the operator."""

    def __init__(self) -> None:
        self._gauges: dict[str, Gauge] = {}
        self._failures: collections.Counter[tuple[str, ...]] = collections.Counter()
        what = "Scrapes without a gauge because reading it failed; the log has the error"
        self.add(Gauge("boathouse_gauge_failures", what, lambda: self._failures, ("gauge",), counts=True))

    def add(self, *gauges: Gauge) -> None:
        """Expose gauges from the next scrape on; raises `ValueError` if a name is in use."""
        for gauge in gauges:
            if gauge.name in self._gauges:
                raise ValueError(f"the gauge {gauge.name} exists already")
            self._gauges[gauge.name] = gauge

    def describe(self) -> list[core.Metric]:
        """Return no metrics, so that registering the collector does not read gauges."""
        return []

    @override
    def collect(self) -> Iterator[core.Metric]:
        for gauge in tuple(self._gauges.values()):
            kind = core.CounterMetricFamily if gauge.counts else core.GaugeMetricFamily
            family = kind(gauge.name, gauge.documentation, labels=gauge.labels)
            try:
                reading = gauge.read()
                for label_values, value in sorted(reading.items()) if isinstance(reading, Mapping) else [((), reading)]:
                    family.add_metric(label_values, value)
            except Exception:  # noqa: BLE001 - one gauge must not hide the others
                self._failures[gauge.name,] += 1
                _log.exception("cannot read a gauge; other gauges are not affected", gauge=gauge.name)
            else:
                yield family


PREFIX = "boathouse"
ATTEMPT_RESULTS = ("scheduled", "unschedulable", "error")
WRITE_RESULTS = ("success", "conflict", "error")
REJECTIONS = ("OutOfcpu", "OutOfmemory", "OutOfpods", "OutOfephemeral-storage", "NodeAffinity", "NodePorts", "other")
_LATENCY_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
_WAIT_S = (0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1800, 3600)


def counter(
    target: registry.CollectorRegistry, name: str, documentation: str, **labels: Sequence[str]
) -> Callable[..., None]:
    """Return a function that counts by the labels' values, all of which have series from the start.

    An unknown last value counts as `other`. The children are looked up once, because the look-up is the main cost.
    """
    parent = prometheus.Counter(f"{PREFIX}_{name}", documentation, list(labels), registry=target)
    children = {values: parent.labels(*values) for values in itertools.product(*labels.values())}

    def count(*values: str, amount: float = 1) -> None:
        (children.get(values) or children[*values[:-1], "other"]).inc(amount)

    return count


def histogram(
    target: registry.CollectorRegistry, name: str, documentation: str, buckets: Sequence[float], **labels: Sequence[str]
) -> dict[tuple[str, ...], prometheus.Histogram]:
    """Return the histograms by the labels' values."""
    parent = prometheus.Histogram(f"{PREFIX}_{name}", documentation, list(labels), buckets=buckets, registry=target)
    return {values: parent.labels(*values) for values in itertools.product(*labels.values())}


class Metrics:
    """All metrics of the operator."""

    def __init__(self, *, profile: str = "fair") -> None:
        self.registry = registry.CollectorRegistry()
        self.gauges = ScrapeGauges()
        self.registry.register(self.gauges)
        prometheus.ProcessCollector(registry=self.registry)
        prometheus.GCCollector(registry=self.registry)
        versions = importlib.metadata.version("boathouse"), platform.python_version()
        self.gauges.add(
            Gauge(
                "boathouse_build_info", "1, with the versions as labels", lambda: {versions: 1.0}, ("version", "python")
            ),
            Gauge(
                "boathouse_loop_failures",
                "Failed rounds of the operator's loops; ten within ten minutes restart the operator, unless the API "
                "server is the cause",
                lambda: {(name,): count for name, count in retries.FAILURES.items()},
                ("loop",),
                counts=True,
            ),
        )
        self.scheduler = SchedulerMetrics(self.registry, profile=profile)


class SchedulerMetrics:
    """Counters and histograms of scheduling. All labels are initialized, so that rates are correct."""

    def __init__(self, target: registry.CollectorRegistry, *, profile: str) -> None:
        counts = functools.partial(counter, target)
        times = functools.partial(histogram, target)
        plain = functools.partial(prometheus.Histogram, namespace=PREFIX, registry=target)
        self._attempts = counts(
            "schedule_attempts", "Attempts to place a task or pod", result=ATTEMPT_RESULTS, profile=(profile,)
        )
        self._attempt_s = times(
            "scheduling_attempt_duration_seconds",
            "Time from a decision's start to the API server's response to its write",
            _LATENCY_S,
            result=ATTEMPT_RESULTS,
            profile=(profile,),
        )
        cycle = "Duration of a scheduling cycle over all pending tasks"
        self.cycle_s = plain("scheduling_cycle_duration_seconds", cycle, buckets=_LATENCY_S)
        self.pod_sli_s = plain(
            "pod_scheduling_sli_duration_seconds",
            "Time from a task's or pod's arrival in the scheduling queue to its placement on a node",
            buckets=_WAIT_S,
        )
        writes = "Writes per placement of a task or pod"
        self.pod_attempts = plain("pod_scheduling_attempts", writes, buckets=(1, 2, 3, 5, 10, 20))
        self.profile = profile
        self.bind = counts("binds", "Pods bound to a node by pods/binding", result=WRITE_RESULTS)
        self.create = counts("creates", "Pods created, with their node or pending without a node", result=WRITE_RESULTS)
        self.write_error = counts(
            "api_write_errors",
            "Writes that the API server rejected or did not answer",
            operation=("create", "bind", "resize", "record", "status", "event"),
            code=("403", "404", "409", "422", "429", "500", "503", "504", "connection", "other"),
        )
        self.event = counts(
            "events",
            "Events published, or dropped because of the rate limit",
            reason=("Scheduled", "FailedScheduling"),
            result=("sent", "suppressed"),
        )
        compared = ("equal", "drift", "skipped")
        self.comparison = counts("cache_comparisons", "Comparisons of the cache with a LIST", result=compared)
        drift = "Objects in which the cache differed from the API server twice in a row"
        self.cache_drift = prometheus.Counter(f"{PREFIX}_cache_drift", drift, registry=target)
        self.placement_slowdown = plain(
            "placement_slowdown",
            "Predicted slowdown of tasks on the node that a task was placed on, where a policy predicts it",
            buckets=(1, 1.1, 1.25, 1.5, 2, 3, 5, 10),
        )
        self.suspension = counts(
            "suspensions",
            "Suspensions of tasks that began, were refused, or ended, by reason",
            result=("suspended", "refused", "resumed"),
            reason=tuple(Reason),
        )
        self.suspension_s = times(
            "suspension_step_duration_seconds",
            "Duration of the steps of suspensions; actuated: from a task's pause until its node shows less CPU",
            _LATENCY_S,
            step=("order", "record", "shrink", "actuated", "continue", "grow"),
        )
        self.resize = counts(
            "resizes",
            "Resizes of pods by pods/resize, by the direction of the CPU request",
            direction=("up", "down", "equal"),
            result=WRITE_RESULTS,
        )
        self.speculation = counts("speculations", "Decisions to start a second attempt", result=("started", "refused"))
        rejected = "Pods that a kubelet rejected after their placement"
        self.rejection = counts("kubelet_rejections", rejected, reason=REJECTIONS)

    def attempt(self, result: str, duration_s: float) -> None:
        """Count one attempt to place a task or pod."""
        self._attempts(result, self.profile)
        self._attempt_s[result, self.profile].observe(duration_s)

    def unschedulable(self, count: int) -> None:
        """Count tasks that a cycle left pending for the first time, or with a new reason."""
        self._attempts("unschedulable", self.profile, amount=count)


HEADER = """# Metrics

The operator serves these on its metrics port at `/metrics`. Gauges are computed when they are scraped; counters start
at 0 with all their labels. Times are in seconds, sizes in bytes, CPU in cores. The usual `process_*` and `python_gc_*`
metrics of the process come with them. Labels take values from closed sets and from the configuration: a reason that a
task gives, and that is in no set, is `other` or `TaskFailed`.

| name | type | labels | meaning |
|---|---|---|---|
"""


def page(source: registry.CollectorRegistry) -> str:
    """Return the Markdown page of all metrics of a registry with Boathouse's prefix."""
    families = {family.name: family for family in source.collect() if family.name.startswith(f"{PREFIX}_")}
    return HEADER + "".join(_row(families[name], source) for name in sorted(families))


def _row(family: core.Metric, source: registry.CollectorRegistry) -> str:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    labels = ", ".join(f"`{label}`" for label in _labels(family, source))
    return f"| `{name}` | {family.type} | {labels} | {family.documentation} |\n"


def _labels(family: core.Metric, source: registry.CollectorRegistry) -> list[str]:
    """Return label names, also of metrics without samples, from the library's private attributes."""
    maker = source._names_to_collectors.get(family.name)  # noqa: SLF001
    declared = {*getattr(family, "_labelnames", ()), *getattr(maker, "_labelnames", ())}
    return sorted((declared | {label for sample in family.samples for label in sample.labels}) - {"le"})
