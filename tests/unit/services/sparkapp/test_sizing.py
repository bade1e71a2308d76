"""Requests are equal to those of Spark's own submission."""

import pytest
from hypothesis import given, strategies as st

from boathouse.resources import quantity
from boathouse.services.sparkapp import sizing
from boathouse.services.sparkapp.sizing import mebibytes, spark_size
from tests.builders.sparkapps import SUBMISSIONS, of_each_submission, only_container
from tests.spark import keys

KEYS = keys.read()


def known_properties(recording):
    """Return the properties that the version of Spark defines: it ignores the others."""
    version, properties = recording["version"], recording["properties"]
    return {key: value for key, value in properties.items() if version in KEYS.get(key, [version])}


def is_python(recording):
    return recording["properties"]["spark.kubernetes.resource.type"] == "python"


def in_numbers(requests, limits):
    return tuple(
        {name: quantity.milli(value) for name, value in quantities.items()} for quantities in (requests, limits)
    )


def recorded(container):
    """Return requests and limits of a recorded container, as numbers."""
    return in_numbers(container["resources"].get("requests", {}), container["resources"].get("limits", {}))


@of_each_submission
def test_a_driver_requests_what_spark_would(configuration, recording):
    assert configuration.name
    found = only_container(recording["driver"])
    computed = sizing.driver(known_properties(recording), is_python=is_python(recording))
    assert in_numbers(computed.requests, computed.limits) == recorded(found)


@of_each_submission
def test_an_executor_requests_what_spark_would(configuration, recording):
    assert configuration.name
    computed = sizing.executor(known_properties(recording), is_python=is_python(recording))
    for pod in recording["executors"]:
        if pod["metadata"]["labels"]["spark-exec-resourceprofile-id"] == "0":
            assert in_numbers(computed.requests, computed.limits) == recorded(only_container(pod))


def test_fifty_recorded_configurations_have_executors():
    assert sum(bool(recording["executors"]) for _, recording in SUBMISSIONS) >= 50


def test_the_minimum_of_executors_is_that_of_spark():
    assert sizing.minimum_executors({}) == 2
    assert sizing.minimum_executors({"spark.executor.instances": "5"}) == 5
    dynamic = {"spark.dynamicAllocation.enabled": "true", "spark.executor.instances": "5"}
    assert sizing.minimum_executors(dynamic) == 0
    assert sizing.minimum_executors({**dynamic, "spark.dynamicAllocation.minExecutors": "3"}) == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"spark.driver.memory": "lots"},
        {"spark.driver.memory": "1.5g"},
        {"spark.driver.memory": "-1g"},
        {"spark.driver.memory": "9" * 40},
        {"spark.driver.cores": "two"},
        {"spark.driver.cores": "²"},
        {"spark.driver.cores": "9" * 5000},
        {"spark.kubernetes.driver.request.cores": "much"},
        {"spark.driver.memoryOverheadFactor": "nan"},
        {"spark.driver.memoryOverheadFactor": "1e9"},
        {"spark.driver.resource.gpu.amount": "1"},
    ],
)
def test_what_spark_cannot_read_is_refused(wrong):
    with pytest.raises(ValueError, match=r"size|number|quantity|vendor"):
        sizing.driver(wrong, is_python=True)


@given(st.integers(1, 10**6), st.sampled_from(["m", "MB", "Mi", "g", "Gi", "GB", "t", "k", "kB"]))
def test_the_size_of_a_field_means_the_same_to_spark(number, unit):
    power = {"k": 0, "m": 1, "g": 2, "t": 3}[unit[0].lower()]
    assert mebibytes(spark_size(f"{number}{unit}")) == number * 1024**power // 1024
