"""The memory of an application's executors, chosen when its driver starts."""

import pytest

from boathouse.resources import names
from boathouse.services.sparkapp import gang, objects, sizing
from boathouse.services.sparkapp.gang import DriverFactory
from boathouse_policies import model
from tests.builders.sparkapps import ATTEMPT, app, app_refusal, driver_pod

MIB = 1024**2


def elastic_app(least="600m", **executor):
    return app(executor={"memory": "4g", "elasticMemory": {"min": least}, **executor})


def driver_manifest(found, expected):
    size = None if expected is None else model.Resources(cpu_milli=1000, memory_bytes=expected)
    return DriverFactory(app=found, attempt=ATTEMPT).build(model.TaskId("team/d"), model.Resources(), None, size)


@pytest.mark.parametrize("chosen", [1100, 1600, 2048, 3333])
def test_executors_have_the_largest_heap_that_fits_the_chosen_memory(chosen):
    found = gang.resized(elastic_app(), chosen * MIB)
    heap = int(found.conf["spark.executor.memory"].removesuffix("m"))
    more = sizing.executor({**found.conf, "spark.executor.memory": f"{heap + 1}m"}, is_python=True)
    assert found.executor.memory_mib <= chosen < more.memory_mib


def test_an_explicit_overhead_leaves_the_rest_to_the_heap():
    found = gang.resized(elastic_app(memoryOverhead="500m"), 2000 * MIB)
    assert (found.conf["spark.executor.memory"], found.executor.memory_mib) == ("1500m", 2000)


def test_executors_that_may_have_all_their_memory_keep_the_heap_of_the_spec():
    found = elastic_app()
    assert gang.resized(found, found.executor.memory_bytes) is found


def test_less_memory_than_the_least_heap_needs_is_refused():
    with pytest.raises(ValueError, match="need more"):
        gang.resized(elastic_app(), 900 * MIB)
    with pytest.raises(ValueError, match="need more"):
        gang.resized(app(), 900 * MIB)


def test_a_driver_gets_the_chosen_heap_before_its_program():
    arguments = driver_manifest(elastic_app(), 2048 * MIB)["spec"]["containers"][0]["args"]
    assert arguments[3:5] == ["--conf", "spark.executor.memory=1463m"]
    assert arguments.index("--class") == 5


def test_a_drivers_pod_says_how_much_memory_was_chosen_and_why():
    annotations = driver_manifest(elastic_app(), 2048 * MIB)["metadata"]["annotations"]
    assert annotations[names.ANNOTATION_EXECUTOR_MEMORY] == str(2048 * MIB)
    assert annotations[names.ANNOTATION_DECISION].startswith("executors have 2Gi of memory instead of 5734Mi")


@pytest.mark.parametrize("expected", [None, 8192 * MIB])
def test_a_driver_whose_executors_have_all_their_memory_is_unchanged(expected):
    assert driver_manifest(elastic_app(), expected) == driver_manifest(app(executor={"memory": "4g"}), None)


def test_the_attempt_of_a_driver_that_exists_has_the_size_of_its_annotation():
    chosen = gang.resized(elastic_app(), 2048 * MIB)
    found = gang.with_chosen_memory(elastic_app(), driver_pod(executor_bytes=chosen.executor.memory_bytes))
    assert (found.executor, found.conf) == (chosen.executor, chosen.conf)
    assert objects.properties(found, ATTEMPT)["spark.executor.memory"] == "1463m"


@pytest.mark.parametrize("written", [0, 900 * MIB, 10**17])
def test_a_size_that_the_operator_could_not_have_chosen_is_ignored(written):
    found = elastic_app()
    assert gang.with_chosen_memory(found, driver_pod(executor_bytes=written)) is found


def test_a_least_heap_above_that_of_a_property_is_refused():
    found = app_refusal(executor={"elasticMemory": {"min": "2g"}})
    assert "executor.elasticMemory.min is more than spark.executor.memory (absent: 1g)" in found.message
    assert app(executor={"elasticMemory": {"min": "2g"}}, sparkConf={"spark.executor.memory": "3g"}).elastic
