"""What an informer knows: the objects of one LIST and WATCH, and how each line changes them. Pure, no I/O.

Everything is judged by revisions (resourceVersions as numbers, comparable within a kind from Kubernetes 1.35 on)::

    floor     the newest revision at which the whole state is known: that of the last LIST or bookmark
    revision  the newest revision seen; where the next WATCH starts

An event is old, and ignored, when its revision is not above the floor, nor above the object's own, nor above that at
which we saw the object go. So a duplicate, a replay after a relist and an event that comes out of order (only across
objects) do no harm, and a deletion is never undone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from boathouse.cluster.wire import ObjectMeta


class HasMetadata(Protocol):
    """An object that can be kept: it has a name, a UID and a resourceVersion."""

    @property
    def metadata(self) -> ObjectMeta:
        """Its metadata."""


T = TypeVar("T", bound=HasMetadata)


class Added(Struct, Generic[T], frozen=True, kw_only=True, gc=False):
    """An object that was not there before, or has another UID than the one before."""

    key: str
    new: T


class Modified(Struct, Generic[T], frozen=True, kw_only=True, gc=False):
    """The same object (by UID) in a newer state."""

    key: str
    old: T
    new: T


class Deleted(Struct, Generic[T], frozen=True, kw_only=True, gc=False):
    """An object that is gone, has left the selector, or was replaced by one of the same name.

    Attributes:
        key: ``namespace/name``.
        old: What we knew last.
        final: What the DELETED event carried (the last state in the selector); None when we missed the event.
    """

    key: str
    old: T
    final: T | None = None


Change: TypeAlias = Added[T] | Modified[T] | Deleted[T]


def subject(change: Change[T]) -> T:
    """Return the object that a change is about, in its newest state known."""
    return change.old if isinstance(change, Deleted) else change.new


class Drift(Struct, frozen=True, kw_only=True):
    """Where the store and a LIST differ, by key; all three empty means they are the same.

    Attributes:
        missing: Listed, but not known.
        ghosts: Known, but not listed.
        outdated: Known in an older state, or as another object.
    """

    missing: tuple[str, ...] = ()
    ghosts: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.ghosts or self.outdated)


class Store(Generic[T]):
    """The objects of one scope (a namespace, or all) and selector."""

    def __init__(self) -> None:
        self.objects: dict[str, T] = {}
        self.revision = 0
        self._floor = 0
        self._gone: dict[str, int] = {}

    def put(self, new: T) -> tuple[Change[T], ...]:
        """Apply an ADDED or MODIFIED event."""
        key = new.metadata.key
        revision = int(new.metadata.resource_version)
        old = self.objects.get(key)
        if self._is_old(key, revision, old):
            return ()
        self.revision = max(self.revision, revision)
        return self._replace(key, old, new)

    def remove(self, final: T) -> tuple[Change[T], ...]:
        """Apply a DELETED event, whose object carries the revision of the deletion."""
        key = final.metadata.key
        revision = int(final.metadata.resource_version)
        old = self.objects.get(key)
        if self._is_old(key, revision, old):
            return ()
        self.revision = max(self.revision, revision)
        self._gone[key] = revision
        if old is None:
            return ()
        del self.objects[key]
        return (Deleted(key=key, old=old, final=final if final.metadata.uid == old.metadata.uid else None),)

    def bookmark(self, revision: int) -> None:
        """Apply a bookmark: every event up to this revision has been sent."""
        self.revision = max(self.revision, revision)
        self._rise(revision)

    def relist(self, revision: int) -> Listing[T]:
        """Begin a LIST of that revision; its pages replace what is known."""
        return Listing(self, revision)

    def differences(self, listed: Mapping[str, tuple[str, int]], revision: int) -> Drift:
        """Compare with a LIST of that revision, given as key to (UID, revision).

        Objects that changed here after ``revision`` are left aside: there the store knows more than the list.
        """
        missing = [k for k in listed if k not in self.objects and self._gone.get(k, 0) <= revision]
        known = {k: (o.metadata.uid, int(o.metadata.resource_version)) for k, o in self.objects.items()}
        ghosts = [k for k, (_, own) in known.items() if k not in listed and own <= revision]
        outdated = [k for k, was in listed.items() if k in known and known[k] != was and known[k][1] <= revision]
        return Drift(missing=tuple(missing), ghosts=tuple(ghosts), outdated=tuple(outdated))

    def _is_old(self, key: str, revision: int, old: T | None) -> bool:
        if revision <= self._floor:
            return True
        if old is not None:
            return revision <= int(old.metadata.resource_version)
        return revision <= self._gone.get(key, 0)

    def _replace(self, key: str, old: T | None, new: T) -> tuple[Change[T], ...]:
        self.objects[key] = new
        if old is None:
            return (Added(key=key, new=new),)
        if old.metadata.uid != new.metadata.uid:
            return Deleted(key=key, old=old), Added(key=key, new=new)
        return (Modified(key=key, old=old, new=new),)

    def _rise(self, revision: int) -> None:
        self._floor = max(self._floor, revision)
        if self._gone:
            self._gone = {key: gone for key, gone in self._gone.items() if gone > self._floor}


class Listing(Generic[T]):
    """A LIST under way. Pages are applied as they come, so that no second copy of the cluster is held.

    What is no longer there is found only by `finish`, after the last page: a LIST that fails half way removes nothing.
    When the server's revision is below ours (etcd was restored from a backup) the list is believed, not we.
    """

    def __init__(self, store: Store[T], revision: int) -> None:
        self._store = store
        self._revision = revision
        self._went_back = revision < store.revision
        self._seen: set[str] = set()

    def page(self, items: Iterable[T]) -> Iterator[Change[T]]:
        """Apply a page."""
        for new in items:
            key = new.metadata.key
            self._seen.add(key)
            old = self._store.objects.get(key)
            if old is None or self._is_news(old.metadata, new.metadata):
                yield from self._store._replace(key, old, new)

    def finish(self) -> Iterator[Change[T]]:
        """Remove what no page held; from here on the store stands at the list's revision."""
        store = self._store
        for key in [key for key in store.objects if key not in self._seen]:
            yield Deleted(key=key, old=store.objects.pop(key))
        store.revision = self._revision
        store._floor = self._revision  # noqa: SLF001 - the two are one thing
        store._gone.clear()  # noqa: SLF001

    def _is_news(self, old: ObjectMeta, new: ObjectMeta) -> bool:
        if self._went_back:
            return old.resource_version != new.resource_version or old.uid != new.uid
        return int(new.resource_version) > int(old.resource_version)
