"""The newest versions of the objects of a kind."""

import dataclasses

import pytest

from boathouse.cluster import boundary
from boathouse.services.frame.admission import Admission
from boathouse.services.frame.object_store import ObjectStore
from tests.builders.frame import BOAT, boat, unfinished_boat


@pytest.fixture
def marked():
    return []


@pytest.fixture
def jobs(marked):
    return ObjectStore(BOAT, marked.append)


def test_a_newer_version_is_kept_and_marks_the_job(jobs, marked):
    jobs.on_object(boat(9))
    jobs.on_object(boat(10))
    assert jobs.get("demo/wc") == boat(10)
    assert marked == ["demo/wc"] * 2


def test_only_short_annotations_that_the_kind_reads_are_kept(marked):
    kind = dataclasses.replace(BOAT, annotations=frozenset({"a", "b", "c"}))
    jobs = ObjectStore(kind, marked.append)
    jobs.on_object(boat(9, annotations={"a": "1", "b": "x" * 128, "d": "2"}))
    assert jobs.get("demo/wc")["metadata"]["annotations"] == {"a": "1"}


def test_an_older_version_changes_nothing(jobs, marked):
    jobs.on_object(boat(10))
    jobs.on_object(boat(9))
    assert jobs.get("demo/wc") == boat(10)
    assert marked == ["demo/wc"]


def test_the_response_to_a_write_of_the_operator_marks_nothing(jobs, marked):
    jobs.put(boat(10))
    jobs.on_object(boat(10))
    assert marked == []


def test_a_job_is_found_by_its_uid_until_it_is_gone(jobs):
    jobs.on_object(boat(1))
    assert jobs.key("u1") == "demo/wc"
    jobs.on_deleted(boat(1))
    assert (jobs.key("u1"), jobs.get("demo/wc")) == (None, None)


def test_a_late_deletion_event_of_a_former_job_does_not_affect_its_successor(jobs):
    jobs.on_object(boat(1, uid="u1"))
    jobs.on_object(boat(5, uid="u2"))
    jobs.on_deleted(boat(2, uid="u1"))
    assert (jobs.key("u1"), jobs.key("u2")) == (None, "demo/wc")


def test_late_events_do_not_restore_a_deleted_job(jobs, marked):
    jobs.on_object(boat(1))
    jobs.on_deleted(boat(3))
    assert not jobs.put(boat(2))  # the response to a write of the operator
    jobs.on_object(boat(2))  # a list that was begun before
    assert (jobs.get("demo/wc"), jobs.key("u1"), len(marked)) == (None, None, 2)


def test_a_job_that_was_deleted_before_it_was_observed_is_not_stored(jobs):
    jobs.on_deleted(boat(3))
    jobs.on_object(boat(2))
    assert jobs.get("demo/wc") is None


def test_fields_that_a_tenant_may_write_without_bounds_are_not_kept(jobs):
    sent = boat(1, annotations={"a": "x" * 200_000}, labels={"l": "x"}, managedFields=[{}] * 100)
    jobs.on_object({**sent, "spec": {"input": []}, "status": {"phase": "Map"}})
    assert jobs.get("demo/wc") == {**boat(1), "spec": {"input": []}, "status": {"phase": "Map"}}


def test_a_read_that_began_later_may_show_an_older_version_because_etcd_was_restored(jobs, marked):
    jobs.on_object(boat(100))
    jobs.on_object(boat(40), began=jobs.begin())
    assert (jobs.get("demo/wc"), jobs.key("u1"), marked) == (boat(40), "demo/wc", ["demo/wc"] * 2)
    jobs.on_object(boat(41))
    assert jobs.get("demo/wc") == boat(41)


def test_a_read_that_began_earlier_does_not_undo_later_events(jobs):
    began = jobs.begin()
    jobs.on_object(boat(100))
    jobs.on_object(boat(40), began=began)
    assert jobs.get("demo/wc") == boat(100)


def test_a_job_that_was_deleted_is_back_after_a_restore_of_etcd(jobs):
    jobs.on_object(boat(50))
    before = jobs.begin()
    jobs.on_deleted(boat(60))
    jobs.on_object(boat(50), began=before)
    assert jobs.get("demo/wc") is None
    jobs.on_object(boat(50), began=jobs.begin())
    assert jobs.get("demo/wc") == boat(50)


def test_of_a_namespaces_unfinished_jobs_the_first_are_admitted_and_the_next_when_one_ends(marked):
    jobs = ObjectStore(BOAT, marked.append, Admission(limit=2))
    for name in ("c", "b", "a"):
        jobs.on_object(unfinished_boat(name, created=f"2026-01-01T00:00:0{ord(name) - 96}Z"))
    assert [jobs.admits(f"demo/{name}") for name in "abc"] == [True, True, False]
    marked.clear()
    jobs.put(unfinished_boat("a", 2, created="2026-01-01T00:00:01Z", phase="Succeeded"))
    assert (jobs.admits("demo/c"), marked) == (True, ["demo/c"])


def test_the_next_job_is_admitted_when_one_is_deleted(marked):
    jobs = ObjectStore(BOAT, marked.append, Admission(limit=1))
    for name in ("a", "b"):
        jobs.on_object(unfinished_boat(name))
    marked.clear()
    jobs.on_deleted(unfinished_boat("a"))
    assert (jobs.admits("demo/b"), sorted(marked)) == (True, ["demo/a", "demo/b"])


def test_a_suspended_job_does_not_count_and_when_it_is_resumed_it_has_its_place_by_creation(marked):
    jobs = ObjectStore(BOAT, marked.append, Admission(limit=1))
    jobs.on_object(unfinished_boat("a") | {"spec": {"suspend": True}})
    jobs.on_object(unfinished_boat("b") | {"spec": {}})
    assert [jobs.admits(f"demo/{name}") for name in "ab"] == [True, True]
    jobs.on_object(unfinished_boat("b", 2) | {"spec": {"suspend": True}})
    jobs.on_object(unfinished_boat("a", 2, phase="Suspended", plan={"splits": 1}) | {"spec": {}})
    jobs.on_object(unfinished_boat("b", 3, phase="Suspended", plan={"splits": 1}) | {"spec": {}})
    assert [jobs.admits(f"demo/{name}") for name in "ab"] == [True, False]


def test_a_job_that_runs_continues_though_an_earlier_one_appears(marked):
    jobs = ObjectStore(BOAT, marked.append, Admission(limit=1))
    jobs.on_object(unfinished_boat("b", startTime="2026-01-01T00:00:00Z"))
    jobs.on_object(unfinished_boat("a"))
    assert jobs.admits("demo/b")


def test_one_namespaces_jobs_do_not_count_in_another(marked):
    jobs = ObjectStore(BOAT, marked.append, Admission(limit=1))
    jobs.on_object(unfinished_boat("a"))
    jobs.on_object(boat(name="b", uid="uid-b", namespace="other"))
    assert jobs.admits("other/b")


def large_boat(name, size, **status):
    return unfinished_boat(name, **status) | {"spec": {"output": "x" * size}}


def test_of_a_namespaces_jobs_as_many_are_admitted_as_their_specs_fit_into_a_size(marked):
    jobs = ObjectStore(BOAT, marked.append, Admission(limit=100, limit_bytes=1000))
    for name in "abc":
        jobs.on_object(large_boat(name, 400))
    assert [jobs.admits(f"demo/{name}") for name in "abc"] == [True, True, False]
    marked.clear()
    jobs.on_deleted(large_boat("a", 400))
    assert (jobs.admits("demo/c"), "demo/c" in marked) == (True, True)


def test_the_spec_of_a_job_that_is_not_admitted_is_not_kept_until_it_is_read_again(marked):
    jobs = ObjectStore(BOAT, marked.append, Admission(limit=1))
    jobs.on_object(large_boat("a", 400))
    jobs.on_object(large_boat("b", 400))
    assert ["spec" in jobs.get(f"demo/{name}") for name in "ab"] == [True, False]
    jobs.on_deleted(large_boat("a", 400))
    assert jobs.put(large_boat("b", 400), began=jobs.begin())
    assert "spec" in jobs.get("demo/b")


def test_of_a_job_that_has_ended_a_large_spec_is_not_kept(marked):
    jobs = ObjectStore(BOAT, marked.append, Admission(limit=1))
    jobs.on_object(large_boat("a", 400, phase="Failed"))
    jobs.on_object(large_boat("b", 40_000, phase="Failed"))
    assert ["spec" in jobs.get(f"demo/{name}") for name in "ab"] == [True, False]


def test_an_object_that_cannot_be_kept_is_set_aside_and_reported(marked):
    aside = boundary.Boundary()
    objects = ObjectStore(BOAT, marked.append, aside=aside)
    objects.on_object(boat(1))
    objects.on_object(boat("x"))
    objects.on_object(boat(2, uid="u2", name="other"))
    assert aside.counts == {("Boat", boundary.Reason.STORING): 1}
    assert marked == ["demo/wc", "demo/other"]
