"""What the API server refuses is refused without one: contract tests try the same rows of the pages on a real one."""

import json
import pathlib

import cel
import pytest
import yaml

from boathouse.resources.base import RULES
from boathouse.resources.mrcluster.status import MRCLUSTER
from boathouse.resources.mrjob.status import MRJOB
from boathouse.resources.sparkapp.status import SPARKAPP
from boathouse_cli.conversion import admission
from tests.builders.crds import field_rows
from tests.contract.test_crd import job
from tests.contract.test_sparkapp_crd import LARGE, application
from tests.spark import configurations

EXAMPLES = pathlib.Path(__file__).parents[4] / "examples"
RESOURCES = {resource.kind: resource for resource in (SPARKAPP, MRJOB, MRCLUSTER)}
BUILT_IN = {
    *("matches", "startsWith", "contains", "size", "map", "filter", "all", "exists", "exists_one", "has"),
    *("string", "bytes", "double"),
}


def examples():
    """The objects of all examples."""
    return [
        document
        for path in sorted(EXAMPLES.rglob("*.yaml"))
        for document in yaml.safe_load_all(path.read_text())
        if document
    ]


def rules(schema):
    """The rules of a schema, those of its parts included."""
    yield from schema.get(RULES, ())
    parts = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    for part in filter(None, parts):
        yield from rules(part)


def refusals(resource, manifest):
    return [f"{path} {message}" for path, message in admission.problems(resource, manifest)]


@pytest.mark.parametrize(("wrong", "answer"), [(wrong, answer) for _, wrong, answer in field_rows("SparkApp")])
def test_a_wrong_value_of_a_sparkapp_gets_what_the_page_says(wrong, answer):
    assert answer in "\n".join(refusals(SPARKAPP, application(**json.loads(wrong.replace("\\|", "|")))))


@pytest.mark.parametrize(("wrong", "answer"), [(wrong, answer) for _, wrong, answer in field_rows("MRJob")])
def test_a_wrong_value_of_an_mrjob_gets_what_the_page_says(wrong, answer):
    assert answer in "\n".join(refusals(MRJOB, job(**json.loads(wrong.replace("\\|", "|")))))


@pytest.mark.parametrize(
    "where", [{}, {"output": "file:///data/out", "storage": {"volume": {"claimName": "c"}}}], ids=["s3", "a volume"]
)
def test_the_file_of_a_config_map_is_an_input_for_an_output_anywhere(where):
    files = [{"name": "a.txt", "configMapKeyRef": {"name": "texts", "key": "a"}}]
    assert refusals(MRJOB, job(input=["file:///files/a.txt"], files=files, **where)) == []
    assert refusals(MRJOB, job(input=["file:///files/../a.txt"], files=files, **where)) != []


@pytest.mark.parametrize(("wrong", "answer"), LARGE, ids=["one argument", "arguments", "properties"])
def test_what_is_too_large_is_refused(wrong, answer):
    assert answer in "\n".join(refusals(SPARKAPP, application(**wrong)))


@pytest.mark.parametrize("configuration", configurations.ALL, ids=lambda configuration: configuration.name)
def test_a_configuration_that_spark_runs_is_accepted(configuration):
    assert refusals(SPARKAPP, application(**configuration.spec)) == []


@pytest.mark.parametrize(
    "manifest",
    [example for example in examples() if example["kind"] in RESOURCES],
    ids=lambda manifest: manifest["metadata"]["name"],
)
def test_an_example_is_accepted_and_runs(manifest):
    assert refusals(RESOURCES[manifest["kind"]], manifest) == []
    assert manifest["kind"] == "MRCluster" or admission.refusals(manifest) == []


@pytest.mark.parametrize("resource", [SPARKAPP, MRJOB, MRCLUSTER], ids=lambda resource: resource.kind)
def test_every_rule_on_a_new_object_can_be_evaluated(resource):
    """Without a value, so that only what an expression names is looked for."""
    for rule in rules(admission.spec_schema(resource)):
        for expression in (rule["rule"], rule.get("messageExpression", "''")):
            unknown = set(cel.compile(expression).functions()) - admission._FUNCTIONS.keys() - BUILT_IN
            assert "oldSelf" in expression or not {name for name in unknown if name[:1].isalpha()}, expression


@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        ({}, "metadata.name"),
        ({"name": "Pi"}, "metadata.name"),
        ({"name": "a" * 254}, "metadata.name"),
        ({"name": "pi", "namespace": "a.b"}, "metadata.namespace"),
        ({"name": "pi", "labels": {"a b": "c"}}, "metadata.labels"),
        ({"name": "pi", "labels": {"a": "c d"}}, "metadata.labels"),
        ({"name": "pi", "annotations": {"/a": "c"}}, "metadata.annotations"),
        ({"generateName": "-pi-"}, "metadata.generateName"),
    ],
)
def test_metadata_that_objects_cannot_have_is_refused(metadata, path):
    assert [where for where, _ in admission.metadata_problems(metadata)] == [path]


@pytest.mark.parametrize(
    "metadata",
    [
        {"name": "a.b-1"},
        {"generateName": "pi-"},
        {"name": "pi", "labels": {"a.b/c_d": "", "e": "F.g"}, "annotations": {"A/b": "any text"}},
    ],
)
def test_metadata_that_objects_can_have_is_accepted(metadata):
    assert list(admission.metadata_problems(metadata)) == []


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ({"driver": {"nodeSelector": {"a b": "c"}}}, "spec.driver.nodeSelector"),
        ({"nodeSelector": {"a": "c/d"}}, "spec.nodeSelector"),
        ({"executor": {"extendedResources": {"nvidia.com/gpu": "500m"}}}, "spec.executor.extendedResources"),
        ({"imagePullSecrets": [{"name": "My_Secret"}]}, "spec.imagePullSecrets.name"),
        ({"storage": {"volume": {"claimName": "My"}}}, "spec.storage.volume.claimName"),
        ({"volumes": [{"name": "v", "mountPath": "/v", "configMapName": "a_b"}]}, "spec.volumes[0].configMapName"),
        (
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "A", "key": "b"}}}]},
            "spec.env[0].valueFrom.secretKeyRef.name",
        ),
        ({"tolerations": [{"value": "x"}]}, "spec.tolerations"),
        ({"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]}, "spec.tolerations"),
        ({"tolerations": [{"key": "a", "tolerationSeconds": 1}]}, "spec.tolerations"),
        ({"sparkConf": {"spark.driver.memory": "1.5g"}}, "spec"),
        ({"sparkConf": {"spark.executor.instances": "many"}}, "spec.sparkConf[spark.executor.instances]"),
    ],
)
def test_what_is_refused_later_is_found_before(field, path):
    manifest = application(**field)
    assert refusals(SPARKAPP, manifest) == []
    assert [where for where, _ in admission.refusals(manifest)] == [path]


def test_a_job_that_the_operator_refuses_is_found_before():
    manifest = job(mapper={"command": ["cat"], "resources": {"requests": {"cpu": "1e9999999999999"}}})
    assert admission.refusals(manifest) or refusals(MRJOB, manifest)
