"""SparkApp's CRD: bounded, with a message at every rule; and which of Spark's own keys `sparkConf` refuses."""

import pathlib

import pytest

from boathouse.resources import generate, schema
from boathouse.resources.sparkapp import closed_conf, fields
from boathouse.resources.sparkapp.definition import SPARKAPP
from boathouse.resources.sparkapp.status import SparkApp
from tests.unit.resources.test_crds import nodes, unbounded

KEYS = (pathlib.Path(__file__).parents[2] / "spark/recorded/kubernetes-keys.txt").read_text().split()
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
    "spark.kubernetes.local.dirs.tmpfs",
    "spark.kubernetes.memoryOverheadFactor",
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
PREFIXES = {
    "spark.kubernetes.authenticate",
    "spark.kubernetes.authenticate.driver",
    "spark.kubernetes.authenticate.driver.mounted",
    "spark.kubernetes.authenticate.executor",
    "spark.kubernetes.authenticate.submission",
    "spark.kubernetes.kerberos.dt",
}
"""What Spark adds a dot and a name to."""


@pytest.fixture(scope="module")
def structure():
    return schema.structural(SPARKAPP.model)


def of_key(key):
    return f"{key}.x" if key in PREFIXES else f"{key}x" if key.endswith(".") else key


@pytest.mark.parametrize("key", KEYS)
def test_each_key_of_sparks_kubernetes_module_is_open_or_closed_on_purpose(key):
    rest = key.removeprefix(OPEN_PREFIX)
    is_open = key in OPEN if rest == key else rest not in CLOSED_OF_EXECUTORS
    assert closed_conf.is_closed(of_key(key)) is not is_open


@pytest.mark.parametrize(
    "key", ["spark.sql.shuffle.partitions", "spark.executor.memory", "spark.ui.port", "spark.masterful", "spark.jars"]
)
def test_other_keys_are_open(key):
    assert not closed_conf.is_closed(key)


def test_no_property_that_a_field_says_is_closed():
    assert [key for key in fields.FIELDS.values() if closed_conf.is_closed(key)] == []


def test_every_node_of_the_schema_has_one_type_and_no_reference(structure):
    for node in nodes(structure):
        assert ("type" in node) != bool(node.get("x-kubernetes-int-or-string")), node
        assert not {"$ref", "$defs", "title", "oneOf", "allOf"} & set(node)


def test_every_string_array_and_map_has_a_bound(structure):
    schemas = {name: structure["properties"][name] for name in ("spec", "status")}
    assert [path for name, value in schemas.items() for path in unbounded(value, name)] == []


def test_every_rule_has_a_message(structure):
    found = [rule for node in nodes(structure) for rule in node.get("x-kubernetes-validations", [])]
    assert len(found) > 100
    assert all("message" in rule or "messageExpression" in rule for rule in found)


def test_every_field_that_is_a_property_exists(structure):
    for path in fields.FIELDS:
        node = structure["properties"]["spec"]
        for part in path.split("."):
            node = node["properties"][part]


def test_the_crd_is_among_those_that_are_generated():
    assert "boathouse.dev_sparkapps.yaml" in generate.manifests()


def test_people_see_phase_attempt_executors_and_progress():
    columns = SPARKAPP.manifest()["spec"]["versions"][0]["additionalPrinterColumns"]
    shown = [column["name"] for column in columns if not column.get("priority")]
    assert shown == ["Phase", "Queue", "Attempt", "Executors", "%", "Age"]


def test_a_small_application_needs_two_fields():
    spec = SparkApp.model_validate({"spec": {"type": "Python", "mainApplicationFile": "local:///main.py"}}).spec
    assert spec.restart_policy.type == "Never"
    assert spec.driver is None
