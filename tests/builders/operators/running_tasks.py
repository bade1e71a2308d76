"""Two running reducers and a map on one node, on which a test suspends and resumes."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

from boathouse.resources import names, quantity
from boathouse_policies import framework, model, profiles
from tests.builders import manifests
from tests.builders.operators.schedulers import Factory, RunningScheduler, scheduling
from tests.wire import fake_api, waiting

if TYPE_CHECKING:
    from boathouse.cluster import wire
    from boathouse_task import contract

FIRST, SECOND, MAP = (f"demo/wc-{i:05}" for i in range(3))
SHRUNK = ("1m", "10m")
CONTINUED = ("1m", "2")
WHOLE = ("1", "2")


class Tasks:
    """Takes the orders for tasks, and acknowledges them with `answer`."""

    def __init__(self) -> None:
        self.orders: list[tuple[str, contract.SuspendOrder]] = []
        self.answer = ""
        self.silent = False
        self.second: model.TaskId | None = None
        self.avoided: tuple[model.NodeName, ...] = ()

    async def suspend(self, task: model.TaskId, order: contract.SuspendOrder) -> str:
        self.orders.append((task, order))
        if self.silent:
            await asyncio.Event().wait()
        return self.answer

    def speculate(self, _task, avoids) -> model.TaskId | None:
        self.avoided = avoids
        return self.second


class Reducers(Factory):
    """Makes pods with a CPU limit, whose tasks take orders."""

    def __init__(self, job: str, control: Tasks) -> None:
        super().__init__(job)
        self.control = control

    def build(self, task, resources, node, expected=None) -> dict[str, Any]:
        manifest = super().build(task, resources, node, expected)
        manifest["metadata"]["labels"][names.LABEL_TASK_TYPE] = "reduce"
        size = manifest["spec"]["containers"][0]["resources"]
        size["requests"]["cpu"] = quantity.format_milli(resources.cpu_milli)
        size["limits"] = {"cpu": quantity.format_milli(2 * resources.cpu_milli), "memory": size["requests"]["memory"]}
        return manifest


class Witness(framework.Observer):
    """Keeps why decisions were refused."""

    def __init__(self) -> None:
        self.refused: list[str] = []

    def observe(self, event: model.Event) -> None:
        if isinstance(event, model.Refused):
            self.refused.append(event.reason)


class Scene:
    """A world with a job, its tasks' control, and what a test does to them."""

    def __init__(self, inside: RunningScheduler, tasks: Tasks, witness: Witness) -> None:
        self.world, self.tasks, self.witness = inside, tasks, witness
        self.api = inside.api

    def submit(self, *, until_s: float | None = None) -> None:
        """Submit the tasks of the job that have no pod; with `until_s`, its author suspends its reducers."""
        factory = Reducers("wc", self.tasks)
        more = {"skipped": self.api.objects("pods"), "stage": model.Stage.REDUCE, "suspend_until_s": until_s}
        self.world.submit("wc", 3, cpu="1", factory=factory, **more)

    @property
    def refused(self) -> list[str]:
        return self.witness.refused

    def decide(self, kind: type, task: str = FIRST, *, cpu_milli: int = 1, memory: int = 1 << 30, **more: Any) -> None:
        """Let the scheduler carry a decision out."""
        one = model.Task(id=model.TaskId(task), task_class=model.ClassId("wc/map"))
        size = model.Resources(cpu_milli=cpu_milli, memory_bytes=memory)
        decision = kind(task=one, node=model.NodeName("n1"), resources=size, reason="a test", **more)
        self.world.scheduler.adjuster.take(decision)

    def suspend(self, task: str = FIRST, *, for_s: float = 600.0) -> None:
        self.decide(model.Suspend, task, until_s=self.now_s + for_s)

    @property
    def now_s(self) -> float:
        return self.world.scheduler.state.clock()

    def size(self, task: str = FIRST) -> tuple[str, str]:
        """Return the CPU request and limit of a pod, by the spec."""
        resources = self.api.get("pods", task)["spec"]["containers"][0]["resources"]
        return resources["requests"]["cpu"], resources["limits"]["cpu"]

    def record(self, task: str = FIRST) -> str:
        return self.api.get("pods", task)["metadata"].get("annotations", {}).get(names.ANNOTATION_SUSPENSION, "")

    def charged(self, task: str = FIRST) -> int:
        """Return the CPU that the ledger charges for a task."""
        ledger = self.world.scheduler.state.ledger
        return ledger._entries[model.TaskId(task)].size.cpu_milli

    def defer(self, task: str = FIRST, *, reason: str = "Deferred") -> None:
        """Let the kubelet defer a resize, or say that it never can carry it out."""
        pending = {"type": "PodResizePending", "status": "True", "reason": reason, "message": "no room"}
        self.api.change("pods", task, {"status": {"conditions": [pending]}})

    async def counts(self, name: str, count: int, **labels: str) -> None:
        """Wait until a metric has a value, which it gets when a write was answered."""
        await waiting.eventually(lambda: self.world.metric(name, **labels) == count)

    def resizes(self) -> list[wire.Manifest]:
        return [call.body["spec"]["containers"][0]["resources"] for call in self.api.called("patch pods/resize")]


async def kubelet(api: fake_api.FakeApi) -> None:
    """Carry out all resizes until cancelled."""
    while True:
        for key, pod in list(api.objects("pods").items()):
            shown = pod["status"].get("containerStatuses", [{}])[0].get("resources")
            if pod["status"]["phase"] == "Running" and shown != pod["spec"]["containers"][0]["resources"]:
                api.actuate_resize(key)
        await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def scene(
    api: fake_api.FakeApi,
    eventually,
    *,
    tasks: Tasks | None = None,
    running: int = 2,
    cpu: str = "2010m",
    policies: Any = None,
    **options: Any,
):
    """Run a scheduler whose node is full of running tasks; a third one is pending."""
    witness, control = Witness(), tasks or Tasks()
    if api.get("nodes", "n1") is None:
        api.add(manifests.node("n1", cpu=cpu))
    profile = profiles.build("fair")
    profile = dataclasses.replace(profile, observers=(*profile.observers, witness), **policies or {})
    async with scheduling(api, profile=profile, pending_ahead=0, **options) as inside:
        made = Scene(inside, control, witness)
        made.submit()
        await eventually(lambda: len(inside.placed()) >= running)
        for task in sorted(inside.placed()):
            if api.get("pods", task)["status"]["phase"] == "Pending":
                api.set_phase(task, "Running")
                api.actuate_resize(task)
        shown = (inside.scheduler.state.pods.get(model.TaskId(task)) for task in list(inside.placed()))
        for row in shown:
            await eventually(lambda row=row: row.facts is not None and row.facts.can_resize)
        yield made
