"""What a cluster autoscaler makes of pods: those that say Unschedulable, and whether they fit beside the others.

It knows requests of CPU and memory, and required anti-affinity to labels: enough for Boathouse's own pods.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from boathouse.scheduling.pods import requests

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Pod = dict[str, Any]
_LIVE = ("Pending", "Running")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """An amount of both resources."""

    cpu_milli: int = 0
    memory_bytes: int = 0

    @classmethod
    def of(cls, amounts: Mapping[str, str]) -> Size:
        """Return the size that requests or allocatable resources have."""
        return cls(
            cpu_milli=requests.cpu_milli(amounts.get("cpu", "0")),
            memory_bytes=requests.size_bytes(amounts.get("memory", "0")),
        )

    def __add__(self, other: Size) -> Size:
        """Return the sum."""
        return Size(cpu_milli=self.cpu_milli + other.cpu_milli, memory_bytes=self.memory_bytes + other.memory_bytes)

    def fits(self, room: Size) -> bool:
        """Say whether it fits."""
        return self.cpu_milli <= room.cpu_milli and self.memory_bytes <= room.memory_bytes


def says_unschedulable(pod: Pod) -> bool:
    """Say whether autoscalers react to a pod."""
    found = [one for one in pod["status"].get("conditions", ()) if one["type"] == "PodScheduled"]
    says = any((one["status"], one.get("reason")) == ("False", "Unschedulable") for one in found)
    return says and not pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")


def simulate(nodes: Mapping[str, Size], pods: Iterable[Pod]) -> tuple[set[str], list[str]]:
    """Return the nodes that pods are on or would be put on, and the names of the pods for which there is no room.

    As for cluster-autoscaler, a node with pods of DaemonSets only is empty.
    """
    live = [pod for pod in pods if pod["status"].get("phase") in _LIVE]
    on_node: dict[str, list[Pod]] = {name: [] for name in sorted(nodes)}
    for pod in live:
        if (node := pod["spec"].get("nodeName")) in on_node:
            on_node[node].append(pod)
    unplaced = []
    for pod in filter(says_unschedulable, live):
        node = next((name for name, others in on_node.items() if _fits(pod, others, nodes[name])), None)
        if node is None:
            unplaced.append(pod["metadata"]["name"])
        else:
            on_node[node].append(pod)
    return {name for name, found in on_node.items() if not all(map(of_daemon_set, found))}, unplaced


def of_daemon_set(found: dict[str, Any]) -> bool:
    """Return whether a DaemonSet owns an object."""
    return any(owner["kind"] == "DaemonSet" for owner in found["metadata"].get("ownerReferences", ()))


def _fits(pod: Pod, others: list[Pod], room: Size) -> bool:
    anti = pod["spec"].get("affinity", {}).get("podAntiAffinity", {})
    terms = anti.get("requiredDuringSchedulingIgnoredDuringExecution", ())
    unwanted = [term["labelSelector"]["matchLabels"].items() for term in terms]
    is_apart = not any(
        match_labels <= other["metadata"]["labels"].items() for match_labels in unwanted for other in others
    )
    return is_apart and sum(map(_requests, others), _requests(pod)).fits(room)


def _requests(pod: Pod) -> Size:
    containers = pod["spec"]["containers"]
    return sum((Size.of(container.get("resources", {}).get("requests", {})) for container in containers), Size())
