"""Keep the newest version of each object of a kind, by `namespace/name`, from events, answers to writes, and LISTs.

Objects at rest (suspended, ended or not admitted) may be many, and are read when they change or are due. They are kept
as compressed JSON, which takes about a tenth of the memory.
"""

import dataclasses
import zlib
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from typing import Any, Final

import msgspec

from boathouse.cluster import boundary, client, errors, wire
from boathouse.services.frame.admission import Admission
from boathouse.services.frame.kind import Body, KindDefinition, ObjectUid, is_suspended, key_of, revision
from boathouse.telemetry import logs

_REMEMBERED: Final = 1024
SMALL_SPEC_BYTES: Final = 8 * 1024
"""The largest spec that is kept of an object that has ended: reading a smaller one again would cost more."""
_FASTEST: Final = 1
"""The compression level. The default takes twice the time, and saves 6 % of the size of a suspended MRJob."""

METADATA_FIELDS: Final = (
    *("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "finalizers"),
)
"""The metadata that is used. Fields that a tenant may write without bounds (labels, `managedFields`) are dropped."""
LONGEST_ANNOTATION: Final = 128
_log = logs.get(__name__)
RESYNC_EVERY_S, RESYNC_FIRST_S = 120.0, 20.0
RESYNC_PAGE: Final = 20
"""Objects in a page: an object may have more than 1 MB, and a page is in memory as a whole."""


def reduced(body: Body, annotations: Collection[str] = ()) -> Body:
    """Return the used parts of an object, with these annotations."""
    metadata = body["metadata"]
    parts = {name: body[name] for name in ("spec", "status") if name in body}
    kept = {name: metadata[name] for name in METADATA_FIELDS if name in metadata}
    texts = metadata.get("annotations") or {} if annotations else {}
    short = {name: texts[name] for name in annotations if len(texts.get(name) or "") in range(1, LONGEST_ANNOTATION)}
    return {"metadata": kept | ({"annotations": short} if short else {}), **parts}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """An object, and the tick at which it was stored; `kept` is compressed JSON if the object is at rest."""

    uid: ObjectUid
    revision: int
    tick: int
    has_spec: bool
    has_ended: bool
    kept: Body | bytes

    @property
    def body(self) -> Body:
        """The stored parts of the object."""
        if isinstance(self.kept, bytes):
            body: Body = msgspec.json.decode(zlib.decompress(self.kept))
            return body
        return self.kept


class ObjectStore:
    """Keeps the newest version of each object of a kind, and calls `on_change` with the key of one that changed.

    Versions are increasing numbers, unless etcd is restored from a backup. If a read that began after a version was
    known (`begin`) returns an older version, etcd was restored, and the store accepts the older version.
    """

    def __init__(
        self,
        kind: KindDefinition,
        on_change: Callable[[str], None],
        admission: Admission | None = None,
        aside: boundary.Boundary | None = None,
    ) -> None:
        self.kind = kind
        self._aside = aside or boundary.Boundary()
        self._on_change = on_change
        self._admission = admission or Admission(limit=2**63, limit_bytes=2**63)
        self._entries: dict[str, _Entry] = {}
        self._keys: dict[ObjectUid, str] = {}
        self._gone: dict[str, int] = {}
        self._tick = 0

    def on_object(self, body: Body, began: int | None = None) -> None:
        """Store an object that a watch reported, or a LIST that began at that tick."""
        try:
            if self.put(body, began):
                self._on_change(key_of(body))
        except Exception as error:  # noqa: BLE001 - one object's fault must not keep others from being reconciled
            subject = msgspec.convert(reduced(body)["metadata"], wire.ObjectMeta)
            self._aside.set_aside(self.kind.resource, subject, boundary.Reason.STORING, error)

    def begin(self) -> int:
        """Return the tick at which a read of the API server begins, for `put` and `seen`."""
        return self._tick

    def on_deleted(self, body: Body) -> None:
        """Remove a deleted object. A late event about a previous object of the same name has no effect."""
        key, uid = key_of(body), body["metadata"]["uid"]
        self._gone[uid] = self._next()
        if len(self._gone) > _REMEMBERED:
            del self._gone[next(iter(self._gone))]
        entry = self._entries.get(key)
        if entry is not None and entry.uid == uid:
            self._forget(key)
            self._on_change(key)

    def put(self, body: Body, began: int | None = None) -> bool:
        """Store the body if it is newer, or read since what was stored before; returns whether it is."""
        key, uid, version = key_of(body), ObjectUid(body["metadata"]["uid"]), revision(body)
        entry = self._entries.get(key)
        if began is not None and self._gone.get(uid, began + 1) <= began:
            del self._gone[uid]
        if uid in self._gone:
            return False
        if entry is not None:
            went_back = began is not None and entry.tick <= began and version < entry.revision
            is_whole = "spec" in body and not entry.has_spec and version == entry.revision
            if version <= entry.revision and not (went_back or is_whole):
                return False
            if entry.uid != uid or went_back:
                self._forget(key)
        for admitted in self._store(key, uid, version, reduced(body, self.kind.annotations)):
            self._on_change(admitted)
        return True

    def _store(self, key: str, uid: ObjectUid, version: int, body: Body) -> Sequence[str]:
        """Store a version; returns the keys of objects that are admitted because of it."""
        size_bytes = len(msgspec.json.encode(body.get("spec")))
        ended, admission = self.kind.has_ended(body), self._admission
        admitted = admission.remove(key, body) if ended else admission.put(key, body, size_bytes)
        is_admitted = ended or admission.admits(key, body)
        if (size_bytes > SMALL_SPEC_BYTES) if ended else not is_admitted:
            body = {name: part for name, part in body.items() if name != "spec"}
        is_at_rest = ended or not is_admitted or is_suspended(body)
        self._keys[uid] = key
        self._entries[key] = _Entry(
            uid=uid,
            revision=version,
            tick=self._next(),
            has_spec="spec" in body,
            has_ended=ended,
            kept=zlib.compress(msgspec.json.encode(body), _FASTEST) if is_at_rest else body,
        )
        return admitted

    def get(self, key: str) -> Body | None:
        """Return the newest version. A large spec of an ended object, and that of one not admitted, is not kept."""
        entry = self._entries.get(key)
        return entry.body if entry is not None else None

    def key(self, uid: ObjectUid) -> str | None:
        """Return the key of the object with this UID."""
        return self._keys.get(uid)

    def keys(self) -> list[str]:
        """Return all keys."""
        return list(self._entries)

    def admits(self, key: str) -> bool:
        """Return whether an object is admitted."""
        entry = self._entries.get(key)
        return entry is None or entry.has_ended or self._admission.admits(key, entry.body)

    @property
    def limits(self) -> tuple[int, int]:
        """Return how many unfinished objects of a namespace are admitted, and how many bytes their specs may have."""
        return self._admission.limit, self._admission.limit_bytes

    def _next(self) -> int:
        self._tick += 1
        return self._tick

    def _forget(self, key: str) -> None:
        entry = self._entries.pop(key)
        self._keys.pop(entry.uid, None)
        for admitted in self._admission.remove(key, entry.body):
            self._on_change(admitted)


class Resync:
    """Lists the objects of a kind. `listed`: it has listed all since this process became the leader."""

    def __init__(self, api: client.ApiClient, objects: ObjectStore, namespaces: Sequence[str]) -> None:
        self._api, self.objects, self._namespaces, self.listed = api, objects, namespaces, False

    async def run_once(self) -> None:
        """Store newer objects and drop deleted ones, page by page, so that memory holds no second copy of all."""
        before, began = set(self.objects.keys()), self.objects.begin()
        for namespace in self._namespaces or (None,):
            async for body in self._list(namespace):
                before.discard(key_of(body))
                self.objects.on_object(body, began)
        for key in sorted(before):
            await self._check(key)
        self.listed = True

    async def _list(self, namespace: str | None) -> AsyncIterator[dict[str, Any]]:
        token = ""
        while True:
            resource = self.objects.kind.resource
            page = await self._api.list_page(resource, namespace, limit=RESYNC_PAGE, continue_token=token)
            token = page.metadata.continue_token
            for body in page.items:
                yield body
            if not token:
                return

    async def _check(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        stored, began = self.objects.get(key), self.objects.begin()  # another object may have this name from now on
        if stored is None:
            return
        try:
            body = await self._api.get(self.objects.kind.resource, name, namespace)
            self.objects.on_object(body, began)
        except errors.NotFound:
            _log.info("the deletion of an object was missed", kind=self.objects.kind.resource.kind, object=key)
            self.objects.on_deleted(stored)
