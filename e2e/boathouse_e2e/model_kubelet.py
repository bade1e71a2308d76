"""A model of how kubelets actuate resizes of CPU, for pods of fake nodes that carry `kwok.RESIZE_ANNOTATION`.

It decreases at once, and increases where its node has room. Else the resize is Deferred and tried again, or Infeasible
if the node is too small. Nothing of a deferred resize is in force, not even its limit. Its account of allocated CPU
judges whether CPU was counted twice (I14): the account knows no other component's opinion of free CPU.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any, Final, Literal

from boathouse.cluster import catalogue, client, informer, store, wire
from boathouse.resources import quantity
from boathouse_e2e import kwok, played_pods
from boathouse_e2e.invariants import Violation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

Verdict = Literal["Allocated", "Deferred", "Infeasible", "Silent"]
"""What a kubelet does with a resize; `Silent`: nothing, as one that hangs."""

_PENDING: Final = "PodResizePending"
_LOOK_S = 0.05


@dataclasses.dataclass(slots=True)
class _Held:
    """A pod, and what its node has allocated to it.

    Attributes:
        asked_s: when its spec began to differ from that; None while it does not.
    """

    pod: wire.PodView
    cpu_milli: int
    asked_s: float | None = None


class Allocations:
    """The allocated CPU of pods by node. Pure.

    Args:
        cpu_milli: Allocatable CPU by node.
        delay_s: Time that a resize takes.

    Attributes:
        verdict: Overrides what becomes of a pod's resize; None leaves it to the model.
        counted_twice: Every moment at which pods were placed on a node without room.
    """

    def __init__(self, cpu_milli: Mapping[str, int], delay_s: float = 0.1) -> None:
        self._cpu_milli, self._delay_s = cpu_milli, delay_s
        self._held: dict[str, _Held] = {}
        self.verdict: Callable[[wire.PodView], Verdict | None] = lambda _pod: None
        self.counted_twice: list[Violation] = []

    def update(self, pod: wire.PodView, now_s: float) -> None:
        """Take note of a pod's newest version."""
        held = self._held.get(pod.metadata.uid)
        if pod.is_terminal or pod.spec.node_name not in self._cpu_milli:
            self.remove(pod)
            return
        if held is None:
            held = self._held[pod.metadata.uid] = _Held(pod, _allocated_milli(pod))
            self._check(pod.spec.node_name)
        held.pod = pod
        if not _is_followed(pod):  # KWOK actuates its resizes
            held.cpu_milli = _requested_milli(pod)
        elif self._is_actuated(held):
            held.asked_s = None
        elif held.asked_s is None:
            held.asked_s = now_s

    def remove(self, pod: wire.PodView) -> None:
        """Free what a pod holds."""
        self._held.pop(pod.metadata.uid, None)

    def due(self, now_s: float) -> list[tuple[wire.PodView, Verdict]]:
        """Allocate what fits; return the pods whose resizes are decided, and how."""
        waiting = [held for held in self._held.values() if held.asked_s is not None and _is_running(held.pod)]
        ready = (held for held in waiting if held.asked_s is not None and now_s - held.asked_s >= self._delay_s)
        return [(held.pod, self._decide(held)) for held in ready]

    def _decide(self, held: _Held) -> Verdict:
        node, wanted = held.pod.spec.node_name, _requested_milli(held.pod)
        found: Verdict | None = self.verdict(held.pod)
        if found is None and wanted > self._cpu_milli[node]:
            found = "Infeasible"
        elif found is None:
            grows = wanted > held.cpu_milli
            fits = self._allocated(node) - held.cpu_milli + wanted <= self._cpu_milli[node]
            found = "Deferred" if grows and not fits else "Allocated"
        if found == "Allocated":
            held.cpu_milli = wanted
        return found

    def _is_actuated(self, held: _Held) -> bool:
        statuses = {status.name: status for status in held.pod.status.container_statuses}
        shown = [statuses.get(container.name) for container in held.pod.spec.containers]
        pairs = zip(held.pod.spec.containers, shown, strict=True)
        return held.cpu_milli == _requested_milli(held.pod) and all(
            status is not None and status.resources == spec.resources for spec, status in pairs
        )

    def _allocated(self, node: str) -> int:
        return sum(held.cpu_milli for held in self._held.values() if held.pod.spec.node_name == node)

    def _check(self, node: str) -> None:
        allocated, has = self._allocated(node), self._cpu_milli[node]
        if allocated > has:
            pods = sorted(held.pod.metadata.name for held in self._held.values() if held.pod.spec.node_name == node)
            text = f"{node} has {has}m CPU, its kubelet had to allocate {allocated}m to {pods}"
            self.counted_twice.append(Violation(invariant="I14", what=text))


def _requested_milli(pod: wire.PodView) -> int:
    requests = (container.resources.requests.get("cpu", "0") for container in pod.spec.containers)
    return sum(quantity.milli(request) for request in requests)


def _allocated_milli(pod: wire.PodView) -> int:
    """Return what a pod's status says; its requests before it runs."""
    shown = [status.allocated_resources.get("cpu") for status in pod.status.container_statuses]
    known = [cpu for cpu in shown if cpu is not None]
    return sum(map(quantity.milli, known)) if known else _requested_milli(pod)


def _is_followed(pod: wire.PodView) -> bool:
    return pod.metadata.annotations.get(kwok.RESIZE_ANNOTATION) == kwok.BY_HAND


def _is_running(pod: wire.PodView) -> bool:
    return pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None


def answer(pod: wire.PodView, verdict: Verdict) -> dict[str, Any]:
    """Return the patch of a pod's status, in the strategic style, that shows what became of its resize."""
    if verdict != "Allocated":
        message = f"the node has no room for {_requested_milli(pod)}m CPU"
        return {"conditions": [{"type": _PENDING, "status": "True", "reason": verdict, "message": message}]}
    statuses = [
        {
            "name": container.name,
            "resources": {"requests": dict(container.resources.requests), "limits": dict(container.resources.limits)},
            "allocatedResources": dict(container.resources.requests),
        }
        for container in pod.spec.containers
    ]
    return {"containerStatuses": statuses, "conditions": [{"$patch": "delete", "type": _PENDING}]}


def _shows(pod: wire.PodView, verdict: Verdict) -> bool:
    return any(condition.type == _PENDING and condition.reason == verdict for condition in pod.status.conditions)


class ModelKubelet:
    """Actuates the resizes of all pods of some nodes.

    Args:
        api: A client with the rights of kubelets.
        nodes: Allocatable quantities by node, as `lab.Lab.nodes`.
        delay_s: Time that a resize takes.
    """

    def __init__(self, api: client.ApiClient, nodes: Mapping[str, Mapping[str, str]], delay_s: float = 0.1) -> None:
        self._api = api
        self.allocations = Allocations(
            {name: quantity.milli(resources["cpu"]) for name, resources in nodes.items()}, delay_s
        )
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Follow all pods, and answer their resizes until cancelled."""
        fields = catalogue.PODS_THAT_HOLD_RESOURCES
        watch = informer.Informer(self._api, catalogue.PODS, on_change=self._on_change, fields=fields)
        async with asyncio.TaskGroup() as group:
            group.create_task(watch.run())
            group.create_task(self._answer_for_ever())

    def _on_change(self, change: store.Change[wire.PodView]) -> None:
        match change:
            case store.Deleted():
                self.allocations.remove(change.old)
            case store.Added(new=pod) | store.Modified(new=pod):
                self.allocations.update(pod, asyncio.get_running_loop().time())
        self._wake.set()

    async def _answer_for_ever(self) -> None:
        while True:
            self._wake.clear()
            for pod, verdict in self.allocations.due(asyncio.get_running_loop().time()):
                if verdict != "Silent" and not _shows(pod, verdict):
                    await self._show(pod, verdict)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._wake.wait()

    async def _show(self, pod: wire.PodView, verdict: Verdict) -> None:
        """Write the answer; it is written again if the API server is busy."""
        metadata = pod.metadata
        with contextlib.suppress(*played_pods.PASSING):
            await played_pods.write(self._api, metadata.namespace, metadata.name, metadata.uid, answer(pod, verdict))


@contextlib.asynccontextmanager
async def running(model: ModelKubelet) -> AsyncIterator[ModelKubelet]:
    """Let the model work until the block ends; what went wrong with it is raised then."""
    async with played_pods.working(model.run()):
        yield model
