"""Watch objects of storage: claims, volumes, classes, and those of CSI drivers."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from boathouse.cluster import boundary, catalogue, client, informer, store, views
from boathouse.scheduling import transforms
from boathouse.scheduling.volumes import rules

T = TypeVar("T", bound=store.HasMetadata)


class StorageWatches:
    """Seven cluster-wide watches: pods of all schedulers and namespaces count against the volume limits of nodes.

    Args:
        api: Client of the API server.
        aside: Sets objects aside that cannot be represented.

    Attributes:
        objects: Objects of storage, kept current.
    """

    def __init__(self, api: client.ApiClient, aside: boundary.Boundary) -> None:
        self._api = api
        self._aside = aside
        watches: tuple[tuple[str, catalogue.Resource[Any], Callable[[Any], Any] | None], ...] = (
            ("persistentvolumeclaims", views.CLAIMS, transforms.claim),
            ("persistentvolumes", views.VOLUMES, None),
            ("storageclasses", views.CLASSES, None),
            ("csinodes", views.CSI_NODES, None),
            ("csidrivers", views.CSI_DRIVERS, None),
            ("csistoragecapacities", views.CAPACITIES, None),
            ("volumeattachments", views.ATTACHMENTS, None),
        )
        self._all = {name: self._watch(resource, transform) for name, resource, transform in watches}
        self.objects = rules.Storage(
            claims=self._all["persistentvolumeclaims"].objects,
            volumes=self._all["persistentvolumes"].objects,
            classes=self._all["storageclasses"].objects,
            csi_nodes=self._all["csinodes"].objects,
            drivers=self._all["csidrivers"].objects,
            capacities=self._all["csistoragecapacities"].objects,
            attachments=self._all["volumeattachments"].objects,
        )

    def __iter__(self) -> Iterator[tuple[str, informer.Informer[Any]]]:
        yield from self._all.items()

    def subscribe(self, call: Callable[[], None]) -> None:
        """Call the function after each change from now on."""
        for one in self._all.values():
            one.subscribe(lambda _: call())

    def _watch(
        self, resource: catalogue.Resource[T], transform: Callable[[T], T] | None = None
    ) -> informer.Informer[T]:
        return informer.Informer(self._api, resource, transform=transform, aside=self._aside)

    async def synced(self) -> None:
        """Wait until all watches have processed their first list."""
        for one in self._all.values():
            await one.synced.wait()

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        async with asyncio.TaskGroup() as group:
            for one in self._all.values():
                group.create_task(one.run())
