"""A scheduler at its desk: the test shows it the cluster, lets it decide, and answers its requests one by one."""

import asyncio
import contextlib
import dataclasses
from typing import Any

from boathouse.cluster import boundary, errors, store, wire
from boathouse.scheduling import scheduler, state
from boathouse.scheduling.options import Options
from boathouse.scheduling.pods import ownership, rows
from boathouse.scheduling.volumes import rules
from boathouse.services.mrjob.model import MRJOBS
from boathouse.telemetry import metrics
from boathouse_policies import framework, model, profiles
from tests.builders import manifests

QUEUE = model.QueueName("default")
NOT_FOUND = errors.NotFound(404, "NotFound", "")
TAKEN = errors.AlreadyExists(409, "AlreadyExists", "")
OVERLOADED = errors.TooManyRequests(429, "TooManyRequests", "")


def foreign_pod(uid: str, *, revision: int = 1, **fields: Any) -> wire.PodView:
    """Return the pod `demo/p` of another owner, on this scheduler."""
    return manifests.pod_view("p", meta={"uid": uid, "revision": revision}, **fields)


def task_pod(task: str, *, node: str = "", revision: int = 1, **fields: Any) -> wire.PodView:
    """Return the pod of a task of the job `j`."""
    namespace, _, name = task.rpartition("/")
    meta = {"namespace": namespace} | fields.pop("meta", {})
    return manifests.task_pod_view(name, node=node, revision=revision, meta=meta, **fields)


def operation(
    name: str = "demo/p", *, node: str | None = "n1", uid: str | None = None, job: str = "j"
) -> rows.Operation:
    """Return a decided write: a bind if there is a UID; a create without a node if there is none."""
    task = model.Task(id=model.TaskId(name), task_class=model.ClassId(f"{job}/map"), pod_uid=uid and model.PodUid(uid))
    size = model.Resources()
    task_class = model.TaskClass(id=task.task_class, job=model.JobId(job), resources=size)
    owner = model.Job(id=task_class.job, queue=QUEUE, submitted_s=0)
    kind = model.Bind if uid else model.Create
    where = node and kind(task=task, task_class=task_class, job=owner, node=model.NodeName(node), resources=size)
    return rows.Operation(rows.PodRow(task.id, name.partition("/")[0]), task, task_class, where or None, 0.0)


class Factory:
    """Builds the pods of a job's tasks."""

    resource = MRJOBS
    control = None

    def build(self, task, resources, node, _expected=None) -> dict[str, Any]:
        del resources
        namespace, _, name = task.partition("/")
        metadata = {"name": name, "namespace": namespace, "ownerReferences": [manifests.owner()]}
        spec = {"containers": [{"name": "main"}]} | ({"nodeName": node} if node else {})
        return {"metadata": metadata, "spec": spec}


class RecordingObserver(framework.Observer):
    """Keeps what observers of a profile are notified of."""

    def __init__(self) -> None:
        self.events: list[model.Event] = []

    def observe(self, event: model.Event) -> None:
        self.events.append(event)

    @property
    def refused(self) -> list[model.Refused]:
        return [event for event in self.events if isinstance(event, model.Refused)]


class Desk:
    """The scheduler; its leadership, its API server and its event recorder are here.

    Attributes:
        requests: Requests that the API server has not answered yet, as (verb, object) to a future.
        resized: Requests that resize a pod.
        annotated: Requests that write an annotation together with the status.
    """

    epoch: int | None = 1
    in_doubt = False

    def __init__(self, storage: rules.Storage | None = None, *, profile: str = "fair", **options: Any) -> None:
        self.now_s = 0.0
        self._patches = 0
        compares = options.pop("compares", False)
        self.observer = RecordingObserver()
        self.published: list[dict[str, object]] = []
        self.requests: dict[tuple[str, str], asyncio.Future[Any]] = {}
        self.resized: list[dict[str, Any]] = []
        self.annotated: list[dict[str, Any]] = []
        built = profiles.build(profile, switches=options.get("switches", profiles.Switches()))
        self.metrics = metrics.Metrics()
        cluster = state.ClusterState(
            self,
            self,
            self,
            self.metrics.scheduler,
            profile=dataclasses.replace(built, observers=(*built.observers, self.observer)),
            queues=[model.Queue.of(QUEUE)],
            options=Options(**options),
            queue_of=ownership.default_queue,
            clock=lambda: self.now_s,
            storage=storage or rules.Storage(),
            aside=boundary.Boundary(self),
            shadow=None,
        )
        self.scheduler = scheduler.Scheduler(cluster, on_fatal=lambda _: None)
        if not compares:  # its pods are sketches: they are not what admission would make of the manifests
            self.scheduler.state.jobs.learn = lambda *_: False

    def valid(self) -> bool:
        return True

    async def confirm(self) -> str | None:
        return None

    def publish(self, *_args: object, **event: object) -> None:
        self.published.append(event)

    # The cluster

    def node(self, name: str, **fields: Any) -> None:
        self.scheduler.intake.on_node(store.Added(key=name, new=manifests.node_view(name, **fields)))

    def delete_node(self, name: str) -> None:
        self.scheduler.intake.on_node(store.Deleted(key=name, old=manifests.node_view(name)))

    def show(self, pod: wire.PodView) -> None:
        self.scheduler.intake.on_pod(store.Added(key=pod.metadata.key, new=self.scheduler.transform_pod(pod)))

    def delete(self, pod: wire.PodView) -> None:
        last = self.scheduler.transform_pod(pod)
        self.scheduler.intake.on_pod(store.Deleted(key=pod.metadata.key, old=last, final=last))

    def submit(self, *tasks: str, job_id: str = "j", cpu_milli: int = 1000) -> model.TaskId:
        job = model.Job(id=model.JobId(job_id), queue=QUEUE, submitted_s=0)
        size = model.Resources(cpu_milli=cpu_milli, memory_bytes=1 << 20)
        task_class = model.TaskClass(id=model.ClassId(f"{job_id}/map"), job=job.id, resources=size)
        ids = [model.TaskId(task) for task in tasks or ("demo/t",)]
        todo = [model.Task(id=task, task_class=task_class.id, index=n) for n, task in enumerate(ids)]
        self.scheduler.submit(job, [task_class], todo, Factory())
        return ids[0]

    def row(self, task: str) -> rows.PodRow:
        row = self.scheduler.state.pods.get(model.TaskId(task))
        assert row is not None
        return row

    def metric(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0

    # The API server

    async def bind(self, _namespace, _name, uid, node, _annotations, _labels):
        return await self._request("bind", f"{uid} {node}")

    async def create_pod(self, _namespace, manifest):
        return await self._request("create", f"{manifest['metadata']['name']} {manifest['spec'].get('nodeName', '-')}")

    async def create(self, _resource, manifest, _namespace, *, dry_run):
        assert dry_run
        return await self._request("try", manifest["metadata"]["name"])

    async def patch_status(self, _resource, name, *_args, **_more):
        return await self._request("status", name)

    async def patch(self, _resource, name, *_args):
        self._patches += 1
        return await self._request("patch", f"{name} {self._patches}")

    async def resize(self, _namespace, name, resources, *, manager, uid):
        (size,) = resources.values()
        parts = "/".join(size[part]["cpu"] for part in ("requests", "limits") if part in size)
        self.resized.append({"name": name, "manager": manager, "uid": uid, "resources": size})
        return await self._request("resize", f"{name} {parts}")

    async def annotate_status(self, _namespace, name, annotations, *, resource_version, uid):
        self.annotated.append({"name": name, "revision": resource_version, "uid": uid, "annotations": annotations})
        return await self._request("annotate", f"{name} {resource_version}")

    async def get(self, _resource, name, _namespace):
        return await self._request("get", name)

    @property
    def refused(self) -> list[tuple[str, str, str]]:
        """What observers are notified is refused, as (task, node, reason)."""
        return [(one.decision.task.id, one.decision.node, one.reason) for one in self.observer.refused]

    async def _request(self, verb: str, what: str) -> Any:
        key = (verb, what)
        self.requests[key] = asyncio.get_running_loop().create_future()
        try:
            return await self.requests[key]
        finally:
            del self.requests[key]

    async def answer(self, verb: str, what: str, answer: Any = None) -> None:
        """Answer a request, or let it fail; then wait until nothing moves."""
        future = self.requests[verb, what]
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
        await settle()

    async def decide(self) -> list[tuple[str, str]]:
        """Run a cycle; return the requests that are not answered then."""
        self.scheduler.cycle()
        await settle()
        return sorted(self.requests)

    @contextlib.asynccontextmanager
    async def writing(self):
        """Carry operations out."""
        parts = (self.scheduler.executor, self.scheduler.state.conditions, self.scheduler.adjuster)
        tasks = [asyncio.create_task(part.run()) for part in parts]
        await settle()
        yield self
        for task in tasks:
            assert not task.done(), task
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def settle() -> None:
    """Let all tasks of the loop run until they wait."""
    for _ in range(20):
        await asyncio.sleep(0)
