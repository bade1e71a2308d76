"""A job on a modelled cluster with nothing in between: one leader of both kinds, its endpoint, agent and client."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt

import pytest

from boathouse.resources import names
from boathouse.services.mrjob import routes
from boathouse.services.progress import certificates, limits
from boathouse_e2e import hadoop_clients, hadoop_pods
from tests.builders import clusters
from tests.builders.operators.agents import AUTHORITY
from tests.builders.operators.mrclusters import STEP_S, RunningMRCluster, mrcluster

JOB = "demo/words"
STARTED = [{"name": "task", "ready": True, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]


class Both(RunningMRCluster):
    """A world whose leader carries out jobs, too."""

    others = (routes.ENTRY,)

    def job(self):
        return (self.api.get("mrjobs", JOB) or {}).get("status") or {}

    async def start_clients(self):
        """Be the kubelet of clients."""
        while True:
            for key, pod in list(self.api.objects("pods").items()):
                is_client = pod["metadata"].get("labels", {}).get(names.LABEL_TASK_TYPE) == "client"
                if is_client and pod["metadata"].get("deletionTimestamp"):
                    self.api.remove("pods", key)
                elif is_client and pod["spec"].get("nodeName") and not pod["status"].get("containerStatuses"):
                    self.api.set_phase(key, "Running", containerStatuses=STARTED)
            await asyncio.sleep(STEP_S)


@pytest.fixture
async def world(api, client, tmp_path, monkeypatch):
    for module, name in ((hadoop_pods, "_REPORT_S"), (hadoop_pods, "_STEP_S"), (hadoop_clients, "_STEP_S")):
        monkeypatch.setattr(module, name, 0.01)
    monkeypatch.setattr(limits, "REPORT_DISTANCE_S", 0.0)
    metadata = {"name": names.PROGRESS_CA_CONFIG_MAP, "namespace": "demo"}
    api.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ca.crt": AUTHORITY.pem}})
    ports = []

    async def token_of(pod):
        return api.issue_token(f"demo/{pod['metadata']['name']}")

    async def authorities():
        return AUTHORITY.pem

    async with Both(api).running() as made, contextlib.AsyncExitStack() as stack:
        made.nodes.reports = False
        context = certificates.server_context(AUTHORITY, ["localhost"], dt.datetime.now(dt.UTC))
        serving = made.leader.endpoint.serve(context, port=0, host="127.0.0.1")
        ports.append(await stack.enter_async_context(serving))
        model = hadoop_pods.HadoopPods(
            client, tmp_path, token_of=token_of, ports=lambda: ports, namespace="demo", clock=made.now
        )
        leave = hadoop_clients.Leave(tmp_path, token_of=token_of, authorities=authorities, ports=lambda: ports)
        clients = hadoop_clients.HadoopClients(
            client, lambda: model.hadoops, leave.ask, namespace="demo", clock=made.now
        )
        made.clients = clients
        work = [asyncio.create_task(coroutine) for coroutine in (model.run(), clients.run(), made.start_clients())]
        yield made
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        assert model.violations == []


async def test_a_job_runs_as_one_application_of_a_client_with_leave(api, world):
    api.add(mrcluster())
    await world.until(lambda: world.phase() == "Ready")
    api.add(clusters.mrjob_on("etl", "words", "demo", "/out/words"))
    await world.until(lambda: world.job().get("phase") in {"Succeeded", "Failed"})
    assert world.job()["phase"] == "Succeeded", world.job()
    assert [application.state for application in world.clients.submitted.values()] == ["FINISHED"]
    assert world.job()["counters"] == {"Tasks": {"map": 6}}


async def test_a_suspended_jobs_application_is_killed_by_the_agent_and_another_one_follows(api, world):
    world.clients.program.tasks_s = (1e9,) * 4
    api.add(mrcluster())
    await world.until(lambda: world.phase() == "Ready")
    api.add(clusters.mrjob_on("etl", "words", "demo", "/out/words"))
    await world.until(lambda: world.job().get("phase") == "Map")
    api.change("mrjobs", JOB, {"spec": {"suspend": True}})
    await world.until(lambda: world.job().get("hadoop", {}).get("ended"))
    world.clients.program.tasks_s = (0.5,) * 4
    api.change("mrjobs", JOB, {"spec": {"suspend": False}})
    await world.until(lambda: world.job().get("phase") in {"Succeeded", "Failed"})
    assert world.job()["phase"] == "Succeeded", world.job()
    assert [application.state for application in world.clients.submitted.values()] == ["KILLED", "FINISHED"]
