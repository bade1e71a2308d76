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
from e2e.tests.spark_programs import EXPECTED, ONE_EXECUTOR, squares, total

pytestmark = pytest.mark.cluster


def patch(apps: Applications, name: str, **spec: Any) -> None:
    apps.place.cluster.run(
        *("patch", "sparkapp", name, "-n", apps.place.namespace, "--type=merge", "-p", json.dumps({"spec": spec}))
    )


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
    squares(apps, "pause", executor=ONE_EXECUTOR, suspend=True)
    harness.until(lambda: apps.look("pause").phase == "Suspended", "the application says that it is suspended")
    assert apps.raw_pods("pause") == []
    patch(apps, "pause", suspend=False)
    apps.until_running("pause", model.DRIVER)
    patch(apps, "pause", suspend=True)
    harness.until(lambda: not apps.raw_pods("pause"), "no pod of the suspended application is left")
    patch(apps, "pause", suspend=False)
    app = apps.succeed("pause")
    assert total(apps, "pause") == EXPECTED
    assert (app.attempt, app.attempts[0].cause) == (2, "Suspended")
    assert failures(apps, "pause") == {"application": 0, "infrastructure": 0}


def test_an_executor_that_is_killed_is_replaced_and_a_driver_that_is_killed_starts_anew(apps: Applications) -> None:
    restart = {"type": "OnFailure", "onFailureRetryInterval": 1}
    squares(apps, "killed", seconds=1, executor=ONE_EXECUTOR, restartPolicy=restart)
    executor = apps.until_running("killed", model.EXECUTOR)
    kill(apps, executor)

    def replaced() -> bool:
        return executor["metadata"]["uid"] not in {
            pod["metadata"]["uid"] for pod in apps.running("killed", model.EXECUTOR)
        } and bool(apps.running("killed", model.EXECUTOR))

    harness.until(replaced, "the executor is replaced", timeout_s=spark_harness.TIMEOUT_S)
    kill(apps, apps.until_running("killed", model.DRIVER))
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
        return len(apps.running("elastic", model.EXECUTOR))

    within_s = spark_harness.TIMEOUT_S
    harness.until(lambda: executors() == 3, "three executors run", timeout_s=within_s, every_s=0.5)
    harness.until(lambda: executors() == 1, "one executor is left", timeout_s=within_s)
    assert not apps.look("elastic").finished
    apps.succeed("elastic")
    assert total(apps, "elastic") == EXPECTED
