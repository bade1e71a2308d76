"""Whole MRClusters with nothing in between: the leader, its endpoint, the agent's own code, and a model of Hadoop."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt

import pytest

from boathouse.resources import names
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.progress import certificates, limits
from boathouse_e2e import hadoop_pods
from tests.builders.operators.agents import AUTHORITY
from tests.builders.operators.mrclusters import RunningMRCluster, mrcluster

DYNAMIC = {"resizing": {"policy": "GSP", "periodSeconds": 5}, "transient": {"maximum": 3}}
TAG = "uid-1"


class Whole:
    """A cluster, and the endpoints of leaders.

    Attributes:
        world: The leader and the pods, without the miniature that otherwise reports.
        model: Hadoop in these pods.
    """

    def __init__(self, world, model, ports, stack):
        self.world, self.model, self._ports, self._stack = world, model, ports, stack

    async def serve(self):
        """Serve the endpoint of the present leader alone."""
        await self._stack.aclose()
        context = certificates.server_context(AUTHORITY, ["localhost"], dt.datetime.now(dt.UTC))
        serving = self.world.leader.endpoint.serve(context, port=0, host="127.0.0.1")
        self._ports[:] = [await self._stack.enter_async_context(serving)]

    async def create(self, **spec):
        """A cluster becomes ready."""
        self.world.api.add(mrcluster(**spec))
        await self.world.until(lambda: self.world.phase() == "Ready")

    @property
    def hadoop(self):
        return self.model.hadoops[self.world.uid()]

    def submit(self, *seconds, tag=TAG):
        """Submit an application; returns it."""
        yarn = self.hadoop.yarn
        return yarn.applications[yarn.submit(tag, seconds, self.world.now())]


@pytest.fixture
async def whole(api, client, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "REPORT_DISTANCE_S", 0.0)
    monkeypatch.setattr(hadoop_pods, "_REPORT_S", 0.01)
    monkeypatch.setattr(hadoop_pods, "_STEP_S", 0.01)
    metadata = {"name": names.PROGRESS_CA_CONFIG_MAP, "namespace": "demo"}
    api.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ca.crt": AUTHORITY.pem}})
    ports = []

    async def token_of(pod):
        return api.issue_token(f"demo/{pod['metadata']['name']}")

    async with RunningMRCluster(api).running() as world, contextlib.AsyncExitStack() as stack:
        world.nodes.reports = False
        model = hadoop_pods.HadoopPods(
            client, tmp_path, token_of=token_of, ports=lambda: ports, namespace="demo", clock=world.now
        )
        made = Whole(world, model, ports, stack)
        await made.serve()
        playing = asyncio.create_task(model.run())
        yield made
        playing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await playing
        assert model.violations == []


async def test_a_core_node_leaves_when_its_blocks_are_copied(whole):
    world = whole.world
    await whole.create(core={"count": 2})
    world.change(core={"count": 3})
    await world.until(lambda: world.status()["core"]["ready"] == 3)
    for _ in range(20):
        whole.hadoop.hdfs.write({"c0", "c1", "c2"})
    world.change(core={"count": 2})
    await world.until(lambda: world.hosts() == ["c0", "c1", "master"])
    assert not whole.hadoop.hdfs.missing({"c0", "c1"})
    await world.until(lambda: not whole.hadoop.hdfs.excluded)


async def test_a_cluster_grows_with_its_load_and_shrinks_without_a_lost_task(whole):
    world = whole.world
    await whole.create(**DYNAMIC)
    application = whole.submit(*[1e9] * 30)
    await world.until(lambda: world.status()["transient"]["ready"] == 3)
    await world.until(lambda: whole.hadoop.yarn.containers("t2"))
    await world.until(lambda: world.decide(2) == "")
    await world.until(lambda: whole.hadoop.yarn.excluded)
    application.waiting, application.running = [], [(host, seconds, 0.0) for host, seconds, _ in application.running]
    await world.until(lambda: world.decide(2) == "" or world.hosts() == ["c0", "c1", "master"])
    await world.until(lambda: world.hosts() == ["c0", "c1", "master"] and "leaving" not in world.status())
    assert (application.state, application.lost) == ("FINISHED", 0)


async def test_a_job_follows_its_application_by_its_tag_and_kills_it(whole):
    world = whole.world
    await whole.create()
    application, applications = whole.submit(600.0), world.leader.applications
    applications.follow(world.uid(), TAG, ObjectUid("job"))
    await world.until(lambda: (view := applications.view(TAG)) and view.applications)
    assert applications.view(TAG).applications[0].id == application.id
    applications.request_kill(world.uid(), application.id)
    await world.until(lambda: applications.view(TAG).applications[0].state == "KILLED")


async def test_a_successor_continues_a_drain(whole):
    world = whole.world
    await whole.create(transient={"minimum": 1, "maximum": 3})
    whole.submit(*[300.0] * 11)  # with the ApplicationMaster, as many containers as three nodes have room for
    await world.until(lambda: whole.hadoop.yarn.containers("t0"))
    # A timeout that Hadoop does not reach, however far the clock turns between two of its steps on a busy machine.
    resizing = {"policy": "GSP", "drainTimeoutSeconds": 3600}
    world.change(transient={"minimum": 0, "maximum": 3}, resizing=resizing)

    def drains():
        world.decide(2)  # as a policy does at each offer: a decision that comes before the change is without effect
        return "t0" in whole.hadoop.yarn.excluded

    await world.until(drains)
    await world.restart()
    await whole.serve()
    assert "t0" in world.hosts()
    await world.until(lambda: world.hosts() == ["c0", "c1", "master"])
    assert not any(application.lost for application in whole.hadoop.yarn.applications.values())
