"""The writes about an object of any kind."""

import pytest

from boathouse import failpoints
from boathouse.resources import names
from boathouse.services.frame.writes import NotLeading
from tests.unit.services.frame.api import Api
from tests.unit.services.frame.kinds import KEY, body


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


async def test_an_expired_object_is_deleted_with_what_it_owns(api):
    await api.writes.expire("demo", "wc", "u1")
    await api.writes.expire("demo", "gone", "u2")
    assert api.deleted == [("Boat", "wc", "u1", "Background")]
