"""Read other objects that an object depends on: its namespace, its PriorityClass, accounts, ConfigMaps and events."""

from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, TypeVar

from boathouse.cluster import catalogue, client, errors, wire
from boathouse.services.frame import pod_life

GOOD_S: Final = 60.0
"""How long an answer is cached."""
UID_GOOD_S: Final = 10.0
"""How long the UID of an object is cached."""
ABSENT_GOOD_S: Final = 10.0
"""How long it is cached that an object is missing."""
KEPT: Final = 1024
MOST_EVENTS: Final = 50
"""Events of a pod that are read."""
V = TypeVar("V")


class _Cache(Generic[V]):
    """Cached answers with an expiry time, limited in number because tenants choose the keys."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._known: dict[Hashable, tuple[float, V]] = {}

    def get(self, key: Hashable) -> V | None:
        until_s, answer = self._known.get(key, (float("-inf"), None))
        return answer if self._monotonic() <= until_s else None

    def put(self, key: Hashable, answer: V, good_s: float = GOOD_S) -> V:
        if len(self._known) >= KEPT:
            self._known.clear()
        self._known[key] = self._monotonic() + good_s, answer
        return answer


class RelatedObjects:
    """Reads the objects, and caches the values of PriorityClasses and which service accounts exist.

    Args:
        monotonic: Returns monotonic seconds.
    """

    def __init__(self, api: client.ApiClient, monotonic: Callable[[], float]) -> None:
        self._api = api
        self._priorities: _Cache[int] = _Cache(monotonic)
        self._accounts: _Cache[bool] = _Cache(monotonic)
        self._uids: _Cache[tuple[str | None]] = _Cache(monotonic)
        self._mounts: _Cache[tuple[pod_life.Problem | None]] = _Cache(monotonic)

    async def is_terminating(self, namespace: str) -> bool:
        """Return whether the namespace is being deleted, so that no pod can be created in it."""
        try:
            return (await self._api.get(catalogue.NAMESPACES, namespace)).metadata.deletion_timestamp is not None
        except errors.NotFound:
            return False

    async def uid(self, resource: catalogue.Resource[wire.Manifest], namespace: str, name: str) -> str | None:
        """Return the UID of an object of a kind; None if there is none of this name."""
        key = resource.plural, namespace, name
        known = self._uids.get(key)
        if known is None:
            try:
                known = ((await self._api.get(resource, name, namespace))["metadata"]["uid"],)
            except errors.NotFound:
                known = (None,)
            self._uids.put(key, known, good_s=UID_GOOD_S)
        return known[0]

    async def priority(self, name: str) -> int:
        """Return the value of a PriorityClass; 0 without a name, and for a class that does not exist.

        The API server rejects pods with a class that does not exist.
        """
        if not name:
            return 0
        value = self._priorities.get(name)
        if value is not None:
            return value
        try:
            value = (await self._api.get(catalogue.PRIORITY_CLASSES, name)).get("value", 0)
        except errors.NotFound:
            value = 0
        return self._priorities.put(name, value)

    async def has_account(self, namespace: str, name: str) -> bool:
        """Return whether a service account exists; True if the operator may not read it."""
        exists = self._accounts.get((namespace, name))
        if exists is not None:
            return exists
        try:
            await self._api.get(catalogue.SERVICE_ACCOUNTS, name, namespace)
        except errors.NotFound:
            return self._accounts.put((namespace, name), answer=False, good_s=ABSENT_GOOD_S)
        except errors.Forbidden:
            pass
        return self._accounts.put((namespace, name), answer=True)

    async def missing_in_volumes(self, namespace: str, pod_uid: str) -> pod_life.Problem | None:
        """Return which Secret or ConfigMap keeps a kubelet from mounting the volumes of a pod; None if none does.

        The pod's status does not say so, and the operator may not read Secrets: events say it.
        """
        known = self._mounts.get((namespace, pod_uid))
        if known is None:
            problem = pod_life.mount_problem(await self._events(namespace, pod_uid))
            known = self._mounts.put((namespace, pod_uid), (problem,), good_s=ABSENT_GOOD_S)
        return known[0]

    async def _events(self, namespace: str, uid: str) -> Sequence[wire.Manifest]:
        """Return events about an object; none if the operator may not read them."""
        fields = f"regarding.uid={uid}"
        try:
            return (await self._api.list_page(catalogue.EVENTS, namespace, fields=fields, limit=MOST_EVENTS)).items
        except errors.Forbidden:
            return ()

    async def missing_config_map(self, namespace: str, name: str, key: str | None = None) -> str:
        """Return what is missing of a ConfigMap or a key of it; empty if nothing is.

        A pod that mounts a missing one would be pending without a reason.
        """
        try:
            found = await self._api.get(catalogue.CONFIG_MAPS, name, namespace)
        except errors.NotFound:
            return f'there is no ConfigMap "{name}"'
        if key is None or key in {**(found.get("data") or {}), **(found.get("binaryData") or {})}:
            return ""
        return f'ConfigMap "{name}" has no key "{key}"'
