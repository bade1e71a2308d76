"""Leave to submit, over TLS: only the client of the open attempt gets it."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob import routes as mrjob_routes
from boathouse.services.mrjob.hadoop.observation import ClientPod
from boathouse.services.progress import certificates
from boathouse_task.cluster_contract import ClientSpec
from boathouse_task.contract import TaskResult
from boathouse_task.environment import Environment
from boathouse_task.hadoop_client import Client
from tests.builders import manifests
from tests.builders.operators.endpoints import JOB, NOW, Endpoint

NAME = "words-client-a1"


class Jobs:
    """One job, whose client may submit or not."""

    def __init__(self, pod_uid: str) -> None:
        self.pod = ClientPod(name=NAME, uid=pod_uid, attempt=1, state=PodLife.RUNNING, placed_s=0)
        self.is_open = True

    def find(self, uid, caller):
        return self.pod if (uid, caller.namespace, caller.pod_name) == (JOB, "demo", NAME) else None

    def may_submit(self, uid, pod):
        return self.is_open and (uid, pod) == (JOB, self.pod)


@pytest.fixture
async def endpoint(api, client, tmp_path):
    made = Endpoint(api, client, tmp_path)
    pod = api.add(manifests.pod(NAME, node="n1"))
    made.jobs = Jobs(pod["metadata"]["uid"])
    made.server.add(made.jobs.find, [mrjob_routes.leave_route(made.jobs)])
    async with made.server.serve(
        certificates.server_context(made.authority, ["localhost"], NOW), port=0, host="127.0.0.1"
    ) as made.port:
        yield made


async def run_client(endpoint, name=NAME):
    """Run the client's side; returns its work folder."""
    folder = endpoint.folder
    (folder / "token").write_text(endpoint.api.issue_token(f"demo/{name}"))
    (folder / "ca.crt").write_text(endpoint.authority.pem)
    (folder / "conf").mkdir()
    work = folder / "work"
    work.mkdir()
    spec = ClientSpec(
        job_uid=JOB,
        job_name="words",
        namespace="demo",
        attempt=1,
        progress_url=f"https://localhost:{endpoint.port}",
    )
    here = Environment(pod_name=NAME, token_path=folder / "token", ca_path=folder / "ca.crt", work_path=work)
    await asyncio.to_thread(Client(spec, here, conf_path=folder / "conf").run)
    return work


async def test_the_client_of_the_open_attempt_may_go(endpoint):
    assert ((await run_client(endpoint)) / "go").exists()


async def test_another_client_is_stopped(endpoint):
    endpoint.jobs.is_open = False
    stop = ((await run_client(endpoint)) / "stop").read_bytes()
    assert "only the client of the job's current attempt" in msgspec.json.decode(stop, type=TaskResult).message
    assert endpoint.count("progress_rejections_total", reason="NoLeave") == 1


async def test_the_token_of_another_pod_is_no_leave(endpoint):
    endpoint.api.add(manifests.pod("another", node="n1"))
    work = await run_client(endpoint, "another")
    assert not (work / "go").exists()
