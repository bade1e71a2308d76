"""The fake API server does as the real one in what our tests lean on (the contract tests hold the real one to it)."""

from __future__ import annotations

import json

import pytest

from boathouse.cluster import catalogue, errors
from tests.builders import manifests


async def lines_of(client, count, **options):
    found = []
    async with client.watch(catalogue.PODS, **options) as batches:
        async for lines in batches:
            found += map(json.loads, lines)
            if len(found) >= count:
                return found
    return found


async def test_an_object_that_leaves_the_selection_is_shown_as_it_last_was_in_it(api, client):
    api.add(manifests.pod("p", phase="Running"))
    since = str(api.world.revision)
    api.end_pod("demo/p")
    (event,) = await lines_of(client, 1, resource_version=since, fields=catalogue.PODS_THAT_HOLD_RESOURCES)
    assert (event["type"], event["object"]["status"]["phase"]) == ("DELETED", "Running")
    assert event["object"]["metadata"]["resourceVersion"] == str(api.world.revision)


async def test_an_object_that_enters_the_selection_is_added(api, client):
    api.add(manifests.pod("p", phase="Running"))
    since = str(api.world.revision)
    api.end_pod("demo/p")
    (event,) = await lines_of(client, 1, resource_version=since, fields=catalogue.PODS_THAT_ENDED)
    assert event["type"] == "ADDED"


async def test_a_watch_tells_what_happened_since_its_revision(api, client):
    since = str(api.world.revision)
    api.add(manifests.pod("a"))
    api.add(manifests.pod("b"))
    api.remove("pods", "demo/a")
    events = await lines_of(client, 3, resource_version=since)
    assert [(e["type"], e["object"]["metadata"]["name"]) for e in events] == [
        ("ADDED", "a"),
        ("ADDED", "b"),
        ("DELETED", "a"),
    ]


async def test_a_watch_ends_after_its_time(client):
    assert await lines_of(client, 1, resource_version="100", timeout_s=1) == []


async def test_the_fence_lets_only_the_leaders_epoch_through(api, client):
    api.add(manifests.lease(leaseTransitions=3))
    api.fence_by("boathouse-system/boathouse")
    await client.create_pod("demo", manifests.pod("new", annotations={"boathouse.dev/epoch": "3"}))
    with pytest.raises(errors.Forbidden, match="epoch 2"):
        await client.create_pod("demo", manifests.pod("old", annotations={"boathouse.dev/epoch": "2"}))
    with pytest.raises(errors.Forbidden, match="epoch None"):
        await client.bind("demo", "new", "uid-000002", "n1")


async def test_a_fault_after_the_commit_hides_the_answer_only(api, client):
    api.fail_next("create pods", status=500, after_commit=True)
    with pytest.raises(errors.ServerError):
        await client.create_pod("demo", manifests.pod("p"))
    assert api.get("pods", "demo/p") is not None
    await client.create_pod("demo", manifests.pod("q"))


async def test_a_resize_shows_in_the_status_once_the_kubelet_has_done_it(api, client):
    api.add(manifests.pod("p", node="n1", limits={"cpu": "2", "memory": "65Mi"}))
    small = {"requests": {"cpu": "1m"}, "limits": {"cpu": "10m"}}
    assert (await client.resize("demo", "p", {"task": small})).status.container_statuses == ()
    api.actuate_resize("demo/p")
    (status,) = (await client.get(catalogue.PODS, "p", "demo")).status.container_statuses
    assert status.resources.requests["cpu"] == status.allocated_resources["cpu"] == "1m"
