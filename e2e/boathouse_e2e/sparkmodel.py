"""Programs of Spark applications where no kubelet runs: drivers create executors of their template, by their token.

KWOK lets pods start. The model does what the program and Spark in a driver's pod would do, as far as the API server
sees it: it creates the executors that its properties ask for, and ends when they have run.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import json
from typing import TYPE_CHECKING, Any

from boathouse.cluster import catalogue, client, errors
from boathouse.resources import names
from boathouse.resources.sparkapp.names import LABEL_ATTEMPT, LABEL_TASK_TYPE, SPARKAPP_KIND, TASK_TYPE_DRIVER
from boathouse_e2e import hostile, lab, played_pods

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ACCOUNT = "boathouse-spark"
_PODS = catalogue.PODS.untyped()
_STEP_S = 0.1
_CONTAINER = "spark-kubernetes-driver"


def manifest(name: str, **spec: Any) -> dict[str, Any]:
    """Return a SparkApp in Python with two executors, whose pods are small."""
    small = {"memory": "450m", "coreRequest": "500m"}
    known = {
        "type": "Python",
        "mainApplicationFile": "local:///opt/app/pi.py",
        "image": "spark:dev",
        "driver": small,
        "executor": {**small, "instances": 2},
    }
    metadata = {"name": name, "namespace": lab.NAMESPACE}
    return {"apiVersion": names.API_VERSION, "kind": SPARKAPP_KIND, "metadata": metadata, "spec": known | spec}


@dataclasses.dataclass(slots=True)
class Program:
    """What the programs of the applications do.

    Attributes:
        executors: How many executors they request, which may grow while they run.
        holds: Whether they run on until this is taken back.
        fails: The attempts that end with exit code 1.
    """

    executors: int = 2
    holds: bool = False
    fails: frozenset[int] = frozenset()


class SparkModel:
    """Plays the drivers of one namespace.

    Attributes:
        program: What they do.
        started: How many drivers of each name started.
        overlaps: Applications of which two drivers ran at once.
    """

    def __init__(self, api: client.ApiClient, place: lab.Lab) -> None:
        self._api, self._lab = api, place
        self.program = Program()
        self.started: collections.Counter[str] = collections.Counter()
        self.overlaps: set[str] = set()
        self._playing: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Play each driver that runs, until cancelled."""
        label = f"{LABEL_TASK_TYPE}={TASK_TYPE_DRIVER}"
        try:
            while True:
                with contextlib.suppress(*played_pods.PASSING):
                    found = (await self._api.list(_PODS, lab.NAMESPACE, labels=label)).items
                    self._look([pod for pod in found if played_pods.runs(pod)])
                for task in self._playing.values():
                    if task.done():
                        task.result()
                await asyncio.sleep(_STEP_S)
        finally:
            for task in self._playing.values():
                task.cancel()
            await asyncio.gather(*self._playing.values(), return_exceptions=True)

    def _look(self, running: list[dict[str, Any]]) -> None:
        counts = collections.Counter(pod["metadata"]["labels"][names.LABEL_JOB_UID] for pod in running)
        self.overlaps |= {uid for uid, count in counts.items() if count > 1}
        for pod in running:
            metadata = pod["metadata"]
            if metadata["uid"] not in self._playing:
                self.started[metadata["name"]] += 1
                self._playing[metadata["uid"]] = asyncio.create_task(self._play(pod))

    async def _play(self, driver: dict[str, Any]) -> None:
        """Be the program of a driver from its start to its end."""
        metadata = driver["metadata"]
        with contextlib.suppress(errors.NotFound, errors.Forbidden):  # it was deleted, and its token with it
            async with hostile.tenant(self._lab, ACCOUNT, lab.NAMESPACE, metadata["name"]) as program:
                await self._run_executors(program, driver)
            await self._end(driver, 1 if int(metadata["labels"][LABEL_ATTEMPT]) in self.program.fails else 0)

    async def _run_executors(self, program: hostile.Tenant, driver: dict[str, Any]) -> None:
        """Create the executors that are requested, until all of them run."""
        template, created = await self._template(driver), 0
        while self.program.holds or not await self._executors_run(driver["metadata"]):
            for number in range(created + 1, self.program.executors + 1):
                with contextlib.suppress(errors.AlreadyExists):
                    await program.api.create(_PODS, executor(driver, template, number), lab.NAMESPACE)
                created = number
            await asyncio.sleep(_STEP_S)

    async def _template(self, driver: dict[str, Any]) -> dict[str, Any]:
        name = next(volume["configMap"]["name"] for volume in driver["spec"]["volumes"] if "configMap" in volume)
        found = await self._api.get(catalogue.CONFIG_MAPS, name, lab.NAMESPACE)
        return dict(json.loads(found["data"]["executor.yaml"]))

    async def _executors_run(self, driver: dict[str, Any]) -> bool:
        with contextlib.suppress(*played_pods.PASSING):
            pods = (await self._api.list(_PODS, lab.NAMESPACE, labels="spark-role=executor")).items
            own = [pod for pod in pods if pod["metadata"]["ownerReferences"][0]["uid"] == driver["uid"]]
            running = [pod for pod in own if pod["status"]["phase"] == "Running"]
            return len(running) >= self.program.executors
        return False

    async def _end(self, driver: dict[str, Any], exit_code: int) -> None:
        metadata, status = driver["metadata"], played_pods.ended(_CONTAINER, exit_code, "the last line")
        await played_pods.write(self._api, lab.NAMESPACE, metadata["name"], metadata["uid"], status)


def executor(driver: dict[str, Any], template: dict[str, Any], number: int) -> dict[str, Any]:
    """Return an executor as Spark makes it of the template, with little memory."""
    metadata = driver["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"], "controller": True}
    labels = {"spark-role": "executor", "spark-app-selector": metadata["labels"]["spark-app-selector"]}
    (container,) = template["spec"]["containers"]
    resources = {**container["resources"]}
    resources["requests"] = {**resources.get("requests", {}), "cpu": "500m", "memory": "834Mi"}
    resources["limits"] = {**resources.get("limits", {}), "memory": "834Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{metadata['name'].removesuffix('-driver')}-exec-{number}",
            "ownerReferences": [owner],
            "labels": {**template["metadata"]["labels"], **labels},
            "annotations": template["metadata"].get("annotations") or {},
        },
        "spec": {
            **template["spec"],
            "serviceAccountName": "default",
            "containers": [{**container, "image": "spark:dev", "args": ["executor"], "resources": resources}],
        },
    }


@contextlib.asynccontextmanager
async def running(api: client.ApiClient, place: lab.Lab) -> AsyncIterator[SparkModel]:
    """Drivers at work until the block ends; what went wrong with them is raised then."""
    model = SparkModel(api, place)
    async with played_pods.working(model.run()):
        yield model
