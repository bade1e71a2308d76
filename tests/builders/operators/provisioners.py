"""A cluster autoscaler on the fake API server: adds nodes for pods that say Unschedulable, and removes empty ones."""

from __future__ import annotations

import asyncio
import contextlib

from boathouse_e2e import autoscaling
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
        size = autoscaling.Size.of({"cpu": str(self._cpu), "memory": MEMORY})
        return autoscaling.simulate(dict.fromkeys(self._api.objects("nodes"), size), self._api.objects("pods").values())

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
