"""The watches of storage: claims, volumes, classes, and what CSI drivers say of themselves."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from boathouse.cluster import boundary, client, informer, storage
from boathouse.scheduling import kept
from boathouse.scheduling.volumes import rules


class StorageWatches:
    """Seven watches, cluster-wide: pods of all schedulers and namespaces use up what nodes can attach.

    Args:
        api: Speaks to the API server.
        aside: Where objects go that cannot be represented.

    Attributes:
        known: What they show, live.
        on_change: Called after each change.
    """

    def __init__(self, api: client.ApiClient, aside: boundary.Boundary | None = None) -> None:
        self.on_change: list[Callable[[], None]] = []
        claims = informer.Informer(api, storage.CLAIMS, on_change=self._changed, transform=kept.claim, aside=aside)
        persistent_volumes = informer.Informer(api, storage.VOLUMES, on_change=self._changed, aside=aside)
        classes = informer.Informer(api, storage.CLASSES, on_change=self._changed, aside=aside)
        csi_nodes = informer.Informer(api, storage.CSI_NODES, on_change=self._changed, aside=aside)
        drivers = informer.Informer(api, storage.CSI_DRIVERS, on_change=self._changed, aside=aside)
        capacities = informer.Informer(api, storage.CAPACITIES, on_change=self._changed, aside=aside)
        attachments = informer.Informer(api, storage.ATTACHMENTS, on_change=self._changed, aside=aside)
        self._all: dict[str, informer.Informer[Any]] = {
            "persistentvolumeclaims": claims,
            "persistentvolumes": persistent_volumes,
            "storageclasses": classes,
            "csinodes": csi_nodes,
            "csidrivers": drivers,
            "csistoragecapacities": capacities,
            "volumeattachments": attachments,
        }
        self.known = rules.Storage(
            claims=claims.objects,
            volumes=persistent_volumes.objects,
            classes=classes.objects,
            csi_nodes=csi_nodes.objects,
            drivers=drivers.objects,
            capacities=capacities.objects,
            attachments=attachments.objects,
        )

    def __iter__(self) -> Iterator[tuple[str, informer.Informer[Any]]]:
        yield from self._all.items()

    def _changed(self, _: object) -> None:
        for call in self.on_change:
            call()

    async def synced(self) -> None:
        """Wait until all have gone through their first list."""
        for one in self._all.values():
            await one.synced.wait()

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        async with asyncio.TaskGroup() as group:
            for one in self._all.values():
                group.create_task(one.run())
