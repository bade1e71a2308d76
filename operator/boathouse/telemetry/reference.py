"""The page that lists every metric, made from the registry itself."""

from collections.abc import Iterable

from prometheus_client import core, registry

from boathouse.telemetry import metrics

HEADER = """# Metrics

The operator serves these on its metrics port at `/metrics`. Gauges are computed when they are scraped; counters start
at 0 with all their labels. Times are in seconds, sizes in bytes, CPU in cores. The usual `process_*` and `python_gc_*`
metrics of the process come with them.

| name | type | labels | meaning |
|---|---|---|---|
"""


def page(source: registry.CollectorRegistry) -> str:
    """Return the Markdown page for all metrics of a registry that begin with our prefix."""
    families = {family.name: family for family in source.collect() if family.name.startswith(f"{metrics.PREFIX}_")}
    return HEADER + "".join(_row(families[name]) for name in sorted(families))


def _row(family: core.Metric) -> str:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    labels = ", ".join(f"`{label}`" for label in _labels(family.samples))
    return f"| `{name}` | {family.type} | {labels} | {family.documentation} |\n"


def _labels(samples: Iterable[core.Sample]) -> list[str]:
    return sorted({label for sample in samples for label in sample.labels if label != "le"})
