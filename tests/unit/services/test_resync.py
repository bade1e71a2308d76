"""The second look at the MRJobs, while they come and go."""

from boathouse.cluster import client, errors
from boathouse.services.mrjob import jobstore, resync
from tests.unit.services.reconciling import KEY, body


class Server:
    """Holds no MRJob; `meanwhile` is called while one is asked for."""

    def __init__(self, meanwhile) -> None:
        self._meanwhile = meanwhile

    async def list_page(self, _resource, _namespace, **_more):
        return client.Page(items=(), resource_version="9")

    async def get(self, _resource, _name, _namespace):
        self._meanwhile()
        raise errors.NotFound(404, "NotFound", "")


async def test_a_job_that_is_made_anew_while_its_name_is_asked_for_is_kept():
    jobs = jobstore.JobStore(lambda _: None)
    jobs.seen(body("u1", 1))
    await resync.Resync(Server(lambda: jobs.seen(body("u2", 5))), jobs, ()).run_once()
    assert jobs.key("u2") == KEY


async def test_a_job_that_is_gone_is_dropped():
    jobs = jobstore.JobStore(lambda _: None)
    jobs.seen(body("u1", 1))
    await resync.Resync(Server(lambda: None), jobs, ()).run_once()
    assert jobs.keys() == []
