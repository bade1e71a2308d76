"""The keys of Spark that `sparkConf` refuses, and the fields of SparkApps that are properties."""

import pytest

from boathouse.resources.sparkapp import fields
from boathouse.resources.sparkapp.status import SparkApp
from tests.builders.crds import SPARK_KUBERNETES_KEYS, complete_key, spec_schema

OPEN = {
    "spark.kubernetes.allocation.batch.delay",
    "spark.kubernetes.allocation.batch.size",
    "spark.kubernetes.allocation.driver.readinessTimeout",
    "spark.kubernetes.allocation.executor.timeout",
    "spark.kubernetes.allocation.maxPendingPods",
    "spark.kubernetes.allocation.maxPendingPodsPerRp",
    "spark.kubernetes.allocation.maximum",
    "spark.kubernetes.appKillPodDeletionGracePeriod",
    "spark.kubernetes.configMap.maxSize",
    "spark.kubernetes.driver.annotateExitException",
    "spark.kubernetes.driver.connectionTimeout",
    "spark.kubernetes.driver.limit.cores",
    "spark.kubernetes.driver.request.cores",
    "spark.kubernetes.driver.requestTimeout",
    "spark.kubernetes.dynamicAllocation.deleteGracePeriod",
    "spark.kubernetes.executorSnapshotsSubscribersShutdownGracePeriod",
    "spark.kubernetes.jars.avoidDownloadSchemes",
    "spark.kubernetes.local.dirs.tmpfs",
    "spark.kubernetes.memoryOverheadFactor",
    "spark.kubernetes.pyspark.pythonVersion",
}
OPEN_PREFIX = "spark.kubernetes.executor."
CLOSED_OF_EXECUTORS = {
    "annotation.",
    "container.image",
    "disableConfigMap",
    "hadoopConfigMapName",
    "label.",
    "node.selector.",
    "pod.excludedFeatureSteps",
    "pod.featureSteps",
    "podNamePrefix",
    "podTemplateContainerName",
    "podTemplateFile",
    "scheduler.name",
    "secretKeyRef.",
    "secrets.",
    "securityContext.allowPrivilegeEscalation",
    "useDriverPodIP",
    "volumes.",
}


def test_each_key_of_sparks_kubernetes_module_is_open_or_closed_on_purpose():
    def is_open(key):
        rest = key.removeprefix(OPEN_PREFIX)
        return key in OPEN if rest == key else rest not in CLOSED_OF_EXECUTORS

    assert len(SPARK_KUBERNETES_KEYS) > 100
    found = [key for key in SPARK_KUBERNETES_KEYS if fields.is_closed(complete_key(key)) is is_open(key)]
    assert found == []


@pytest.mark.parametrize(
    "key", ["spark.sql.shuffle.partitions", "spark.executor.memory", "spark.ui.port", "spark.masterful", "spark.jars"]
)
def test_other_keys_are_open(key):
    assert not fields.is_closed(key)


def test_no_property_that_a_field_says_is_closed():
    assert [key for key in fields.FIELDS.values() if fields.is_closed(key)] == []


def test_every_field_that_is_a_property_exists():
    for path in fields.FIELDS:
        node = spec_schema("SparkApp")
        for part in path.split("."):
            node = node["properties"][part]


def test_a_small_application_needs_two_fields():
    spec = SparkApp.model_validate({"spec": {"type": "Python", "mainApplicationFile": "local:///main.py"}}).spec
    assert spec.restart_policy.type == "Never"
    assert spec.driver is None
