"""A cluster autoscaler on the fake API server: adds nodes for pods that say Unschedulable, and removes empty ones."""

from __future__ import annotations

import asyncio
import contextlib

from boathouse.scheduling.pods import quantities
from tests.builders import manifests
from tests.builders.operators import schedulers

CPU = 4
MEMORY = "16Gi"


class Provisioner:
    """Adds nodes of one size, as cluster-autoscaler does: for pending pods that fit on no node beside the others.

    Attributes:
        most: How many nodes it may have.
        added: How many it has added.
    """

    def __init__(self, api, *, most: int = 10, cpu: int = CPU) -> None:
        self._api, self._cpu = api, cpu
        self.most, self.added = most, 0

    async def run(self) -> None:
        while True:
            self.step()
            await asyncio.sleep(0.005)

    def step(self) -> None:
        """Add a node if a pod needs one."""
        _, unplaced = self.simulate()
        if unplaced and len(self._api.objects("nodes")) < self.most:
            self.added += 1
            self._api.add(manifests.node(f"p{self.added}", cpu=str(self._cpu), memory=MEMORY))

    def simulate(self) -> tuple[set[str], list[str]]:
        """Return the nodes that pods are on or would be put on, and the pods for which there is no room."""
        on_node = {name: [] for name in sorted(self._api.objects("nodes"))}
        pods = {key: pod for key, pod in self._api.objects("pods").items() if pod["status"]["phase"] in _LIVE}
        for pod in pods.values():
            if node := pod["spec"].get("nodeName"):
                on_node.setdefault(node, []).append(pod)
        unplaced = []
        for key, pod in pods.items():
            if not says_unschedulable(pod):
                continue
            node = next((name for name, others in on_node.items() if self._fits(pod, others)), None)
            if node is None:
                unplaced.append(key)
            else:
                on_node[node].append(pod)
        return {name for name, found in on_node.items() if found}, unplaced

    def _fits(self, pod, others) -> bool:
        """Say whether a pod fits on a node beside others."""
        anti = pod["spec"].get("affinity", {}).get("podAntiAffinity", {})
        terms = anti.get("requiredDuringSchedulingIgnoredDuringExecution", ())
        unwanted = [term["labelSelector"]["matchLabels"].items() for term in terms]
        is_apart = not any(each <= other["metadata"]["labels"].items() for each in unwanted for other in others)
        return is_apart and sum(map(_cpu, others)) + _cpu(pod) <= self._cpu * 1000

    def remove_empty(self) -> None:
        """Remove the nodes that no pod is on, or would be put on."""
        used, _ = self.simulate()
        for name in set(self._api.objects("nodes")) - used:
            self._api.remove("nodes", name)


@contextlib.asynccontextmanager
async def provisioning(api, **more: int):
    """Add nodes as long as the block runs."""
    provisioner = Provisioner(api, **more)
    task = asyncio.create_task(provisioner.run())
    try:
        yield provisioner
    finally:
        await schedulers.stop(task)


_LIVE = {"Pending", "Running"}


def says_unschedulable(pod) -> bool:
    """Say whether autoscalers react to a pod."""
    found = [one for one in pod["status"].get("conditions", ()) if one["type"] == "PodScheduled"]
    says = any((one["status"], one.get("reason")) == ("False", "Unschedulable") for one in found)
    return says and not pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")


def _cpu(pod) -> int:
    containers = pod["spec"]["containers"]
    return sum(quantities.cpu_milli(each["resources"].get("requests", {}).get("cpu", "0")) for each in containers)
