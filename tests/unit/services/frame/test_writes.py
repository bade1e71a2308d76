"""The writes about an object of any kind."""

import pytest

from boathouse import failpoints
from boathouse.cluster import catalogue
from boathouse.resources import names
from boathouse.services.frame.writes import NotLeading
from tests.unit.services.frame.api import Api
from tests.unit.services.frame.kinds import KEY, body

THINGS = catalogue.SERVICES


@pytest.fixture
def api():
    return Api()


@pytest.fixture
def passed(monkeypatch):
    names = []
    monkeypatch.setattr(failpoints, "hit", names.append)
    return names


async def test_a_status_is_written_for_the_version_that_was_seen_and_the_answer_is_kept(api, passed):
    await api.writes.status(body(1), {"phase": "Running"})
    assert api.statuses == [("Boat", "u1", "1", {"phase": "Running"})]
    assert api.objects.get(KEY) == body(2) | {"spec": {}}
    assert passed == ["before-boat.status", "after-boat.status"]


async def test_a_process_that_does_not_lead_writes_nothing(api, passed):
    api.leads = False
    for write in (
        api.writes.status(body(), {}),
        api.writes.finalizer(body(), present=True),
        api.writes.delete("demo", [("a", "p1")]),
        api.writes.expire("demo", "wc", "u1"),
    ):
        with pytest.raises(NotLeading):
            await write
    assert (api.statuses, api.patches, api.deleted, passed) == ([], [], [], [])


async def test_other_finalizers_stay(api):
    await api.writes.finalizer(body(finalizers=["other"]), present=True)
    await api.writes.finalizer(body(2, finalizers=["other", names.FINALIZER]), present=False)
    assert [patch["finalizers"] for patch in api.patches] == [["other", names.FINALIZER], ["other"]]


async def test_a_pod_that_is_gone_does_not_keep_others_from_being_deleted(api, passed):
    await api.writes.delete("demo", [("gone", "p1"), ("b", "p2")])
    assert api.deleted == [("Pod", "b", "p2", None)]
    assert passed == ["before-boat.delete-pod", "before-boat.delete-pod", "after-boat.delete-pod"]


def thing(*, owner="", label="", **spec):
    """An object of a kind's object, by its owner or its label."""
    owners = {"ownerReferences": [{"uid": owner, "controller": True}]} if owner else {}
    labels = {"labels": {names.LABEL_JOB_UID: label}} if label else {}
    return {"metadata": {"name": "x", "namespace": "demo", "uid": "x1", **owners, **labels}, "spec": spec}


@pytest.mark.parametrize(
    ("there", "made"),
    [
        (thing(owner="u1"), thing(owner="u1")),
        (thing(owner="u1", label="u2"), thing(owner="u1", label="u1")),
        (thing(label="u1"), thing(label="u1")),
    ],
)
async def test_an_object_that_exists_and_belongs_to_the_same_object_is_left_as_it_is(api, there, made):
    api.others["x"] = there
    assert await api.writes.ensure(THINGS, made, "thing") is None
    assert api.others["x"] is there


FOREIGN = pytest.mark.parametrize(
    ("there", "made"),
    [
        (thing(owner="u2", label="u1"), thing(owner="u1", label="u1")),
        (thing(label="u1"), thing(owner="u1", label="u1")),
        (thing(owner="u2", label="u1"), thing(label="u1")),
        (thing(label="u2"), thing(label="u1")),
        (thing(), thing(label="u1")),
        (thing(), thing()),
    ],
)


@FOREIGN
async def test_an_object_of_others_is_returned(api, there, made):
    api.others["x"] = there
    assert await api.writes.ensure(THINGS, made, "thing") is there
    assert await api.writes.apply(THINGS, made, "thing") is there


@FOREIGN
async def test_an_object_of_others_is_not_removed(api, there, made):
    api.others["x"] = there
    await api.writes.remove(THINGS, made, "thing")
    assert api.deleted == []


async def test_an_object_with_another_spec_gets_that_of_the_manifest(api, passed):
    for size in (1, 2, 2):
        assert await api.writes.apply(THINGS, thing(owner="u1", size=size), "thing") is None
        assert api.others["x"]["spec"] == {"size": size}
    created, patched = ["before-boat.thing", "after-boat.thing"], ["before-boat.thing", "after-boat.thing"]
    assert passed == [*created, *created, *patched, *created]


async def test_an_object_is_removed_and_one_that_is_gone_is_no_error(api):
    api.others["x"] = thing(owner="u1")
    await api.writes.remove(THINGS, thing(owner="u1"), "thing")
    assert api.deleted == [("Service", "x", "x1", None)]
    api.others.clear()
    await api.writes.remove(THINGS, thing(owner="u1"), "thing")


async def test_an_expired_object_is_deleted_with_what_it_owns(api):
    await api.writes.expire("demo", "wc", "u1")
    await api.writes.expire("demo", "gone", "u2")
    assert api.deleted == [("Boat", "wc", "u1", "Background")]
