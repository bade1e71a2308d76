"""Store of an informer: the objects of one LIST and WATCH, and how each line changes them. Pure, no I/O.

Versions are compared by revision (resourceVersion as a number, comparable within a kind from Kubernetes 1.35 on)::

    floor     the newest revision at which the whole state is known: that of the last LIST or bookmark
    revision  the newest observed revision, from which the next WATCH starts

An event is stale, and ignored, unless its revision is above the floor, the object's revision, and the revision of the
object's deletion. Duplicates, replays after a relist and events out of order (only across objects) therefore have no
effect, and a deletion is never undone.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from boathouse.cluster.wire import ObjectMeta


class HasMetadata(Protocol):
    """An object that can be stored: it has a name, a UID and a resourceVersion."""

    @property
    def metadata(self) -> ObjectMeta:
        """Metadata of the object."""


T = TypeVar("T", bound=HasMetadata)


class Added(Struct, Generic[T], frozen=True, kw_only=True, gc=False):
    """A new object, or one with another UID than the previous object of its name."""

    key: str
    new: T


class Modified(Struct, Generic[T], frozen=True, kw_only=True, gc=False):
    """A newer version of an object with the same UID."""

    key: str
    old: T
    new: T


class Deleted(Struct, Generic[T], frozen=True, kw_only=True, gc=False):
    """An object that was deleted, has left the selector, or was replaced by another of the same name."""

    key: str
    old: T
    """Its last stored version."""
    final: T | None = None
    """The version in the DELETED event (the last one in the selector); None if the event was missed."""


Change: TypeAlias = Added[T] | Modified[T] | Deleted[T]


def subject(change: Change[T]) -> T:
    """Return the newest known version of a change's object."""
    return change.old if isinstance(change, Deleted) else change.new


Difference: TypeAlias = tuple[str, tuple[str, int] | None, bool]
"""An object that differs between store and LIST: its key, its UID and revision in the store, and if it is listed."""


class Store(Generic[T]):
    """Objects of one scope (a namespace, or all) and selector."""

    def __init__(self) -> None:
        self.objects: dict[str, T] = {}
        self.revision, self._floor = 0, 0
        self._gone: dict[str, int] = {}

    def put(self, new: T) -> tuple[Change[T], ...]:
        """Apply an ADDED or MODIFIED event."""
        return self._replace(new) if self._is_news(new) else ()

    def remove(self, final: T) -> tuple[Change[T], ...]:
        """Apply a DELETED event, whose object has the revision of the deletion."""
        if not self._is_news(final):
            return ()
        key = final.metadata.key
        self._gone[key] = int(final.metadata.resource_version)
        old = self.objects.pop(key, None)
        if old is None:
            return ()
        return (Deleted(key=key, old=old, final=final if final.metadata.uid == old.metadata.uid else None),)

    def bookmark(self, revision: int) -> None:
        """Apply a bookmark: all events up to this revision have been sent."""
        self.revision = max(self.revision, revision)
        self._floor = max(self._floor, revision)
        self._gone = {key: gone for key, gone in self._gone.items() if gone > self._floor}

    def differences(self, listed: Mapping[str, tuple[str, int]], revision: int) -> set[Difference]:
        """Compare with a LIST of this revision, key to (UID, revision); what changed in the store since is ignored."""
        stored = {k: (o.metadata.uid, int(o.metadata.resource_version)) for k, o in self.objects.items()}
        missing = {k for k in listed if k not in stored and self._gone.get(k, 0) <= revision}
        others = {k for k, own in stored.items() if own != listed.get(k) and own[1] <= revision}
        return {(k, stored.get(k), k in listed) for k in missing | others}

    def _is_news(self, new: T) -> bool:
        """Return whether an event is not stale, and note its revision then."""
        key, revision = new.metadata.key, int(new.metadata.resource_version)
        old = self.objects.get(key)
        last = self._gone.get(key, 0) if old is None else int(old.metadata.resource_version)
        if revision <= max(self._floor, last):
            return False
        self.revision = max(self.revision, revision)
        return True

    def _replace(self, new: T) -> tuple[Change[T], ...]:
        key = new.metadata.key
        old = self.objects.get(key)
        self.objects[key] = new
        if old is None:
            return (Added(key=key, new=new),)
        if old.metadata.uid != new.metadata.uid:
            return Deleted(key=key, old=old), Added(key=key, new=new)
        return (Modified(key=key, old=old, new=new),)


class Listing(Generic[T]):
    """A LIST in progress. Pages are applied as they arrive, so that memory holds no second copy of the cluster.

    `finish` removes deleted objects after the last page, so an incomplete LIST removes nothing. If the server's
    revision is below the store's (etcd was restored from a backup), the list replaces the store.
    """

    def __init__(self, store: Store[T], revision: int) -> None:
        self._store, self._revision = store, revision
        self._went_back = revision < store.revision
        self._listed_keys: set[str] = set()

    def page(self, items: Iterable[T]) -> Iterator[Change[T]]:
        """Apply a page."""
        for new in items:
            key = new.metadata.key
            self._listed_keys.add(key)
            old = self._store.objects.get(key)
            if old is None or self._is_newer(old.metadata, new.metadata):
                yield from self._store._replace(new)

    def finish(self) -> Iterator[Change[T]]:
        """Remove objects that are in no page, and set the store's revision to the list's."""
        store = self._store
        for key in [key for key in store.objects if key not in self._listed_keys]:
            yield Deleted(key=key, old=store.objects.pop(key))
        store.revision = self._revision
        store._floor = self._revision  # noqa: SLF001 - the two are one thing
        store._gone.clear()  # noqa: SLF001

    def _is_newer(self, old: ObjectMeta, new: ObjectMeta) -> bool:
        if self._went_back:
            return old.resource_version != new.resource_version or old.uid != new.uid
        return int(new.resource_version) > int(old.resource_version)
