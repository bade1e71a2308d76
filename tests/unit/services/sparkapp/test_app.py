"""From a custom resource to an application, or why it cannot run."""

import pytest

from boathouse.resources.config import OperatorConfig
from boathouse.services.sparkapp import model
from tests.builders.sparkapps import app, app_refusal, sparkapp

WRONG = [
    ({"type": "R"}, "type"),
    ({"mainApplicationFile": None}, "mainApplicationFile"),
    ({"sparkConf": {"spark.master": "local"}}, "spark.master: set by Boathouse"),
    ({"sparkConf": {"spark.executor.memory": "lots"}}, "is not a size for Spark"),
    ({"sparkConf": {"spark.executor.memory": "999999999t"}}, "more than 256Ti"),
    ({"sparkConf": {"spark.executor.cores": "2147483647"}}, "not between 1m and 1M"),
    ({"sparkConf": {"spark.kubernetes.executor.request.cores": "0"}}, "not between 1m and 1M"),
    ({"sparkConf": {"spark.executor.instances": "2147483647"}}, "more than 10000"),
    ({"sparkConf": {"spark.executor.instances": "many"}}, "not a whole number"),
    ({"sparkConf": {"spark.ui.port": "http"}}, "not a port"),
    ({"sparkConf": {"spark.driver.port": "99999"}}, "not a port"),
    ({"sparkConf": {"spark.a": "b\nspark.master=local"}}, "line end or a NUL"),
    ({"sparkConf": {"spark.a": "b\0"}}, "line end or a NUL"),
    ({"arguments": ["a\0"]}, "arguments have no NUL"),
    ({"driver": {"ephemeralStorage": "much"}}, "is not a quantity"),
    ({"executor": {"extendedResources": {"example.com/a": "x"}}}, "is not a quantity"),
    (
        {
            "dynamicAllocation": {"enabled": True, "maxExecutors": 2},
            "sparkConf": {"spark.dynamicAllocation.minExecutors": "3"},
        },
        "more than the maximum",
    ),
    ({"hadoopConf": {str(n): "x" * 16000 for n in range(40)}}, "the properties have"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG, ids=[str(number) for number in range(len(WRONG))])
def test_what_the_api_server_would_have_let_through_is_refused(wrong, message):
    found = app_refusal(**wrong)
    assert found.reason == "InvalidSpec"
    assert message in found.message


def test_an_application_needs_an_image():
    found = model.from_resource(sparkapp(), OperatorConfig())
    assert "no image: set spec.image" in found.message
    assert app(image="other:1").image == "other:1"


def test_an_unknown_queue_is_refused():
    assert app_refusal(queue="gold").reason == "QueueNotFound"


def test_the_keys_of_the_storage_are_in_the_environment_and_nowhere_else():
    s3 = {"endpointURL": "https://s3.example.com", "secretRef": {"name": "keys"}}
    found = app(storage={"s3": s3}, env=[{"name": "AWS_ACCESS_KEY_ID", "value": "mine"}])
    assert found.conf["spark.hadoop.fs.s3a.endpoint"] == "https://s3.example.com"
    assert found.conf["spark.hadoop.fs.s3a.connection.ssl.enabled"] == "true"
    assert "EnvironmentVariableCredentialsProvider" in found.conf["spark.hadoop.fs.s3a.aws.credentials.provider"]
    assert not any("key" in key for key in found.conf)


def test_fields_of_the_user_win_over_the_defaults():
    found = app(storage={"s3": {}}, hadoopConf={"fs.s3a.committer.name": "directory"})
    assert found.conf["spark.hadoop.fs.s3a.committer.name"] == "directory"
    assert "Anonymous" in found.conf["spark.hadoop.fs.s3a.aws.credentials.provider"]


def test_an_application_may_have_as_many_executors_pending_as_its_minimum():
    key = "spark.kubernetes.allocation.maxPendingPods"
    assert app().conf[key] == "5"
    assert app(executor={"instances": 40}).conf[key] == "40"
    assert app(sparkConf={key: "7"}).conf[key] == "7"
