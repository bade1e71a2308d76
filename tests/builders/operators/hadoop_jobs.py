"""A job on a Hadoop cluster on the fake API server: a leader that can be killed, a kubelet, and a ResourceManager."""

from __future__ import annotations

import asyncio
import dataclasses
import types

from boathouse.resources import names, statuses
from boathouse.resources.config import OperatorConfig
from boathouse.services.mrjob import routes
from boathouse.services.progress.limits import Rejected
from boathouse_task.cluster_contract import ApplicationFigures
from tests.builders.mrclusters import cluster_facts
from tests.builders.operators import leaders

KEY = "demo/words"
CLUSTER = cluster_facts(uid="c-1", name="lake", namespace="demo")
CONFIG = OperatorConfig.model_validate({"task": {"image": "task:dev", "startTimeoutSeconds": 1e6}})
STEP_S = 0.005
SECONDS_A_STEP = 0.5
"""The clocks of operator and cluster are faster than that of the test."""


def mrjob(**spec):
    stage = {"command": ["cat"]}
    given = {"input": ["/in"], "output": "/out", "mapper": stage, "reducer": stage, "clusterRef": {"name": "lake"}}
    return {
        "apiVersion": names.API_VERSION,
        "kind": "MRJob",
        "metadata": {"name": "words", "namespace": "demo", "generation": 1},
        "spec": given | spec,
    }


class Nodes:
    """The kubelet of clients, the clients, and the agent of the cluster with its ResourceManager.

    Attributes:
        applications: Tag and figures by ID.
        cluster: The facts of the cluster.
        is_held: Whether applications run on.
        lacks: Why the kubelet cannot mount the volumes of clients.
        loses: Attempts whose clients are killed before they submit.
        most_running: The most applications that ran at a time.
    """

    def __init__(self, api, world):
        self._api, self._world = api, world
        self.applications = {}
        self.is_held = False
        self.has_cluster, self.cluster = True, CLUSTER
        self.lacks = ""
        self.loses = set()
        self.most_running = 0
        self._by_pod = {}

    async def run(self):
        while True:
            await self.step()
            await asyncio.sleep(STEP_S)

    async def step(self):
        self._world.offset_s += SECONDS_A_STEP
        leader = self._world.leader
        for key, pod in list(self._api.objects("pods").items()):
            if pod["metadata"].get("deletionTimestamp"):
                self._api.remove("pods", key)
            elif pod["spec"].get("nodeName"):
                await self._client(key, pod, leader)
        self._finish()
        self.most_running = max(
            self.most_running, sum(not application.has_ended for _, application in self.applications.values())
        )
        if leader is not None:
            self._report(leader)

    async def _client(self, key, pod, leader):
        attempt = int(pod["metadata"]["labels"]["boathouse.dev/attempt"])
        phase = pod.get("status", {}).get("phase", "Pending")
        name = self._by_pod.get(pod["metadata"]["uid"])
        if phase == "Pending" and self.lacks:
            self._event(pod)
        elif phase == "Pending":
            running = [{"name": "task", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]
            self._api.set_phase(key, "Running", containerStatuses=running)
        elif phase == "Running" and name is None and attempt in self.loses:
            self._api.end_pod(key, exit_code=137)
        elif phase == "Running" and name is None and await self._has_leave(key, pod, leader):
            self._submit(pod["metadata"]["uid"], attempt)
        elif phase == "Running" and name is not None and self.applications[name][1].has_ended:
            self._api.end_pod(key, exit_code=0 if self.applications[name][1].final == "SUCCEEDED" else 1)

    def _event(self, pod):
        """Say in an event that the volumes of a pod cannot be mounted."""
        uid = pod["metadata"]["uid"]
        if self._api.get("events", f"demo/{uid}") is None:
            metadata = {"name": uid, "namespace": "demo"}
            regarding = {"kind": "Pod", "uid": uid}
            event = {"reason": "FailedMount", "note": self.lacks, "regarding": regarding, "metadata": metadata}
            self._api.add({"apiVersion": "events.k8s.io/v1", "kind": "Event"} | event)

    async def _has_leave(self, key, pod, leader):
        """Ask as the endpoint does."""
        if leader is None:
            return False
        jobs = self._world.kind.hadoop
        caller = types.SimpleNamespace(namespace="demo", pod_name=key.rpartition("/")[2])
        found = jobs.find(self._world.uid(), caller)
        if found is None or found.uid != pod["metadata"]["uid"]:
            return False
        sender = types.SimpleNamespace(object_uid=self._world.uid(), pod=found)
        route = routes.leave_route(jobs)
        try:
            route.check(sender)
            await route.handle(None, sender)
        except (Rejected, leaders.Killed):
            return False
        return True

    def _submit(self, pod_uid, attempt):
        name = self._by_pod[pod_uid] = f"application_1_{len(self.applications) + 1}"
        figures = ApplicationFigures(id=name, state="RUNNING", maps=(1, 2), reduces=(0, 1))
        self.applications[name] = (f"{self._world.uid()}-{attempt}", figures)

    def _finish(self):
        for name, (_, figures) in list(self.applications.items()):
            if not figures.has_ended and not self.is_held:
                self.end(name, "SUCCEEDED")

    def end(self, name, final):
        state = "KILLED" if final == "KILLED" else "FINISHED"
        counters = {"org.apache.hadoop.mapreduce.TaskCounter": {"MAP_INPUT_RECORDS": 7}}
        ended = ApplicationFigures(id=name, state=state, final=final, maps=(2, 2), reduces=(1, 1), counters=counters)
        self.applications[name] = (self.applications[name][0], ended)

    def delete_cluster(self):
        """Delete the cluster with its applications."""
        leader = self._world.leader
        self.has_cluster = False
        leader.applications.forget(self.cluster.uid)
        leader.clusters.forget(self.cluster.uid)
        for name in self.applications:
            self.end(name, "KILLED")

    def create_cluster(self, uid):
        """Create the cluster again with another UID."""
        self.cluster, self.has_cluster = dataclasses.replace(CLUSTER, uid=uid), True

    def _report(self, leader):
        if self.has_cluster and leader.clusters.get(self.cluster.uid) is None:
            leader.clusters.put(self.cluster)
        tags, kills = leader.applications.orders(self.cluster.uid)
        for name in kills:
            if not self.applications[name][1].has_ended:
                self.end(name, "KILLED")
        now_s = self._world.now()
        found = {
            tag: [application for known, application in self.applications.values() if known == tag] for tag in tags
        }
        leader.applications.answered(self.cluster.uid, began_s=now_s, rm_started_s=0.0, found=found)
        if self._api.get("mrjobs", KEY) is not None:
            leader.controllers.mark(self._world.uid())


class RunningHadoopJob(leaders.RestartableLeader):
    """What a test acts on and asserts about."""

    kind_name, plural, key = "MRJob", "mrjobs", KEY

    def __init__(self, api):
        super().__init__(api, routes.ENTRY, CONFIG, "fair")
        self.nodes = Nodes(api, self)

    def clients(self):
        return sorted(key.rpartition("-")[2] for key in self.api.objects("pods"))

    def finals(self):
        return [figures.final for _, figures in self.nodes.applications.values()]

    def patch(self, **spec):
        self.api.change("mrjobs", KEY, {"spec": spec})

    def delete(self):
        """Mark the job as deleted now, and return when."""
        deleted_s = self.now()
        self.api.change("mrjobs", KEY, {"metadata": {"deletionTimestamp": statuses.rfc3339(deleted_s)}})
        return deleted_s
