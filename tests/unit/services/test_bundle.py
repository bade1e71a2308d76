"""Whom tasks trust, published by several workers at once, and to namespaces that come and go."""

import asyncio
import datetime as dt

from boathouse.resources import names
from boathouse.services.progress import bundle
from tests.unit.services.reconciling import Desk, body


class Server:
    """Holds the replicas' authorities; a write of the bundle takes as long as the test lets it."""

    def __init__(self) -> None:
        self.authorities = {"a.crt": "A"}
        self.published: dict[str, str] = {}
        self.answers: list[asyncio.Event] = []

    async def get(self, _resource, _name, _namespace):
        return {"data": dict(self.authorities)}

    async def patch(self, _resource, _name, manifest, namespace, **_more):
        answer = asyncio.Event()
        self.answers.append(answer)
        await answer.wait()
        self.published[namespace] = manifest["data"][names.PROGRESS_CA_KEY]


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def bundles(server: Server) -> bundle.Bundles:
    return bundle.Bundles(server, namespace="ours", replica="a", now=lambda: dt.datetime.now(dt.UTC))


async def test_an_older_bundle_does_not_come_after_a_newer_one():
    server = Server()
    subject = bundles(server)
    first = asyncio.create_task(subject.ensure("demo"))
    await settled()
    server.authorities["b.crt"] = "B"
    await subject.refresh()
    second = asyncio.create_task(subject.ensure("demo"))
    await settled()
    for answer in reversed(server.answers):  # were both under way, the server might do the younger one first
        answer.set()
        await settled()
    for answer in server.answers:
        answer.set()
    await asyncio.gather(first, second)
    assert server.published == {"demo": "AB"}


async def test_a_namespace_whose_job_was_deleted_gets_the_bundle_again_with_its_next_job():
    desk = Desk()
    desk.holds(body("u1"))
    await desk.look()
    assert desk.published == {"demo"}
    desk.holds(None)  # with its namespace, perhaps, which may come again
    await desk.look()
    assert desk.published == set()
