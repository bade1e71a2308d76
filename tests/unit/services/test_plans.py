"""Writing a plan takes several requests, and leadership may end between any two."""

import pytest

from boathouse.cluster import errors
from boathouse.services.mrjob import plans, shards
from boathouse.services.mrjob.writes import NotLeading
from tests.unit.services.test_shards import plan


class Server:
    """ConfigMaps by name; of leaders it knows how many more writes they make."""

    def __init__(self, *, writes: int) -> None:
        self.config_maps: dict[str, dict] = {}
        self.writes = writes

    def check_lead(self) -> None:
        if not self.writes:
            raise NotLeading
        self.writes -= 1

    async def get(self, _resource, name, _namespace):
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
    monkeypatch.setattr(shards, "SHARD_BYTES", 64)


async def write(server, job, splits):
    book = plans.Plans(server)
    book.post(job.uid, shards.keep(plan(splits)))
    await book.write(job, 0, server.check_lead)


async def test_whoever_leads_no_more_does_not_go_on_writing_a_plan(build):
    server = Server(writes=1)
    with pytest.raises(NotLeading):
        await write(server, build.job(), 20)
    assert len(server.config_maps) == 1


async def test_a_former_leader_does_not_delete_the_plan_of_its_successor(build):
    server = Server(writes=100)
    await write(server, build.job(), 20)
    accepted = dict(server.config_maps)
    server.writes = 1  # of its own plan it tries to write a part, which the successor has written
    with pytest.raises(NotLeading):
        await write(server, build.job(), 19)
    assert server.config_maps == accepted
