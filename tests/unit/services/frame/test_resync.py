"""The comparison with a LIST, while objects come and go."""

from boathouse.cluster import catalogue, errors
from boathouse.services.frame import object_store
from tests.builders.frame import BOAT, KEY, boat


class EmptyServer:
    """Holds no object; `on_get` is called during a read."""

    def __init__(self, on_get) -> None:
        self._on_get = on_get

    async def list_page(self, _resource, _namespace, **_more):
        return catalogue.Page(metadata=catalogue.ListMeta(resource_version="9"))

    async def get(self, _resource, _name, _namespace):
        self._on_get()
        raise errors.NotFound(404, "NotFound", "")


async def test_a_job_recreated_during_its_read_is_kept():
    jobs = object_store.ObjectStore(BOAT, lambda _: None)
    jobs.on_object(boat(1, "u1"))
    await object_store.Resync(EmptyServer(lambda: jobs.on_object(boat(5, "u2"))), jobs, ()).run_once()
    assert jobs.key("u2") == KEY


async def test_a_job_that_is_gone_is_dropped():
    jobs = object_store.ObjectStore(BOAT, lambda _: None)
    jobs.on_object(boat(1, "u1"))
    await object_store.Resync(EmptyServer(lambda: None), jobs, ()).run_once()
    assert jobs.keys() == []
