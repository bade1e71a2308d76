"""The operator dies by SIGKILL before and after each write of a SparkApp: one driver each, and the right results."""

import pytest

from boathouse_cli import model
from boathouse_e2e import faults
from e2e.tests import replicas
from e2e.tests.spark_harness import Applications
from e2e.tests.spark_programs import EXPECTED, ONE_EXECUTOR, squares, total

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

WRITES = (
    "sparkapp.status",
    "sparkapp.config-map",
    "sparkapp.service",
    "sparkapp.submit",
    "scheduler.create",
    "scheduler.bind",
)
"""Those that each application comes to; the last binds its executor."""
FAILPOINTS = [f"{moment}-{write}" for write in WRITES for moment in ("before", "after")]


def drivers(recording: faults.Recording, namespace: str) -> set[str]:
    """The UIDs of all drivers that there have been in a namespace."""
    pods = [change["object"]["metadata"] for change in recording.changes()]
    return {
        pod["uid"]
        for pod in pods
        if pod["namespace"] == namespace and pod.get("labels", {}).get(model.SPARK_ROLE) == model.DRIVER
    }


@pytest.mark.long
def test_an_operator_killed_before_and_after_each_write_submits_one_driver_for_each_application(
    apps: Applications, fault_table: list[tuple[object, ...]]
) -> None:
    cluster = apps.place.cluster
    replicas.wait_for_both(cluster)
    with faults.recording(cluster) as recording:
        with replicas.unharmed_in_the_end(cluster):
            for failpoint in FAILPOINTS:
                replicas.die_at(cluster, failpoint)
                squares(apps, failpoint.replace(".", "-"), executor=ONE_EXECUTOR)
                replicas.wait_for_death(cluster, failpoint)
            epoch = faults.epoch(cluster)
        pause_s = replicas.wait_for_successor(cluster, epoch)
        for name in (failpoint.replace(".", "-") for failpoint in FAILPOINTS):
            app = apps.succeed(name)
            assert (app.attempt, total(apps, name)) == (1, EXPECTED)
            pods = [model.task_pod(raw) for raw in apps.raw_pods(name)]
            fault_table.append(("SIGKILL", name, pause_s, app, pods, len(recording.changes())))
        assert len(drivers(recording, apps.place.namespace)) == len(FAILPOINTS)
        assert recording.over_commits() == []
