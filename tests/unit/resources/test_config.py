"""The configuration file."""

import json

import pydantic
import pytest

from boathouse.resources import config


def test_an_empty_file_gives_one_queue_and_fair_share(tmp_path):
    path = tmp_path / "config.json"
    path.write_text("{}")
    read = config.load(path)
    assert [queue.name for queue in read.queues] == ["default"]
    assert read.profile == "fair"


def test_a_misspelt_value_is_refused():
    with pytest.raises(pydantic.ValidationError, match="pendingAhed"):
        config.OperatorConfig.model_validate_json(json.dumps({"pendingAhed": 3}))


def test_a_default_queue_must_exist():
    with pytest.raises(pydantic.ValidationError, match=r"namespaceQueues\[a\].*nowhere"):
        config.OperatorConfig.model_validate({"namespaceQueues": {"a": "nowhere"}})


def test_lease_times_must_be_ordered():
    with pytest.raises(pydantic.ValidationError, match="durationSeconds must be more"):
        config.OperatorConfig.model_validate({"lease": {"durationSeconds": 5}})


def test_a_job_gets_the_queue_it_asks_for_or_its_namespaces_or_the_default():
    read = config.OperatorConfig.model_validate(
        {"queues": [{"name": "default"}, {"name": "etl"}], "namespaceQueues": {"demo": "etl"}}
    )
    assert [read.queue_for("demo", "default"), read.queue_for("demo", None), read.queue_for("x", None)] == [
        "default",
        "etl",
        "default",
    ]
