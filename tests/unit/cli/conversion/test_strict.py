"""`convert --strict` and `submit --strict` fail for what would be refused later, and say what."""

import pytest
import yaml

from tests.builders.conversions import APPLICATION, spark_application
from tests.unit.cli.conversion.test_convert_command import invoke


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--driver-memory 100m", 'spec.driver.memory: "100m" is less than 450Mi'),
        ("--executor-memory 1.5g", '"1.5g" is not a size for Spark'),
        ("--conf spark.kubernetes.driver.label.team=a/b", "spec.driver.labels.team: should match"),
        ("--conf spark.kubernetes.driver.label.a$b=c", "labels must be [PREFIX/]NAME"),
        ("--conf spark.kubernetes.node.selector.disk=a/b", '"a/b" is no value of the label disk'),
        ("--conf spark.kubernetes.namespace=Team_A", '"Team_A" is no name of a namespace'),
        ("--conf spark.kubernetes.container.image.pullSecrets=My_Secret", '"My_Secret" is no name of an object'),
        ("--conf spark.driver.extraJavaOptions=-Da=$'b\\nc'", "has control characters or a line end"),
    ],
)
def test_strict_fails_for_what_would_be_refused(options, message):
    result = invoke("-", "--strict", stdin=f"spark-submit {options} s3a://b/main.py\n")
    assert result.exit_code == 3
    assert message in result.stderr


def test_what_the_operator_would_refuse_is_printed_without_strict():
    result = invoke("-", stdin="spark-submit --executor-memory 1.5g s3a://b/main.py\n")
    assert result.exit_code == 0
    assert yaml.safe_load(result.stdout)["spec"]["sparkConf"] == {"spark.executor.memory": "1.5g"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "Pi"}, 'metadata.name: "Pi" is no name of an object'),
        ({"name": None}, "metadata.name: Required value"),
        ({"timeToLiveSeconds": "60"}, "spec.ttlSecondsAfterFinished: must be of type integer"),
        ({"restartPolicy": {"type": "Sometimes"}}, 'spec.restartPolicy.type: Unsupported value: "Sometimes"'),
        ({"executor": {"cores": 2, "instances": 20000}}, "spec.executor.instances: should be less than or equal to"),
        ({"driver": {"memory": "64m"}}, "is less than 450Mi"),
        ({"driver": {"envFrom": [{"configMapRef": {"name": "c"}, "secretRef": {"name": "s"}}]}}, "exactly one of"),
    ],
)
def test_strict_fails_for_a_manifest_that_would_be_refused(change, message):
    given = spark_application(**{**APPLICATION, **change})
    result = invoke("-", "--strict", stdin=yaml.safe_dump(given))
    assert result.exit_code == 3
    assert message in result.stderr
