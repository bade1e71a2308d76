"""The examples for Spark agree with one another."""

import re

import pytest
import yaml

from boathouse.resources.sparkapp.status import SparkApp
from boathouse_e2e import catalogue, images, paths, storage

FOLDER = paths.REPOSITORY / "examples" / "spark"


@pytest.mark.parametrize("program", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_the_manifest_of_an_example_holds_its_program(program):
    config_map, application = yaml.safe_load_all(program.with_suffix(".yaml").read_text())
    assert config_map["data"] == {program.name: program.read_text()}
    assert application["spec"]["volumes"][0]["configMapName"] == config_map["metadata"]["name"]
    assert application["spec"]["mainApplicationFile"].endswith(f"/{program.name}")
    SparkApp.model_validate(application)


def test_the_s3_server_of_the_examples_is_the_one_of_the_tests():
    version = catalogue.TOOLS_BY_NAME["versitygw"].version()
    credentials = storage.Credentials(access_key_id="key", secret_access_key="secret")
    ours = storage.manifests(credentials, namespace="demo")[2:]
    assert [manifest["metadata"]["namespace"] for manifest in ours] == ["demo", "demo"]
    assert ours[0]["spec"]["template"]["spec"]["containers"][0]["image"] == images.VERSITYGW
    assert f"image: versity/versitygw:{version}\n" in (FOLDER.parent / "s3.yaml").read_text()


@pytest.mark.parametrize("example", sorted(FOLDER.parent.rglob("*.yaml")), ids=lambda path: path.stem)
def test_the_examples_find_the_s3_server_of_the_examples(example):
    endpoints = re.findall(r"endpointURL: (.+)", example.read_text())
    assert set(endpoints) <= {f"http://{storage.NAME}:{storage.PORT}"}
