"""Asks two schedulers on one API server, for each node of each case, whether the probe may go there."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from typing import TYPE_CHECKING, Any

from boathouse.cluster import catalogue, client, errors, events as event_writer, views
from boathouse.scheduling import assembly, limits
from boathouse.telemetry import metrics
from boathouse_policies import model, profiles
from tests.contract.predicates import generator

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterable

AT_ONCE = 24
PATIENCE_S = 200  # for a busy machine; each test has its own time
KUBE, OURS = "default-scheduler", "boathouse"
RUNTIME_CLASSES = catalogue.Resource(
    group="node.k8s.io", plural="runtimeclasses", kind="RuntimeClass", namespaced=False, view=dict
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A node on which the two disagree."""

    case: generator.Case
    node: str
    kube: str
    ours: str

    def __str__(self) -> str:
        held = [(one.manifest["metadata"]["name"], one.manifest["spec"], one.status) for one in self.case.held]
        nodes = [one for one in self.case.nodes if one["metadata"]["name"] == self.node]
        on_it = [one for one in held if one[1]["nodeName"] == self.node]
        return (
            f"{self.node} {sorted(self.case.features)}\n  kube-scheduler: {self.kube}\n  Boathouse: {self.ours}\n"
            f"  node: {nodes}\n  held: {on_it}\n  probe: {self.case.probe['spec']}"
        )


class Leader:
    """Leads, for as long as the test runs."""

    epoch: int | None = 1
    in_doubt = False

    def valid(self) -> bool:
        """Say yes."""
        return True

    async def confirm(self) -> str | None:
        """Name nobody else."""
        return None


@contextlib.asynccontextmanager
async def boathouse(api: client.ApiClient, **options: Any) -> AsyncIterator[assembly.Scheduling]:
    """Run our scheduler, with all its watches, until the block ends."""
    events = event_writer.EventWriter(api, controller="boathouse.dev/scheduler", instance="test")
    fatal: list[str] = []
    parts = assembly.Scheduling(
        api,
        Leader(),
        events,
        metrics.Metrics(),
        profile=profiles.build("fair"),
        queues=options.pop("queues", [model.Queue.of(model.QueueName("default"))]),
        on_fatal=fatal.append,
        **options,
    )
    running = [asyncio.create_task(one) for one in (parts.watch(), events.run(), parts.run())]
    try:
        async with asyncio.timeout(PATIENCE_S):
            await parts.synced()
        yield parts
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    assert not fatal


class Comparison:
    """The cases of a batch on an API server; nothing but they may be there."""

    def __init__(self, api: client.ApiClient, namespace: str, cases: list[generator.Case]) -> None:
        self._api = api
        self._namespace = namespace
        self._cases = cases
        self.asked: set[str] = set()
        self.feasible: set[str] = set()

    async def differences(self) -> list[Difference]:
        """Set all up, ask the one and then the other, and compare."""
        await self.set_up()
        kube = await self.ask(KUBE)
        ours = await self.ask(OURS)
        self.asked, self.feasible = set(kube), {node for node, refusal in kube.items() if not refusal}
        return [
            Difference(case=case, node=node, kube=kube[node], ours=ours[node])
            for case in self._cases
            for node in _names(case)
            if bool(kube[node]) != bool(ours[node])
        ]

    async def set_up(self) -> None:
        """Make the nodes, the volumes and the pods that are there."""
        nodes = catalogue.NODES.untyped()
        await all_of(self._api.create(nodes, one) for case in self._cases for one in case.nodes)
        csi_nodes = views.CSI_NODES.untyped()
        await all_of(self._api.create(csi_nodes, one) for case in self._cases for one in case.csi_nodes)
        await all_of(self._bind(case) for case in self._cases if case.volume is not None)
        await all_of(self._hold(one) for case in self._cases for one in case.held)

    async def _bind(self, case: generator.Case) -> None:
        """Make a volume and its claim, and let the volume controller bind them."""
        assert case.volume is not None
        assert case.claim is not None
        name = case.volume["metadata"]["name"]
        await self._api.create(views.VOLUMES.untyped(), case.volume)
        await self._api.create(views.CLAIMS.untyped(), case.claim, self._namespace)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            if (await self._api.get(views.CLAIMS, name, self._namespace)).is_bound:
                return
            assert time.monotonic() < deadline, f"the volume controller did not bind {name}"
            await asyncio.sleep(0.1)

    async def _hold(self, held: generator.Held) -> None:
        name = held.manifest["metadata"]["name"]
        pods = catalogue.PODS.untyped()
        await self._api.create(pods, held.manifest, self._namespace)
        await self._api.patch_status(pods, name, held.status, self._namespace)
        if held.deleted:
            await self._api.delete(pods, name, self._namespace)

    async def ask(self, scheduler: str) -> dict[str, str]:
        """Return by node the refusal, empty where the probe was put.

        Probes of a case that looks at other pods are there one at a time, for they would count for one another.
        """
        rounds: dict[int, dict[str, dict[str, Any]]] = {}
        for case in self._cases:
            for i, node in enumerate(_names(case)):
                number = i if case.features & generator.OF_PODS else 0
                rounds.setdefault(number, {})[node] = case.probe_for(node, scheduler)
        found: dict[str, str] = {}
        for _, pinned in sorted(rounds.items()):
            found |= await self._ask_at_once(scheduler, pinned)
        return found

    async def _ask_at_once(self, scheduler: str, pinned: dict[str, dict[str, Any]]) -> dict[str, str]:
        await all_of(self._api.create(catalogue.PODS.untyped(), one, self._namespace) for one in pinned.values())
        answers = await self._answers(scheduler, len(pinned))
        await all_of(self._remove(one["metadata"]["name"]) for one in pinned.values())
        return {node: answers[pod["metadata"]["name"]] for node, pod in pinned.items()}

    async def _answers(self, scheduler: str, count: int) -> dict[str, str]:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            page = await self._api.list(catalogue.PODS, self._namespace, fields=f"spec.schedulerName={scheduler}")
            found: dict[str, str] = {}
            for pod in page.items:
                refused = pod.condition("PodScheduled")
                if not pod.metadata.name.endswith(f"-{scheduler}"):
                    continue
                if pod.spec.node_name:
                    found[pod.metadata.name] = ""
                elif refused is not None and refused.status == "False" and refused.reason != limits.TOO_COMPLEX:
                    found[pod.metadata.name] = f"{refused.reason}: {refused.message}"
            if len(found) == count:
                return found
            asked = {one.metadata.name for one in page.items if one.metadata.name.endswith(f"-{scheduler}")}
            silent = sorted(asked - found.keys())
            assert time.monotonic() < deadline, (
                f"{scheduler} answered for {len(found)} of {count} pods, not for {silent}"
            )
            await asyncio.sleep(0.25)

    async def _remove(self, name: str) -> None:
        with contextlib.suppress(errors.NotFound):
            await self._api.delete(catalogue.PODS, name, self._namespace, grace_period_s=0)

    async def clear(self) -> None:
        """Remove all pods and nodes."""
        page = await self._api.list(catalogue.PODS, self._namespace)
        await all_of(self._remove(one.metadata.name) for one in page.items)
        await all_of(self._api.delete(catalogue.NODES, node) for case in self._cases for node in _names(case))
        await all_of(
            self._api.delete(views.CSI_NODES, one["metadata"]["name"]) for case in self._cases for one in case.csi_nodes
        )
        for case in self._cases:
            if case.volume is not None:
                name = case.volume["metadata"]["name"]
                await self._api.delete(views.CLAIMS, name, self._namespace)
                await self._api.delete(views.VOLUMES, name)


def _names(case: generator.Case) -> list[str]:
    return [node["metadata"]["name"] for node in case.nodes]


async def all_of(calls: Iterable[Awaitable[object]]) -> None:
    """Await many calls, some at once, in order of their making."""
    waiting = iter(calls)

    async def work() -> None:
        for call in waiting:
            await call

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())


async def prepare(api: client.ApiClient) -> None:
    """Make what the pods of all cases need."""
    accounts = catalogue.Resource(plural="serviceaccounts", kind="ServiceAccount", view=dict)
    await ensure(api, accounts, {"metadata": {"name": "default"}}, "default")
    await ensure(api, RUNTIME_CLASSES, generator.RUNTIME_CLASS)
    labels = {"metadata": {"labels": generator.NAMESPACE_LABELS}}
    await api.patch(catalogue.NAMESPACES.untyped(), generator.NAMESPACE, labels)


async def ensure(
    api: client.ApiClient, kind: catalogue.Resource[Any], manifest: dict[str, Any], namespace: str | None = None
) -> None:
    """Create an object unless it is there."""
    with contextlib.suppress(errors.AlreadyExists):
        await api.create(kind.untyped(), manifest, namespace)
