"""What `convert` says of the version of Spark that an application names."""

import pytest

from boathouse_cli.conversion import apache_manifests, fields, manifests
from tests.builders.conversions import APPLICATION, spark_application

MINIMUM = {"spark.driver.minMemoryOverhead": "1g"}


def converted(version, **spec):
    return manifests.convert(spark_application(**{**APPLICATION, "sparkVersion": version, **spec}))


def texts(found):
    return [note.advice for note in found.notes]


@pytest.mark.parametrize("version", fields.VERSIONS)
def test_an_application_with_an_image_of_its_own_keeps_its_version(version):
    found = converted(f"{version}.1", image="registry.example.org/spark:mine")
    assert texts(found) == []
    assert found.manifest["spec"]["image"] == "registry.example.org/spark:mine"


def test_an_older_application_without_an_image_is_told_which_one_it_needs():
    (advice,) = texts(converted("3.5.3", image=None))
    assert "the chart's image has Spark 4.3: set image to one of Spark 3.5" in advice
    assert texts(converted("4.3.0", image=None)) == []


@pytest.mark.parametrize("version", ["2.4.8", "3.4.4", "5.0.0", "latest"])
def test_a_version_that_is_not_supported_is_named_with_those_that_are(version):
    (advice,) = texts(converted(version))
    assert advice.startswith(f"{version}: Spark 3.5, 4.0, 4.1, 4.2 and 4.3 are supported")


def test_a_field_that_the_version_does_not_know_is_left_out_with_a_note():
    found = converted("3.5.3", sparkConf=MINIMUM)
    assert "Spark 3.5 ignores driver.minMemoryOverhead" in texts(found)[-1]
    assert "minMemoryOverhead" not in found.manifest["spec"].get("driver", {})
    assert converted("4.0.0", sparkConf=MINIMUM).manifest["spec"]["driver"]["minMemoryOverhead"] == "1g"


def test_an_application_of_apaches_operator_names_its_version_elsewhere():
    spec = {"pyFiles": "local:///opt/main.py", "runtimeVersions": {"sparkVersion": "3.5.3"}, "sparkConf": MINIMUM}
    manifest = {"apiVersion": f"{apache_manifests.GROUP}/v1", "kind": "SparkApplication", "metadata": {"name": "a"}}
    found = manifests.convert({**manifest, "spec": spec})
    assert {note.path for note in found.notes} == {"spec.runtimeVersions.sparkVersion"}
    assert found.manifest["spec"]["driver"] == {}
