"""The newest versions of the objects of a kind."""

import dataclasses

import pytest

from boathouse.cluster import boundary
from boathouse.services.frame.admission import Admission
from boathouse.services.frame.object_store import ObjectStore
from tests.unit.services.frame.kinds import KIND, body, unfinished


@pytest.fixture
def marked():
    return []


@pytest.fixture
def jobs(marked):
    return ObjectStore(KIND, marked.append)


def test_a_newer_version_is_kept_and_marks_the_job(jobs, marked):
    jobs.on_object(body(9))
    jobs.on_object(body(10))
    assert jobs.get("demo/wc") == body(10)
    assert marked == ["demo/wc"] * 2


def test_only_short_annotations_that_the_kind_reads_are_kept(marked):
    kind = dataclasses.replace(KIND, annotations=frozenset({"a", "b", "c"}))
    jobs, seen = ObjectStore(kind, marked.append), body(9)
    seen["metadata"]["annotations"] = {"a": "1", "b": "x" * 128, "d": "2"}
    jobs.on_object(seen)
    assert jobs.get("demo/wc")["metadata"]["annotations"] == {"a": "1"}


def test_an_older_version_changes_nothing(jobs, marked):
    jobs.on_object(body(10))
    jobs.on_object(body(9))
    assert jobs.get("demo/wc") == body(10)
    assert marked == ["demo/wc"]


def test_the_answer_to_our_own_write_marks_nothing(jobs, marked):
    jobs.put(body(10))
    jobs.on_object(body(10))
    assert marked == []


def test_a_job_is_found_by_its_uid_until_it_is_gone(jobs):
    jobs.on_object(body(1))
    assert jobs.key("u1") == "demo/wc"
    jobs.on_deleted(body(1))
    assert (jobs.key("u1"), jobs.get("demo/wc")) == (None, None)


def test_a_late_word_of_a_former_jobs_deletion_does_not_touch_its_successor(jobs):
    jobs.on_object(body(1, uid="u1"))
    jobs.on_object(body(5, uid="u2"))
    jobs.on_deleted(body(2, uid="u1"))
    assert (jobs.key("u1"), jobs.key("u2")) == (None, "demo/wc")


def test_what_comes_late_does_not_bring_a_deleted_job_back(jobs, marked):
    jobs.on_object(body(1))
    jobs.on_deleted(body(3))
    assert not jobs.put(body(2))  # the answer to a write of ours
    jobs.on_object(body(2))  # a list that was begun before
    assert (jobs.get("demo/wc"), jobs.key("u1"), len(marked)) == (None, None, 2)


def test_a_job_that_was_deleted_before_it_was_seen_is_not_taken_in_either(jobs):
    jobs.on_deleted(body(3))
    jobs.on_object(body(2))
    assert jobs.get("demo/wc") is None


def test_what_a_tenant_may_write_without_bounds_is_not_kept(jobs):
    sent = body(1)
    sent["metadata"] |= {"annotations": {"a": "x" * 200_000}, "labels": {"l": "x"}, "managedFields": [{}] * 100}
    jobs.on_object({**sent, "spec": {"input": []}, "status": {"phase": "Map"}})
    assert jobs.get("demo/wc") == {**body(1), "spec": {"input": []}, "status": {"phase": "Map"}}


def test_a_read_that_began_later_may_show_an_older_version_because_etcd_was_restored(jobs, marked):
    jobs.on_object(body(100))
    jobs.on_object(body(40), began=jobs.begin())
    assert (jobs.get("demo/wc"), jobs.key("u1"), marked) == (body(40), "demo/wc", ["demo/wc"] * 2)
    jobs.on_object(body(41))
    assert jobs.get("demo/wc") == body(41)


def test_a_read_that_began_earlier_does_not_undo_what_came_meanwhile(jobs):
    began = jobs.begin()
    jobs.on_object(body(100))
    jobs.on_object(body(40), began=began)
    assert jobs.get("demo/wc") == body(100)


def test_a_job_that_was_deleted_is_back_after_a_restore_of_etcd(jobs):
    jobs.on_object(body(50))
    before = jobs.begin()
    jobs.on_deleted(body(60))
    jobs.on_object(body(50), began=before)
    assert jobs.get("demo/wc") is None
    jobs.on_object(body(50), began=jobs.begin())
    assert jobs.get("demo/wc") == body(50)


def test_of_a_namespaces_unfinished_jobs_the_first_are_admitted_and_the_next_when_one_ends(marked):
    jobs = ObjectStore(KIND, marked.append, Admission(limit=2))
    for name in ("c", "b", "a"):
        jobs.on_object(unfinished(name, created=f"2026-01-01T00:00:0{ord(name) - 96}Z"))
    assert [jobs.admits(f"demo/{name}") for name in "abc"] == [True, True, False]
    marked.clear()
    jobs.put(unfinished("a", 2, created="2026-01-01T00:00:01Z", phase="Succeeded"))
    assert (jobs.admits("demo/c"), marked) == (True, ["demo/c"])


def test_the_next_job_is_admitted_when_one_is_deleted(marked):
    jobs = ObjectStore(KIND, marked.append, Admission(limit=1))
    for name in ("a", "b"):
        jobs.on_object(unfinished(name))
    marked.clear()
    jobs.on_deleted(unfinished("a"))
    assert (jobs.admits("demo/b"), sorted(marked)) == (True, ["demo/a", "demo/b"])


def test_a_suspended_job_does_not_count_and_when_it_is_resumed_it_has_its_place_by_creation(marked):
    jobs = ObjectStore(KIND, marked.append, Admission(limit=1))
    jobs.on_object(unfinished("a") | {"spec": {"suspend": True}})
    jobs.on_object(unfinished("b") | {"spec": {}})
    assert [jobs.admits(f"demo/{name}") for name in "ab"] == [True, True]
    jobs.on_object(unfinished("b", 2) | {"spec": {"suspend": True}})
    jobs.on_object(unfinished("a", 2, phase="Suspended", plan={"splits": 1}) | {"spec": {}})
    jobs.on_object(unfinished("b", 3, phase="Suspended", plan={"splits": 1}) | {"spec": {}})
    assert [jobs.admits(f"demo/{name}") for name in "ab"] == [True, False]


def test_a_job_that_runs_goes_on_though_an_earlier_one_appears(marked):
    jobs = ObjectStore(KIND, marked.append, Admission(limit=1))
    jobs.on_object(unfinished("b", startTime="2026-01-01T00:00:00Z"))
    jobs.on_object(unfinished("a"))
    assert jobs.admits("demo/b")


def test_one_namespaces_jobs_do_not_count_in_another(marked):
    jobs = ObjectStore(KIND, marked.append, Admission(limit=1))
    jobs.on_object(unfinished("a"))
    other = unfinished("b")
    jobs.on_object({**other, "metadata": other["metadata"] | {"namespace": "other"}})
    assert jobs.admits("other/b")


def large(name, size, **status):
    return unfinished(name, **status) | {"spec": {"output": "x" * size}}


def test_of_a_namespaces_jobs_as_many_are_admitted_as_their_specs_fit_into_a_size(marked):
    jobs = ObjectStore(KIND, marked.append, Admission(limit=100, limit_bytes=1000))
    for name in "abc":
        jobs.on_object(large(name, 400))
    assert [jobs.admits(f"demo/{name}") for name in "abc"] == [True, True, False]
    marked.clear()
    jobs.on_deleted(large("a", 400))
    assert (jobs.admits("demo/c"), "demo/c" in marked) == (True, True)


def test_the_spec_of_a_job_that_is_not_admitted_is_not_kept_until_it_is_read_again(marked):
    jobs = ObjectStore(KIND, marked.append, Admission(limit=1))
    jobs.on_object(large("a", 400))
    jobs.on_object(large("b", 400))
    assert ["spec" in jobs.get(f"demo/{name}") for name in "ab"] == [True, False]
    jobs.on_deleted(large("a", 400))
    assert jobs.put(large("b", 400), began=jobs.begin())
    assert "spec" in jobs.get("demo/b")


def test_of_a_job_that_has_ended_a_large_spec_is_not_kept(marked):
    jobs = ObjectStore(KIND, marked.append, Admission(limit=1))
    jobs.on_object(large("a", 400, phase="Failed"))
    jobs.on_object(large("b", 40_000, phase="Failed"))
    assert ["spec" in jobs.get(f"demo/{name}") for name in "ab"] == [True, False]


def test_an_object_that_cannot_be_kept_is_set_aside_and_reported(marked):
    aside = boundary.Boundary()
    objects = ObjectStore(KIND, marked.append, aside=aside)
    objects.on_object(body(1))
    objects.on_object(body("x"))
    objects.on_object(body(2, uid="u2", name="other"))
    assert aside.counts == {("Boat", boundary.Reason.STORING): 1}
    assert marked == ["demo/wc", "demo/other"]
