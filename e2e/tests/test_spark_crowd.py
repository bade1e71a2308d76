"""Spark applications and MRJobs that together request three times what the nodes have: all end, none blocks another."""

import time
from typing import Any

import pytest

from boathouse.resources import quantity
from boathouse_cli import model
from boathouse_e2e import faults, invariants
from boathouse_e2e.spec import Cluster
from e2e.tests import command_line, harness, spark_harness
from e2e.tests.spark_harness import Applications
from e2e.tests.spark_programs import EXPECTED, squares, total

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

APPS = [f"app-{number}" for number in range(4)]
JOBS = [f"job-{number}" for number in range(2)]
EXECUTORS = 2
MAPS = 3
PODS_AT_ONCE = 6
"""How many pods of the test fit at a time: a third of 4 drivers, their 8 executors, and 3 maps of each job."""


def pod_size(cluster: Cluster) -> int:
    """The CPU in thousandths by which PODS_AT_ONCE pods fill the nodes, half of them each of two."""
    free = {
        node["metadata"]["name"]: quantity.milli(node["status"]["allocatable"]["cpu"]) for node in cluster.workers()
    }
    for pod in cluster.get("pods", "-A")["items"]:
        if pod["status"]["phase"] not in {"Succeeded", "Failed"} and pod["spec"].get("nodeName") in free:
            free[pod["spec"]["nodeName"]] -= invariants.requests(pod).get("cpu", 0)
    assert len(free) == 2, free
    return min(free.values()) // (PODS_AT_ONCE // 2)


def start(apps: Applications, milli: int) -> None:
    """Start everything at once; every pod requests so much CPU."""
    cpu = f"{milli}m"
    apps.place.put("in/a.txt", harness.text(MAPS * 1_000_000))
    for number, name in enumerate(JOBS):
        task = {"command": ["python3", "mapper.py"], "resources": {"requests": {"cpu": cpu, "memory": "128Mi"}}}
        apps.place.start(name, mapper=task, queue=("left", "right")[number])
    for number, name in enumerate(APPS):
        role = {"coreRequest": cpu, "memory": "512m"}
        executor = {"instances": EXECUTORS, **role}
        squares(apps, name, seconds=1, driver=role, executor=executor, queue=("left", "right")[number % 2])


def most_drivers(changes: list[dict[str, Any]], namespace: str) -> int:
    """How many drivers of a namespace held a node at the same time."""
    live: set[str] = set()
    most = 0
    for change in changes:
        pod = change["object"]
        if pod["metadata"]["namespace"] != namespace or not is_driver(pod):
            continue
        ended = change["type"] == "DELETED" or pod["status"]["phase"] in {"Succeeded", "Failed"}
        (live.discard if ended or "nodeName" not in pod["spec"] else live.add)(pod["metadata"]["uid"])
        most = max(most, len(live))
    return most


def is_driver(pod: dict[str, Any]) -> bool:
    return pod["metadata"].get("labels", {}).get(model.SPARK_ROLE) == model.DRIVER


def pending(apps: Applications) -> str | None:
    """What `boathouse explain` says of an application that is pending, if one is."""
    for name in APPS:
        if apps.look(name).phase == "Pending":
            said = command_line.output(apps.place, "explain", f"sparkapp/{name}")
            if "is pending: " in said and "PendingEvaluation" not in said:
                return said
    return None


@pytest.mark.long
def test_four_applications_and_two_mrjobs_on_a_third_of_the_room_all_end(apps: Applications) -> None:
    place, began_s = apps.place, time.monotonic()
    text = harness.text(MAPS * 1_000_000)
    with faults.recording(place.cluster) as recording:
        start(apps, pod_size(place.cluster))
        said = harness.until(lambda: pending(apps), "an application is pending")
        for name in JOBS:
            place.succeed(name, timeout_s=spark_harness.TIMEOUT_S)
            assert harness.pairs(place.parts(name)) == harness.counted(text)
        for name in APPS:
            apps.succeed(name)
            assert total(apps, name) == EXPECTED
        assert recording.over_commits() == []
        drivers = most_drivers(recording.changes(), place.namespace)
    print(f"all ended after {time.monotonic() - began_s:.0f} s, at most {drivers} drivers at once; one said: {said}")
    assert 1 <= drivers <= PODS_AT_ONCE // (1 + EXECUTORS)
