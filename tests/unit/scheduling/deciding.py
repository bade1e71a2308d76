"""A scheduler at its desk: the test shows it the cluster, lets it decide, and answers its writes one by one."""

import asyncio
import contextlib
import dataclasses
from typing import Any

from boathouse.cluster import errors, store, wire
from boathouse.resources import names
from boathouse.scheduling import scheduler
from boathouse.scheduling.pods import rows
from boathouse.scheduling.volumes import rules
from boathouse.services.mrjob.job.model import MRJOBS
from boathouse.telemetry import metrics
from boathouse_policies import framework, model, profiles
from tests.unit.scheduling import builders

QUEUE = model.QueueName("default")
OWNER = wire.OwnerReference(api_version=names.API_VERSION, kind="MRJob", name="j", uid="j", controller=True)


def foreign(uid: str, *, revision: int = 1, **spec: Any) -> wire.PodView:
    """Somebody's pod `demo/p` on our scheduler."""
    meta = {"uid": uid, "resource_version": str(revision)}
    return builders.pod("p", meta=meta, scheduler_name=names.SCHEDULER_NAME, **spec)


def made(task: str, *, node: str, revision: int, **more: Any) -> wire.PodView:
    """The pod of a task of ours."""
    namespace, _, name = task.rpartition("/")
    meta = {
        "namespace": namespace,
        "resource_version": str(revision),
        "labels": {names.LABEL_JOB_UID: "j"},
        "owner_references": (OWNER,),
    }
    return builders.pod(name, meta=meta, node_name=node, scheduler_name=names.SCHEDULER_NAME, **more)


class Factory:
    """Makes the pods of a job's tasks."""

    resource = MRJOBS
    control = None

    def build(self, task, resources, node, _expected=None) -> dict[str, Any]:
        del resources
        namespace, _, name = task.partition("/")
        owner = {"apiVersion": names.API_VERSION, "kind": "MRJob", "name": "j", "uid": "j", "controller": True}
        metadata = {"name": name, "namespace": namespace, "ownerReferences": [owner]}
        spec = {"containers": [{"name": "main"}]} | ({"nodeName": node} if node else {})
        return {"metadata": metadata, "spec": spec}


class Witness(framework.Observer):
    """Keeps what observers are told."""

    def __init__(self) -> None:
        self.events: list[model.Event] = []

    def observe(self, event: model.Event) -> None:
        self.events.append(event)


class Desk:
    """The scheduler; its leadership, its API server and its recorder are here.

    Attributes:
        asked: what the API server was asked and has not answered yet, as (verb, what) to a future.
    """

    epoch: int | None = 1
    in_doubt = False

    def __init__(self, storage: rules.Storage | None = None, *, profile: str = "fair", **options: Any) -> None:
        self.now_s = 0.0
        self._patches = 0
        compares = options.pop("compares", False)
        self.witness = Witness()
        self.published: list[dict[str, object]] = []
        self.asked: dict[tuple[str, str], asyncio.Future[Any]] = {}
        built = profiles.build(profile, switches=options.get("switches", profiles.Switches()))
        self.scheduler = scheduler.Scheduler(
            self,
            self,
            self,
            metrics.Metrics(),
            profile=dataclasses.replace(built, observers=(*built.observers, self.witness)),
            queues=[model.Queue.of(QUEUE)],
            on_fatal=lambda _: None,
            clock=lambda: self.now_s,
            storage=storage,
            options=scheduler.Options(**options),
        )
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
        self.scheduler.intake.on_node(store.Added(key=name, new=builders.node(name, **fields)))

    def node_goes(self, name: str) -> None:
        self.scheduler.intake.on_node(store.Deleted(key=name, old=builders.node(name)))

    def comes(self, pod: wire.PodView) -> None:
        self.scheduler.intake.on_pod(store.Added(key=pod.metadata.key, new=self.scheduler.transform_pod(pod)))

    def goes(self, pod: wire.PodView) -> None:
        known = self.scheduler.transform_pod(pod)
        self.scheduler.intake.on_pod(store.Deleted(key=pod.metadata.key, old=known, final=known))

    def submit(self, *tasks: str, job_id: str = "j", cpu_milli: int = 1000) -> model.TaskId:
        job = model.Job(id=model.JobId(job_id), queue=QUEUE, submitted_s=0)
        size = model.Resources(cpu_milli=cpu_milli, memory_bytes=1 << 20)
        one = model.TaskClass(id=model.ClassId(f"{job_id}/map"), job=job.id, resources=size)
        ids = [model.TaskId(task) for task in tasks or ("demo/t",)]
        todo = [model.Task(id=task, task_class=one.id, index=n) for n, task in enumerate(ids)]
        self.scheduler.submit(job, [one], todo, Factory())
        return ids[0]

    def row(self, task: str) -> rows.PodRow:
        row = self.scheduler.state.pods.get(model.TaskId(task))
        assert row is not None
        return row

    # The API server

    async def bind(self, _namespace, _name, uid, node, _annotations, _labels):
        return await self._ask("bind", f"{uid} {node}")

    async def create_pod(self, _namespace, manifest):
        return await self._ask("create", f"{manifest['metadata']['name']} {manifest['spec'].get('nodeName', '-')}")

    async def create(self, _resource, manifest, _namespace, *, dry_run):
        assert dry_run
        return await self._ask("try", manifest["metadata"]["name"])

    async def patch_status(self, _resource, name, *_args, **_more):
        return await self._ask("status", name)

    async def patch(self, _resource, name, *_args):
        self._patches += 1
        return await self._ask("patch", f"{name} {self._patches}")

    async def get(self, _resource, name, _namespace):
        return await self._ask("get", name)

    @property
    def refused(self) -> list[tuple[str, str, str]]:
        """What observers were told is refused, as (task, node, reason)."""
        told = [one for one in self.witness.events if isinstance(one, model.Refused)]
        return [(one.decision.task.id, one.decision.node, one.reason) for one in told]

    async def _ask(self, verb: str, what: str) -> Any:
        key = (verb, what)
        self.asked[key] = asyncio.get_running_loop().create_future()
        try:
            return await self.asked[key]
        finally:
            del self.asked[key]

    async def answers(self, verb: str, what: str, answer: Any = None) -> None:
        """Answer a request, or let it fail; then wait until nothing moves."""
        future = self.asked[verb, what]
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
        await settled()

    async def decides(self) -> list[tuple[str, str]]:
        """Run a cycle; return what is asked of the API server then."""
        self.scheduler.cycle()
        await settled()
        return sorted(self.asked)

    @contextlib.asynccontextmanager
    async def writing(self):
        tasks = [asyncio.create_task(one.run()) for one in (self.scheduler.executor, self.scheduler.state.conditions)]
        await settled()
        yield self
        for task in tasks:
            assert not task.done(), task
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


NOT_FOUND = errors.NotFound(404, "NotFound", "")
TAKEN = errors.AlreadyExists(409, "AlreadyExists", "")
OVERLOADED = errors.TooManyRequests(429, "TooManyRequests", "")
