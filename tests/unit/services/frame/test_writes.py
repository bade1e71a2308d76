"""The writes about an object of any kind."""

import pytest

from boathouse import failpoints
from boathouse.cluster import catalogue
from boathouse.resources import names
from boathouse.services.frame.writes import NotLeading
from tests.builders.frame import KEY, BoatServer, boat


@pytest.fixture
def api():
    return BoatServer()


@pytest.fixture
def hits(monkeypatch):
    """Return the failpoints that were hit."""
    found = []
    monkeypatch.setattr(failpoints, "hit", found.append)
    return found


async def test_a_status_is_written_for_the_observed_version_and_the_response_is_kept(api, hits):
    await api.writes.status(boat(1), {"phase": "Running"})
    assert api.statuses == [("Boat", "u1", "1", {"phase": "Running"})]
    assert api.objects.get(KEY) == boat(2) | {"spec": {}}
    assert hits == ["before-boat.status", "after-boat.status"]


async def test_a_process_that_does_not_lead_writes_nothing(api, hits):
    api.leads = False
    for write in (
        api.writes.status(boat(), {}),
        api.writes.finalizer(boat(), present=True),
        api.writes.delete("demo", [("a", "p1")]),
        api.writes.expire("demo", "wc", "u1"),
    ):
        with pytest.raises(NotLeading):
            await write
    assert (api.statuses, api.patches, api.deleted, hits) == ([], [], [], [])


async def test_other_finalizers_stay(api):
    await api.writes.finalizer(boat(finalizers=["other"]), present=True)
    await api.writes.finalizer(boat(2, finalizers=["other", names.FINALIZER]), present=False)
    assert [patch["finalizers"] for patch in api.patches] == [["other", names.FINALIZER], ["other"]]


async def test_a_pod_that_is_gone_does_not_keep_others_from_being_deleted(api, hits):
    await api.writes.delete("demo", [("gone", "p1"), ("b", "p2")])
    assert api.deleted == [("Pod", "b", "p2", None)]
    assert hits == ["before-boat.delete-pod", "before-boat.delete-pod", "after-boat.delete-pod"]


def service(*, owner="", label="", **spec):
    """Return an object that belongs to a boat by its owner or its label."""
    owners = {"ownerReferences": [{"uid": owner, "controller": True}]} if owner else {}
    labels = {"labels": {names.LABEL_JOB_UID: label}} if label else {}
    return {"metadata": {"name": "x", "namespace": "demo", "uid": "x1", **owners, **labels}, "spec": spec}


@pytest.mark.parametrize(
    ("existing", "desired"),
    [
        (service(owner="u1"), service(owner="u1")),
        (service(owner="u1", label="u2"), service(owner="u1", label="u1")),
        (service(label="u1"), service(label="u1")),
    ],
)
async def test_an_existing_object_of_the_same_owner_is_left_as_it_is(api, existing, desired):
    api.others["x"] = existing
    assert await api.writes.ensure(catalogue.SERVICES, desired, "thing") is None
    assert api.others["x"] is existing


FOREIGN = pytest.mark.parametrize(
    ("existing", "desired"),
    [
        (service(owner="u2", label="u1"), service(owner="u1", label="u1")),
        (service(label="u1"), service(owner="u1", label="u1")),
        (service(owner="u2", label="u1"), service(label="u1")),
        (service(label="u2"), service(label="u1")),
        (service(), service(label="u1")),
        (service(), service()),
    ],
)


@FOREIGN
async def test_an_object_of_others_is_returned(api, existing, desired):
    api.others["x"] = existing
    assert await api.writes.ensure(catalogue.SERVICES, desired, "thing") is existing
    assert await api.writes.apply(catalogue.SERVICES, desired, "thing") is existing


@FOREIGN
async def test_an_object_of_others_is_not_removed(api, existing, desired):
    api.others["x"] = existing
    await api.writes.remove(catalogue.SERVICES, desired, "thing")
    assert api.deleted == []


async def test_an_object_with_another_spec_gets_that_of_the_manifest(api, hits):
    for size in (1, 2, 2):
        assert await api.writes.apply(catalogue.SERVICES, service(owner="u1", size=size), "thing") is None
        assert api.others["x"]["spec"] == {"size": size}
    created, patched = ["before-boat.thing", "after-boat.thing"], ["before-boat.thing", "after-boat.thing"]
    assert hits == [*created, *created, *patched, *created]


async def test_an_object_is_removed_and_one_that_is_gone_is_no_error(api):
    api.others["x"] = service(owner="u1")
    await api.writes.remove(catalogue.SERVICES, service(owner="u1"), "thing")
    assert api.deleted == [("Service", "x", "x1", None)]
    api.others.clear()
    await api.writes.remove(catalogue.SERVICES, service(owner="u1"), "thing")


async def test_an_expired_object_is_deleted_with_what_it_owns(api):
    await api.writes.expire("demo", "wc", "u1")
    await api.writes.expire("demo", "gone", "u2")
    assert api.deleted == [("Boat", "wc", "u1", "Background")]
