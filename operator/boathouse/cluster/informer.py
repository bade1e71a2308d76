"""Informers: a local copy of selected objects, with a callback for each change, once and in order."""

from __future__ import annotations

import asyncio
import collections
import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from boathouse.cluster import boundary, reflector, retries, store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from boathouse.cluster.catalogue import Resource
    from boathouse.cluster.client import ApiClient

T = TypeVar("T", bound=store.HasMetadata)

_TIMING = reflector.Timing()
_BACKOFF = retries.Backoff(base_s=0.5, cap_s=10.0)


class Informer(Generic[T]):
    """Local copy of the objects of one kind that match the selectors, in some or all namespaces.

    Attributes:
        synced: Set when the callback has handled the first list.
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
        timing: reflector.Timing = _TIMING,
        backoff: retries.Backoff = _BACKOFF,
        jitter: retries.Jitter = retries.JITTER,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Prepare; `run` starts.

        Args:
            client: Client of the API server.
            resource: The kind; its model must have `metadata`.
            on_change: The first subscriber.
            namespaces: Namespaces; empty for all.
            labels: Label selector.
            fields: Field selector; an object that leaves it is reported as Deleted.
            transform: Called with each decoded object. Its result is stored, which limits the memory of an object. It
                must keep the object's identity and must not raise.
            aside: Sets objects aside that cannot be decoded, or for which a subscriber raises.
            timing: Timeouts of watches.
            backoff: Delays after failures.
            jitter: Spreads watches and retries.
            monotonic: The clock.
            sleep: Sleeps for a number of seconds.
        """
        self.synced = asyncio.Event()
        self._subscribers = [] if on_change is None else [on_change]
        self._resource = resource
        self._monotonic = monotonic
        self._sleep = sleep
        aside = aside or boundary.Boundary()
        scopes: Sequence[str | None] = sorted(set(namespaces)) or (None,)
        self._reflectors = [
            reflector.Reflector(
                client,
                resource,
                reflector.Selection(namespace=namespace, labels=labels, fields=fields),
                self._subscribers,
                transform=transform,
                aside=aside,
                timing=timing,
                backoff=backoff,
                jitter=jitter,
                monotonic=monotonic,
                sleep=sleep,
            )
            for namespace in scopes
        ]
        stores = [watch.store.objects for watch in self._reflectors]
        self._objects: Mapping[str, T] = stores[0] if len(stores) == 1 else collections.ChainMap(*stores)

    @property
    def objects(self) -> Mapping[str, T]:
        """Known objects by `namespace/name`, which change only between awaits."""
        return self._objects

    def get(self, key: str) -> T | None:
        """Return the object with this `namespace/name`, or None."""
        return self._objects.get(key)

    def subscribe(self, call: Callable[[store.Change[T]], object]) -> None:
        """Call the function with each change from now on, in order, after the update of the store.

        Subscribers are called in the order of their subscription. An exception of a subscriber sets the object aside.
        The other subscribers still get the change.
        """
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
        """Return the seconds since the last message (event, bookmark, list); infinite before the first list.

        Bookmarks arrive about once a minute, so more than two minutes indicate a broken watch.
        """
        return self._monotonic() - min(watch.fresh_at for watch in self._reflectors)

    @property
    def lag_s(self) -> float:
        """Time from the arrival of the last batch of events until the callback had handled it."""
        return max(watch.lag_s for watch in self._reflectors)

    @property
    def stats(self) -> reflector.Stats:
        """Total counters of all namespaces."""
        every = [watch.stats for watch in self._reflectors]
        return reflector.Stats(
            events=sum(s.events for s in every),
            stale=sum(s.stale for s in every),
            bookmarks=sum(s.bookmarks for s in every),
            lists=sum(s.lists for s in every),
            failures=sum(s.failures for s in every),
            last_error="; ".join(s.last_error for s in every if s.last_error),
        )

    async def compare(self, *, settle_s: float = 2.0) -> store.Drift:
        """LIST and compare with the store at an equal resourceVersion.

        Objects that differ are compared with another LIST after `settle_s`, because the watch may have been behind.
        Only objects that differ both times, and did not change in the store in between, are drift.

        Raises:
            errors.ApiError, errors.ConnectionLost: The LIST failed, so nothing was compared.
        """
        first = await self._differences()
        if not first:
            return store.Drift()
        await self._sleep(settle_s)
        stuck = sorted(first & await self._differences())
        return store.Drift(
            **{
                kind: tuple(key for drift_kind, key, _ in stuck if drift_kind == kind)
                for kind in ("missing", "ghosts", "outdated")
            }
        )

    async def _differences(self) -> set[tuple[str, str, str]]:
        """Return for each difference its kind, the key, and the version of the object in the store."""
        differences: set[tuple[str, str, str]] = set()
        for watch in self._reflectors:
            drift = await watch.differences()
            for kind in ("missing", "ghosts", "outdated"):
                for key in getattr(drift, kind):
                    stored = watch.store.objects.get(key)
                    differences.add(
                        (kind, key, f"{stored.metadata.uid} {stored.metadata.resource_version}" if stored else "")
                    )
        return differences
