"""Informers: a local copy of a selection of objects, and every change to it, told once and in order."""

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
    """A copy of the objects of one kind, in some namespaces or all, that match the selectors.

    Attributes:
        synced: Set once the first list has gone through the callback.
    """

    def __init__(
        self,
        client: ApiClient,
        resource: Resource[Any],
        *,
        on_change: reflector.OnChange[T],
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
            client: Speaks to the API server.
            resource: The kind; its view must have ``metadata``.
            on_change: Called for each change, in order, after the store has it.
            namespaces: Empty for all.
            labels: Label selector.
            fields: Field selector; an object that leaves it is reported as Deleted.
            transform: Called with each decoded object; what it returns is stored, so that memory need not depend on
                what others write. It must not raise, and must keep the object's identity.
            aside: Where objects go that cannot be decoded, or that `on_change` raises for.
            timing: When to renew a watch and when to give it up.
            backoff: How long to wait after failures.
            jitter: Spreads watches and retries.
            monotonic: The clock.
            sleep: How to wait.
        """
        self.synced = asyncio.Event()
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
                on_change,
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
        stores = [one.store.objects for one in self._reflectors]
        self._objects: Mapping[str, T] = stores[0] if len(stores) == 1 else collections.ChainMap(*stores)

    @property
    def objects(self) -> Mapping[str, T]:
        """What we know, by ``namespace/name``; changes only between awaits."""
        return self._objects

    def get(self, key: str) -> T | None:
        """Return the object of that ``namespace/name``."""
        return self._objects.get(key)

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        async with asyncio.TaskGroup() as group:
            for one in self._reflectors:
                group.create_task(one.run())
            for one in self._reflectors:
                await one.synced.wait()
            self.synced.set()

    def freshness_s(self) -> float:
        """How long ago we last heard of the server (an event, a bookmark, a list); infinite before the first list.

        Bookmarks come about once a minute: more than two minutes are a sign of illness.
        """
        return self._monotonic() - min(one.fresh_at for one in self._reflectors)

    @property
    def lag_s(self) -> float:
        """How long the last batch of events took from its arrival until the callback had it all."""
        return max(one.lag_s for one in self._reflectors)

    @property
    def stats(self) -> reflector.Stats:
        """The counters of all namespaces together."""
        every = [one.stats for one in self._reflectors]
        return reflector.Stats(
            events=sum(s.events for s in every),
            stale=sum(s.stale for s in every),
            bookmarks=sum(s.bookmarks for s in every),
            lists=sum(s.lists for s in every),
            failures=sum(s.failures for s in every),
            last_error="; ".join(s.last_error for s in every if s.last_error),
        )

    async def compare(self, *, settle_s: float = 2.0) -> store.Drift:
        """LIST and compare with the store at equal resourceVersion.

        What differs is compared again with another LIST after ``settle_s``, because the stream may just have been
        behind; only what differs both times, and did not move here in between, is drift.

        Raises:
            errors.ApiError, errors.ConnectionLost: The LIST failed; says nothing about the store.
        """
        first = await self._differences()
        if not first:
            return store.Drift()
        await self._sleep(settle_s)
        stuck = sorted(first & await self._differences())
        return store.Drift(
            **{
                kind: tuple(key for found, key, _ in stuck if found == kind)
                for kind in ("missing", "ghosts", "outdated")
            }
        )

    async def _differences(self) -> set[tuple[str, str, str]]:
        """Return the kind of difference, the key, and the state in which we know that object."""
        found: set[tuple[str, str, str]] = set()
        for one in self._reflectors:
            drift = await one.differences()
            for kind in ("missing", "ghosts", "outdated"):
                for key in getattr(drift, kind):
                    known = one.store.objects.get(key)
                    found.add((kind, key, f"{known.metadata.uid} {known.metadata.resource_version}" if known else ""))
        return found
