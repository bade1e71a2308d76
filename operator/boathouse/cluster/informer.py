"""Informers: a local copy of selected objects, with a callback for each change, once and in order."""

import asyncio
import collections
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from boathouse.cluster import boundary, reflector, retries, store
from boathouse.cluster.catalogue import Resource
from boathouse.cluster.client import ApiClient

T = TypeVar("T", bound=store.HasMetadata)

_BACKOFF = retries.Backoff(base_s=0.5, cap_s=10.0)


class Informer(Generic[T]):
    """Local copy of the objects of one kind that match the selectors, in some or all namespaces. `run` starts.

    An object that leaves the field selector is reported as Deleted. `transform` returns what is stored of each decoded
    object, which limits its memory; it must keep the object's identity and must not raise. Objects that cannot be
    decoded, or for which a subscriber raises, are set `aside`.

    `synced` is set when the subscribers have handled the first list. `objects` are the known ones by `namespace/name`,
    and change only between awaits.
    """

    def __init__(
        self,
        client: ApiClient,
        resource: Resource[Any],
        *,
        on_change: Callable[[store.Change[T]], object] | None = None,
        namespaces: Sequence[str] = (),
        labels: str = "",
        fields: str = "",
        transform: Callable[[Any], T] | None = None,
        aside: boundary.Boundary | None = None,
        backoff: retries.Backoff = _BACKOFF,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.synced, self.stats = asyncio.Event(), reflector.Stats()
        self._subscribers = [] if on_change is None else [on_change]
        self._sleep, aside = sleep, aside or boundary.Boundary()
        scopes: Sequence[str | None] = sorted(set(namespaces)) or (None,)
        self._reflectors = [
            reflector.Reflector(
                client,
                resource,
                namespace,
                {"labels": labels, "fields": fields},
                self._subscribers,
                transform=transform,
                aside=aside,
                backoff=backoff,
                stats=self.stats,
                sleep=sleep,
            )
            for namespace in scopes
        ]
        stores = [watch.store.objects for watch in self._reflectors]
        self.objects: Mapping[str, T] = stores[0] if len(stores) == 1 else collections.ChainMap(*stores)

    def get(self, key: str) -> T | None:
        """Return the object with this `namespace/name`, or None."""
        return self.objects.get(key)

    def subscribe(self, call: Callable[[store.Change[T]], object]) -> None:
        """Call the function with each later change, after the store's update; an exception sets the object aside."""
        self._subscribers.append(call)

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        async with asyncio.TaskGroup() as group:
            for watch in self._reflectors:
                group.create_task(watch.run())
            for watch in self._reflectors:
                await watch.synced.wait()
            self.synced.set()

    def freshness_s(self) -> float:
        """Return the seconds since the last message, of which bookmarks come each minute; infinite before a list."""
        return time.monotonic() - min(watch.fresh_at for watch in self._reflectors)

    @property
    def lag_s(self) -> float:
        """Time from the arrival of the last batch of events until the callback had handled it."""
        return max(watch.lag_s for watch in self._reflectors)

    async def compare(self, *, settle_s: float = 2.0) -> set[str]:
        """LIST and compare with the store at an equal resourceVersion; return the keys of objects that differ.

        Objects that differ are compared with another LIST after `settle_s`, because the watch may have been behind:
        only those that differ both times, and did not change in the store in between, are returned.
        """
        first = await self._differences()
        if not first:
            return set()
        await self._sleep(settle_s)
        return {key for key, _, _ in first & await self._differences()}

    async def _differences(self) -> set[store.Difference]:
        return {found for watch in self._reflectors for found in await watch.differences()}
