"""The operator and its surroundings in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.mrclusters.modelled_clusters import Cluster, ModelledClusters
from boathouse.resources import names
from boathouse.resources.config import OperatorConfig
from boathouse.services.mrcluster import kind as mrclusters
from tests.builders import manifests
from tests.builders.operators import leaders, schedulers
from tests.wire import fake_api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

BOOT_S: Final = 30.0
READY_WITHIN_S: Final = 900.0
_WORKER_CPU: Final = "7"
_CORE_MEMORY, _TRANSIENT_MEMORY = "5500Mi", "5Gi"  # YARN gets 8 slots of 512 MiB of each
ZONE_LABEL: Final = "topology.kubernetes.io/zone"


def manifest(name: str, *, core: int, transient: int = 0, policy: str = "Static", **spec: Any) -> dict[str, Any]:
    """Return an MRCluster whose nodes fill Kubernetes nodes; `core_maximum` is for GGDP."""
    most = spec.pop("core_maximum", None)
    resources = {"cpu": _WORKER_CPU}
    return {
        "apiVersion": names.API_VERSION,
        "kind": "MRCluster",
        "metadata": {"name": name, "namespace": "demo", "generation": 1},
        "spec": {
            "image": "hadoop",
            "core": {"count": core, "resources": resources | {"memory": _CORE_MEMORY}}
            | ({"maximum": most} if most else {}),
            "transient": {"maximum": transient, "resources": resources | {"memory": _TRANSIENT_MEMORY}},
            "resizing": {"policy": policy},
            "networkPolicy": "None",
            "dataPolicy": "Delete",
            **spec,
        },
    }


@dataclasses.dataclass(slots=True)
class World:
    """What a benchmark acts on."""

    api: fake_api.FakeApi
    models: ModelledClusters

    async def create(self, body: Mapping[str, Any]) -> Cluster:
        """Create a cluster, and return it when it is ready."""
        key = "demo/" + body["metadata"]["name"]
        self.api.add(dict(body))
        await self.until(lambda: self.status(key).get("phase") == "Ready", READY_WITHIN_S, f"{key} is ready")
        return self.models.clusters[self.api.get("mrclusters", key)["metadata"]["uid"]]

    def status(self, key: str) -> dict[str, Any]:
        """Return the status of a cluster."""
        return (self.api.get("mrclusters", key) or {}).get("status") or {}

    async def until(self, holds: Callable[[], bool], within_s: float, what: str) -> float:
        """Wait until a condition holds, and return the seconds that this took.

        Raises:
            SystemExit: It does not hold in time.
        """
        began_s = time.monotonic()
        while not holds():
            if time.monotonic() - began_s > within_s:
                statuses = [mrcluster.get("status") for mrcluster in self.api.objects("mrclusters").values()]
                raise SystemExit(f"not within {within_s:.0f} s: {what}; {statuses}")
            await asyncio.sleep(0.25)
        return time.monotonic() - began_s


@contextlib.asynccontextmanager
async def running(nodes: Mapping[str, int], *, partition: str = "All") -> AsyncIterator[World]:
    """Run a leader with nodes of 8 CPUs.

    Args:
        nodes: Their number in each zone.
        partition: How idle nodes are divided.
    """
    config = OperatorConfig.model_validate({"task": {"image": "task"}, "hadoop": {"partition": partition}})
    async with fake_api.FakeApi() as api, contextlib.AsyncExitStack() as stack:
        for zone, count in nodes.items():
            for number in range(count):
                labels = {ZONE_LABEL: zone}
                api.add(manifests.node(f"{zone}-{number:03}", cpu="8", memory="24Gi", labels=labels))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="boathouse-mrclusters-")))
        leader = await stack.enter_async_context(
            leaders.leading(api, (mrclusters.ENTRY,), config, profile="fair", now=time.time)
        )
        kind = leader.controllers._reconcilers["MRCluster"]._kind  # noqa: SLF001 - nobody else hands it out
        models = ModelledClusters(api, lambda: kind, folder, BOOT_S)
        playing = asyncio.create_task(models.run())
        stack.push_async_callback(schedulers.stop, playing)
        playing.add_done_callback(_fail)
        yield World(api, models)


def _fail(task: asyncio.Task[None]) -> None:
    """End the process when the models fail: time would pass for ever."""
    if not task.cancelled() and (error := task.exception()):
        raise SystemExit(f"the models failed: {error!r}") from error
