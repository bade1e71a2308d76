"""MRJobs and DriverApps beside one another: real scheduler and controllers, a fake API server, simulated kubelets."""

import asyncio
import contextlib
import dataclasses
import types

from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.services.frame import controllers
from boathouse.services.frame.controllers import KindEntry
from boathouse.services.mrjob import routes
from tests.builders import manifests
from tests.builders.operators import leaders, mrjobs, schedulers
from tests.kinds.driver_app import kind as driver_app
from tests.wire import fake_api, waiting

KINDS = (routes.ENTRY, KindEntry(add=driver_app.add))
APP = "demo/app"
SPLITS = 2


def driver_app_manifest(name="app", **spec):
    """Return a DriverApp with two executors."""
    metadata = {"name": name, "namespace": "demo"}
    return {"apiVersion": names.API_VERSION, "kind": "DriverApp", "metadata": metadata, "spec": {"executors": 2} | spec}


class Nodes:
    """Runs pods that have a node: tasks of MRJobs, drivers, and the executors that drivers create.

    Attributes:
        holds: Whether drivers run on when their executors run.
    """

    def __init__(self, api):
        self._api, self.holds = api, False
        self.tasks = mrjobs.Kubelet(api, SPLITS)

    async def run(self):
        while True:
            for key, pod in list(self._api.objects("pods").items()):
                if pod["metadata"].get("deletionTimestamp") or self._is_orphan(pod):
                    self._api.remove("pods", key)
                elif pod["spec"].get("nodeName"):
                    self._step(key, pod)
            await asyncio.sleep(0.005)

    def _is_orphan(self, pod):
        """Say whether the driver that owns a pod is gone or has ended; the garbage collector deletes the pod then."""
        owner = pod["metadata"]["ownerReferences"][0]
        drivers = self._api.objects("pods").values()
        live = {other["metadata"]["uid"] for other in drivers if other["status"]["phase"] in {"Pending", "Running"}}
        return owner["kind"] == "Pod" and owner["uid"] not in live

    def _step(self, key, pod):
        phase, count = pod["status"]["phase"], int(pod["metadata"].get("annotations", {}).get("executors", 0))
        if mrjob_names.LABEL_TASK_TYPE in pod["metadata"]["labels"]:
            if phase == "Pending":
                self.tasks._step(key, pod)
            return
        if phase == "Pending":
            self._api.set_phase(key, "Running")
            for number in range(count):
                self._api.add(executor_manifest(pod, number))
        elif count and not self.holds and self.executors() == count:
            self._api.end_pod(key)

    def executors(self):
        """Return how many executors run."""
        pods = self._api.objects("pods").values()
        return sum(pod["metadata"]["name"].startswith("exec-") and pod["status"]["phase"] == "Running" for pod in pods)


def executor_manifest(driver, number, **owner):
    """Return a pod as a driver creates it."""
    metadata = driver["metadata"]
    controller = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
    labels = {names.LABEL_QUEUE: metadata["labels"][names.LABEL_QUEUE]}
    name, namespace = f"exec-{metadata['uid']}-{number}", owner.pop("namespace", metadata["namespace"])
    controller |= {"controller": True} | owner
    return manifests.pod(name, namespace=namespace, cpu="100m", labels=labels, owner=controller)


@dataclasses.dataclass(kw_only=True)
class TwoKinds:
    """A leader with both kinds, its API server, and the nodes."""

    api: fake_api.FakeApi
    nodes: Nodes
    leader: controllers.LeaderServices

    def status(self, plural="driverapps", key=APP):
        return (self.api.get(plural, key) or {}).get("status") or {}

    def phase(self, plural="driverapps", key=APP):
        return self.status(plural, key).get("phase")

    def condition(self, kind, key=APP):
        return next(
            (condition for condition in self.status(key=key).get("conditions") or () if condition["type"] == kind), None
        )

    def drivers(self):
        return [key for key in self.api.objects("pods") if "-driver-" in key]

    def kind(self, name):
        return self.leader.controllers._reconcilers[name]._kind

    def statuses(self):
        """Return the statuses of DriverApps that were written, in order."""
        return [call.body["status"] for call in self.api.calls if call.name == "patch driverapps/status"]


@contextlib.asynccontextmanager
async def leading(api):
    """Run a leader with both kinds, and the nodes; stop both at the end, as a crash would."""
    async with leaders.leading(api, KINDS) as leader, contextlib.AsyncExitStack() as stack:
        kinds = TwoKinds(api=api, nodes=Nodes(api), leader=leader)
        mrjobs = kinds.kind("MRJob")
        kinds.nodes.tasks.operator = types.SimpleNamespace(orders=mrjobs.orders, plans=mrjobs.plans)
        stack.push_async_callback(schedulers.stop, asyncio.create_task(kinds.nodes.run()))
        yield kinds


eventually = waiting.eventually
