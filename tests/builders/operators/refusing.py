"""Applications, jobs, a cluster's nodes and pods of others in one namespace, whose API server refuses pods at times.

Only what the scheduler itself is due for makes it decide: an event that it forgets to wait for is a fault here.
"""

import itertools
from collections.abc import Iterable
from typing import Any

from boathouse.cluster import errors
from boathouse_policies import model
from tests.builders import manifests
from tests.builders.operators import desks
from tests.builders.operators.applications import App, DriverDesk

NODE = "n1"
QUOTA = errors.Forbidden(403, "Forbidden", "exceeded quota: small")
WEBHOOK = errors.Forbidden(403, "Forbidden", "admission webhook denied the request")
NO_CLASS = errors.Forbidden(403, "Forbidden", "no PriorityClass with name nope was found")
INVALID = errors.Invalid(422, "Invalid", "maximum cpu usage per Container is 1, but limit is 2")
OVERLOAD = errors.TooManyRequests(429, "TooManyRequests", "", retry_after_s=3.0)

REFUSALS: dict[str, tuple[str, str, errors.ApiError]] = {
    "quota": ("create", "", QUOTA),
    "webhook": ("create", "", WEBHOOK),
    "webhook for drivers": ("create", "-driver", WEBHOOK),
    "limit range for tasks": ("create", "-task", INVALID),
    "binds": ("bind", "", WEBHOOK),
    "overload": ("", "", OVERLOAD),
}
"""The verb and the part of a name that are refused, and the answer."""
SUBMITTED = ("app", "job", "cluster", "pod", "giant")
EVENTS = (*SUBMITTED, *REFUSALS, "accept", "wait")


class RefusingWorld(DriverDesk):
    """The namespace. What is submitted is to run, except `giant`, which fits on no node."""

    def __init__(self, profile: str = "fair") -> None:
        super().__init__(profile=profile, pending_ahead=0)
        self.node(NODE, allocatable={"cpu": "100", "memory": "100Gi", "pods": "1000"})
        self.rule: tuple[str, str, errors.ApiError] | None = None
        self.wanted: list[str] = []
        self.refused_s: list[float] = []
        self._numbers, self._revisions = itertools.count(1), itertools.count(100)
        self._apps: dict[str, App] = {}
        self._executors: list[Any] = []

    async def happens(self, event: str) -> None:
        """Let something happen, and the scheduler react to it."""
        number = next(self._numbers)
        match event:
            case "app":
                app = self._apps[f"a{number}-driver"] = App(f"a{number}", minimum=2)
                self.submit_application(app)
                self.wanted += [app.driver, *(f"demo/a{number}-exec-{index}" for index in (1, 2))]
            case "job" | "cluster":
                tasks = [f"demo/{event}{number}-task{index}" for index in range(2)]
                self.submit(*tasks, job_id=f"{event}{number}")
                self.wanted += tasks
            case "giant":
                self.submit(f"demo/giant{number}-task", job_id=f"giant{number}", cpu_milli=1_000_000)
            case "pod":
                meta = {"revision": next(self._revisions), "uid": f"uid-p{number}"}
                self.show(manifests.pod_view(f"p{number}", meta=meta))
                self.wanted.append(f"demo/p{number}")
            case "accept":
                self.rule = None
            case "wait":
                await self.passes(45.0)
            case _:
                self.rule = REFUSALS[event]
        await self.passes(1.0)

    async def passes(self, seconds: float) -> None:
        """Let time pass: the scheduler decides when it is due or was woken, and is answered at once."""
        until_s = self.now_s + seconds
        for _ in range(2000):
            self.scheduler._wake.clear()
            await self.decide()
            while self.requests:
                for verb, what in list(self.requests):
                    await self._answer(verb, what)
            if self.scheduler._wake.is_set() or len(self.scheduler.executor.operations):
                continue
            due_s = max(self.scheduler.decider.next_s(), self.now_s + 0.01)
            if due_s > until_s:
                self.now_s = until_s
                return
            self.now_s = due_s
        raise AssertionError("the scheduler does not come to rest")

    async def _answer(self, verb: str, what: str) -> None:
        name = what.partition(" ")[0].removeprefix("uid-")
        if verb not in {"create", "bind"}:
            await self.answer(verb, what)
            return
        refused_verb, part, error = self.rule or ("-", "", None)
        if verb.startswith(refused_verb) and part in name:
            self.refused_s.append(self.now_s)
            await self.answer(verb, what, error)
            return
        pod = self._pod(name)
        await self.answer(verb, what, pod if verb == "create" else None)
        self.show(pod)
        if name in self._apps:
            self._creates_executors(self._apps[name])

    def _pod(self, name: str) -> Any:
        revision = next(self._revisions)
        if name in self._apps:
            return self._apps[name].driver_pod(NODE, revision=revision)
        app = self._apps.get(f"{name.partition('-')[0]}-driver")
        if app is not None:
            return app.executor_pod(int(name[-1]), NODE, revision=revision)
        if name.startswith("p"):
            return manifests.pod_view(name, meta={"revision": revision, "uid": f"uid-{name}"}, node=NODE)
        return desks.task_pod(f"demo/{name}", node=NODE, revision=revision)

    def _creates_executors(self, app: App) -> None:
        for number in (1, 2):
            self.show(app.executor_pod(number, revision=next(self._revisions)))

    @property
    def missing(self) -> list[str]:
        """What was to run and has no node."""
        pods = self.scheduler.state.pods
        return [one for one in self.wanted if (row := pods.get(model.TaskId(one))) is None or not row.is_on_node]

    @property
    def holds(self) -> list[str]:
        return [str(hold.scope) for hold in self.scheduler.state.jobs.refused.backoffs()]


async def play(events: Iterable[str], *, recovery_s: float, profile: str = "fair") -> RefusingWorld:
    """Return the world after events, once the API server has accepted everything for some time."""
    world = RefusingWorld(profile)
    async with world.writing():
        for event in events:
            await world.happens(event)
        await world.happens("accept")
        await world.passes(recovery_s)
    return world
