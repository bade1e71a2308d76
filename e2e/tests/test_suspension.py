"""Reduces that are suspended, judged by the cgroups of their containers. The nodes must run on this machine."""

import datetime as dt

import pytest

from boathouse.resources import names, quantity
from boathouse.resources.mrjob import names as mrjob_names
from boathouse_e2e import faults, invariants
from boathouse_task import contract
from e2e.tests import harness, reduces

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

BORROWER = "borrower"
CPU = "1100m"
"""Two tasks of this request do not fit on a node."""
SUSPENDED_MILLI = contract.SUSPENDED_LIMIT_MILLI


def suspend(place, for_s):
    until = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=for_s)
    annotate(place, f"{names.ANNOTATION_SUSPEND_UNTIL}={until.isoformat(timespec='seconds').replace('+00:00', 'Z')}")


def annotate(place, annotation):
    place.cluster.run("annotate", f"mrjob/{reduces.JOB}", "-n", place.namespace, "--overwrite", annotation)


def free_milli(cluster, node):
    """The CPU of a node that no pod holds."""
    pods = [pod for pod in cluster.get("pods", "-A")["items"] if pod["spec"].get("nodeName") == node]
    held = sum(invariants.requests(pod).get("cpu", 0) for pod in pods if not invariants.has_ended(pod))
    return quantity.milli(cluster.get("node", node)["status"]["allocatable"]["cpu"]) - held


@pytest.mark.short
@pytest.mark.timeout(600)
def test_reduces_stop_while_a_map_uses_their_cpu_and_continue_with_the_right_output(place):
    with faults.recording(place.cluster) as recording:
        data = reduces.start(place, count=2, cpu=CPU)
        pods = reduces.running_reduces(place, 2)
        free = {pod["spec"]["nodeName"]: free_milli(place.cluster, pod["spec"]["nodeName"]) for pod in pods}
        assert max(free.values()) < quantity.milli(CPU)
        mapper = {"command": ["sh", "-c", "sleep 5; cat"], "resources": {"requests": {"cpu": CPU, "memory": "128Mi"}}}
        place.start(BORROWER, mapper=mapper, input=[place.url("in/a.txt")], reducer=None, numReduceTasks=None)
        suspend(place, 120)
        paused = [reduces.container(pod) for pod in pods]
        harness.until(
            lambda: {container.limit_milli() for container in paused} == {SUSPENDED_MILLI}, "the reduces have 10m CPU"
        )
        harness.until(lambda: borrower_node(place) in free, "a map runs in the CPU of a reduce")
        assert max(container.rate(1) for container in paused) < 0.02
        harness.until(lambda: place.look(reduces.JOB).holds(names.ConditionType.REDUCERS_SUSPENDED), "the job says so")
        place.succeed(BORROWER)
        annotate(place, f"{names.ANNOTATION_SUSPEND_UNTIL}-")
        harness.until(
            lambda: {container.limit_milli() for container in paused} == {reduces.LIMIT_MILLI},
            "the reduces have their CPU again",
        )
        reduces.end_map(place)
        job = place.succeed(reduces.JOB)
        assert harness.pairs(place.parts(reduces.JOB)) == harness.counted(data)
        assert [*recording.over_commits(), *recording.wrong_suspensions()] == []
    counters = place.gateway.get("mrjobs", reduces.JOB)["status"]["counters"]
    assert counters["Boathouse"]["Suspended milliseconds"] > 5000
    assert not job.failures


def borrower_node(place):
    """The node on which the map of the borrowing job runs."""
    pods = [pod for pod in place.raw_pods(BORROWER) if pod["metadata"]["labels"][mrjob_names.LABEL_TASK_TYPE] == "map"]
    return next((pod["spec"].get("nodeName") for pod in pods if pod["status"].get("phase") == "Running"), None)
