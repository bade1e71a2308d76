"""What Spark applications that run say of themselves: to the operator, in the command line and in Spark's own UI."""

import re
import urllib.request
from collections.abc import Mapping

import pytest

from boathouse.resources.sparkapp.names import ConditionType
from boathouse.services.sparkapp import rest
from boathouse_cli import model
from e2e.tests import command_line, harness, spark_harness
from e2e.tests.spark_harness import Applications
from e2e.tests.spark_programs import EXPECTED, ONE_EXECUTOR, TASKS, squares, total

pytestmark = pytest.mark.cluster

OVERRIDDEN = {"spark.executor.memory": "600m"}


def given(apps: Applications, name: str) -> Mapping[str, str]:
    """The properties that an application's driver was given."""
    driver = apps.running(name, model.DRIVER)[0]
    maps = [volume["configMap"]["name"] for volume in driver["spec"]["volumes"] if "configMap" in volume]
    items = [apps.place.cluster.get("configmap", config_map, "-n", apps.place.namespace)["data"] for config_map in maps]
    text = next(data["spark.properties"] for data in items if "spark.properties" in data)
    lines = [re.split(r"(?<!\\)=", line, maxsplit=1) for line in text.splitlines()]
    return {key: re.sub(r"\\(.)", r"\1", value) for key, value in lines}


def changed_in_the_driver(apps: Applications, name: str) -> set[str]:
    """Those of them that Spark's UI, reached by `boathouse ui`, shows otherwise."""
    properties = given(apps, name)
    with command_line.user_interface(apps.place, f"sparkapp/{name}") as address:
        path = f"{address}api/v1/applications/{properties['spark.app.id']}/environment"
        with urllib.request.urlopen(path, timeout=30) as answer:  # noqa: S310 - our own address
            changed = rest.overridden(answer.read(), properties)
    assert changed is not None
    return {key for key in changed if not key.endswith("extraJavaOptions")}  # Spark puts its own before them


def until_reported(apps: Applications, name: str) -> None:
    """Wait until the operator has read what an application says of itself."""

    def reported() -> bool:
        status = apps.raw(name)["status"]
        return (status.get("tasks") or {}).get("total") == TASKS

    harness.until(reported, f"the tasks of {name} are in the status", timeout_s=spark_harness.TIMEOUT_S)


def explained(apps: Applications, name: str) -> str:
    return command_line.output(apps.place, "explain", f"sparkapp/{name}")


def check_explained(apps: Applications, name: str) -> None:
    """`boathouse explain` shows an application that runs, with its executor and its driver's place."""
    app, said = apps.look(name), explained(apps, name)
    assert f"sparkapp/{name} is in phase Running (" in said
    assert "1 executors running)" in said
    assert (
        f"attempt 1, pod {app.driver.pod_name} on {app.driver.node}, UI at {app.driver.ui_address} in the cluster"
        in said
    )
    assert "driver: 200m cpu, 896Mi memory" in said


def check_timeline(apps: Applications, name: str) -> None:
    """`boathouse timeline` shows what the application waited for, and that executors run."""
    table = command_line.output(apps.place, "timeline", f"sparkapp/{name}")
    assert {"waiting for executors", "executors running", "total"} <= set(re.split(r"\s{2,}|\n", table))


def test_a_running_application_is_shown_as_it_is_and_what_its_program_overrides_is_named(apps: Applications) -> None:
    squares(apps, "plain", seconds=2, executor=ONE_EXECUTOR)
    squares(apps, "own-way", seconds=2, executor=ONE_EXECUTOR, properties=OVERRIDDEN)
    until_reported(apps, "plain")
    check_explained(apps, "plain")
    check_timeline(apps, "plain")
    assert changed_in_the_driver(apps, "plain") == set()
    assert apps.look("plain").condition(ConditionType.CONFIG_OVERRIDDEN) is None
    condition = harness.until(
        lambda: apps.look("own-way").condition(ConditionType.CONFIG_OVERRIDDEN),
        "the application says what its program overrides",
        timeout_s=spark_harness.TIMEOUT_S,
    )
    assert (condition.status, condition.reason) == ("True", "PropertiesChangedInProgram")
    assert "the program sets spark.executor.memory itself" in explained(apps, "own-way")
    apps.succeed("plain")
    assert total(apps, "plain") == EXPECTED
    assert "sparkapp/plain succeeded in " in explained(apps, "plain")
