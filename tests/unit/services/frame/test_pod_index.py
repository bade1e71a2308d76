"""Task pods from two watches that nothing orders."""

import msgspec
import pytest

from boathouse.cluster import store, wire
from boathouse.services.frame.pod_index import PodIndex
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob.attempts import pod_reader
from tests.builders import manifests

UID = "job-1"
KEY = "demo/p"


def pod(revision, phase="Running", uid="u1", owner=UID, api="boathouse.dev/v1alpha1"):
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
    return manifests.TRANSFORM_POD(msgspec.convert(manifest, wire.PodView))


def added(*args, **more):
    return store.Added(key=KEY, new=pod(*args, **more))


def deleted(*args, **more):
    return store.Deleted(key=KEY, old=pod(*args, **more), final=None)


class Index:
    """An index with a clock that the test turns."""

    def __init__(self):
        self.changes, self._checks = [], []
        self.index = PodIndex(pod_reader.task_pod, self.changes.append, lambda _, check: self._checks.append(check))

    def a_moment_later(self):
        checks, self._checks = self._checks, []
        for check in checks:
            check()

    @property
    def states(self):
        return [each.state for each in self.index.of(UID)]


@pytest.fixture
def it():
    return Index()


def test_a_pod_that_ends_stays_known_whichever_watch_tells_first(it):
    it.index.on_pod(added(1))
    it.index.on_pod(deleted(1))
    it.index.on_ended(added(2, "Failed"))
    it.a_moment_later()
    assert it.states == [PodLife.FAILED]


def test_a_pods_end_is_not_undone_by_the_other_watchs_late_news(it):
    it.index.on_ended(added(5, "Failed"))
    it.index.on_pod(added(3))
    it.index.on_pod(deleted(3))
    it.a_moment_later()
    assert it.states == [PodLife.FAILED]


def test_a_pod_that_left_without_an_end_is_gone_after_a_moment(it):
    it.index.on_pod(added(1))
    it.index.on_pod(deleted(1))
    assert it.states == [PodLife.STARTING]
    it.a_moment_later()
    assert it.states == []


def test_a_pod_that_came_back_in_that_moment_is_still_there(it):
    it.index.on_pod(added(1))
    it.index.on_pod(deleted(1))
    it.index.on_pod(added(1))
    it.a_moment_later()
    assert it.states == [PodLife.STARTING]


def test_an_ended_pod_that_is_deleted_is_gone(it):
    it.index.on_ended(added(2, "Failed"))
    it.index.on_ended(deleted(2, "Failed"))
    assert it.states == []


def test_a_pod_that_claims_a_job_that_does_not_own_it_is_not_the_jobs(it):
    it.index.on_pod(added(1, owner="somebody"))
    it.index.on_pod(added(1, api="batch/v1"))
    assert it.states == []


def test_news_of_an_old_pod_of_the_same_name_do_not_touch_the_new_one(it):
    it.index.on_pod(added(5, uid="u2"))
    it.index.on_pod(deleted(4, uid="u1"))
    it.a_moment_later()
    assert len(it.states) == 1


def test_what_changes_nothing_marks_nothing(it):
    it.index.on_pod(added(1))
    it.index.on_pod(store.Modified(key=KEY, old=pod(1), new=pod(2)))
    assert it.changes == [UID]


def test_after_a_restore_of_etcd_an_older_version_of_a_pod_counts(it):
    it.index.on_pod(added(90))
    it.index.on_pod(store.Modified(key=KEY, old=pod(90), new=pod(100, "Failed")))
    it.index.on_pod(store.Modified(key=KEY, old=pod(100, "Failed"), new=pod(50)))
    assert it.states == [PodLife.STARTING]


@pytest.mark.parametrize("first", ["the pod runs", "it has not ended"])
def test_after_a_restore_of_etcd_a_pod_that_had_ended_runs_again(it, first):
    it.index.on_pod(added(50))
    it.index.on_pod(deleted(50))
    it.index.on_ended(added(100, "Failed"))
    it.a_moment_later()
    news = [lambda: it.index.on_pod(added(40)), lambda: it.index.on_ended(deleted(100, "Failed"))]
    for tell in news if first == "the pod runs" else reversed(news):
        tell()
    it.a_moment_later()
    assert it.states == [PodLife.STARTING]


def test_a_pod_that_ended_and_was_deleted_at_once_is_gone_at_once(it):
    it.index.on_pod(added(1))
    it.index.on_pod(deleted(1))
    it.index.on_ended(added(2, "Failed"))
    it.index.on_ended(deleted(2, "Failed"))
    assert it.states == []


def test_the_object_of_a_pod_is_known_until_the_pod_is_gone(it):
    it.index.on_pod(added(1, uid="u1"))
    it.index.on_pod(added(2, uid="u2"))  # another one of the name
    assert [it.index.object_of(uid) for uid in ("u1", "u2")] == [None, UID]
    it.index.on_pod(deleted(2, uid="u2"))
    it.a_moment_later()
    assert it.index.object_of("u2") is None
    assert [*it.index] == []
