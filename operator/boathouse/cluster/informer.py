"""Informers: a local copy of selected objects, with a callback for each change, once and in order.

A reflector keeps one store equal to one LIST and WATCH of the API server. An object that cannot be decoded has a
stand-in: its identity, and the fields that reserve its resources.
"""

import asyncio
import collections
import contextlib
import dataclasses
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from boathouse.cluster import boundary, catalogue, errors, retries, store, views, wire
from boathouse.cluster.client import PAGE_LIMIT, ApiClient, decode


class _PlaceSpec(wire.View, frozen=True, kw_only=True):
    node_name: str = ""
    scheduler_name: str = ""


class _Place(wire.View, frozen=True, kw_only=True):
    spec: _PlaceSpec = _PlaceSpec()
    status: views.Phase = views.Phase()


def of(view: type[Any], raw: msgspec.Raw | bytes) -> Any:
    """Return a stand-in of this type, of a pod a `wire.UnreadablePod`; raises `errors.DecodeError` without identity."""
    try:
        identity = msgspec.json.decode(raw, type=catalogue.Identified).metadata
        int(identity.resource_version)
    except (*catalogue.MALFORMED, ValueError) as error:
        raise errors.DecodeError(f"an object without an identity: {error}; {bytes(raw)[:200]!r}") from error
    metadata = wire.ObjectMeta(**msgspec.structs.asdict(identity))
    if view is wire.PodView:
        return _pod(metadata, raw)
    if view is views.VolumeView:  # no known node can attach it
        nowhere = views.VolumeNodeAffinity(required=wire.NodeSelector())
        return views.VolumeView(metadata=metadata, spec=views.VolumeSpec(node_affinity=nowhere))
    return view(metadata=metadata)


def _pod(metadata: wire.ObjectMeta, raw: msgspec.Raw | bytes) -> wire.UnreadablePod:
    try:
        place = msgspec.json.decode(raw, type=_Place)
    except catalogue.MALFORMED:
        return wire.UnreadablePod(metadata=metadata)
    spec = wire.PodSpec(node_name=place.spec.node_name, scheduler_name=place.spec.scheduler_name)
    return wire.UnreadablePod(metadata=metadata, spec=spec, status=wire.PodStatus(phase=place.status.phase))


T = TypeVar("T", bound=store.HasMetadata)
V = TypeVar("V")
log = logging.getLogger(__name__)
_LEAST_PAGE = 25
_ABOUT_OBJECTS = frozenset({"ADDED", "MODIFIED", "DELETED"})
_SHORT_WATCH_S = 1.0
"""A watch that ends without an event before this time is a failure (client-go's "very short watch")."""
_WATCH_S, _WATCH_JITTER_S = 290.0, 30.0
STALL_S = 90.0
"""Time without a line, also without a bookmark, after which a watch is given up."""


@dataclasses.dataclass(slots=True, kw_only=True)
class Stats:
    """Counters of watch events about objects, bookmarks, complete LISTs, and failed LISTs and watches."""

    events: int = 0
    bookmarks: int = 0
    lists: int = 0
    failures: int = 0


class Reflector(Generic[T]):
    """Lists, then watches; lists again whenever it may have missed an event.

    A watch that the server closes regularly continues from its last revision. Any other end (410, an ERROR line, a
    broken or silent connection, an incomplete line) leads to a new LIST, whose differences are reported as changes.
    """

    def __init__(self, of: "Informer[T]", namespace: str | None) -> None:
        self.store: store.Store[T] = store.Store()
        self.synced = asyncio.Event()
        self.fresh_at, self.lag_s = -math.inf, 0.0
        self._of, self._namespace, self._resource, self._failures_in_a_row = of, namespace, of.resource, 0
        self._decoder = msgspec.json.Decoder(catalogue.WatchEvent[of.resource.view])  # type: ignore[name-defined]
        self._object_decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(of.resource.view)

    async def run(self) -> None:
        """Follow the server until cancelled."""
        while True:
            try:
                await self._list()
                while True:
                    await self._watch()
            except errors.ClusterError as error:
                self._failures_in_a_row += 1
                self._of.stats.failures += 1
                failures, at_least_s = self._failures_in_a_row, error.retry_after_s
                delay_s = self._of.backoff.delay_s(failures, retries.JITTER, at_least_s=at_least_s)
                log.warning("%s: %s; listing again in %.1f s", self._resource.plural, error, delay_s)
                await self._of.sleep(delay_s)

    async def differences(self) -> set[store.Difference]:
        """LIST only the objects' identities, and compare them with the store at that revision."""
        identities = self._resource.viewed_as(catalogue.Identified)
        listed: dict[str, tuple[str, int]] = {}
        page = await self._page(identities, "")
        while True:
            for metadata in (item.metadata for item in page.items):
                listed[metadata.key] = (metadata.uid, _revision(metadata.resource_version))
            if not page.metadata.continue_token:
                return self.store.differences(listed, _revision(page.metadata.resource_version))
            page = await self._page(identities, page.metadata.continue_token)

    # LIST

    async def _list(self) -> None:
        listing: store.Listing[T] | None = None
        token = ""
        while listing is None or token:
            page = await self._readable_page(token)
            if listing is None:
                listing = store.Listing(self.store, _revision(page.metadata.resource_version))
            self._report(listing.page(page.items))
            token = page.metadata.continue_token
        self._report(listing.finish())
        self._of.stats.lists += 1
        self.fresh_at = time.monotonic()
        self.synced.set()

    async def _readable_page(self, token: str) -> catalogue.Page[T]:
        """Read a page. If it cannot be decoded as a whole, decode object by object, with stand-ins."""
        try:
            page = await self._page(self._resource, token)
            return catalogue.Page(items=tuple(map(self._transformed, page.items)), metadata=page.metadata)
        except (errors.ApiError, errors.ConnectionLost):
            raise
        except Exception:  # noqa: BLE001 - which object it was shows when each is read by itself
            raw = await self._page(self._resource.viewed_as(msgspec.Raw), token)
        return catalogue.Page(items=tuple(map(self._readable, raw.items)), metadata=raw.metadata)

    def _readable(self, raw: msgspec.Raw) -> T:
        try:
            return self._transformed(self._object_decoder.decode(raw))
        except Exception as error:  # noqa: BLE001 - one object's fault must not stop the others'
            return self._stand_in(raw, error)

    def _transformed(self, new: T) -> T:
        """Return the object for the store; raises the transform's errors, or `errors.DecodeError` for its version."""
        stored = new if self._of.transform is None else self._of.transform(new)
        _revision(stored.metadata.resource_version)
        return stored

    def _stand_in(self, raw: msgspec.Raw, error: Exception) -> T:
        """Set an object aside; returns its stand-in, which is not transformed if the transform rejects it."""
        stand_in: T = of(self._resource.view, raw)
        reason = boundary.Reason.DECODING if isinstance(error, catalogue.MALFORMED) else boundary.Reason.STORING
        self._of.aside.set_aside(self._resource, stand_in.metadata, reason, error)
        with contextlib.suppress(Exception):
            return self._transformed(stand_in)
        return stand_in

    async def _page(self, resource: catalogue.Resource[V], token: str) -> catalogue.Page[V]:
        """Read a page. Halves its size after each failure, because a loaded server may not complete a long one."""
        limit = max(_LEAST_PAGE, PAGE_LIMIT >> min(self._failures_in_a_row, 16))
        query = {**self._of.selectors, "continue_token": token}
        return await self._of.client.list_page(resource, self._namespace, limit=limit, **query)

    # WATCH

    async def _watch(self) -> None:
        began_at, received_lines = time.monotonic(), False
        watch = self._of.client.watch(
            self._resource,
            self._namespace,
            **self._of.selectors,
            resource_version=str(self.store.revision),
            timeout_s=_WATCH_S + retries.JITTER.uniform(-1, 1) * _WATCH_JITTER_S,
            idle_s=STALL_S,
        )
        async with watch as batches:
            async for lines in batches:
                arrived_at, received_lines = time.monotonic(), True
                for line in lines:
                    self._line(line)
                self.fresh_at = time.monotonic()
                self.lag_s = self.fresh_at - arrived_at
                self._failures_in_a_row = 0
        if not received_lines and time.monotonic() - began_at < _SHORT_WATCH_S:
            raise errors.ConnectionLost("the watch ended at once")

    def _line(self, line: bytes) -> None:
        try:
            event = self._decoder.decode(line)
            if event.type in _ABOUT_OBJECTS:
                changes = self._put(event.type, self._transformed(event.object))
            else:
                changes = self._other_line(line, None)
        except errors.ClusterError:
            raise
        except Exception as error:  # noqa: BLE001 - a line about one object must not end the watch of the others
            changes = self._other_line(line, error)
        self._report(changes)

    def _put(self, event_type: str, new: T) -> tuple[store.Change[T], ...]:
        self._of.stats.events += 1
        return self.store.remove(new) if event_type == "DELETED" else self.store.put(new)

    def _other_line(self, line: bytes, cause: Exception | None) -> tuple[store.Change[T], ...]:
        """Handle a bookmark, whose object may be incomplete, an error, or an event without a readable object."""
        event = decode(line, catalogue.WatchEvent[msgspec.Raw], "watch event")
        match event.type:
            case "BOOKMARK":
                identity = decode(event.object, catalogue.Identified, "watch event")
                self.store.bookmark(_revision(identity.metadata.resource_version))
                self._of.stats.bookmarks += 1
                return ()
            case "ERROR":
                status = decode(event.object, catalogue.Status, "watch event")
                raise errors.from_status(status.code, status.reason, status.message)
            case event_type if event_type in _ABOUT_OBJECTS and cause is not None:
                return self._put(event_type, self._stand_in(event.object, cause))
            case _:
                raise errors.DecodeError(f"an unreadable {event.type} event: {cause}; {line[:200]!r}")

    def _report(self, changes: Iterable[store.Change[T]]) -> None:
        for change in changes:
            subject = store.subject(change).metadata
            for call in self._of.subscribers:
                self._of.aside.run(self._resource, subject, boundary.Reason.HANDLING, call, change)


def _revision(resource_version: str) -> int:
    try:
        return int(resource_version)
    except ValueError as error:
        raise errors.DecodeError(f"the resourceVersion is not a number: {resource_version!r}") from error


_BACKOFF = retries.Backoff(base_s=0.5, cap_s=10.0)


class Informer(Generic[T]):
    """Local copy of the objects of one kind that match the selectors, in some or all namespaces. `run` starts.

    An object that leaves the field selector is reported as Deleted. `transform` returns what is stored of an object; it
    must keep its identity and must not raise. Objects that cannot be decoded, or for which a subscriber raises, are set
    `aside`. `objects` are the known ones by `namespace/name`, and change only between awaits.
    """

    def __init__(
        self,
        client: ApiClient,
        resource: catalogue.Resource[Any],
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
        self.synced, self.stats = asyncio.Event(), Stats()
        self.client, self.resource, self.selectors = client, resource, {"labels": labels, "fields": fields}
        self.transform, self.aside = transform, aside or boundary.Boundary()
        self.backoff, self.sleep = backoff, sleep
        self.subscribers = [] if on_change is None else [on_change]
        scopes: Sequence[str | None] = sorted(set(namespaces)) or (None,)
        self._reflectors = [Reflector(self, namespace) for namespace in scopes]
        stores = [watch.store.objects for watch in self._reflectors]
        self.objects: Mapping[str, T] = stores[0] if len(stores) == 1 else collections.ChainMap(*stores)

    def get(self, key: str) -> T | None:
        """Return the object with this `namespace/name`, or None."""
        return self.objects.get(key)

    def subscribe(self, call: Callable[[store.Change[T]], object]) -> None:
        """Call the function with each later change, after the store's update; an exception sets the object aside."""
        self.subscribers.append(call)

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
        await self.sleep(settle_s)
        return {key for key, _, _ in first & await self._differences()}

    async def _differences(self) -> set[store.Difference]:
        return {found for watch in self._reflectors for found in await watch.differences()}
