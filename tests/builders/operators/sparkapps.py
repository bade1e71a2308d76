"""Whole SparkApps on the fake API server: a leader that can be killed, kubelets, and drivers that create executors."""

from __future__ import annotations

import asyncio
import collections
import dataclasses

from boathouse.resources import names
from boathouse.resources.config import OperatorConfig
from boathouse.services.sparkapp import kind, pods
from tests.builders import manifests
from tests.builders.operators import leaders

KEY = "demo/pi"
CONFIG = OperatorConfig.model_validate({"spark": {"image": "spark:dev", "missingObjectTimeoutSeconds": 1e6}})
STARTED = {"startedAt": "2026-01-01T00:00:00Z"}
_LIVE = {"Pending", "Running"}
_OWNERS = {"Pod": "pods", "SparkApp": "sparkapps"}


def sparkapp(name="pi", **spec):
    """Return a SparkApp in Python with two executors."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": "SparkApp",
        "metadata": {"name": name, "namespace": "demo", "generation": 1},
        "spec": {"type": "Python", "mainApplicationFile": "local:///opt/pi.py"} | spec,
    }


def account(name="boathouse-spark"):
    """Return the service account of drivers."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "demo"}}


def executor(driver, number, **metadata):
    """Return a pod as a driver creates it, with labels of the template and of Spark."""
    known = driver["metadata"]
    kept = {key: known["labels"][key] for key in (names.APP_NAME, names.APP_INSTANCE, "spark-app-selector")}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": known["name"], "uid": known["uid"], "controller": True}
    name = known["name"].removesuffix("-driver") + f"-exec-{number}"
    labels = {**kept, "spark-role": "executor", "spark-exec-id": str(number)}
    pod = manifests.pod(name, namespace=known["namespace"], cpu="100m", labels=labels, owner=owner)
    pod["metadata"] |= metadata
    return pod


@dataclasses.dataclass
class Script:
    """What the driver of an attempt does.

    Attributes:
        executors: How many executors it requests.
        runs: Whether its container starts.
        ends: Whether it ends when its executors run.
        exit_code: With what it ends.
        log: The last lines that it writes.
    """

    executors: int = 2
    runs: bool = True
    ends: bool = True
    exit_code: int = 0
    log: str = ""


class Nodes:
    """Runs the pods that have a node; drivers create executors, and end when these run.

    Attributes:
        scripts: By the number of the attempt; 0 for all others.
        submissions: How often the driver of each name was created.
    """

    def __init__(self, api):
        self._api = api
        self.scripts = collections.defaultdict(Script)
        self.lost = set()
        self.created = collections.Counter()
        self.most_live = 0

    def script(self, pod):
        """Return what a driver does."""
        return self.scripts.get(int(pod["metadata"]["labels"]["boathouse.dev/attempt"]), self.scripts[0])

    async def run(self):
        while True:
            self.step()
            await asyncio.sleep(0.005)

    def step(self):
        """Do what kubelets, drivers and the garbage collector do."""
        live = set()
        for key, pod in list(self._api.objects("pods").items()):
            if self._is_orphan(pod):
                self._api.remove("pods", key)
            elif pod["spec"].get("nodeName") not in {None, *self.lost}:
                self._step(key, pod)
            if (
                pod["metadata"].get("labels", {}).get("boathouse.dev/task-type") == "driver"
                and pod["spec"].get("nodeName")
                and pod["status"]["phase"] in _LIVE
            ):
                live.add(key)
        self.most_live = max(self.most_live, len(live))

    def _is_orphan(self, pod):
        owner = (pod["metadata"].get("ownerReferences") or [{}])[0]
        plural = _OWNERS.get(owner.get("kind"))
        return plural is not None and owner["uid"] not in {
            manifest["metadata"]["uid"] for manifest in self._api.objects(plural).values()
        }

    def _step(self, key, pod):
        if pod["metadata"].get("deletionTimestamp"):
            self._api.remove("pods", key)
        elif not key.endswith("-driver"):
            if pod["status"]["phase"] == "Pending":
                self._api.set_phase(key, "Running")
        elif pod["status"]["phase"] == "Pending":
            self._start(key, pod)
        elif pod["status"]["phase"] == "Running":
            self._drive(key, pod)

    def _start(self, key, pod):
        """Start a driver's container; its ConfigMap must be there."""
        config_map = next(volume["configMap"]["name"] for volume in pod["spec"]["volumes"] if "configMap" in volume)
        assert self._api.get("configmaps", f"demo/{config_map}"), "a driver without its ConfigMap"
        if self.script(pod).runs:
            self.created[key] += 1
            self.set_state(key, "Running", {"running": STARTED})

    def _drive(self, key, pod):
        script = self.script(pod)
        for number in range(script.executors):
            made = executor(pod, number)
            if not self._api.get("pods", f"demo/{made['metadata']['name']}"):
                self._api.add(made)
        if script.ends and self.running(pod) >= script.executors:
            self.end(key, script.exit_code, script.log)

    def running(self, driver):
        """Return how many executors of a driver run."""
        pods = self._api.objects("pods").values()
        owned = [pod for pod in pods if pod["metadata"]["ownerReferences"][0]["uid"] == driver["metadata"]["uid"]]
        return sum(pod["status"]["phase"] == "Running" for pod in owned)

    def end(self, key, exit_code=0, log="", reason=""):
        """Let a driver end."""
        terminated = {**STARTED, "exitCode": exit_code, "message": log, "reason": reason or "Error"}
        terminated["finishedAt"] = "2026-01-01T00:00:10Z"
        self.set_state(key, "Failed" if exit_code else "Succeeded", {"terminated": terminated})

    def set_state(self, key, phase, state):
        """Set the phase of a driver's pod, and the state of its container."""
        self._api.set_phase(
            key, phase, podIP="10.0.0.1", containerStatuses=[{"name": pods.DRIVER_CONTAINER, "state": state}]
        )


class RunningSparkApp(leaders.RestartableLeader):
    """What a test acts on and asserts about."""

    kind_name, plural, key = "SparkApp", "sparkapps", KEY

    def __init__(self, api, config=CONFIG, profile="fair"):
        super().__init__(api, kind.ENTRY, config, profile)
        self.nodes = Nodes(api)

    def drivers(self):
        return [key for key in self.api.objects("pods") if key.endswith("-driver")]

    def driver(self, attempt=1):
        return next((key for key in self.drivers() if key.endswith(f"-a{attempt}-driver")), None)

    def executors(self):
        return [key for key in self.api.objects("pods") if "-exec-" in key]
