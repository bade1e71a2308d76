"""The operator is harmed at a moment of a job's life: same output, every task once, no orphan, no over-commit.

`make test` harms it twice; `make test-e2e-faults` at every moment below, and prints a table.
"""

import dataclasses
import signal

import pytest

from boathouse_cli import model, mrjobs
from boathouse_e2e import faults
from boathouse_task.contract import TaskType
from e2e.tests import harness, replicas

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

MAPPER = {"command": ["sh", "-c", "sleep 1; exec python3 mapper.py"], "resources": harness.SMALL}
REDUCER = {"command": ["sh", "-c", "sleep 2; exec python3 reducer.py"], "resources": harness.SMALL}
TEXT = harness.text(8_000_000)
REDUCES = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seen:
    """What a moment is judged by."""

    job: mrjobs.MRJob
    pods: list[model.TaskPod]

    def some(self, task_type, *phases):
        return any(pod.task_type == task_type and pod.phase in phases for pod in self.pods)


def maps_done(seen, share):
    return seen.job.maps.total > 0 and seen.job.maps.succeeded >= share * seen.job.maps.total


MOMENTS = {
    "setup task placed": lambda seen: bool(seen.pods),
    "setup task runs": lambda seen: seen.some(TaskType.SETUP, "Running", "Succeeded"),
    "plan accepted": lambda seen: seen.job.maps.total > 0,
    "first maps run": lambda seen: seen.some(TaskType.MAP, "Running", "Succeeded"),
    "half of the maps done": lambda seen: maps_done(seen, 0.5),
    "shuffle": lambda seen: maps_done(seen, 1.0) and seen.job.reduces.succeeded == 0,
    "first reduce done": lambda seen: seen.some(TaskType.REDUCE, "Succeeded"),
    "commit task placed": lambda seen: seen.some(TaskType.COMMIT, "Pending", "Running", "Succeeded"),
}
ALWAYS = ("half of the maps done", "commit task placed")


@pytest.fixture
def job(place):
    place.put("in/a.txt", TEXT)
    replicas.wait_for_both(place.cluster)
    return place.start("harmed", mapper=MAPPER, reducer=REDUCER, numReduceTasks=REDUCES)


def wait_for(place, name, moment):
    def come():
        return MOMENTS[moment](Seen(job=place.look(name), pods=place.pods(name)))

    harness.until(come, f"the moment: {moment}", every_s=0.02)


def check(place, name):
    """The job succeeded as if nothing had happened."""
    job = place.succeed(name)
    assert harness.pairs(place.parts(name)) == harness.counted(TEXT)
    counters = {key: value for group in job.counters.values() for key, value in group.items()}
    assert counters["Map input records"] == TEXT.count(b"\n")
    assert counters["Reduce output records"] == len(harness.counted(TEXT))
    assert (job.maps.succeeded, job.reduces.succeeded) == (job.maps.total, REDUCES)
    return job


def check_no_orphans(place, name):
    """Nothing of the job runs on, and with the job all that was made for it goes."""
    owners = {owner["uid"] for pod in place.raw_pods(name) for owner in pod["metadata"]["ownerReferences"]}
    assert owners == {place.look(name).uid}

    def all_ended():
        return {pod.phase for pod in place.pods(name)} <= {"Succeeded", "Failed"}

    harness.until(all_ended, "all pods have ended")
    place.cluster.run("delete", "mrjob", name, "-n", place.namespace, "--wait")

    def nothing_left():
        left = place.cluster.get("pods,configmaps", "-n", place.namespace)["items"]
        return not [item for item in left if item["metadata"].get("ownerReferences")]

    harness.until(nothing_left, "the job's pods and plans are gone")


def marks(moment):
    """The first moment of ALWAYS is in the short form too."""
    return pytest.mark.long if moment not in ALWAYS else pytest.mark.short if moment == ALWAYS[0] else ()


@pytest.mark.parametrize(
    "moment", [pytest.param(moment, marks=marks(moment), id=moment.replace(" ", "-")) for moment in MOMENTS]
)
def test_a_killed_leader_changes_nothing(place, job, moment, fault_table):
    with faults.recording(place.cluster) as recording:
        wait_for(place, job, moment)
        leader = replicas.leader(place.cluster)
        leader.send(signal.SIGKILL)
        pause_s = replicas.wait_for_successor(place.cluster, leader.epoch)
        done = check(place, job)
        assert recording.over_commits() == []
        fault_table.append(("SIGKILL", moment, pause_s, done, place.pods(job), len(recording.changes())))
    check_no_orphans(place, job)


@pytest.mark.long
def test_a_leader_paused_past_its_lease_changes_nothing_when_it_wakes(place, job, fault_table):
    moment = "half of the maps done"
    with faults.recording(place.cluster) as recording:
        wait_for(place, job, moment)
        leader = replicas.leader(place.cluster)
        leader.send(signal.SIGSTOP)
        pause_s = replicas.wait_for_successor(place.cluster, leader.epoch)
        leader.send(signal.SIGCONT)
        harness.until(lambda: not leader.lives, "the old leader has ended")
        done = check(place, job)
        assert recording.over_commits() == []
        fault_table.append(("SIGSTOP", moment, pause_s, done, place.pods(job), len(recording.changes())))
    check_no_orphans(place, job)
