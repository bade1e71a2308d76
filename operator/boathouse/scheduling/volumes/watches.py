"""The watches of storage: claims, volumes, classes, and what CSI drivers say of themselves."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from boathouse.cluster import boundary, catalogue, client, informer, storage, store
from boathouse.scheduling import kept
from boathouse.scheduling.volumes import rules

T = TypeVar("T", bound=store.HasMetadata)


class StorageWatches:
    """Seven watches, cluster-wide: pods of all schedulers and namespaces use up what nodes can attach.

    Args:
        api: Speaks to the API server.
        aside: Where objects go that cannot be represented.

    Attributes:
        known: What they show, live.
    """

    def __init__(self, api: client.ApiClient, aside: boundary.Boundary) -> None:
        self._api = api
        self._aside = aside
        self._dispatchers: list[boundary.Dispatcher[Any]] = []
        claims = self._watch(storage.CLAIMS, kept.claim)
        persistent_volumes = self._watch(storage.VOLUMES)
        classes = self._watch(storage.CLASSES)
        csi_nodes = self._watch(storage.CSI_NODES)
        drivers = self._watch(storage.CSI_DRIVERS)
        capacities = self._watch(storage.CAPACITIES)
        attachments = self._watch(storage.ATTACHMENTS)
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

    def subscribe(self, call: Callable[[], None]) -> None:
        """Call after each change from now on."""
        for dispatcher in self._dispatchers:
            dispatcher.subscribe(lambda _: call())

    def _watch(
        self, resource: catalogue.Resource[T], transform: Callable[[T], T] | None = None
    ) -> informer.Informer[T]:
        dispatcher: boundary.Dispatcher[T] = boundary.Dispatcher(resource, self._aside)
        self._dispatchers.append(dispatcher)
        return informer.Informer(self._api, resource, on_change=dispatcher, transform=transform, aside=self._aside)

    async def synced(self) -> None:
        """Wait until all have gone through their first list."""
        for one in self._all.values():
            await one.synced.wait()

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        async with asyncio.TaskGroup() as group:
            for one in self._all.values():
                group.create_task(one.run())
