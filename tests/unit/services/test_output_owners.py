"""The state of the job that an ownership mark names, as the leader answers it."""

import dataclasses

import pytest

from boathouse.services.frame import object_store
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob import routes
from boathouse.services.mrjob.kind import MRJOB
from boathouse_task.contract import OwnerState
from tests.builders import mrjobs


class Ownership:
    """The answers of a leader that has listed all MRJobs about one of them."""

    def __init__(self) -> None:
        self.jobs = object_store.ObjectStore(MRJOB, lambda _: None)
        self.pods = []
        self.writing, self.is_listed = [], True
        self.owners = routes.Owners(
            jobs=self.jobs, pods=self, scheduler=self, cluster="c", namespaces=(), listed=lambda: self.is_listed
        )

    def of(self, uid):
        return self.pods if uid == mrjobs.UID else []

    def may_create(self, job_id):
        return job_id in self.writing

    def put(self, phase, **metadata):
        self.jobs.on_object(mrjobs.mrjob(metadata=metadata, status={"phase": phase} if phase else {}))

    def state(self, namespace="demo", cluster="c"):
        return self.owners.state(mrjobs.UID, namespace=namespace, cluster=cluster).state


@pytest.fixture
def ownership():
    return Ownership()


@pytest.mark.parametrize("phase", [None, "Pending", "Suspended", "Setup", "Map", "Reduce", "Commit"])
def test_a_job_that_has_not_ended_is_active(ownership, phase):
    ownership.put(phase)
    assert ownership.state() is OwnerState.ACTIVE


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_job_that_has_ended_has_ended_when_its_pods_have(ownership, phase):
    ownership.put(phase)
    ownership.pods = [mrjobs.attempt_pod("commit", state=state) for state in (PodLife.SUCCEEDED, PodLife.FAILED)]
    assert ownership.state() is OwnerState.ENDED


@pytest.mark.parametrize("state", [PodLife.UNPLACED, PodLife.STARTING, PodLife.RUNNING])
def test_while_a_pod_lives_nothing_is_confirmed(ownership, state):
    ownership.pods = [mrjobs.attempt_pod("commit", state=state)]
    for phase in ("Failed", "Map"):
        ownership.put(phase, resourceVersion="2")
    ownership.jobs.on_deleted(mrjobs.mrjob())
    assert ownership.state() is OwnerState.UNKNOWN


def test_a_pod_that_may_still_be_created_counts(ownership):
    ownership.writing = [mrjobs.UID]
    assert ownership.state() is OwnerState.UNKNOWN
    ownership.writing = ["99999999-0000-4000-8000-000000000000"]
    assert ownership.state() is OwnerState.ENDED


def test_a_job_that_is_being_deleted_starts_nothing_more(ownership):
    ownership.put("Map", deletionTimestamp="2026-01-01T00:00:00Z")
    assert ownership.state() is OwnerState.ENDED


def test_an_unknown_job_is_gone_only_after_all_were_listed(ownership):
    ownership.is_listed = False
    assert ownership.state() is OwnerState.UNKNOWN
    ownership.is_listed = True
    assert ownership.state() is OwnerState.ENDED


def test_a_job_outside_of_the_cluster_or_the_namespaces_is_never_confirmed(ownership):
    assert ownership.state(cluster="another") is OwnerState.OUTSIDE
    assert ownership.state(cluster="") is OwnerState.OUTSIDE
    ownership.owners = dataclasses.replace(ownership.owners, namespaces=("prod",))
    assert ownership.state() is OwnerState.OUTSIDE
    assert ownership.state(namespace="prod") is OwnerState.ENDED
    ownership.owners = dataclasses.replace(ownership.owners, cluster="", namespaces=())
    assert ownership.state(cluster="") is OwnerState.OUTSIDE


def test_an_observed_job_is_active_whatever_the_mark_says_of_it(ownership):
    ownership.put("Map")
    assert ownership.state(namespace="elsewhere", cluster="another") is OwnerState.ACTIVE
