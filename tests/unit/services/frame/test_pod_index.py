"""Task pods from two watches that nothing orders."""

import pytest

from boathouse.cluster import store
from boathouse.services.frame.pod_index import PodIndex
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob import attempt_pods
from tests.builders.observed_pods import observed_pod

UID = "job-1"
KEY = "demo/p"


def task_pod(revision, phase="Running", uid="u1", owner=UID, api="boathouse.dev/v1alpha1"):
    manifest = {
        "metadata": {
            "name": "p",
            "namespace": "demo",
            "uid": uid,
            "resourceVersion": str(revision),
            "labels": {
                "boathouse.dev/job-uid": UID,
                "boathouse.dev/task-type": "map",
                "boathouse.dev/task-index": "0",
                "boathouse.dev/attempt": "1",
            },
            "ownerReferences": [{"apiVersion": api, "kind": "MRJob", "uid": owner, "controller": True}],
        },
        "spec": {"nodeName": "n1"},
        "status": {"phase": phase},
    }
    return observed_pod(manifest)


def added(*args, **more):
    return store.Added(key=KEY, new=task_pod(*args, **more))


def deleted(*args, **more):
    return store.Deleted(key=KEY, old=task_pod(*args, **more), final=None)


class Index:
    """An index whose delayed checks the test runs."""

    def __init__(self):
        self.changes, self.checks, self.gone = [], [], []
        self.index = PodIndex(
            attempt_pods.task_pod,
            self.changes.append,
            lambda _, check: self.checks.append(check),
            on_gone=lambda pod: self.gone.append(pod.uid),
        )

    def run_checks(self):
        checks, self.checks = self.checks, []
        for check in checks:
            check()

    @property
    def states(self):
        return [pod.state for pod in self.index.of(UID)]


@pytest.fixture
def pods():
    return Index()


def test_a_pod_that_ends_is_kept_whichever_watch_reports_first(pods):
    pods.index.on_pod(added(1))
    pods.index.on_pod(deleted(1))
    pods.index.on_ended(added(2, "Failed"))
    pods.run_checks()
    assert pods.states == [PodLife.FAILED]


def test_a_pods_end_is_not_undone_by_late_events_of_the_other_watch(pods):
    pods.index.on_ended(added(5, "Failed"))
    pods.index.on_pod(added(3))
    pods.index.on_pod(deleted(3))
    pods.run_checks()
    assert pods.states == [PodLife.FAILED]


def test_a_pod_that_was_deleted_without_an_end_is_gone_after_a_delay(pods):
    pods.index.on_pod(added(1))
    pods.index.on_pod(deleted(1))
    assert pods.states == [PodLife.STARTING]
    pods.run_checks()
    assert pods.states == []


def test_a_pod_that_is_created_again_within_the_delay_is_kept(pods):
    pods.index.on_pod(added(1))
    pods.index.on_pod(deleted(1))
    pods.index.on_pod(added(1))
    pods.run_checks()
    assert pods.states == [PodLife.STARTING]


def test_an_ended_pod_that_is_deleted_is_gone(pods):
    pods.index.on_ended(added(2, "Failed"))
    pods.index.on_ended(deleted(2, "Failed"))
    assert pods.states == []


def test_a_pod_that_claims_a_job_that_does_not_own_it_is_not_the_jobs(pods):
    pods.index.on_pod(added(1, owner="somebody"))
    pods.index.on_pod(added(1, api="batch/v1"))
    assert pods.states == []


def test_events_of_an_old_pod_of_the_same_name_do_not_affect_the_new_one(pods):
    pods.index.on_pod(added(5, uid="u2"))
    pods.index.on_pod(deleted(4, uid="u1"))
    pods.run_checks()
    assert len(pods.states) == 1


def test_an_event_without_a_change_marks_nothing(pods):
    pods.index.on_pod(added(1))
    pods.index.on_pod(store.Modified(key=KEY, old=task_pod(1), new=task_pod(2)))
    assert pods.changes == [UID]


def test_after_a_restore_of_etcd_an_older_version_of_a_pod_counts(pods):
    pods.index.on_pod(added(90))
    pods.index.on_pod(store.Modified(key=KEY, old=task_pod(90), new=task_pod(100, "Failed")))
    pods.index.on_pod(store.Modified(key=KEY, old=task_pod(100, "Failed"), new=task_pod(50)))
    assert pods.states == [PodLife.STARTING]


@pytest.mark.parametrize("first", ["the pod runs", "it has not ended"])
def test_after_a_restore_of_etcd_a_pod_that_had_ended_runs_again(pods, first):
    pods.index.on_pod(added(50))
    pods.index.on_pod(deleted(50))
    pods.index.on_ended(added(100, "Failed"))
    pods.run_checks()
    events = [lambda: pods.index.on_pod(added(40)), lambda: pods.index.on_ended(deleted(100, "Failed"))]
    for report in events if first == "the pod runs" else reversed(events):
        report()
    pods.run_checks()
    assert pods.states == [PodLife.STARTING]


def test_a_pod_that_ended_and_was_deleted_at_once_is_gone_at_once(pods):
    pods.index.on_pod(added(1))
    pods.index.on_pod(deleted(1))
    pods.index.on_ended(added(2, "Failed"))
    pods.index.on_ended(deleted(2, "Failed"))
    assert pods.states == []


def test_the_object_of_a_pod_is_known_until_the_pod_is_gone(pods):
    pods.index.on_pod(added(1, uid="u1"))
    pods.index.on_pod(added(2, uid="u2"))  # another one of the name
    assert [pods.index.object_of(uid) for uid in ("u1", "u2")] == [None, UID]
    pods.index.on_pod(deleted(2, uid="u2"))
    pods.run_checks()
    assert pods.index.object_of("u2") is None
    assert [*pods.index] == []
    assert pods.gone == ["u1", "u2"]


@pytest.mark.parametrize(("node", "reconciled"), [("n1", [UID]), ("n2", [])], ids=["its node", "another"])
def test_an_object_is_reconciled_when_the_node_of_one_of_its_pods_is_removed(node, reconciled):
    found = Index()
    found.index.on_pod(added(1))
    found.changes.clear()
    found.index.on_node(store.Deleted(key=node, old=None, final=None))
    assert found.changes == reconciled
