"""The second look at what Kopf tells, and the mark on the leader's pod."""

from __future__ import annotations

import pytest

from boathouse.cluster import errors
from boathouse.services import own_objects
from boathouse.services.frame.object_store import ObjectStore, Resync
from boathouse.services.mrjob.kind import MRJOB
from tests.builders import manifests
from tests.builders.operators.mrjobs import KEY, mrjob


@pytest.fixture
def jobs():
    return ObjectStore(MRJOB, lambda _: None)


async def test_a_job_that_kopf_missed_is_found(api, client, jobs):
    api.add(mrjob())
    await Resync(client, jobs, ()).run_once()
    assert jobs.keys() == [KEY]


async def test_a_deletion_that_kopf_missed_is_noticed(api, client, jobs):
    jobs.on_object(api.add(mrjob()))
    api.remove("mrjobs", KEY)
    await Resync(client, jobs, ()).run_once()
    assert jobs.keys() == []


async def test_only_the_namespaces_where_we_act_are_looked_at(api, client, jobs):
    api.add(mrjob())
    await Resync(client, jobs, ("elsewhere",)).run_once()
    assert jobs.keys() == []


def leaders(api):
    pods = api.objects("pods").values()
    return [
        pod["metadata"]["name"] for pod in pods if (pod["metadata"].get("labels") or {}).get("boathouse.dev/leader")
    ]


async def test_one_pod_is_marked_as_the_leader_and_a_former_one_no_more(api, client):
    for name in ("op-1", "op-2"):
        api.add(manifests.pod(name, namespace="boathouse-system", cpu="1"))
        await own_objects.mark_leader(client, "boathouse-system", name)
    assert leaders(api) == ["op-2"]


async def test_a_process_that_starts_takes_the_mark_of_its_former_life_off(api, client):
    api.add(manifests.pod("op-1", namespace="boathouse-system", cpu="1", labels={"boathouse.dev/leader": "true"}))
    await own_objects.unmark_leader(client, "boathouse-system", "op-1")
    assert leaders(api) == []


async def test_a_process_outside_a_pod_has_nothing_to_mark(client):
    await own_objects.mark_leader(client, "boathouse-system", "my-laptop")


async def test_a_leader_that_cannot_list_pods_now_is_not_taken_as_marked(api, client):
    api.fail_next("list pods", status=404, reason="NotFound")
    with pytest.raises(errors.NotFound):
        await own_objects.mark_leader(client, "boathouse-system", "op-1")
