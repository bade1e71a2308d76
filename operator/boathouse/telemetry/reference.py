"""Write the page that lists all metrics of a registry."""

from prometheus_client import core, registry

from boathouse.telemetry import metrics

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
    families = {family.name: family for family in source.collect() if family.name.startswith(f"{metrics.PREFIX}_")}
    return HEADER + "".join(_row(families[name], source) for name in sorted(families))


def _row(family: core.Metric, source: registry.CollectorRegistry) -> str:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    labels = ", ".join(f"`{label}`" for label in _labels(family, source))
    return f"| `{name}` | {family.type} | {labels} | {family.documentation} |\n"


def _labels(family: core.Metric, source: registry.CollectorRegistry) -> list[str]:
    """Return label names, also of metrics without samples, from the library's private attributes."""
    maker = source._names_to_collectors.get(family.name)  # noqa: SLF001
    declared = {*getattr(family, "_labelnames", ()), *getattr(maker, "_labelnames", ())}
    seen = {label for sample in family.samples for label in sample.labels}
    return sorted((declared | seen) - {"le"})
