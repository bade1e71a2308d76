"""The life of a SparkApp on a real cluster: suspended, without image, killed, with executors that come and go."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from boathouse.resources import names
from boathouse.resources.sparkapp.names import ConditionType
from boathouse_cli import model
from e2e.tests import harness, spark_harness
from e2e.tests.spark_harness import Applications

pytestmark = pytest.mark.cluster

SQUARES = """
import sys, time
from pyspark.sql import SparkSession

tasks, seconds, target, idle = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], float(sys.argv[4])


def square(number):
    time.sleep(seconds)
    return number * number


spark = SparkSession.builder.getOrCreate()
total = spark.sparkContext.parallelize(range(tasks), tasks).map(square).sum()
time.sleep(idle)
spark.sparkContext.parallelize([str(total)], 1).saveAsTextFile(target)
spark.stop()
"""
TASKS = 12


def squares(apps: Applications, name: str, *, seconds: float = 0.1, idle: float = 0, **spec: Any) -> str:
    """Start an application that adds up squares, each in a task of so many seconds, and then is idle."""
    arguments = [str(TASKS), str(seconds), spark_harness.s3a(apps.place, name), str(idle)]
    return apps.start(name, mainApplicationFile=apps.program(SQUARES), arguments=arguments, **spec)


def total(apps: Applications, name: str) -> int:
    """The sum that an application wrote."""
    files = spark_harness.files(apps.place, name)
    return int(b"".join(data for path, data in files.items() if path.startswith("part-")))


EXPECTED = sum(number * number for number in range(TASKS))
ONE = {"instances": 1, **spark_harness.SMALL_EXECUTOR}


def patch(apps: Applications, name: str, **spec: Any) -> None:
    apps.place.cluster.run(
        *("patch", "sparkapp", name, "-n", apps.place.namespace, "--type=merge", "-p", json.dumps({"spec": spec}))
    )


def running(apps: Applications, name: str, role: str) -> list[model.Raw]:
    """The pods of a role that run."""
    return [
        pod
        for pod in apps.raw_pods(name)
        if pod["metadata"]["labels"][model.SPARK_ROLE] == role and pod["status"]["phase"] == "Running"
    ]


def until_running(apps: Applications, name: str, role: str) -> model.Raw:
    """Wait for a pod of a role."""
    found = harness.until(
        lambda: running(apps, name, role), f"{role} of {name} runs", timeout_s=spark_harness.TIMEOUT_S, every_s=0.5
    )
    return found[0]


def kill(apps: Applications, pod: model.Raw) -> None:
    apps.place.cluster.run(
        *("delete", "pod", pod["metadata"]["name"], "-n", apps.place.namespace, "--grace-period=1", "--wait=false")
    )


def failures(apps: Applications, name: str) -> Mapping[str, int]:
    return apps.raw(name)["status"]["failures"]


def test_a_missing_image_is_named_while_the_driver_cannot_start(apps: Applications) -> None:
    squares(apps, "imageless", image="localhost/none:dev")

    def message() -> str | None:
        condition = apps.look("imageless").denial(ConditionType.RUNNING)
        return condition.message if condition and condition.reason == names.Reason.IMAGE_PULL_FAILED else None

    assert "localhost/none:dev" in harness.until(message, "the application says that it has no image")


def test_a_suspended_application_has_no_pods_and_starts_anew_when_it_is_resumed(apps: Applications) -> None:
    squares(apps, "pause", executor=ONE, suspend=True)
    harness.until(lambda: apps.look("pause").phase == "Suspended", "the application says that it is suspended")
    assert apps.raw_pods("pause") == []
    patch(apps, "pause", suspend=False)
    until_running(apps, "pause", model.DRIVER)
    patch(apps, "pause", suspend=True)
    harness.until(lambda: not apps.raw_pods("pause"), "no pod of the suspended application is left")
    patch(apps, "pause", suspend=False)
    app = apps.succeed("pause")
    assert total(apps, "pause") == EXPECTED
    assert (app.attempt, app.attempts[0].cause) == (2, "Suspended")
    assert failures(apps, "pause") == {"application": 0, "infrastructure": 0}


def test_an_executor_that_is_killed_is_replaced_and_a_driver_that_is_killed_starts_anew(apps: Applications) -> None:
    restart = {"type": "OnFailure", "onFailureRetryInterval": 1}
    squares(apps, "killed", seconds=2, executor=ONE, restartPolicy=restart)
    executor = until_running(apps, "killed", model.EXECUTOR)
    kill(apps, executor)

    def replaced() -> bool:
        return executor["metadata"]["uid"] not in {
            pod["metadata"]["uid"] for pod in running(apps, "killed", model.EXECUTOR)
        } and bool(running(apps, "killed", model.EXECUTOR))

    harness.until(replaced, "the executor is replaced", timeout_s=spark_harness.TIMEOUT_S, every_s=0.5)
    kill(apps, until_running(apps, "killed", model.DRIVER))
    app = apps.succeed("killed")
    assert total(apps, "killed") == EXPECTED
    assert (app.attempt, app.attempts[0].cause) == (2, "Infrastructure")
    assert failures(apps, "killed") == {"application": 0, "infrastructure": 1}


@pytest.mark.long
def test_dynamic_allocation_grows_with_the_tasks_and_shrinks_without_them(apps: Applications) -> None:
    squares(
        apps,
        "elastic",
        seconds=10,
        idle=60,
        executor=spark_harness.SMALL_EXECUTOR,
        dynamicAllocation={"enabled": True, "minExecutors": 1, "maxExecutors": 3},
        sparkConf={
            "spark.dynamicAllocation.executorIdleTimeout": "5s",
            "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
        },
    )

    def executors() -> int:
        return len(running(apps, "elastic", model.EXECUTOR))

    within_s = spark_harness.TIMEOUT_S
    harness.until(lambda: executors() == 3, "three executors run", timeout_s=within_s, every_s=0.5)
    harness.until(lambda: executors() == 1, "one executor is left", timeout_s=within_s, every_s=0.5)
    assert not apps.look("elastic").finished
    apps.succeed("elastic")
    assert total(apps, "elastic") == EXPECTED
