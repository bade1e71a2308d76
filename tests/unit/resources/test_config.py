"""The configuration file."""

import json

import pydantic
import pytest

from boathouse.resources import config
from boathouse_policies import profiles


def test_an_empty_file_gives_one_queue_and_the_combined_profile(tmp_path):
    path = tmp_path / "config.json"
    path.write_text("{}")
    read = config.load(path)
    assert [queue.name for queue in read.queues] == ["default"]
    assert read.profile == "boathouse"


def test_the_core_has_every_profile_that_the_configuration_offers():
    assert set(config.PROFILES) <= set(profiles.names())


def test_a_misspelt_value_is_refused():
    with pytest.raises(pydantic.ValidationError, match="pendingAhed"):
        config.OperatorConfig.model_validate_json(json.dumps({"pendingAhed": 3}))


def test_a_default_queue_must_exist():
    with pytest.raises(pydantic.ValidationError, match=r"namespaceQueues\[a\].*nowhere"):
        config.OperatorConfig.model_validate({"namespaceQueues": {"a": "nowhere"}})


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (
            {"queues": [{"name": "default"}, {"name": "b", "namespaces": ["c"]}], "namespaceQueues": {"a": "b"}},
            r'namespaceQueues\[a\] is "b", which does not accept the namespace: add a to',
        ),
        ({"queues": [{"name": "default", "namespaces": ["a"]}]}, 'defaultQueue is "default", which accepts only a'),
        (
            {"queues": [{"name": "default", "namespaces": ["a"]}], "watchNamespaces": ["a", "b"]},
            "does not accept the namespace b",
        ),
        ({"queues": [{"name": "default", "namespaces": ["Not A Name"]}]}, "pattern"),
        ({"queues": [{"name": "default", "priorityClasses": ["Not A Name"]}]}, "pattern"),
    ],
)
def test_each_namespace_must_have_a_default_queue_that_accepts_it(values, complaint):
    with pytest.raises(pydantic.ValidationError, match=complaint):
        config.OperatorConfig.model_validate(values)


def test_a_default_queue_may_leave_out_namespaces_that_have_another():
    queues = [{"name": "default", "namespaces": ["a"]}, {"name": "b", "namespaces": ["b"]}]
    config.OperatorConfig.model_validate(
        {"queues": queues, "watchNamespaces": ["a", "b"], "namespaceQueues": {"b": "b"}}
    )


def test_a_queue_accepts_what_it_lists_and_everything_when_it_lists_nothing():
    everything = config.QueueConfig(name="a")
    assert everything.accepts_namespace("x")
    assert everything.accepts_priority_class("low")
    some = config.QueueConfig(name="a", namespaces=["x"], priority_classes=["low", "team.high"])
    assert [some.accepts_namespace(name) for name in ("x", "y")] == [True, False]
    assert [some.accepts_priority_class(name) for name in ("low", "team.high", "high", "")] == [True, True, False, True]


def test_lease_times_must_be_ordered():
    with pytest.raises(pydantic.ValidationError, match="durationSeconds must be more"):
        config.OperatorConfig.model_validate({"lease": {"durationSeconds": 5}})


def test_a_job_gets_the_queue_it_requests_or_its_namespaces_or_the_default():
    read = config.OperatorConfig.model_validate(
        {"queues": [{"name": "default"}, {"name": "etl"}], "namespaceQueues": {"demo": "etl"}}
    )
    assert [read.queue_for("demo", "default"), read.queue_for("demo", None), read.queue_for("x", None)] == [
        "default",
        "etl",
        "default",
    ]


@pytest.mark.parametrize(
    ("values", "request_bytes", "limit_bytes"),
    [
        ({}, 1 << 30, 10 << 30),
        ({"request": "", "limit": ""}, 0, 0),
        ({"request": "2Gi", "limit": ""}, 2 << 30, 0),
        ({"request": "", "limit": "5Gi"}, 0, 5 << 30),
    ],
)
def test_ephemeral_storage_has_defaults_that_can_be_turned_off(values, request_bytes, limit_bytes):
    storage = config.OperatorConfig.model_validate({"task": {"ephemeralStorage": values}}).task.ephemeral_storage
    assert (storage.request_bytes, storage.limit_bytes) == (request_bytes, limit_bytes)


def test_a_limit_of_ephemeral_storage_below_its_request_is_refused():
    with pytest.raises(ValueError, match="ephemeralStorage: limit 1Gi is less than request 2Gi"):
        config.OperatorConfig.model_validate({"task": {"ephemeralStorage": {"request": "2Gi", "limit": "1Gi"}}})
