"""The chart on a real API server, installed anew only for modules that need other values."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from tests.contract.chart.builders import CONTROLLER, RESTRICTED, grant, object_, pod

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.contract.chart.api_server import ApiServer, Manifest
    from tests.contract.chart.conftest import Chart


class Installation:
    """The chart on a cluster, with namespaces with and without the restricted standard."""

    def __init__(self, cluster: ApiServer, chart: Chart) -> None:
        self._cluster, self._chart = cluster, chart
        self._values: dict[str, Any] | None = None
        self._manifests: list[Manifest] = []

    def prepare(self) -> None:
        """Create what all installations need."""
        self._cluster.apply(
            *(object_("Namespace", name, metadata={"labels": RESTRICTED}) for name in ("boathouse-system", "demo")),
            object_("Namespace", "unguarded"),
            object_("Namespace", "closed", metadata={"labels": {"boathouse.dev/enabled": "false"}}),
            object_("ServiceAccount", "builder", "unguarded"),
            grant("chart-test-everything", "cluster-admin", "alice", CONTROLLER),
            object_("ConfigMap", "coredns", "demo"),
        )
        for name in ("boathouse-system", "demo", "unguarded"):  # a namespace has its account a moment later
            self._cluster.until(lambda name=name: self._cluster.creates(pod(namespace=name)), "admitted")

    def take(self, values: dict[str, Any]) -> None:
        """Install the chart with some values, unless it has them."""
        if values != self._values:
            self.remove()
            self._values, self._manifests = values, list(self._chart.render(**values))
            self._cluster.apply(*self._manifests)

    def remove(self) -> None:
        """Uninstall the chart."""
        if self._values is not None:
            self._cluster.uninstall(*self._manifests)
            self._values = None


@contextlib.contextmanager
def on(cluster: ApiServer, chart: Chart) -> Iterator[Installation]:
    """Install the chart on a cluster as often as needed, during the block."""
    installation = Installation(cluster, chart)
    installation.prepare()
    yield installation
    installation.remove()
