"""Sum the requests of the pods on each node. Pure."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import msgspec

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.scheduling.pods import quantities, requests

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boathouse_cli import model


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node: what it offers to pods, and what its pods request.

    Attributes:
        state: `Ready` or `NotReady`, and whether it is cordoned.
        pods: Its pods that have not ended.
        own_pods: Those of them that Boathouse schedules.
    """

    name: str
    state: str
    pods: int
    own_pods: int
    used_cpu_milli: int
    cpu_milli: int
    used_memory_bytes: int
    memory_bytes: int


def usage(nodes: Iterable[model.Raw], pods: Iterable[model.Raw]) -> tuple[Node, ...]:
    """Return the usage of each node, sorted by name."""
    held: dict[str, list[wire.PodView]] = {}
    for raw in pods:
        pod = msgspec.convert(raw, wire.PodView)
        if pod.spec.node_name and not pod.is_terminal:
            held.setdefault(pod.spec.node_name, []).append(pod)
    found = (_node(raw, held.get(raw["metadata"]["name"], ())) for raw in nodes)
    return tuple(sorted(found, key=lambda node: node.name))


def _node(raw: model.Raw, pods: Sequence[wire.PodView]) -> Node:
    allocatable = raw.get("status", {}).get("allocatable", {})
    requested = [requests.pod_requests(pod) for pod in pods]
    used = {each: sum(amounts.get(each, 0) for amounts in requested) for each in ("cpu", "memory")}
    return Node(
        name=raw["metadata"]["name"],
        state=_state(raw),
        pods=len(pods),
        own_pods=sum(pod.spec.scheduler_name == names.SCHEDULER_NAME for pod in pods),
        used_cpu_milli=quantities.milli(used["cpu"]),
        cpu_milli=quantities.milli(quantities.nano(allocatable.get("cpu", "0"))),
        used_memory_bytes=quantities.ones(used["memory"]),
        memory_bytes=quantities.ones(quantities.nano(allocatable.get("memory", "0"))),
    )


def _state(raw: model.Raw) -> str:
    conditions = raw.get("status", {}).get("conditions") or ()
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return f"{'Ready' if ready else 'NotReady'}{', cordoned' if raw.get('spec', {}).get('unschedulable') else ''}"
