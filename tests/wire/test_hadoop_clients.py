"""Modelled clients of jobs on Hadoop clusters: an application for a client with leave, and none for others."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec
import pytest

from boathouse_e2e import hadoop_clients
from boathouse_e2e.hadoop_master import Hadoop
from boathouse_task.cluster_contract import CLIENT_ENV, ClientSpec

CLUSTER, TAG = "uid-cluster", "uid-job-1"
CORE = {"c0", "c1"}


class World:
    """A cluster whose time the test turns, and the clients of a namespace."""

    def __init__(self, api):
        self.api = api
        self.hadoop = Hadoop("etl.demo.svc")
        self.hadoop.start("CID-1", 0.0, may_format=True)
        self.answers = [200]
        self.clients = None

    async def ask(self, _pod, _order):
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def add(self):
        """A client's pod starts."""
        order = ClientSpec(
            job_uid="uid-job",
            job_name="words",
            namespace="demo",
            attempt=1,
            progress_url="https://localhost:1",
            settings={"mapreduce.job.tags": TAG},
        )
        variable = {"name": CLIENT_ENV, "value": msgspec.json.encode(order).decode()}
        spec = {
            "containers": [{"name": "task", "image": "hadoop:dev"}],
            "initContainers": [{"name": "runtime", "image": "task:dev", "env": [variable]}],
            "volumes": [{"name": "conf", "configMap": {"name": "etl-conf"}}],
        }
        metadata = {"name": "words-client-a1", "namespace": "demo", "labels": {"boathouse.dev/task-type": "client"}}
        self.api.add({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        self.api.set_phase("demo/words-client-a1", "Running")

    def turn(self, seconds):
        for _ in range(seconds):
            self.hadoop.step(CORE, self.hadoop.now_s + 1.0)

    @property
    def ended(self):
        """The exit code of the client; None while it runs."""
        statuses = self.api.get("pods", "demo/words-client-a1")["status"].get("containerStatuses") or ()
        return statuses[0]["state"]["terminated"]["exitCode"] if statuses else None


@pytest.fixture
async def world(api, client, monkeypatch):
    monkeypatch.setattr(hadoop_clients, "_STEP_S", 0.005)
    owner = {"apiVersion": "boathouse.dev/v1alpha1", "kind": "MRCluster", "name": "etl", "uid": CLUSTER}
    metadata = {"name": "etl-conf", "namespace": "demo", "ownerReferences": [owner]}
    api.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    made = World(api)
    made.clients = hadoop_clients.HadoopClients(
        client, lambda: {CLUSTER: made.hadoop}, made.ask, namespace="demo", clock=lambda: made.hadoop.now_s
    )
    running = asyncio.create_task(made.clients.run())
    yield made
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def test_a_client_with_leave_submits_once_and_ends_with_its_application(world, eventually):
    world.answers = [0, 404, 503, 200]
    world.add()
    await eventually(lambda: world.clients.submitted)
    world.turn(10)
    await eventually(lambda: world.ended == 0)
    assert [application.tag for application in world.hadoop.yarn.applications.values()] == [TAG]


async def test_a_client_without_leave_submits_nothing(world, eventually):
    world.answers = [409]
    world.add()
    await eventually(lambda: world.ended == 20)
    assert not world.hadoop.yarn.applications


async def test_a_client_submits_when_the_master_runs(world, eventually):
    world.hadoop.stop()
    world.add()
    await asyncio.sleep(0.05)
    assert not world.clients.submitted
    world.hadoop.start("CID-1", 0.0, may_format=False)
    await eventually(lambda: world.clients.submitted)


async def test_a_client_that_is_deleted_leaves_its_application_running(world, eventually):
    world.add()
    await eventually(lambda: world.clients.submitted)
    world.api.remove("pods", "demo/words-client-a1")
    await eventually(lambda: not world.clients._playing)
    assert [application.state for application in world.hadoop.yarn.applications.values()] == ["ACCEPTED"]
