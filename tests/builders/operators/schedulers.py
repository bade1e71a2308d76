"""A scheduler under test on the fake API server: jobs of plain tasks, and a leader that can be deposed."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import time
from typing import TYPE_CHECKING, Any

from boathouse.cluster import events as event_writer
from boathouse.resources.config import OperatorConfig
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.scheduling import assembly, options as scheduling_options
from boathouse.scheduling.pods import requests as pods_requests
from boathouse.services.mrjob.model import MRJOBS
from boathouse.telemetry import metrics
from boathouse_policies import model, profiles
from tests.builders import manifests
from tests.wire import fake_api, waiting

if TYPE_CHECKING:
    from collections.abc import Collection

LEASE = "boathouse-system/boathouse"
QUEUE = model.QueueName("default")


class Leader:
    """Leadership as a switch; a refused write is judged by the fake API's Lease, ours as long as there is none."""

    def __init__(self, epoch: int = 1) -> None:
        self.epoch: int | None = epoch
        self.leads = True
        self.in_doubt = False
        self.api: fake_api.FakeApi | None = None

    def valid(self) -> bool:
        return self.leads

    async def confirm(self) -> str | None:
        lease = self.api.get("leases", LEASE) if self.api is not None else None
        current = lease["spec"]["leaseTransitions"] if lease is not None else self.epoch
        return None if current == self.epoch else f"another holds the lease with {current}"


class Factory:
    """Makes the pods of a test's tasks."""

    resource = MRJOBS
    control = None

    def __init__(self, job: str) -> None:
        self.owner = {"apiVersion": "boathouse.dev/v1alpha1", "kind": "MRJob", "name": job, "uid": job}
        self.owner["controller"] = True

    def build(self, task, resources, node, _expected=None) -> dict[str, Any]:
        size = {"cpu": f"{resources.cpu_milli}m", "memory": str(resources.memory_bytes)}
        namespace, name = task.split("/")
        labels = {"boathouse.dev/job-uid": self.owner["uid"], "boathouse.dev/queue": "default"}
        return manifests.pod(name, namespace=namespace, node=node or "", labels=labels, owner=self.owner, **size)


@dataclasses.dataclass(kw_only=True)
class RunningScheduler:
    """What a test acts on, and looks at."""

    api: fake_api.FakeApi
    parts: assembly.Scheduling
    leader: Leader
    figures: metrics.Metrics
    fatal: list[str]
    now_s: float = 0.0

    @property
    def scheduler(self) -> scheduler.Scheduler:
        return self.parts.scheduler

    def submit(
        self,
        job: str,
        tasks: int,
        *,
        cpu: str = "1",
        memory: str = "1Gi",
        submitted_s: float = 0,
        factory=None,
        namespace: str = "demo",
        skipped: Collection[str] = (),
        stage: model.Stage = model.Stage.OTHER,
        suspend_until_s: float | None = None,
        labels: dict[str, str] | None = None,
        near: Collection[str] = (),
    ):
        one = model.Job(
            id=model.JobId(job),
            queue=QUEUE,
            submitted_s=submitted_s,
            name=f"{namespace}/{job}",
            namespace=model.NamespaceName(namespace),
        )
        size = model.Resources(cpu_milli=pods_requests.cpu_milli(cpu), memory_bytes=pods_requests.size_bytes(memory))
        task_class = model.TaskClass(
            id=model.ClassId(f"{job}/map"), job=one.id, resources=size, stage=stage, labels=labels or {}
        )
        locations = tuple(map(model.NodeName, near))
        todo = [
            model.Task(
                id=model.TaskId(f"{namespace}/{job}-{i:05}"), task_class=task_class.id, index=i, locations=locations
            )
            for i in range(tasks)
            if f"{namespace}/{job}-{i:05}" not in skipped
        ]
        self.scheduler.submit(one, [task_class], todo, factory or Factory(job), suspend_until_s)
        return todo

    def at_rest(self) -> bool:
        """Say whether all that could be decided is decided and written."""
        considered = self.scheduler.state.queue.sorted_classes()
        operations, jobs = self.scheduler.executor.operations, self.scheduler.state.jobs
        busy = considered.open.any() or considered.orphans or operations or operations.in_flight
        return not (jobs.changed or jobs._changed_rows or busy)

    def placed(self) -> dict[str, str]:
        """Return the pods that have a node, and which."""
        pods = self.api.objects("pods").items()
        return {key: pod["spec"]["nodeName"] for key, pod in pods if pod["spec"].get("nodeName")}

    def waiting(self) -> list[str]:
        """Return the pods without a node."""
        return [key for key, pod in self.api.objects("pods").items() if not pod["spec"].get("nodeName")]

    def condition(self, key: str) -> dict[str, Any]:
        """Return a pod's PodScheduled condition, empty if it has none."""
        conditions = self.api.get("pods", key)["status"].get("conditions", [])
        return next((one for one in conditions if one["type"] == "PodScheduled"), {})

    def events(self, reason: str) -> list[dict[str, Any]]:
        """Return the events of a reason."""
        return [event for event in self.api.objects("events").values() if event["reason"] == reason]

    def metric(self, name: str, **labels: str) -> float:
        """Return a metric's value."""
        return self.figures.registry.get_sample_value(name, labels) or 0.0

    def over_committed(self) -> list[str]:
        """Return the nodes whose pods ask for more than there is: by the server's own objects, not by our cache."""
        return over_committed(self.api)


def over_committed(api: fake_api.FakeApi) -> list[str]:
    """Return the nodes whose pods that have not ended ask for more CPU than the node has."""
    used: collections.Counter[str] = collections.Counter()
    for pod in api.objects("pods").values():
        if pod["status"]["phase"] not in {"Succeeded", "Failed"}:
            requests = pod["spec"]["containers"][0]["resources"]["requests"]
            used[pod["spec"].get("nodeName", "")] += pods_requests.cpu_milli(requests["cpu"])
    nodes = api.objects("nodes")
    return [name for name in nodes if used[name] > pods_requests.cpu_milli(nodes[name]["status"]["allocatable"]["cpu"])]


@contextlib.asynccontextmanager
async def scheduling(
    api: fake_api.FakeApi,
    *,
    leader: Leader | None = None,
    profile=None,
    config=None,
    watched=True,
    prepare=lambda _world, _client: None,
    shadow=None,
    **options: Any,
):
    """Run a scheduler that has listed all there is; stop it at the end, as a crash would.

    What `prepare` subscribes to hears of everything from the first list on.

    With `watched`, its watches are open when the block begins. Where a test cuts them all the time, the reflectors back
    off, and they are hardly ever open at once.
    """
    leader, figures, fatal = leader or Leader(), metrics.Metrics(), []
    if isinstance(leader, Leader):
        leader.api = api
    config = config or OperatorConfig()
    settings = {"pod_labels": mrjob_names.POD_LABELS, "coalesce_s": 0.001, "pending_ahead_delay_s": 0.0} | options
    async with api.client() as client, contextlib.AsyncExitStack() as stack:
        events = event_writer.EventWriter(client, controller="boathouse.dev/scheduler", instance="test")
        parts = assembly.Scheduling(
            client,
            leader,
            events,
            figures,
            profile=profile or profiles.build("fair"),
            shadow_=shadow,
            queues=scheduling_options.queues(config),
            on_fatal=fatal.append,
            options=scheduling_options.Options(**settings),
            queue_of=scheduling_options.queue_of(config),
        )
        config.follow(parts.queue_of_namespace)
        made = RunningScheduler(api=api, parts=parts, leader=leader, figures=figures, fatal=fatal, now_s=time.time())
        prepare(made, client)
        for one in (parts.watch(), events.run(), parts.run()):
            stack.push_async_callback(stop, asyncio.create_task(one))
        await parts.synced()
        if watched:
            await waiting.eventually(lambda: api.watches.count("pods") >= 2 and api.watches.count("nodes") >= 1)
        yield made


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
