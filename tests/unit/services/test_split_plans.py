"""Writing a plan takes several requests, and leadership may end between any two."""

import pytest

from boathouse.cluster import errors
from boathouse.services.frame.writes import NotLeading
from boathouse.services.mrjob import split_plans, splits as mrjob_splits
from tests.builders import mrjobs


class ConfigMapServer:
    """ConfigMaps by name; a leader may make a number of writes before it stops to lead."""

    def __init__(self, *, writes: int) -> None:
        self.config_maps: dict[str, dict] = {}
        self.writes = writes
        self.gets = 0

    def check_lead(self) -> None:
        if not self.writes:
            raise NotLeading
        self.writes -= 1

    async def get(self, _resource, name, _namespace):
        self.gets += 1
        if name not in self.config_maps:
            raise errors.NotFound(404, "NotFound", name)
        return self.config_maps[name]

    async def create(self, _resource, manifest, _namespace):
        name = manifest["metadata"]["name"]
        if name in self.config_maps:
            raise errors.AlreadyExists(409, "AlreadyExists", name)
        self.config_maps[name] = {**manifest, "metadata": manifest["metadata"] | {"uid": f"uid-{name}"}}

    async def delete(self, _resource, name, _namespace, *, uid):
        assert uid == self.config_maps.pop(name)["metadata"]["uid"]


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(mrjob_splits, "SHARD_BYTES", 64)


async def write_plan(server, job, splits):
    plans = split_plans.Plans(server)
    plans.post(job.uid, job.namespace, mrjob_splits.encode(mrjobs.split_plan(splits)))
    await plans.write(job, 0, server.check_lead)


async def test_a_former_leader_stops_writing_a_plan():
    server = ConfigMapServer(writes=1)
    with pytest.raises(NotLeading):
        await write_plan(server, mrjobs.job(), 20)
    assert len(server.config_maps) == 1


async def test_a_former_leader_does_not_delete_the_plan_of_its_successor():
    server = ConfigMapServer(writes=100)
    await write_plan(server, mrjobs.job(), 20)
    accepted = dict(server.config_maps)
    server.writes = 1  # of its own plan it tries to write a part, which the successor has written
    with pytest.raises(NotLeading):
        await write_plan(server, mrjobs.job(), 19)
    assert server.config_maps == accepted


async def stored_plan(server, job, digests, **more):
    return await split_plans.Plans(server, **more).stored(job, 0, digests, accepted=False)


async def test_a_plan_is_read_only_by_a_digest_that_is_known_from_elsewhere():
    server, job = ConfigMapServer(writes=100), mrjobs.job()
    await write_plan(server, job, 20)
    digest = mrjob_splits.encode(mrjobs.split_plan(20)).digest
    assert await stored_plan(server, job, set()) is None
    assert server.gets == 0
    assert await stored_plan(server, job, {"another"}) is None
    assert server.gets == 1
    assert (await stored_plan(server, job, {digest})).plan == mrjobs.split_plan(20)


async def test_a_plan_that_was_planted_before_is_not_read():
    server, job = ConfigMapServer(writes=100), mrjobs.job()
    await write_plan(server, job, 20)
    digest = mrjob_splits.encode(mrjobs.split_plan(20)).digest
    for config_map in server.config_maps.values():
        config_map["metadata"]["ownerReferences"] = []
    assert await stored_plan(server, job, {digest}) is None


async def test_an_absurd_number_of_shards_costs_one_request():
    server, job = ConfigMapServer(writes=100), mrjobs.job()
    await write_plan(server, job, 20)
    server.gets = 0
    first = server.config_maps[mrjob_splits.shard_name(job, 0, 0)]
    first["metadata"]["annotations"]["boathouse.dev/plan-shards"] = "9999999"
    assert await stored_plan(server, job, {mrjob_splits.encode(mrjobs.split_plan(20)).digest}) is None
    assert server.gets == 1


async def test_the_plans_of_a_namespace_have_a_bound_that_is_not_anothers():
    job, kept = mrjobs.job(), mrjob_splits.encode(mrjobs.split_plan(20))
    plans = split_plans.Plans(ConfigMapServer(writes=0), limit_bytes=2 * kept.json_bytes)
    plans.post("a", "demo", kept)
    plans.post("a", "demo", kept)
    assert plans.has_room("b", "demo", kept)
    plans.post("b", "demo", kept)
    assert not plans.has_room("c", "demo", kept)
    assert plans.has_room("a", "demo", kept)
    assert plans.has_room("c", "other", kept)
    plans.forget("a")
    assert plans.has_room("c", "demo", kept)
    assert plans.plan(job.uid, 0) is None


async def test_an_accepted_plan_is_read_though_there_is_no_room_and_another_is_not():
    server, job = ConfigMapServer(writes=100), mrjobs.job()
    await write_plan(server, job, 20)
    digest = mrjob_splits.encode(mrjobs.split_plan(20)).digest
    assert await stored_plan(server, job, {digest}, limit_bytes=10) is None
    full = split_plans.Plans(server, limit_bytes=10)
    assert await full.stored(job, 0, {digest}, accepted=True)


async def test_the_plan_of_the_step_before_is_not_held():
    server, job = ConfigMapServer(writes=100), mrjobs.job()
    plans = split_plans.Plans(server)
    plans.post(job.uid, job.namespace, mrjob_splits.encode(mrjobs.split_plan(20)))
    await plans.write(job, 0, server.check_lead)
    await plans.write(job, 1, server.check_lead)
    assert (plans.plan(job.uid, 0), plans.plan(job.uid, 1)) == (None, mrjobs.split_plan(20))
