"""Metrics of clusters. Labels name clusters that exist; those of a deleted one are gone with the next scrape.

Tenants choose the names and the number of clusters, so only a bounded number has series (`telemetry/metrics.py`).
"""

import dataclasses
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import prometheus_client as prometheus
from prometheus_client import registry

from boathouse.resources.mrcluster import status as wire
from boathouse.resources.mrcluster.names import Role
from boathouse.resources.mrcluster.nodes import Policy
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.mrcluster.model import Cluster, ClusterState
from boathouse.services.mrcluster.planning.draining import Leave
from boathouse.telemetry import metrics

_CLUSTER: Final = ("namespace", "cluster")
_OUTCOMES: Final[Mapping[str, str]] = {Leave.DRAINED: "drained", Leave.TIMED_OUT: "timed_out"}
_UNDONE: Final = "undone"


@dataclasses.dataclass(frozen=True, slots=True)
class _Known:
    labels: tuple[str, str]
    state: ClusterState


class ClusterMetrics:
    """Gauges of all clusters, and counters of their changes."""

    def __init__(
        self,
        target: registry.CollectorRegistry,
        scrape: metrics.ScrapeGauges,
        report_age_s: Callable[[ObjectUid], float | None],
    ) -> None:
        self._known: metrics.BoundedSeries[ObjectUid, _Known] = metrics.BoundedSeries()
        self._resizes = prometheus.Counter(
            "boathouse_mrcluster_resizes",
            "Changes of the number of nodes that clusters shall have",
            ["policy", "direction"],
            registry=target,
        )
        self._drains = prometheus.Counter(
            "boathouse_mrcluster_drains", "Drains of nodes that ended", ["outcome"], registry=target
        )
        for policy in typing.get_args(Policy):
            for direction in ("grow", "shrink"):
                self._resizes.labels(policy, direction)
        for outcome in (*_OUTCOMES.values(), _UNDONE):
            self._drains.labels(outcome)
        for name, documentation, labels, read in (
            ("nodes", "Nodes of clusters by role and state", (*_CLUSTER, "role", "state"), self._nodes),
            ("load_ratio", "Running and pending containers per slot (F)", _CLUSTER, self._each(_load)),
            ("slots", "Map tasks that can run at the same time", _CLUSTER, self._each(lambda _, state: state.slots)),
            ("hdfs_bytes", "Capacity and use of HDFS", (*_CLUSTER, "state"), self._hdfs_bytes),
            ("missing_blocks", "Blocks of HDFS without a replica", _CLUSTER, self._each(_missing_blocks)),
            (
                "report_age_seconds",
                "Time since the last report of the agent",
                _CLUSTER,
                self._each(lambda uid, _: report_age_s(uid)),
            ),
            (
                "unlisted",
                f"Clusters without series: beyond {metrics.IN_NAMESPACE} of a namespace, or {metrics.IN_ALL} in all",
                (),
                self._unlisted,
            ),
        ):
            full_name = f"boathouse_mrcluster_{name}"
            scrape.add(metrics.Gauge(name=full_name, documentation=documentation, labels=labels, read=read))

    def changed(self, cluster: Cluster, before: ClusterState, after: ClusterState) -> None:
        """Count what a reconcile changed."""
        self._known.put(cluster.uid, cluster.namespace, _Known((cluster.namespace, cluster.name), after))
        change = _wanted(after) - _wanted(before)
        if before.first_core_nodes and change:
            self._resizes.labels(cluster.spec.resizing.policy, "grow" if change > 0 else "shrink").inc()
        for node in before.leaving:
            if node.host not in after.leaving_hosts:
                self._drains.labels(_OUTCOMES.get(node.reason, _UNDONE)).inc()

    def forget(self, uid: ObjectUid) -> None:
        """Drop a deleted cluster."""
        self._known.drop(uid)

    def _unlisted(self) -> metrics.Reading:
        return {(): float(self._known.unlisted())}

    def _nodes(self) -> metrics.Reading:
        return {
            (*cluster.labels, role.value, state): float(getattr(counts, state))
            for _, cluster in self._known.listed()
            for role, counts in _counts(cluster.state)
            for state in wire.NodeCounts.model_fields
        }

    def _hdfs_bytes(self) -> metrics.Reading:
        clusters = ((cluster.labels, cluster.state.hdfs) for _, cluster in self._known.listed())
        return {
            (*labels, state): float(amount)
            for labels, hdfs in clusters
            if hdfs is not None
            for state, amount in (("capacity", hdfs.capacity_bytes), ("used", hdfs.used_bytes))
        }

    def _each(self, value: Callable[[ObjectUid, ClusterState], float | None]) -> Callable[[], metrics.Reading]:
        def read() -> metrics.Reading:
            values = ((cluster.labels, value(uid, cluster.state)) for uid, cluster in self._known.listed())
            return {labels: float(number) for labels, number in values if number is not None}

        return read


def _load(_uid: ObjectUid, state: ClusterState) -> float | None:
    return None if state.load_percent is None else state.load_percent / 100


def _missing_blocks(_uid: ObjectUid, state: ClusterState) -> float | None:
    return None if state.hdfs is None else state.hdfs.missing_blocks


def _counts(state: ClusterState) -> Iterator[tuple[Role, wire.NodeCounts]]:
    for role, counts in ((Role.CORE, state.core), (Role.TRANSIENT, state.transient)):
        if counts is not None:
            yield role, counts


def _wanted(state: ClusterState) -> int:
    return sum(counts.wanted for _, counts in _counts(state))
