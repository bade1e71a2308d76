"""Whole MRJobs on the fake API server: an operator that can be killed, a kubelet that runs tasks by a model."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import json
import time
import types
from typing import TYPE_CHECKING, Any

import msgspec

from boathouse.cluster import catalogue, errors, events, informer, store, wire
from boathouse.resources import names
from boathouse.resources.config import OperatorConfig
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.scheduling import transforms
from boathouse.services import hadoop
from boathouse.services.frame import controllers, reconciler, status_writer
from boathouse.services.instruments import poller
from boathouse.services.mrjob import splits
from boathouse.services.mrjob.kind import MRJobKind
from boathouse.services.mrjob.model import MRJOBS
from boathouse.telemetry import metrics as telemetry
from boathouse_task import contract
from boathouse_task.contract import TaskType

if TYPE_CHECKING:
    from tests.wire.fake_api import FakeApi

KEY = "demo/wordcount"
NOW_S = 1767225600.0 + 3600  # an hour after the fake API server's only date
CONFIG = OperatorConfig.model_validate(
    {"task": {"image": "task:dev", "startTimeoutSeconds": 1e6, "imagePullTimeoutSeconds": 1e6}}
)

TRANSFORM_POD = transforms.pods(names.SCHEDULER_NAME, labels=mrjob_names.POD_LABELS)


def mrjob(**spec: Any) -> dict[str, Any]:
    stage = {"command": ["cat"], "maxAttempts": 2}
    return {
        "apiVersion": names.API_VERSION,
        "kind": mrjob_names.KIND,
        "metadata": {"name": "wordcount", "namespace": "demo", "generation": 1},
        "spec": {"input": ["s3://b/in"], "output": "s3://b/out", "mapper": stage, "reducer": stage} | spec,
    }


def split_plan(splits: int) -> contract.Plan:
    one = contract.Split(url="s3://b/in", offset_bytes=0, length_bytes=1, size_bytes=1)
    return contract.Plan(splits=[one] * splits, bytes_total=splits)


@dataclasses.dataclass(frozen=True, slots=True)
class Why:
    reason: str
    message: str


class PlaceAtOnce:
    """A scheduler without scarcity: every task gets a pod on n1; what it cannot write it tries again."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._tasks: set[asyncio.Task[None]] = set()
        self._created: set[str] = set()
        self.waiting: dict[str, tuple[str, ...]] = {}
        self.why: Why | None = None

    def submit(self, job, classes, tasks, factory, **_more) -> tuple[str, ...]:
        resources = {task_class.id: task_class.resources for task_class in classes}
        self.waiting[job.id] = tuple(task.id for task in tasks)
        for task in tasks:
            if self.why is None and task.id not in self._created:
                self._created.add(task.id)
                manifest = factory.build(task.id, resources[task.task_class], "n1")
                running = asyncio.create_task(self._create(manifest))
                self._tasks.add(running)
                running.add_done_callback(self._tasks.discard)
        return ()

    def withdraw(self, job_id) -> None:
        self.waiting.pop(job_id, None)

    def diagnosis(self, job_id) -> Why | None:
        return self.why if self.waiting.get(job_id) else None

    async def _create(self, manifest) -> None:
        while True:
            try:
                await self._client.create_pod(manifest["metadata"]["namespace"], manifest)
            except errors.AlreadyExists:
                return
            except errors.ClusterError:
                await asyncio.sleep(0.01)
            else:
                return

    def kill(self) -> None:
        for task in self._tasks:
            task.cancel()


class Bundle:
    """Certificates are another test's matter; here only where they are published."""

    def __init__(self) -> None:
        self.namespaces: set[str] = set()

    async def ensure(self, namespace: str) -> None:
        self.namespaces.add(namespace)

    def forget(self, namespace: str) -> None:
        self.namespaces.discard(namespace)


class Operator:
    """What the composition root wires, without Kopf, TLS and the real scheduler."""

    def __init__(
        self,
        api: FakeApi,
        client: Any,
        config: OperatorConfig = CONFIG,
        observers: tuple[Any, ...] = (),
        scheduler: Any = None,
        order: Any = None,
    ) -> None:
        start = time.monotonic()
        self.telemetry = telemetry.Metrics()
        self.leads = True
        context = reconciler.Context(
            api=client,
            events=events.EventWriter(client, controller="boathouse.dev/test", instance="test"),
            statuses=status_writer.StatusShare(config.tenant_limits.status_writes_per_second, time.monotonic),
            may_lead=lambda: self.leads,
            now=lambda: NOW_S + time.monotonic() - start,
        )
        self.controllers = controllers.Controllers(context, config, self.telemetry)
        self.queue = self.controllers.queue
        self.scheduler = scheduler or PlaceAtOnce(client)
        self.bundle = Bundle()
        leader = types.SimpleNamespace(
            settings=config,
            cluster_id="",
            profile=types.SimpleNamespace(observers=observers, controllers=(), figures=(), order=order),
            scheduling=types.SimpleNamespace(scheduler=self.scheduler),
            clusters=hadoop.Directory(),
            applications=hadoop.Applications(self.controllers.mark),
            controllers=self.controllers,
            bundles=self.bundle,
            metrics=self.telemetry,
            signals=poller.Signals(),
        )
        kind = MRJobKind(leader, asyncio.get_running_loop().call_later)
        self.pods, self.plans = kind.pods, kind.plans
        self.orders, self.seconds = kind.orders, kind.seconds
        self.jobs = self.controllers.add(kind).objects
        self._pods = informer.Informer(
            client,
            catalogue.PODS,
            on_change=self.pods.on_pod,
            fields=catalogue.PODS_THAT_HOLD_RESOURCES,
            transform=TRANSFORM_POD,
        )
        self._ended = informer.Informer(
            client,
            catalogue.PODS,
            on_change=self.pods.on_ended,
            labels=names.LABEL_JOB_UID,
            fields=catalogue.PODS_THAT_ENDED,
            transform=TRANSFORM_POD,
        )
        view = MRJOBS.viewed_as(wire.ObjectView)
        self._jobs = informer.Informer(client, view, on_change=self._job_changed)
        self._api = api

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pods.run())
            group.create_task(self._ended.run())
            await self._pods.synced.wait()
            await self._ended.synced.wait()
            group.create_task(self._jobs.run())
            group.create_task(self.queue.run())

    def kill(self) -> None:
        self.scheduler.kill()

    def _job_changed(self, change: store.Change[Any]) -> None:
        match change:
            case store.Deleted(old=old):
                self.jobs.on_deleted({"metadata": msgspec.to_builtins(old.metadata)})
            case _ if body := self._api.get("mrjobs", change.key):
                self.jobs.on_object(body)


class Kubelet:
    """Runs pods that have a node: each ends as `script` says, by default well; commits are exclusive.

    Attributes:
        script: (task, attempt) to what `FakeApi.end_pod` is told, or None to let it run.
        ran: how often each task ended well.
        overlap: reduces may start before the maps are done; they end when these are.
    """

    def __init__(self, api: FakeApi, splits: int) -> None:
        self._api = api
        self._plan = split_plan(splits)
        self.operator: Operator | None = None
        self.script: dict[tuple[str, int], dict[str, Any] | None] = {}
        self.ran: collections.Counter[str] = collections.Counter()
        self.winners: dict[str, int] = {}
        self.overlap = False
        self._order = msgspec.json.Decoder(contract.TaskSpec)

    async def run(self) -> None:
        while True:
            for key, pod in list(self._api.objects("pods").items()):
                if pod["metadata"].get("deletionTimestamp"):
                    self._api.remove("pods", key)
                elif pod["spec"].get("nodeName") and pod.get("status", {}).get("phase", "Pending") == "Pending":
                    self._step(key, pod)
            await asyncio.sleep(0.005)

    def _step(self, key: str, pod: dict[str, Any]) -> None:
        env = {variable["name"]: variable.get("value", "") for variable in pod["spec"]["containers"][0]["env"]}
        order = self._order.decode(env[contract.TASK_ENV])
        task = contract.task_name(order.task_type, order.index)
        if (task, order.attempt) in self.script:
            ending = self.script[task, order.attempt]
            if ending is not None:
                self._api.end_pod(key, **ending)
            return
        digest = ""
        if order.task_type is TaskType.SETUP:
            if self.operator is None or not self.operator.orders.knows(order.job_uid, order.namespace):
                return  # the endpoint is away: the task waits
            kept = splits.encode(self._plan)
            self.operator.plans.post(order.job_uid, order.namespace, kept)
            digest = kept.digest
        if self.overlap and order.task_type is TaskType.REDUCE and self._maps_done() < order.maps:
            return  # it waits for them
        self._check_order(order)
        winner = self.winners.setdefault(task, order.attempt)
        self.ran[task] += 1
        result = contract.TaskResult(
            outcome="succeeded", winner_attempt=winner, digest=digest, counters=self._counters(order.task_type)
        )
        self._api.end_pod(key, message=msgspec.json.encode(result).decode())

    def _counters(self, task_type: TaskType) -> contract.Counters:
        """A task counts itself; the commit sums up what was committed."""
        if task_type is not TaskType.COMMIT:
            return {"g": {task_type.value: 1}}
        letters = collections.Counter(task[0] for task in self.winners)
        return {"g": {"map": letters["m"], "reduce": letters["r"]} if letters["r"] else {"map": letters["m"]}}

    def _check_order(self, order: contract.TaskSpec) -> None:
        """No stage starts before the one before it has committed everything."""
        if order.task_type is TaskType.REDUCE:
            assert self._maps_done() == order.maps == len(self._plan.splits)
        if order.task_type is TaskType.COMMIT:
            assert sum(task.startswith("r-") for task in self.winners) == order.reduces

    def _maps_done(self) -> int:
        return sum(task.startswith("m-") for task in self.winners)


def failing(reason: str = "UserCommandFailed", *, user: bool = True, message: str = "it failed") -> dict[str, Any]:
    """What a task that fails leaves behind."""
    result = contract.TaskResult(outcome="failed", reason=reason, message=message, user_error=user)
    return {"exit_code": 10 if user else 20, "message": msgspec.json.encode(result).decode()}


class RunningMRJob:
    """The fake API server, one operator after another, and the kubelet."""

    def __init__(self, api: FakeApi, client: Any, splits: int) -> None:
        self.api = api
        self.kubelet = Kubelet(api, splits)
        self.lives = 0
        self.config = CONFIG
        self.observers: tuple[Any, ...] = ()
        self.order: Any = None
        self._client = client
        self._has_ended = False

    @property
    def operator(self) -> Operator:
        assert self.kubelet.operator is not None
        return self.kubelet.operator

    @property
    def uid(self) -> str:
        return str((self.api.get("mrjobs", KEY) or {"metadata": {"uid": ""}})["metadata"]["uid"])

    @property
    def status(self) -> dict[str, Any]:
        return (self.api.get("mrjobs", KEY) or {}).get("status") or {}

    def condition(self, kind: str) -> tuple[str, str]:
        found = [condition for condition in self.status.get("conditions") or () if condition["type"] == kind]
        return (found[0]["status"], found[0]["reason"]) if found else ("", "")

    def pod(self, task: str) -> str:
        """A pod's key by its task and attempt, as `m-00001-a1`."""
        return next(key for key in self.api.objects("pods") if key.endswith(f"-s0-{task}"))

    def pods(self) -> list[str]:
        """The pods' tasks and attempts."""
        return sorted(key.rpartition("-s0-")[2] for key in self.api.objects("pods"))

    @contextlib.asynccontextmanager
    async def running(self):
        """Run, with another operator for each that is killed."""
        self._has_ended = False
        tasks = [asyncio.create_task(self.kubelet.run()), asyncio.create_task(self._lives())]
        try:
            yield self
        finally:
            self._has_ended = True
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            for result in results:
                if not isinstance(result, asyncio.CancelledError):
                    raise result

    async def _lives(self) -> None:
        while True:
            self.lives += 1
            operator = self.kubelet.operator = Operator(
                self.api, self._client, self.config, self.observers, order=self.order
            )
            try:
                await operator.run()
            except BaseExceptionGroup as group:
                killed, rest = group.split(Killed)
                if rest is not None or killed is None:
                    raise
                if self._has_ended:  # the group hides that this task was cancelled
                    raise asyncio.CancelledError from group
            finally:
                operator.kill()
                self.kubelet.operator = None


class Killed(BaseException):
    """SIGKILL, for an operator in the test's own process."""


def final(status: dict[str, Any]) -> dict[str, Any]:
    """What must be the same however often the operator died; times and the blameless failures may differ."""
    kept = ("phase", "progress", "counters", "succeededMaps", "succeededReduces", "plan")
    return json.loads(json.dumps({key: status.get(key) for key in kept}))


def ended(cluster):
    """Return a condition that holds once the job has succeeded or failed."""
    return lambda: cluster.status.get("phase") in {"Succeeded", "Failed"}
