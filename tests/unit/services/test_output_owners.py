"""What the leader says of the job that an ownership mark names."""

import dataclasses

import pytest

from boathouse.services.frame import object_store
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob import output_owners
from boathouse.services.mrjob.attempts.attempt_pod import AttemptPod
from boathouse.services.mrjob.kind import MRJOB
from boathouse_task.contract import OwnerState, TaskType

UID = "0f52a1b3-0000-4000-8000-000000000000"


class World:
    """A leader that has listed all MRJobs, with the job running and nothing else."""

    def __init__(self) -> None:
        self.jobs = object_store.ObjectStore(MRJOB, lambda _: None)
        self.pods: list[AttemptPod] = []
        self.writing, self.is_listed = [], True
        self.owners = output_owners.Owners(
            jobs=self.jobs, pods=self, scheduler=self, cluster="c", namespaces=(), listed=lambda: self.is_listed
        )

    def of(self, uid):
        return self.pods if uid == UID else []

    def may_create(self, job_id):
        return job_id in self.writing

    def put(self, phase, **metadata):
        meta = {"name": "wc", "namespace": "demo", "uid": UID, "resourceVersion": "1", **metadata}
        self.jobs.on_object({"metadata": meta, "status": {"phase": phase} if phase else {}})

    def state(self, namespace="demo", cluster="c"):
        return self.owners.state(UID, namespace=namespace, cluster=cluster).state


@pytest.fixture
def world():
    return World()


def pod(state):
    return AttemptPod(
        name="p", uid="u", task_type=TaskType.COMMIT, index=0, attempt=1, state=state, placed_s=0.0, node="n1"
    )


@pytest.mark.parametrize("phase", [None, "Pending", "Suspended", "Setup", "Map", "Reduce", "Commit"])
def test_a_job_that_has_not_ended_is_active(world, phase):
    world.put(phase)
    assert world.state() is OwnerState.ACTIVE


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_job_that_has_ended_has_ended_when_its_pods_have(world, phase):
    world.put(phase)
    world.pods = [pod(PodLife.SUCCEEDED), pod(PodLife.FAILED)]
    assert world.state() is OwnerState.ENDED


@pytest.mark.parametrize("state", [PodLife.UNPLACED, PodLife.STARTING, PodLife.RUNNING])
def test_while_a_pod_lives_nothing_is_confirmed(world, state):
    world.pods = [pod(state)]
    for phase in ("Failed", "Map"):
        world.put(phase, resourceVersion="2")
    world.jobs.on_deleted({"metadata": {"name": "wc", "namespace": "demo", "uid": UID}})
    assert world.state() is OwnerState.UNKNOWN


def test_a_pod_that_may_still_come_counts(world):
    world.writing = [UID]
    assert world.state() is OwnerState.UNKNOWN
    world.writing = ["99999999-0000-4000-8000-000000000000"]
    assert world.state() is OwnerState.ENDED


def test_a_job_that_is_being_deleted_starts_nothing_more(world):
    world.put("Map", deletionTimestamp="2026-01-01T00:00:00Z")
    assert world.state() is OwnerState.ENDED


def test_an_unknown_job_is_gone_only_after_all_were_listed(world):
    world.is_listed = False
    assert world.state() is OwnerState.UNKNOWN
    world.is_listed = True
    assert world.state() is OwnerState.ENDED


def test_what_lies_outside_is_never_confirmed(world):
    assert world.state(cluster="another") is OwnerState.OUTSIDE
    assert world.state(cluster="") is OwnerState.OUTSIDE
    world.owners = dataclasses.replace(world.owners, namespaces=("prod",))
    assert world.state() is OwnerState.OUTSIDE
    assert world.state(namespace="prod") is OwnerState.ENDED
    world.owners = dataclasses.replace(world.owners, cluster="", namespaces=())
    assert world.state(cluster="") is OwnerState.OUTSIDE


def test_a_known_job_is_known_whatever_the_mark_says_of_it(world):
    world.put("Map")
    assert world.state(namespace="elsewhere", cluster="another") is OwnerState.ACTIVE
