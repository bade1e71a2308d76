"""Metrics of clusters, counted and read at scrape."""

import dataclasses

import pytest
from prometheus_client import generate_latest

from boathouse.resources.mrcluster.status import HdfsUsage, LeavingNode, NodeCounts
from boathouse.services.mrcluster.cluster_metrics import ClusterMetrics
from boathouse.services.mrcluster.model import ClusterState
from boathouse.telemetry import metrics
from tests.builders.mrclusters import UID, cluster

OF_THE_CLUSTER = {"namespace": "demo", "cluster": "etl"}
GSP = {"resizing": {"policy": "GSP"}, "transient": {"maximum": 8}}
BEGUN = ClusterState(
    first_core_nodes=3, core=NodeCounts(wanted=3, ready=3), transient=NodeCounts(wanted=2, ready=1, pending=1)
)


@pytest.fixture
def cluster_metrics(scrape):
    return ClusterMetrics(scrape, {UID: 7.5}.get)


def test_each_change_of_the_size_is_counted_by_policy_and_direction(scrape, cluster_metrics):
    grown = dataclasses.replace(BEGUN, transient=NodeCounts(wanted=5))
    for before, after in ((ClusterState(), BEGUN), (BEGUN, grown), (grown, grown), (grown, BEGUN)):
        cluster_metrics.changed(cluster(**GSP), before, after)
    assert scrape.value("mrcluster_resizes_total", policy="GSP", direction="grow") == 1
    assert scrape.value("mrcluster_resizes_total", policy="GSP", direction="shrink") == 1
    assert scrape.value("mrcluster_resizes_total", policy="Static", direction="grow") == 0


@pytest.mark.parametrize(
    ("reason", "outcome"), [("Drained", "drained"), ("TimedOut", "timed_out"), ("Shrinking", "undone")]
)
def test_a_drain_that_ended_is_counted_by_its_outcome(scrape, cluster_metrics, reason, outcome):
    leaving = dataclasses.replace(BEGUN, leaving=(LeavingNode(host="t1", since_s=1.0, reason=reason),))
    cluster_metrics.changed(cluster(), BEGUN, leaving)
    cluster_metrics.changed(cluster(), leaving, BEGUN)
    assert scrape.value("mrcluster_drains_total", outcome=outcome) == 1


def test_figures_are_read_at_scrape_until_the_cluster_is_deleted(scrape, cluster_metrics):
    hdfs = HdfsUsage(capacity_bytes=100, used_bytes=40, missing_blocks=2)
    cluster_metrics.changed(cluster(), BEGUN, dataclasses.replace(BEGUN, load_percent=150, slots=6, hdfs=hdfs))
    assert scrape.value("mrcluster_nodes", **OF_THE_CLUSTER, role="transient", state="pending") == 1
    assert scrape.value("mrcluster_load_ratio", **OF_THE_CLUSTER) == 1.5
    assert scrape.value("mrcluster_slots", **OF_THE_CLUSTER) == 6
    assert scrape.value("mrcluster_hdfs_bytes", **OF_THE_CLUSTER, state="used") == 40
    assert scrape.value("mrcluster_missing_blocks", **OF_THE_CLUSTER) == 2
    assert scrape.value("mrcluster_report_age_seconds", **OF_THE_CLUSTER) == 7.5
    cluster_metrics.forget(UID)
    assert scrape.value("mrcluster_slots", **OF_THE_CLUSTER) is None


def test_a_cluster_without_a_recent_report_has_no_figures(scrape, cluster_metrics):
    cluster_metrics.changed(cluster(), BEGUN, BEGUN)
    assert scrape.value("mrcluster_slots", **OF_THE_CLUSTER) is None
    assert scrape.value("mrcluster_hdfs_bytes", **OF_THE_CLUSTER, state="used") is None


def test_a_thousand_clusters_have_few_series_and_another_namespace_keeps_its_own(scrape, cluster_metrics):
    one = cluster()
    for number in range(1000):
        crowd = dataclasses.replace(one, uid=f"many-{number}", name=f"c{number}", namespace="crowd")
        cluster_metrics.changed(crowd, BEGUN, BEGUN)
    cluster_metrics.changed(cluster(), BEGUN, BEGUN)
    assert scrape.value("mrcluster_nodes", **OF_THE_CLUSTER, role="core", state="ready") == 3
    assert scrape.value("mrcluster_unlisted") == 1000 - metrics.IN_NAMESPACE
    assert generate_latest(scrape.registry).count(b'namespace="crowd"') < 1000
