"""What Kopf tells of custom resources, with the operator's settings and handlers."""

from __future__ import annotations

import asyncio
import contextlib

import kopf
import pytest

from boathouse import handlers
from boathouse.cluster import config
from boathouse.services.frame.object_store import ObjectStore
from boathouse.services.mrjob.kind import MRJOB
from tests.builders.operators.mrjobs import mrjob
from tests.wire import waiting


@pytest.fixture
async def jobs(api):
    """The MRJobs that Kopf has told of; it starts with the test's first wait."""
    store, stop, ours = ObjectStore(MRJOB, lambda _: None), asyncio.Event(), asyncio.all_tasks()
    registry = handlers.registry([store])
    handlers.login(registry, config.ClusterConfig(server=api.url, namespace="boathouse-system"))
    tasks = await kopf.spawn_tasks(
        registry=registry, settings=handlers.settings(), standalone=True, clusterwide=True, stop_flag=stop
    )
    running = asyncio.create_task(kopf.run_tasks(tasks, ignored=ours))
    yield store
    stop.set()
    with contextlib.suppress(asyncio.CancelledError):
        await running


def add(api, namespace, name):
    job = mrjob()
    job["metadata"] |= {"namespace": namespace, "name": name}
    api.add(job)


async def test_many_new_objects_of_a_tenant_do_not_keep_those_of_others_waiting(api, jobs):
    for number in range(400):
        add(api, "attacker", f"job-{number}")
    add(api, "victim", "job")
    await waiting.eventually(lambda: jobs.get("victim/job"), turns=5000)
