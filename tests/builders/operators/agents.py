"""A cluster's agent, its daemons in miniature, and leaders that it reports to."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import ssl

import aiohttp
import msgspec

from boathouse.resources.mrcluster.status import LeavingNode
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.hadoop import Applications
from boathouse.services.mrcluster import agent
from boathouse.services.mrcluster.model import ClusterState
from boathouse.services.mrcluster.planning.observation import NodePod
from boathouse.services.progress import certificates, server
from boathouse.telemetry import metrics as telemetry
from boathouse_task import progress
from boathouse_task.agent.agent import Agent, AgentClient
from boathouse_task.agent.daemons import DataNode, NodeManager
from boathouse_task.cluster_contract import (
    AgentSpec,
    ApplicationFigures,
    DfsState,
    HdfsFigures,
    YarnFigures,
    YarnState,
)
from boathouse_task.environment import Environment
from tests.builders import manifests

UID = ObjectUid("cluster-1")
JOB = ObjectUid("job-1")
MASTER = "etl-master"
DOMAIN = "etl-nodes.demo.svc"
PATH = f"demo/{UID}/cluster/{MASTER}/report"
AUTHORITY = certificates.authority(None, "op-1", dt.datetime.now(dt.UTC))


class Pods:
    """The pods of one cluster by name, as every leader sees them."""

    def __init__(self, api):
        self._api, self.known = api, {}

    def add(self, name, role):
        """A pod that runs; returns its token."""
        pod = self._api.add(manifests.pod(name, node="n1"))
        host = name.rpartition("-")[2]
        self.known[name] = NodePod(name=name, uid=pod["metadata"]["uid"], host=host, role=role, node="n1")
        return self._api.issue_token(f"demo/{name}")

    def find(self, uid, pod_name):
        return self.known.get(pod_name) if uid == UID else None


class Leader:
    """A leader's endpoint with the routes of agents."""

    def __init__(self, client, pods, epoch):
        self.leads, self.marked, self.jobs = True, [], []
        self.reports = agent.Reports(self.marked.append)
        self.applications = Applications(self.jobs.append)
        self.orders = agent.OrderBook(self.applications, epoch=lambda: epoch, may_lead=lambda: self.leads)
        self.routes = agent.AgentRoutes(
            pods=pods,
            namespace_of=lambda uid: "demo" if uid == UID else None,
            reports=self.reports,
            orders=self.orders,
            applications=self.applications,
        )
        self._metrics = telemetry.Metrics()
        self.server = server.ProgressServer(client, self._metrics)
        self.server.add(self.routes.find, self.routes.routes())
        self.port = 0

    def publish(self, revision, *hosts):
        """The status was written: these hosts leave."""
        leaving = tuple(
            LeavingNode(host=host, since_s=100.0, deadline_s=400.0 if host.startswith("t") else None) for host in hosts
        )
        self.orders.publish(UID, ClusterState(leaving=leaving), revision)

    def rejections(self, reason):
        """How many requests were refused for a reason."""
        return self._metrics.registry.get_sample_value("boathouse_progress_rejections_total", {"reason": reason})

    async def post(self, token, data, path=PATH, **options):
        """Send anything as a report; returns the response's status and text."""
        context = ssl.create_default_context(cadata=AUTHORITY.pem)
        url = f"https://localhost:{self.port}/v1/jobs/{path}"
        async with (
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session,
            session.post(url, ssl=context, data=data, **options) as answer,
        ):
            return answer.status, await answer.text()


class Cluster:
    """The daemons of a cluster, which are their own clients for the agent, and the files of the agent."""

    def __init__(self, folder):
        self.folder, self.now_s = folder, 0.0
        self.hdfs = HdfsFigures(cluster_id="CID-1", started_s=1, safe_mode=False)
        self.yarn = YarnFigures(started_s=1, up_s=60)
        self.found: dict[str, list[ApplicationFigures]] = {}
        self.killed: list[str] = []
        for name in ("files", "refresh"):
            (folder / name).mkdir()

    def state(self, leaving=None):
        """The state of HDFS, or with an argument of YARN. Both know their nodes by their full names."""
        hosts = {host: f"{host}.{DOMAIN}.cluster.local" for host in ("c0", "c1", "c2", "c3")}
        if leaving is None:
            return self.hdfs, {host: DataNode(state=DfsState.LIVE, name=name) for host, name in hosts.items()}
        return self.yarn, {host: NodeManager(state=YarnState.RUNNING, name=name) for host, name in hosts.items()}

    def make_folders(self, folders):
        pass

    def applications(self, tag, _has_time):
        return self.found.get(tag, [])

    def kill(self, application_id):
        self.killed.append(application_id)

    def refresh(self):
        """The container `refresh` carries out all requests."""
        for want in (self.folder / "refresh").glob("*.want"):
            want.with_suffix(".done").write_text(f"{want.read_text().strip()} 0\n")

    async def step(self, agent, times=1):
        """Run rounds of an agent, each 10 s after the one before."""
        for _ in range(times):
            self.now_s += 10
            await asyncio.to_thread(agent.step)

    @property
    def excluded(self):
        """The hosts that HDFS decommissions."""
        return (self.folder / "files" / "dfs.exclude").read_text().split()

    def agent(self, leader, token, name=MASTER):
        """An agent that reports to a leader."""
        (self.folder / "token").write_text(token)
        (self.folder / "ca.crt").write_text(AUTHORITY.pem)
        environment = Environment(pod_name=name, token_path=self.folder / "token", ca_path=self.folder / "ca.crt")
        spec = AgentSpec(
            namespace="demo",
            cluster_uid=UID,
            progress_url=f"https://localhost:{leader.port}",
            domain=DOMAIN,
            files_path=str(self.folder / "files"),
            refresh_path=str(self.folder / "refresh"),
        )
        endpoint = progress.Endpoint(spec.progress_url, spec.namespace, spec.cluster_uid, environment)
        client = AgentClient(endpoint, environment)
        return Agent(spec, self, self, client, resolve=lambda _: [], canary=lambda: True, monotonic=lambda: self.now_s)


@contextlib.asynccontextmanager
async def leading(client, pods, epoch=3):
    """A leader that serves."""
    leader = Leader(client, pods, epoch)
    context = certificates.server_context(AUTHORITY, ["localhost"], dt.datetime.now(dt.UTC))
    async with leader.server.serve(context, port=0, host="127.0.0.1") as leader.port:
        yield leader


def encoded(**fields):
    """A report as JSON."""
    return msgspec.json.encode(fields)
