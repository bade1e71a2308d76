"""The MRJobs as last seen, by `namespace/name`: from Kopf's events and from the answers to our own writes."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from boathouse.services.mrjob.backlog import Backlog, has_ended
from boathouse.services.mrjob.job.model import JobUid

Body = Mapping[str, Any]
_REMEMBERED: Final = 1024
SMALL_SPEC_BYTES: Final = 8 * 1024
"""Of a job that has ended, a spec of this size is kept: reading it again would cost more."""

KEPT_METADATA: Final = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "finalizers",
)
"""All of an MRJob's metadata that is used. What a tenant may write without bounds (labels, annotations, among them what
kubectl applied last, and `managedFields`) takes no memory here."""


def kept(body: Body) -> Body:
    """Return what is kept of an MRJob."""
    metadata = body["metadata"]
    parts = {name: body[name] for name in ("spec", "status") if name in body}
    return {"metadata": {name: metadata[name] for name in KEPT_METADATA if name in metadata}, **parts}


@dataclasses.dataclass(slots=True)
class _Entry:
    """A resource, and at which tick it came."""

    body: Body
    tick: int


class JobStore:
    """Keeps the newest version of each resource.

    Versions are numbers that grow, as long as etcd is not restored from a backup. A read of the API server that began
    after a version was known (`begin`) cannot return an older one for any other reason, and is believed.

    Args:
        on_change: Called with a key whose resource changed, came or went, or is admitted now.
        backlog: Which jobs are admitted; without limits when absent.
    """

    def __init__(self, on_change: Callable[[str], None], backlog: Backlog | None = None) -> None:
        self._on_change = on_change
        self._backlog = backlog or Backlog(limit=2**63, limit_bytes=2**63)
        self._entries: dict[str, _Entry] = {}
        self._keys: dict[JobUid, str] = {}
        self._gone: dict[str, int] = {}
        self._tick = 0

    def seen(self, body: Body, began: int | None = None) -> None:
        """A watch, or a LIST that began at that tick, showed the resource."""
        if self.put(body, began):
            self._on_change(key_of(body))

    def begin(self) -> int:
        """Return the tick at which a read of the API server begins, for `put` and `seen`."""
        return self._tick

    def gone(self, body: Body) -> None:
        """The resource was deleted; an older event about a successor's predecessor changes nothing."""
        key, uid = key_of(body), body["metadata"]["uid"]
        self._gone[uid] = self._next()
        if len(self._gone) > _REMEMBERED:
            del self._gone[next(iter(self._gone))]
        known = self._entries.get(key)
        if known is None or known.body["metadata"]["uid"] != uid:
            return
        self._forget(key)
        self._on_change(key)

    def put(self, body: Body, began: int | None = None) -> bool:
        """Keep the body if it is newer than what is known; True if it was. An answer or a list may come late.

        Args:
            body: The resource.
            began: Of a GET or LIST, the tick at which it began: whatever was known then is older.
        """
        key, uid, body = key_of(body), body["metadata"]["uid"], kept(body)
        known = self._entries.get(key)
        if began is not None and self._gone.get(uid, began + 1) <= began:
            del self._gone[uid]
        if uid in self._gone:
            return False
        if known is not None:
            went_back = began is not None and known.tick <= began and _revision(body) < _revision(known.body)
            is_whole = "spec" in body and "spec" not in known.body and _revision(body) == _revision(known.body)
            if _revision(body) <= _revision(known.body) and not (went_back or is_whole):
                return False
            if known.body["metadata"]["uid"] != uid or went_back:
                self._forget(key)
        self._entries[key] = _Entry(body, self._next())
        self._keys[JobUid(uid)] = key
        size_bytes = len(msgspec.json.encode(body.get("spec")))
        self._admit(self._backlog.put(key, body, size_bytes))
        if not self._backlog.admits(key, body) or (has_ended(body) and size_bytes > SMALL_SPEC_BYTES):
            self._entries[key].body = {name: part for name, part in body.items() if name != "spec"}
        return True

    def get(self, key: str) -> Body | None:
        """The resource as last seen, without what is not `kept`.

        The spec is absent of a job that is not admitted, and of one that has ended and has a large one: the next look
        reads it from the API server.
        """
        entry = self._entries.get(key)
        return entry.body if entry is not None else None

    def key(self, uid: JobUid) -> str | None:
        """The key of a resource that is known by its UID."""
        return self._keys.get(uid)

    def keys(self) -> list[str]:
        """All keys."""
        return list(self._entries)

    def admits(self, key: str) -> bool:
        """Whether a job is among those of its namespace that may run."""
        entry = self._entries.get(key)
        return entry is None or self._backlog.admits(key, entry.body)

    @property
    def limits(self) -> tuple[int, int]:
        """How many unfinished jobs of a namespace are admitted, and how many bytes their specs may have."""
        return self._backlog.limit, self._backlog.limit_bytes

    def _next(self) -> int:
        self._tick += 1
        return self._tick

    def _forget(self, key: str) -> None:
        body = self._entries.pop(key).body
        self._keys.pop(JobUid(body["metadata"]["uid"]), None)
        self._admit(self._backlog.remove(key, body))

    def _admit(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._on_change(key)


def key_of(body: Body) -> str:
    """`namespace/name`."""
    return f"{body['metadata']['namespace']}/{body['metadata']['name']}"


def _revision(body: Body) -> int:
    """Resource versions are numbers that grow (Kubernetes 1.35)."""
    return int(body["metadata"]["resourceVersion"])
