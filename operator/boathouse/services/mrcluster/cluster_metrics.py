"""Metrics of clusters. Labels name clusters that exist; those of a deleted one are gone with the next scrape.

Tenants choose the names and the number of clusters, so only a bounded number has series (`telemetry/metrics.py`).
"""

import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import prometheus_client as prometheus

from boathouse.resources.mrcluster import status as wire
from boathouse.resources.mrcluster.names import Role
from boathouse.resources.mrcluster.nodes import Policy
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.mrcluster.model import Cluster, ClusterState
from boathouse.services.mrcluster.planning.draining import Leave
from boathouse.telemetry import metrics

_OUTCOMES: Final[Mapping[str, str]] = {Leave.DRAINED: "drained", Leave.TIMED_OUT: "timed_out"}
_UNDONE: Final = "undone"
_Values = Mapping[tuple[str, ...], float | None]
"""Values of a cluster, by the labels that follow those with its name."""


class ClusterMetrics:
    """Gauges of all clusters, and counters of their changes."""

    def __init__(self, target: metrics.Metrics, report_age_s: Callable[[ObjectUid], float | None]) -> None:
        self._known: metrics.BoundedSeries[ObjectUid, tuple[tuple[str, str], ClusterState]] = metrics.BoundedSeries()
        self._resizes = prometheus.Counter(
            "boathouse_mrcluster_resizes",
            "Changes of the number of nodes that clusters shall have",
            ["policy", "direction"],
            registry=target.registry,
        )
        self._drains = prometheus.Counter(
            "boathouse_mrcluster_drains", "Drains of nodes that ended", ["outcome"], registry=target.registry
        )
        for policy in typing.get_args(Policy):
            for direction in ("grow", "shrink"):
                self._resizes.labels(policy, direction)
        for outcome in (*_OUTCOMES.values(), _UNDONE):
            self._drains.labels(outcome)
        gauges: Sequence[tuple[str, str, tuple[str, ...], Callable[[ObjectUid, ClusterState], _Values]]] = (
            ("nodes", "Nodes of clusters by role and state", ("role", "state"), _nodes),
            (
                "load_ratio",
                "Running and pending containers per slot (F)",
                (),
                lambda _, state: {(): None if state.load_percent is None else state.load_percent / 100},
            ),
            ("slots", "Map tasks that can run at the same time", (), lambda _, state: {(): state.slots}),
            ("hdfs_bytes", "Capacity and use of HDFS", ("state",), _hdfs_bytes),
            (
                "missing_blocks",
                "Blocks of HDFS without a replica",
                (),
                lambda _, state: {(): state.hdfs.missing_blocks if state.hdfs else None},
            ),
            (
                "report_age_seconds",
                "Time since the last report of the agent",
                (),
                lambda uid, _: {(): report_age_s(uid)},
            ),
        )
        for name, documentation, own_labels, values in gauges:
            labels, read = ("namespace", "cluster", *own_labels), partial(self._read, values)
            target.gauges.add(metrics.Gauge(f"boathouse_mrcluster_{name}", documentation, read, labels))
        unlisted = f"Clusters without series: beyond {metrics.IN_NAMESPACE} of a namespace, or {metrics.IN_ALL} in all"
        target.gauges.add(metrics.Gauge("boathouse_mrcluster_unlisted", unlisted, self._known.unlisted))

    def changed(self, cluster: Cluster, before: ClusterState, after: ClusterState) -> None:
        """Count what a reconcile changed."""
        self._known.put(cluster.uid, cluster.namespace, ((cluster.namespace, cluster.name), after))
        change = _wanted(after) - _wanted(before)
        if before.first_core_nodes and change:
            self._resizes.labels(cluster.spec.resizing.policy, "grow" if change > 0 else "shrink").inc()
        for node in before.leaving:
            if node.host not in after.leaving_hosts:
                self._drains.labels(_OUTCOMES.get(node.reason, _UNDONE)).inc()

    def forget(self, uid: ObjectUid) -> None:
        """Drop a deleted cluster."""
        self._known.drop(uid)

    def _read(self, values: Callable[[ObjectUid, ClusterState], _Values]) -> metrics.Reading:
        return {
            (*labels, *others): float(number)
            for uid, (labels, state) in self._known.listed()
            for others, number in values(uid, state).items()
            if number is not None
        }


def _nodes(_uid: ObjectUid, state: ClusterState) -> _Values:
    states = wire.NodeCounts.model_fields
    return {(role.value, name): getattr(counts, name) for role, counts in _counts(state) for name in states}


def _hdfs_bytes(_uid: ObjectUid, state: ClusterState) -> _Values:
    return {("capacity",): state.hdfs.capacity_bytes, ("used",): state.hdfs.used_bytes} if state.hdfs else {}


def _counts(state: ClusterState) -> Iterator[tuple[Role, wire.NodeCounts]]:
    for role, counts in ((Role.CORE, state.core), (Role.TRANSIENT, state.transient)):
        if counts is not None:
            yield role, counts


def _wanted(state: ClusterState) -> int:
    return sum(counts.wanted for _, counts in _counts(state))
