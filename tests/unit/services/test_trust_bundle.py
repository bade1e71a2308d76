"""The trust bundle of tasks, published by several workers at once, and to namespaces that are deleted."""

import asyncio
import datetime as dt

import pytest

from boathouse.cluster import errors
from boathouse.resources import names
from boathouse.services.progress import certificates
from tests.builders import mrjobs
from tests.builders.mrjob_reconciler import JobReconciler


class BundleServer:
    """Holds the replicas' authorities; a write of the bundle ends when the test releases it."""

    def __init__(self) -> None:
        self.authorities = {"a.crt": "A"}
        self.published: dict[str, str] = {}
        self.releases: list[asyncio.Event] = []

    async def get(self, _resource, _name, _namespace):
        return {"data": dict(self.authorities)}

    async def patch(self, _resource, _name, manifest, namespace, **_more):
        release = asyncio.Event()
        self.releases.append(release)
        await release.wait()
        self.published[namespace] = manifest["data"][names.PROGRESS_CA_KEY]


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def bundles(server: BundleServer) -> certificates.Bundles:
    return certificates.Bundles(server, namespace="ours", replica="a", now=lambda: dt.datetime.now(dt.UTC))


async def test_an_older_bundle_is_not_written_after_a_newer_one():
    server = BundleServer()
    subject = bundles(server)
    first = asyncio.create_task(subject.ensure("demo"))
    await settle()
    server.authorities["b.crt"] = "B"
    await subject.refresh()
    second = asyncio.create_task(subject.ensure("demo"))
    await settle()
    for release in reversed(server.releases):  # if both were in flight, the server could do the later one first
        release.set()
        await settle()
    for release in server.releases:
        release.set()
    await asyncio.gather(first, second)
    assert server.published == {"demo": "AB"}


async def test_a_namespace_whose_job_was_deleted_gets_the_bundle_again_with_its_next_job():
    jobs = JobReconciler(mrjobs.mrjob())
    await jobs.reconcile()
    assert jobs.bundles == {"demo"}
    jobs.store(None)  # perhaps with its namespace, which may be created again
    await jobs.reconcile()
    assert jobs.bundles == set()


class Namespaces:
    """ConfigMaps of several namespaces, which tenants may edit.

    Attributes:
        data: The bundle by namespace; absent if there is no ConfigMap.
        immutable: Namespaces whose ConfigMap cannot be patched.
        full: Namespaces whose quota refuses everything.
    """

    def __init__(self) -> None:
        self.data: dict[str, dict[str, str]] = {}
        self.immutable: set[str] = set()
        self.full: set[str] = set()
        self.writes = 0

    async def get(self, _resource, _name, namespace):
        if namespace not in self.data:
            raise errors.NotFound(404, "NotFound", "")
        return {"data": dict(self.data[namespace])}

    async def create(self, _resource, manifest, namespace):
        self.data[namespace] = dict(manifest["data"])

    async def patch(self, _resource, _name, manifest, namespace, **_more):
        if namespace in self.full:
            raise errors.Forbidden(403, "Forbidden", "exceeded quota")
        if namespace in self.immutable:
            raise errors.Invalid(422, "Invalid", "data: field is immutable")
        self.writes += 1
        self.data.setdefault(namespace, {}).update(manifest["data"])

    async def delete(self, _resource, _name, namespace):
        self.immutable.discard(namespace)
        del self.data[namespace]

    def bundle(self, namespace):
        return self.data.get(namespace, {}).get(names.PROGRESS_CA_KEY)


@pytest.fixture
async def published_bundle():
    """Return a server and the bundle, which is published in three namespaces."""
    server = Namespaces()
    subject = bundles(server)
    await subject.add("A")
    for namespace in ("demo", "hostile", "last"):
        await subject.ensure(namespace)
    return server, subject


async def test_an_edited_or_deleted_bundle_is_restored_at_the_next_refresh(published_bundle):
    server, subject = published_bundle
    server.data["demo"] = {names.PROGRESS_CA_KEY: "forged"}
    del server.data["last"]
    await subject.refresh()
    assert (server.bundle("demo"), server.bundle("last")) == ("A", "A")


async def test_a_refresh_writes_nothing_where_nothing_was_changed(published_bundle):
    server, subject = published_bundle
    before = server.writes
    await subject.refresh()
    assert server.writes == before


@pytest.mark.parametrize("request_", ["get", "patch"])
async def test_a_namespace_whose_last_job_goes_during_a_refresh_is_not_refreshed_again(
    published_bundle, monkeypatch, request_
):
    server, subject = published_bundle
    send = getattr(server, request_)

    async def send_while_the_job_goes(resource, name, *rest, **options):
        subject.forget("demo")
        return await send(resource, name, *rest, **options)

    server.data["demo"] = {names.PROGRESS_CA_KEY: "forged"}
    with monkeypatch.context() as context:
        context.setattr(server, request_, send_while_the_job_goes)
        await subject.refresh()
    server.data.pop("demo", None)
    await subject.refresh()
    assert server.bundle("demo") is None


async def test_an_immutable_bundle_is_replaced(published_bundle):
    server, subject = published_bundle
    server.data["hostile"] = {names.PROGRESS_CA_KEY: "forged"}
    server.immutable.add("hostile")
    await subject.refresh()
    assert server.bundle("hostile") == "A"


async def test_a_namespace_that_refuses_the_bundle_does_not_keep_it_from_others(published_bundle):
    server, subject = published_bundle
    for namespace in ("demo", "hostile", "last"):
        server.data[namespace] = {names.PROGRESS_CA_KEY: "forged"}
    server.full.add("hostile")
    await subject.refresh()
    assert [server.bundle(namespace) for namespace in ("demo", "hostile", "last")] == ["A", "forged", "A"]


async def test_a_config_map_that_cannot_be_read_does_not_keep_the_bundle_from_other_namespaces(published_bundle):
    server, subject = published_bundle
    server.data |= {"demo": "no mapping", "last": {names.PROGRESS_CA_KEY: "forged"}}
    await subject.refresh()
    assert server.bundle("last") == "A"


@pytest.mark.parametrize("check", [certificates.Bundles.refresh, certificates.Bundles.republish])
async def test_the_replicas_own_config_map_is_created_again_when_it_is_gone(published_bundle, check):
    server, subject = published_bundle
    del server.data["ours"]
    await check(subject)
    assert server.data["ours"] == {"a.crt": "A"}
    assert server.bundle("demo") == "A"
