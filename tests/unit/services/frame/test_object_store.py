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
def boats(marked):
    return ObjectStore(BOAT, marked.append)


def test_a_newer_version_is_kept_and_marks_the_job(boats, marked):
    boats.on_object(boat(9))
    boats.on_object(boat(10))
    assert boats.get("demo/wc") == boat(10)
    assert marked == ["demo/wc"] * 2


def test_only_short_annotations_that_the_kind_reads_are_kept(marked):
    kind = dataclasses.replace(BOAT, annotations=frozenset({"a", "b", "c"}))
    boats = ObjectStore(kind, marked.append)
    boats.on_object(boat(9, annotations={"a": "1", "b": "x" * 128, "d": "2"}))
    assert boats.get("demo/wc")["metadata"]["annotations"] == {"a": "1"}


def test_an_older_version_changes_nothing(boats, marked):
    boats.on_object(boat(10))
    boats.on_object(boat(9))
    assert boats.get("demo/wc") == boat(10)
    assert marked == ["demo/wc"]


def test_the_response_to_a_write_of_the_operator_marks_nothing(boats, marked):
    boats.put(boat(10))
    boats.on_object(boat(10))
    assert marked == []


def test_a_job_is_found_by_its_uid_until_it_is_gone(boats):
    boats.on_object(boat(1))
    assert boats.key("u1") == "demo/wc"
    boats.on_deleted(boat(1))
    assert (boats.key("u1"), boats.get("demo/wc")) == (None, None)


def test_a_late_deletion_event_of_a_former_job_does_not_affect_its_successor(boats):
    boats.on_object(boat(1, uid="u1"))
    boats.on_object(boat(5, uid="u2"))
    boats.on_deleted(boat(2, uid="u1"))
    assert (boats.key("u1"), boats.key("u2")) == (None, "demo/wc")


def test_late_events_do_not_restore_a_deleted_job(boats, marked):
    boats.on_object(boat(1))
    boats.on_deleted(boat(3))
    assert not boats.put(boat(2))  # the response to a write of the operator
    boats.on_object(boat(2))  # a list that was begun before
    assert (boats.get("demo/wc"), boats.key("u1"), len(marked)) == (None, None, 2)


def test_a_job_that_was_deleted_before_it_was_observed_is_not_stored(boats):
    boats.on_deleted(boat(3))
    boats.on_object(boat(2))
    assert boats.get("demo/wc") is None


def test_fields_that_a_tenant_may_write_without_bounds_are_not_kept(boats):
    sent = boat(1, annotations={"a": "x" * 200_000}, labels={"l": "x"}, managedFields=[{}] * 100)
    boats.on_object({**sent, "spec": {"input": []}, "status": {"phase": "Map"}})
    assert boats.get("demo/wc") == {**boat(1), "spec": {"input": []}, "status": {"phase": "Map"}}


def test_a_read_that_began_later_may_show_an_older_version_because_etcd_was_restored(boats, marked):
    boats.on_object(boat(100))
    boats.on_object(boat(40), began=boats.begin())
    assert (boats.get("demo/wc"), boats.key("u1"), marked) == (boat(40), "demo/wc", ["demo/wc"] * 2)
    boats.on_object(boat(41))
    assert boats.get("demo/wc") == boat(41)


def test_a_read_that_began_earlier_does_not_undo_later_events(boats):
    began = boats.begin()
    boats.on_object(boat(100))
    boats.on_object(boat(40), began=began)
    assert boats.get("demo/wc") == boat(100)


def test_a_job_that_was_deleted_is_back_after_a_restore_of_etcd(boats):
    boats.on_object(boat(50))
    before = boats.begin()
    boats.on_deleted(boat(60))
    boats.on_object(boat(50), began=before)
    assert boats.get("demo/wc") is None
    boats.on_object(boat(50), began=boats.begin())
    assert boats.get("demo/wc") == boat(50)


def test_of_a_namespaces_unfinished_jobs_the_first_are_admitted_and_the_next_when_one_ends(marked):
    boats = ObjectStore(BOAT, marked.append, Admission(limit=2))
    for name in ("c", "b", "a"):
        boats.on_object(unfinished_boat(name, created=f"2026-01-01T00:00:0{ord(name) - 96}Z"))
    assert [boats.admits(f"demo/{name}") for name in "abc"] == [True, True, False]
    marked.clear()
    boats.put(unfinished_boat("a", 2, created="2026-01-01T00:00:01Z", phase="Succeeded"))
    assert (boats.admits("demo/c"), marked) == (True, ["demo/c"])


def test_the_next_job_is_admitted_when_one_is_deleted(marked):
    boats = ObjectStore(BOAT, marked.append, Admission(limit=1))
    for name in ("a", "b"):
        boats.on_object(unfinished_boat(name))
    marked.clear()
    boats.on_deleted(unfinished_boat("a"))
    assert (boats.admits("demo/b"), sorted(marked)) == (True, ["demo/a", "demo/b"])


def test_a_suspended_job_does_not_count_and_when_it_is_resumed_it_has_its_place_by_creation(marked):
    boats = ObjectStore(BOAT, marked.append, Admission(limit=1))
    boats.on_object(unfinished_boat("a") | {"spec": {"suspend": True}})
    boats.on_object(unfinished_boat("b") | {"spec": {}})
    assert [boats.admits(f"demo/{name}") for name in "ab"] == [True, True]
    boats.on_object(unfinished_boat("b", 2) | {"spec": {"suspend": True}})
    boats.on_object(unfinished_boat("a", 2, phase="Suspended", plan={"splits": 1}) | {"spec": {}})
    boats.on_object(unfinished_boat("b", 3, phase="Suspended", plan={"splits": 1}) | {"spec": {}})
    assert [boats.admits(f"demo/{name}") for name in "ab"] == [True, False]


def test_a_job_that_runs_continues_though_an_earlier_one_appears(marked):
    boats = ObjectStore(BOAT, marked.append, Admission(limit=1))
    boats.on_object(unfinished_boat("b", startTime="2026-01-01T00:00:00Z"))
    boats.on_object(unfinished_boat("a"))
    assert boats.admits("demo/b")


def test_one_namespaces_jobs_do_not_count_in_another(marked):
    boats = ObjectStore(BOAT, marked.append, Admission(limit=1))
    boats.on_object(unfinished_boat("a"))
    boats.on_object(boat(name="b", uid="uid-b", namespace="other"))
    assert boats.admits("other/b")


def large_boat(name, size, **status):
    return unfinished_boat(name, **status) | {"spec": {"output": "x" * size}}


def test_of_a_namespaces_jobs_as_many_are_admitted_as_their_specs_fit_into_a_size(marked):
    boats = ObjectStore(BOAT, marked.append, Admission(limit=100, limit_bytes=1000))
    for name in "abc":
        boats.on_object(large_boat(name, 400))
    assert [boats.admits(f"demo/{name}") for name in "abc"] == [True, True, False]
    marked.clear()
    boats.on_deleted(large_boat("a", 400))
    assert (boats.admits("demo/c"), "demo/c" in marked) == (True, True)


def test_the_spec_of_a_job_that_is_not_admitted_is_not_kept_until_it_is_read_again(marked):
    boats = ObjectStore(BOAT, marked.append, Admission(limit=1))
    boats.on_object(large_boat("a", 400))
    boats.on_object(large_boat("b", 400))
    assert ["spec" in boats.get(f"demo/{name}") for name in "ab"] == [True, False]
    boats.on_deleted(large_boat("a", 400))
    assert boats.put(large_boat("b", 400), began=boats.begin())
    assert "spec" in boats.get("demo/b")


def test_of_a_job_that_has_ended_a_large_spec_is_not_kept(marked):
    boats = ObjectStore(BOAT, marked.append, Admission(limit=1))
    boats.on_object(large_boat("a", 400, phase="Failed"))
    boats.on_object(large_boat("b", 40_000, phase="Failed"))
    assert ["spec" in boats.get(f"demo/{name}") for name in "ab"] == [True, False]


SUSPENDED = {"spec": {"suspend": True, "output": "x" * 40_000}, "status": {"phase": "Suspended"}}


@pytest.mark.parametrize(
    ("parts", "is_at_rest"),
    [
        (SUSPENDED, True),
        ({"spec": {"output": "x"}, "status": {"phase": "Failed", "failures": {"user": 4}}}, True),
        ({"spec": {}, "status": {"phase": "Running"}}, False),
    ],
    ids=["suspended", "ended", "running"],
)
def test_an_object_at_rest_is_kept_compressed_and_read_as_it_was(boats, parts, is_at_rest):
    boats.on_object(boat(9) | parts)
    assert isinstance(boats._entries["demo/wc"].kept, bytes) is is_at_rest
    assert boats.get("demo/wc") == boat(9) | parts


def test_an_object_that_is_not_admitted_is_kept_compressed_and_whole_when_it_is_admitted(marked):
    boats = ObjectStore(BOAT, marked.append, Admission(limit=0))
    boats.on_object(boat(9) | {"spec": {"output": "x"}})
    assert (boats.get("demo/wc"), type(boats._entries["demo/wc"].kept)) == (boat(9), bytes)
    boats.on_object(boat(10) | {"spec": {"output": "x"}} | {"status": {"startTime": "2026-01-01T00:00:00Z"}})
    assert boats.get("demo/wc")["spec"] == {"output": "x"}


def test_a_resumed_object_has_its_new_spec_and_an_older_version_does_not_suspend_it_again(boats, marked):
    boats.on_object(boat(9) | SUSPENDED)
    boats.on_object(boat(10) | {"spec": {"suspend": False, "output": "y"}})
    boats.on_object(boat(9) | SUSPENDED)
    assert (boats.get("demo/wc")["spec"], len(marked)) == ({"suspend": False, "output": "y"}, 2)


def test_an_object_at_rest_is_replaced_by_an_older_version_only_after_a_restore_of_etcd(boats, marked):
    boats.on_object(boat(100) | SUSPENDED)
    boats.on_object(boat(40), began=boats.begin())
    assert (boats.get("demo/wc"), boats.key("u1"), len(marked)) == (boat(40), "demo/wc", 2)


def test_an_object_that_cannot_be_kept_is_set_aside_and_reported(marked):
    aside = boundary.Boundary()
    objects = ObjectStore(BOAT, marked.append, aside=aside)
    objects.on_object(boat(1))
    objects.on_object(boat("x"))
    objects.on_object(boat(2, uid="u2", name="other"))
    assert aside.counts == {("Boat", boundary.Reason.STORING): 1}
    assert marked == ["demo/wc", "demo/other"]
