"""A crowd of tenants on the fake API server: objects of all kinds in many namespaces that come, end and are deleted.

`Crowd` is all that is around an operator: the tenants, kubelets, Spark's drivers, the agents of Hadoop clusters, the
garbage collector. What tasks and agents send to the progress endpoint goes to `Hints`. `life` is the life of a few
namespaces for a test of seconds; `tests/soak` drives a crowd for an hour.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from boathouse.resources import names
from boathouse.services.mrcluster.model import MASTER
from boathouse.services.mrjob import splits
from boathouse.services.progress.limits import Rejected
from boathouse.services.sparkapp import pods
from boathouse_task import contract
from boathouse_task.cluster_contract import AgentReport, HdfsFigures
from boathouse_task.contract import TaskType
from tests.builders import manifests
from tests.builders.operators import mrclusters, mrjobs, sparkapps
from tests.wire import waiting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.wire.fake_api import FakeApi

KINDS = ("mrjobs", "sparkapps", "mrclusters")
OWNED = ("pods", "services", "configmaps", "networkpolicies", "persistentvolumeclaims", "serviceaccounts")
STEP_S = 0.01
TURNS = 5000
HUGE = {"resources": {"cpu": "1000"}}
"""Requests that no node can satisfy."""
PLAN = mrjobs.split_plan(2)
_ENDED = ("Succeeded", "Failed")


class Hints(Protocol):
    """Takes what pods send to the progress endpoint."""

    def plan(self, key: str, uid: str) -> str | None:
        """Take the split plan of a job from a pod; returns its digest, or None if the operator has not taken it yet."""

    def report(self, key: str, uid: str) -> None:
        """Take the report of a cluster's agent in a pod."""


def agent_report(uid: str) -> AgentReport:
    """Return what the agent of a new cluster reports."""
    return AgentReport(hdfs=HdfsFigures(cluster_id=f"CID-{uid}", started_s=1, safe_mode=False))


class LeaderHints:
    """The hints for a leader in this process.

    Args:
        kind: Returns the leader's implementation of a kind.
    """

    def __init__(self, leader: Any) -> None:
        self._leader = leader

    def _kind(self, name: str) -> Any:
        return self._leader.controllers._reconcilers[name]._kind

    def plan(self, key: str, uid: str) -> str | None:
        kind, namespace = self._kind("MRJob"), key.partition("/")[0]
        if not kind.orders.knows(uid, namespace):
            return None
        encoded = splits.encode(PLAN)
        kind.plans.post(uid, namespace, encoded)
        return str(encoded.digest)

    def report(self, key: str, uid: str) -> None:
        kind = self._kind("MRCluster")
        if kind.pods.find(uid, key.partition("/")[2]) is None:
            return
        with contextlib.suppress(Rejected):
            report = agent_report(uid)
            kind.reports.take(uid, report, kind.reports.monotonic())
            kind.orders.answer(uid, report.version, number=kind.reports.number(uid), next_s=5.0)


class Crowd:
    """The tenants and their pods.

    Args:
        api: The fake API server.
        hints: Takes what pods send.

    Attributes:
        started: How many pods ran.
        created: How many custom resources were created, by plural.
    """

    def __init__(self, api: FakeApi, hints: Hints) -> None:
        self._api, self._hints = api, hints
        self.started = 0
        self.created: collections.Counter[str] = collections.Counter()
        self._owned: dict[str, list[dict[str, Any]]] = {}

    # Tenants

    def add_nodes(self, batch: str, count: int) -> None:
        """Add the nodes of a batch."""
        for number in range(count):
            self._api.add(manifests.node(f"n{batch}-{number}", cpu="64", memory="128Gi", labels={"batch": batch}))

    def delete_nodes(self, batch: str) -> None:
        """Delete the nodes of a batch; their pods fail."""
        gone = [name for name in self._api.objects("nodes") if name.startswith(f"n{batch}-")]
        for name in gone:
            self._api.remove("nodes", name)
        for key, pod in list(self._api.objects("pods").items()):
            if pod["spec"].get("nodeName") in gone:
                self._api.remove("pods", key)

    def create(self, namespace: str, plain: int = 2) -> None:
        """Create a namespace with an object of each kind and fate, and pods of its own, so many of them plain."""
        self._api.add(manifests.namespace(namespace))
        self._api.add(in_namespace(namespace, sparkapps.account()))
        for manifest in _objects(namespace):
            self._api.add(manifest)
            self.created[f"{manifest['kind'].lower()}s"] += 1
        for number in range(2):
            selector = {"disk": f"{namespace}-{number}"}
            self._api.add(manifests.pod(f"stray-{number}", namespace=namespace, nodeSelector=selector))
            self._api.add(manifests.pod(f"huge-{number}", namespace=namespace, cpu=f"{1000 + number}"))
        for number in range(plain):
            self._api.add(manifests.pod(f"plain-{number}", namespace=namespace, cpu=f"{number % 2 + 1}m"))

    def delete(self, namespace: str) -> None:
        """Delete a namespace's custom resources and pods, pending ones too."""
        for plural in KINDS:
            for key in self._keys(plural, namespace):
                self._api.world.begin_deletion(plural, key)
        for key in self._keys("pods", namespace):
            if not (self._api.get("pods", key) or {})["metadata"].get("ownerReferences"):
                self._api.remove("pods", key)

    def delete_rest(self, namespace: str) -> None:
        """Delete what is left in a namespace, and the namespace."""
        for plural in (*OWNED, "events"):
            for key in self._keys(plural, namespace):
                self._api.remove(plural, key)
        self._api.remove("namespaces", namespace)

    def _keys(self, plural: str, namespace: str) -> list[str]:
        return [key for key in self._api.objects(plural) if key.startswith(f"{namespace}/")]

    def phases(self, namespace: str) -> dict[str, str]:
        """Return the phase of each custom resource of a namespace, by `kind/name`."""
        return {
            f"{plural}/{key.partition('/')[2]}": (self._api.get(plural, key) or {}).get("status", {}).get("phase", "")
            for plural in KINDS
            for key in self._keys(plural, namespace)
        }

    def is_settled(self, namespace: str) -> bool:
        """Return whether each object of a namespace has reached what `_FATES` says."""
        phases = self.phases(namespace)
        return all(phases.get(name, "gone") in wanted for name, wanted in FATES.items())

    def is_deleted(self, namespace: str) -> bool:
        """Return whether no custom resource and no pod of a namespace is left."""
        return not any(self._keys(plural, namespace) for plural in (*KINDS, "pods"))

    async def one_pod(self) -> None:
        """Let a pod come, run and be deleted, alone."""
        self._api.add(manifests.pod("last", namespace="rest"))
        await waiting.eventually(lambda: self._api.objects("pods")["rest/last"]["status"]["phase"] == "Running")
        self._api.remove("pods", "rest/last")

    # Around the operator

    @contextlib.asynccontextmanager
    async def running(self):
        """Run the pods until the block ends."""
        task = asyncio.create_task(self._run())
        try:
            yield self
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        while True:
            self.step()
            await asyncio.sleep(STEP_S)

    def step(self) -> None:
        """Let kubelets, drivers, agents and the garbage collector do what is due."""
        uids = {
            manifest["metadata"]["uid"]
            for plural in (*KINDS, "pods")
            for manifest in self._api.objects(plural).values()
        }
        for plural in OWNED:
            for key, manifest in list(self._api.objects(plural).items()):
                owners = manifest["metadata"].get("ownerReferences") or ()
                if any(owner["uid"] not in uids for owner in owners):
                    self._api.remove(plural, key)
        self._owned = {}
        for pod in self._api.objects("pods").values():
            for owner in pod["metadata"].get("ownerReferences") or ():
                self._owned.setdefault(owner["uid"], []).append(pod)
        for key, pod in list(self._api.objects("pods").items()):
            if pod["metadata"].get("deletionTimestamp"):
                self._api.remove("pods", key)
            elif pod["spec"].get("nodeName") and pod["status"]["phase"] not in _ENDED:
                self._step(key, pod)

    def _step(self, key: str, pod: dict[str, Any]) -> None:
        labels = pod["metadata"].get("labels") or {}
        if "boathouse.dev/host" in labels:
            self._node_of_cluster(key, pod, labels["boathouse.dev/host"])
        elif labels.get("boathouse.dev/task-type") == "driver":
            self._driver(key, pod)
        elif names.LABEL_JOB_UID in labels and any(
            variable["name"] == contract.TASK_ENV for variable in pod["spec"]["containers"][0].get("env", ())
        ):
            self._task(key, pod)
        elif pod["status"]["phase"] == "Pending":
            self._start(key)

    def _start(self, key: str, **status: Any) -> None:
        self.started += 1
        self._api.set_phase(key, "Running", **status)

    def _task(self, key: str, pod: dict[str, Any]) -> None:
        env = {variable["name"]: variable.get("value", "") for variable in pod["spec"]["containers"][0]["env"]}
        order = msgspec.json.decode(env[contract.TASK_ENV], type=contract.TaskSpec)
        digest = ""
        if order.task_type is TaskType.SETUP:
            found = self._hints.plan(key, order.job_uid)
            if found is None:
                return
            digest = found
        self.started += 1
        if "/fails-" in key and order.task_type is TaskType.MAP:
            self._api.end_pod(key, **mrjobs.failing())
            return
        counters = {"g": {"map": 2, "reduce": 1}} if order.task_type is TaskType.COMMIT else {"g": {"one": 1}}
        result = contract.TaskResult(
            outcome="succeeded", winner_attempt=order.attempt, digest=digest, counters=counters
        )
        self._api.end_pod(key, message=msgspec.json.encode(result).decode())

    def _driver(self, key: str, pod: dict[str, Any]) -> None:
        namespace = pod["metadata"]["namespace"]
        if pod["status"]["phase"] == "Pending":
            self._start(
                key,
                podIP="10.0.0.1",
                containerStatuses=[{"name": pods.DRIVER_CONTAINER, "state": self._running_state()}],
            )
            return
        mine = self._owned.get(pod["metadata"]["uid"], [])
        for number in range(2 - len(mine)):
            made = sparkapps.executor(pod, number + len(mine))
            if self._api.get("pods", f"{namespace}/{made['metadata']['name']}") is None:
                self._api.add(made)
        if sum(executor["status"]["phase"] == "Running" for executor in mine) == 2:
            exit_code = 1 if "/fails-" in key else 0
            for executor in mine[exit_code:]:
                self._api.set_phase(
                    f"{namespace}/{executor['metadata']['name']}", "Failed" if exit_code else "Succeeded"
                )
            self._api.end_pod(key, exit_code=exit_code, container=pods.DRIVER_CONTAINER, podIP="10.0.0.1")

    def _node_of_cluster(self, key: str, pod: dict[str, Any], host: str) -> None:
        if pod["status"]["phase"] == "Pending":
            state = {"state": self._running_state(), "ready": True}
            statuses = [{"name": container["name"]} | state for container in pod["spec"]["containers"]]
            self._start(key, podIP="10.0.0.1", containerStatuses=statuses)
        elif host == MASTER:
            self._hints.report(key, pod["metadata"]["ownerReferences"][0]["uid"])

    def _running_state(self) -> dict[str, Any]:
        return {"running": {"startedAt": self._api.world.date}}


FATES = {
    "mrjobs/runs": {"Succeeded"},
    "mrjobs/fails": {"Failed"},
    "mrjobs/suspended": {"Suspended"},
    "mrjobs/huge": {"Map"},
    "mrjobs/expires": {"gone"},
    "mrjobs/invalid": {"Pending"},
    "sparkapps/runs": {"Succeeded"},
    "sparkapps/fails": {"Failed"},
    "sparkapps/suspended": {"Suspended"},
    "sparkapps/huge": {"Pending", "Queued", "Submitted"},
    "sparkapps/expires": {"gone"},
    "sparkapps/invalid": {"Pending"},
    "mrclusters/runs": {"Starting"},
    "mrclusters/stores": {"Starting"},
    "mrclusters/huge": {"Starting", "Pending"},
    "mrclusters/invalid": {"Pending"},
}
"""The phases in which the objects of a namespace rest, by `kind/name`."""


def _objects(namespace: str) -> Iterator[dict[str, Any]]:
    """Yield the custom resources of a namespace. Each has a program of its own, as with a date in its command."""
    for name, spec in (
        ("runs", {}),
        ("fails", {}),
        ("suspended", {"suspend": True}),
        ("huge", {"mapper": {"command": ["cat", namespace], "resources": {"requests": {"cpu": "1000"}}}}),
        ("expires", {"ttlSecondsAfterFinished": 0}),
        ("invalid", {"queue": "none"}),
    ):
        command = {"command": ["cat", f"{namespace}-{name}"], "maxAttempts": 1}
        job = mrjobs.mrjob(**{"mapper": command, "output": f"s3://b/{namespace}/{name}"} | spec)
        yield in_namespace(namespace, job, name)
    for name, spec in (
        ("runs", {}),
        ("fails", {}),
        ("suspended", {"suspend": True}),
        ("huge", {"driver": {"coreRequest": "1000"}}),
        ("expires", {"ttlSecondsAfterFinished": 0}),
        ("invalid", {"queue": "none"}),
    ):
        yield in_namespace(namespace, sparkapps.sparkapp(**{"arguments": [namespace, name]} | spec), name)
    volume = {"volume": {"emptyDir": True}}
    for name, spec in (
        ("runs", {}),
        ("stores", {"compute": False}),
        ("huge", {"master": volume | HUGE}),
        ("invalid", {"queue": "none"}),
    ):
        yield in_namespace(
            namespace, mrclusters.mrcluster(**{"master": volume, "core": {"count": 1} | volume} | spec), name
        )


def in_namespace(namespace: str, manifest: dict[str, Any], name: str = "") -> dict[str, Any]:
    """Return a copy of an object in this namespace, and with this name."""
    copied = json.loads(json.dumps(manifest))
    copied["metadata"] |= {"namespace": namespace} | ({"name": name} if name else {})
    return copied


async def life(crowd: Crowd, batch: str, namespaces: int, nodes: int = 3) -> None:
    """Let a batch of namespaces come, its objects reach their fates, and all of it be deleted."""
    mine = [f"t{batch}-{number}" for number in range(namespaces)]
    crowd.add_nodes(batch, nodes)
    for namespace in mine:
        crowd.create(namespace)
    await waiting.eventually(lambda: all(map(crowd.is_settled, mine)), "the objects reach their fates", turns=TURNS)
    crowd.delete_nodes(batch)
    for namespace in mine:
        crowd.delete(namespace)
    await waiting.eventually(lambda: all(map(crowd.is_deleted, mine)), "the objects are gone", turns=TURNS)
    for namespace in mine:
        crowd.delete_rest(namespace)
    await crowd.one_pod()
