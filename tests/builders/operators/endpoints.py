"""A running progress endpoint with the pods of one job, and requests to it as the task runtime sends them."""

from __future__ import annotations

import contextlib
import datetime as dt
import ssl

import aiohttp

from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob import routes, split_plans, task_orders
from boathouse.services.mrjob.attempt_pods import AttemptPod
from boathouse.services.mrjob.job_state import JobState, StageState
from boathouse.services.progress import certificates, server
from boathouse.telemetry import metrics as telemetry
from boathouse_task import contract, progress
from boathouse_task.contract import TaskType
from boathouse_task.environment import Environment
from tests.builders import manifests

NOW = dt.datetime.now(dt.UTC)
JOB = "job-1"


class Pods:
    """The pods of one job, by name."""

    def __init__(self) -> None:
        self.known: dict[str, AttemptPod] = {}

    def find(self, uid, pod_name):
        return self.known.get(pod_name) if uid == JOB else None


class Endpoint:
    """A running endpoint, and requests to it."""

    def __init__(self, api, client, folder) -> None:
        self.api, self.folder = api, folder
        self.pods, self.plans, self.posted = Pods(), split_plans.Plans(client), []
        self.orders = task_orders.TaskOrders()
        self.authority = certificates.authority(None, "op-1", NOW)
        figures = telemetry.Metrics()
        self.server = server.ProgressServer(client, figures)
        self.routes = routes.TaskRoutes(kind=self, owners=self, on_plan=self.posted.append)
        self.server.add(self.routes.find, self.routes.routes())
        self.registry = figures.registry
        self.port = 0
        self.marks = []

    def update(self, job_state):
        """Bring orders and reports up to date with the job's state and the pods."""
        self.orders.update(JOB, "demo", job_state, self.pods.known)

    def state(self, uid, *, namespace, cluster):
        """What the leader knows of the job that an ownership mark names."""
        self.marks.append((uid, namespace, cluster))
        return contract.Owner(state=contract.OwnerState.ENDED)

    def count(self, name, **labels):
        """A metric's value now."""
        return self.registry.get_sample_value(f"boathouse_{name}", labels)

    def add(self, name, task_type=TaskType.MAP):
        """A pod that runs; returns its token."""
        pod = self.api.add(manifests.pod(name, cpu="1", node="n1"))
        self.pods.known[name] = AttemptPod(
            name=name,
            uid=pod["metadata"]["uid"],
            task_type=task_type,
            index=0,
            attempt=1,
            state=PodLife.RUNNING,
            placed_s=0.0,
        )
        return self.api.issue_token(f"demo/{name}")

    def runtime(self, name, token):
        """The task runtime's client in that pod."""
        (self.folder / "token").write_text(token)
        (self.folder / "ca.crt").write_text(self.authority.pem)
        spec = contract.TaskSpec(
            job_uid=JOB,
            job_name="wc",
            namespace="demo",
            task_type=TaskType.REDUCE,
            work_url="s3://b/w",
            output_url="s3://b/o",
            progress_url=f"https://localhost:{self.port}",
        )
        here = Environment(pod_name=name, token_path=self.folder / "token", ca_path=self.folder / "ca.crt")
        return progress.Client(spec, here)

    async def ask(self, method, path, token, **options):
        context = ssl.create_default_context(cadata=self.authority.pem)
        headers = {"Authorization": f"Bearer {token}"} | options.pop("headers", {})
        url = f"https://localhost:{self.port}/v1/jobs/{path}"
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, url, ssl=context, headers=headers, **options) as answer,
        ):
            return answer.status, await answer.read()


def state(*winners):
    return JobState(phase="Map", stages={TaskType.MAP: stage(*winners)})


def stage(*winners):
    made = StageState.empty(len(winners))
    made.winner[:] = winners
    return made


@contextlib.asynccontextmanager
async def serving_endpoint(api, client, folder):
    """The endpoint of a job with two maps."""
    result = Endpoint(api, client, folder)
    result.update(state(0, 0))
    context = certificates.server_context(result.authority, ["localhost"], NOW)
    async with result.server.serve(context, port=0, host="127.0.0.1") as result.port:
        yield result
