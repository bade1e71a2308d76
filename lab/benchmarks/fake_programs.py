"""What programs in the pods of fake nodes would do: Spark drivers that request executors, and tasks of MapReduce.

A driver requests executors when it runs, replaces what is lost or refused without a word, works with the executors that
run, and ends. It begins when 80 % of its executors run or 30 s have passed, and at least one runs, as Spark does
(`spark.scheduler.minRegisteredResourcesRatio`, `maxRegisteredResourcesWaitingTime`).
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

from boathouse.cluster import catalogue, errors, informer, store, wire
from boathouse.resources import names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boathouse.cluster import client

TICK_S = 0.5
REGISTERED_RATIO = 0.8
REGISTERED_WITHIN_S = 30.0
WORK = "bench.example.com/work"
"""Annotation of a driver: its `Work` as JSON."""
AT_ONCE = 16
TOKENS = catalogue.Resource(plural="serviceaccounts", kind="TokenRequest", view=wire.Manifest)


class _Env(wire.View, frozen=True, kw_only=True):
    name: str = ""
    value: str = ""


class _Container(wire.View, frozen=True, kw_only=True):
    name: str = ""
    env: tuple[_Env, ...] = ()
    resources: wire.ResourceRequirements = wire.ResourceRequirements()


class _Spec(wire.View, frozen=True, kw_only=True):
    node_name: str = ""
    scheduler_name: str = ""
    service_account_name: str = ""
    containers: tuple[_Container, ...] = ()


class Pod(wire.View, frozen=True, kw_only=True):
    """What the models read of a pod."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: _Spec = _Spec()
    status: wire.PodStatus = wire.PodStatus()

    @property
    def phase(self) -> str:
        """Return its phase, as long as nobody deleted it."""
        return "Deleting" if self.metadata.deletion_timestamp else self.status.phase


async def token(api: client.ApiClient, pod: Pod) -> str:
    """Return a token of a pod for the progress endpoint, as its kubelet would project it."""
    reference = {"apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.metadata.uid}
    body = {"spec": {"audiences": [names.TOKEN_AUDIENCE], "boundObjectRef": reference}}
    path = TOKENS.path(pod.metadata.namespace, pod.spec.service_account_name or "default", "token")
    answer = json.loads(await api._send("POST", path, body))  # noqa: SLF001 - only kubelets request tokens of pods
    return str(answer["status"]["token"])


PODS = catalogue.PODS.viewed_as(Pod)
Task = Callable[[Pod], Awaitable[str | None]]
"""Does what a task does, and returns its termination message; None for a pod that is no task."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a driver does.

    Attributes:
        executors: How many it requests.
        cores: Cores of each.
        memory_mib: Memory of each.
        seconds: Executor-seconds that the application takes.
        minimum: Executors for which room is reserved.
    """

    executors: int
    minimum: int
    cores: int
    memory_mib: int
    seconds: float

    def text(self) -> str:
        """Return it as the annotation has it."""
        return json.dumps(dataclasses.asdict(self))


@dataclasses.dataclass(slots=True, kw_only=True)
class _Driver:
    pod: Pod
    work: Work
    since_s: float
    left_s: float
    has_begun: bool = False
    requested: set[str] = dataclasses.field(default_factory=set)
    numbers: itertools.count[int] = dataclasses.field(default_factory=lambda: itertools.count(1))


class Programs:
    """Follows the pods of some namespaces, and does what their programs would.

    Args:
        api: Speaks to the API server.
        namespaces: The namespaces.
        task: What tasks do.

    Attributes:
        ended: Names of drivers and tasks that ended.
        refused: Executors that the API server refused.
        pods: Pods that have not ended, by UID.
        moments: Of each driver by UID, when it came to a stage.
    """

    def __init__(self, api: client.ApiClient, namespaces: Iterable[str], task: Task) -> None:
        self._api, self._task = api, task
        self._drivers: dict[str, _Driver] = {}
        self._executors: dict[str, dict[str, Pod]] = {}
        self._begun: set[str] = set()
        self._jobs: set[asyncio.Task[None]] = set()
        self._writes = asyncio.Semaphore(AT_ONCE)
        self.ended: set[str] = set()
        self.refused = 0
        self.pods: dict[str, Pod] = {}
        self.moments: dict[str, dict[str, float]] = collections.defaultdict(dict)
        self._watch: informer.Informer[Pod] = informer.Informer(
            api, PODS, namespaces=sorted(namespaces), on_change=self._changed
        )

    async def run(self) -> None:
        """Follow the pods until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch.run())
            while True:
                await asyncio.sleep(TICK_S)
                for driver in list(self._drivers.values()):
                    self._tick(driver)

    def _start(self, work: Any) -> None:
        running = asyncio.create_task(work)
        self._jobs.add(running)
        running.add_done_callback(self._jobs.discard)

    # Pods

    def _changed(self, change: store.Change[Pod]) -> None:
        pod = change.old if isinstance(change, store.Deleted) else change.new
        owner, uid = pod.metadata.controller, pod.metadata.uid
        is_gone = isinstance(change, store.Deleted) or pod.phase in {"Deleting", "Succeeded", "Failed"}
        if is_gone:
            self.pods.pop(uid, None)
        else:
            self.pods[uid] = pod
        if WORK in pod.metadata.annotations and pod.spec.node_name:
            self._reach(uid, "placed")
        if owner is not None and owner.kind == "Pod":
            mine = self._executors.setdefault(owner.uid, {})
            mine.pop(pod.metadata.name, None)
            self._reach(owner.uid, "requested")
            if not is_gone:
                mine[pod.metadata.name] = pod
        elif is_gone:
            self._drivers.pop(uid, None)
        elif pod.phase == "Running" and uid not in self._begun:
            self._begun.add(uid)
            if (text := pod.metadata.annotations.get(WORK)) is not None:
                work = Work(**json.loads(text))
                self._reach(uid, "running")
                self._drivers[uid] = _Driver(pod=pod, work=work, since_s=time.monotonic(), left_s=work.seconds)
            else:
                self._start(self._run_task(pod))

    def _reach(self, uid: str, stage: str) -> None:
        self.moments[uid].setdefault(stage, time.monotonic())

    def activity(self, pod: Pod) -> str:
        """Return what a pod that has a node does."""
        driver = self._drivers.get(pod.metadata.uid)
        if pod.phase != "Running":
            return "starting"
        if driver is not None:
            return "drivers" if driver.has_begun else "drivers without executors"
        owner = pod.metadata.controller
        if owner is not None and owner.kind == "Pod":
            parent = self._drivers.get(owner.uid)
            return "executors" if parent is not None and parent.has_begun else "executors without work"
        return "tasks"

    def reserved(self) -> Iterator[float]:
        """Yield the cores that running drivers have not requested of their minimum."""
        for uid, driver in self._drivers.items():
            placed = sum(bool(pod.spec.node_name) for pod in self._executors.get(uid, {}).values())
            yield max(0, driver.work.minimum - placed) * driver.work.cores

    async def _run_task(self, pod: Pod) -> None:
        message = await self._task(pod)
        if message is not None:
            await self._end(pod, message)

    async def _end(self, pod: Pod, message: str = "") -> None:
        name = pod.spec.containers[0].name
        terminated = {"exitCode": 0, "reason": "Completed", "message": message}
        status = {"phase": "Succeeded", "containerStatuses": [_status(name, {"terminated": terminated})]}
        async with self._writes:
            with contextlib.suppress(errors.NotFound):
                await self._retrying(
                    lambda: self._api.patch_status(
                        catalogue.PODS, pod.metadata.name, status, pod.metadata.namespace, uid=pod.metadata.uid
                    )
                )
        self.ended.add(pod.metadata.name)

    async def _retrying(self, call: Callable[[], Awaitable[Any]]) -> None:
        while True:
            try:
                await call()
            except (errors.ConnectionLost, errors.ServerError, errors.TooManyRequests):
                await asyncio.sleep(1)
            else:
                return

    # Spark

    def _tick(self, driver: _Driver) -> None:
        uid, work = driver.pod.metadata.uid, driver.work
        mine = self._executors.get(uid, {})
        executors = [pod for pod in mine.values() if pod.phase == "Running"]
        running = len(executors)
        waited_s = time.monotonic() - driver.since_s
        enough = running >= REGISTERED_RATIO * work.executors or (running and waited_s >= REGISTERED_WITHIN_S)
        driver.has_begun = driver.has_begun or bool(enough)
        if driver.has_begun:
            self._reach(uid, "registered")
            driver.left_s -= self.worked_s(executors)
        if driver.left_s <= 0:
            self._reach(uid, "done")
            del self._drivers[uid]
            self._start(self._stop(driver, list(mine.values())))
            return
        driver.requested -= mine.keys()  # seen by now
        for _ in range(work.executors - len(mine) - len(driver.requested)):
            name = f"{driver.pod.metadata.name.removesuffix('-driver')}-exec-{next(driver.numbers)}"
            driver.requested.add(name)
            self._start(self._request(driver, name))

    def worked_s(self, executors: list[Pod]) -> float:
        """Return the executor-seconds that running executors have worked since the last tick."""
        return len(executors) * TICK_S

    async def _request(self, driver: _Driver, name: str) -> None:
        manifest = executor(driver.pod, driver.work, name)
        async with self._writes:
            try:
                await self._api.create_pod(driver.pod.metadata.namespace, manifest)
            except errors.ClusterError:
                self.refused += 1
                await asyncio.sleep(TICK_S)
                driver.requested.discard(name)

    async def _stop(self, driver: _Driver, executors: list[Pod]) -> None:
        for pod in executors:
            with contextlib.suppress(errors.ClusterError):
                await self._api.delete(catalogue.PODS, pod.metadata.name, pod.metadata.namespace, grace_period_s=0)
        await self._end(driver.pod)


def executor(driver: Pod, work: Work, name: str) -> dict[str, Any]:
    """Return an executor as its driver creates it, on the driver's scheduler."""
    requests = {"cpu": str(work.cores), "memory": f"{work.memory_mib}Mi"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": driver.metadata.name, "uid": driver.metadata.uid}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": driver.metadata.namespace,
            "labels": {"spark-role": "executor"},
            "ownerReferences": [owner | {"controller": True}],
        },
        "spec": {
            "schedulerName": driver.spec.scheduler_name,
            "automountServiceAccountToken": False,
            "restartPolicy": "Never",
            "containers": [{"name": "spark-kubernetes-executor", "image": "none", "resources": {"requests": requests}}],
        },
    }


def _status(name: str, state: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "image": "none", "imageID": "", "ready": False, "restartCount": 0, "state": state}
