"""The MRJobs as last seen, by `namespace/name`: from Kopf's events and from the answers to our own writes."""

import collections
from collections.abc import Callable, Mapping
from typing import Any

from boathouse.services.mrjob.model import JobUid

Body = Mapping[str, Any]
_REMEMBERED = 1024


class JobStore:
    """Keeps the newest version of each resource.

    Args:
        on_change: Called with a key whose resource changed, came or went.
    """

    def __init__(self, on_change: Callable[[str], None]) -> None:
        self._on_change = on_change
        self._bodies: dict[str, Body] = {}
        self._keys: dict[JobUid, str] = {}
        self._gone: collections.deque[str] = collections.deque(maxlen=_REMEMBERED)

    def seen(self, body: Body) -> None:
        """A watch or a list showed the resource."""
        if self.put(body):
            self._on_change(key_of(body))

    def gone(self, body: Body) -> None:
        """The resource was deleted; an older event about a successor's predecessor changes nothing."""
        key, uid = key_of(body), body["metadata"]["uid"]
        self._gone.append(uid)
        known = self._bodies.get(key)
        if known is None or known["metadata"]["uid"] != uid:
            return
        del self._bodies[key], self._keys[JobUid(uid)]
        self._on_change(key)

    def put(self, body: Body) -> bool:
        """Keep the body if it is newer than what is known; True if it was. An answer or a list may come late."""
        key = key_of(body)
        known = self._bodies.get(key)
        if body["metadata"]["uid"] in self._gone:
            return False
        if known is not None and _revision(body) <= _revision(known):
            return False
        if known is not None:
            self._keys.pop(JobUid(known["metadata"]["uid"]), None)
        self._bodies[key] = body
        self._keys[JobUid(body["metadata"]["uid"])] = key
        return True

    def get(self, key: str) -> Body | None:
        """The resource as last seen."""
        return self._bodies.get(key)

    def key(self, uid: JobUid) -> str | None:
        """The key of a resource that is known by its UID."""
        return self._keys.get(uid)

    def keys(self) -> list[str]:
        """All keys."""
        return list(self._bodies)


def key_of(body: Body) -> str:
    """`namespace/name`."""
    return f"{body['metadata']['namespace']}/{body['metadata']['name']}"


def _revision(body: Body) -> int:
    """Resource versions are numbers that grow (Kubernetes 1.35)."""
    return int(body["metadata"]["resourceVersion"])
