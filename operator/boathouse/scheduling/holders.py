"""Who holds how much of each resource, for messages that name whom one waits for."""

import collections
import heapq

from boathouse_policies import model

Amounts = dict[str, int]
"""Kubernetes' resource name to base units (millicores, bytes, counts)."""


def amounts(resources: model.Resources) -> Amounts:
    """Return what one pod takes, by resource name."""
    named = {
        "cpu": resources.cpu_milli,
        "memory": resources.memory_bytes,
        "ephemeral-storage": resources.ephemeral_storage_bytes,
        "pods": 1,
    }
    return named | dict(resources.extended)


class Holders:
    """Sums by owner, kept up to date with each pod."""

    def __init__(self) -> None:
        self._pods: dict[model.TaskId, tuple[str, Amounts]] = {}
        self._sums: dict[str, collections.Counter[str]] = {}

    def set(self, pod: model.TaskId, owner: str, resources: model.Resources) -> None:
        """A pod takes so much of a node."""
        held = (owner, amounts(resources))
        if self._pods.get(pod) == held:
            return
        self.remove(pod)
        self._pods[pod] = held
        self._sums.setdefault(owner, collections.Counter()).update(held[1])

    def remove(self, pod: model.TaskId) -> None:
        """A pod takes nothing any more; nothing happens if it took nothing."""
        owner, held = self._pods.pop(pod, ("", {}))
        if not held:
            return
        self._sums[owner].subtract(held)
        if not self._sums[owner]["pods"]:
            del self._sums[owner]

    def top(self, resource: str, count: int = 3) -> list[tuple[str, int]]:
        """Return the largest holders of a resource and what they hold, the largest first; ties by name."""
        held = ((sums[resource], owner) for owner, sums in self._sums.items() if sums[resource] > 0)
        return [(owner, amount) for amount, owner in heapq.nsmallest(count, held, key=lambda pair: (-pair[0], pair[1]))]
