"""Read other objects that an object depends on, and cache the answers within bounds, for all who ask for them."""

import asyncio
import dataclasses
import weakref
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Final, Generic, Protocol, TypeVar

from boathouse import fair
from boathouse.cluster import catalogue, client, errors, wire
from boathouse.services.frame import pod_life

ENTRY_BYTES: Final = 256
_OF_NAMESPACE: Final = 4
V = TypeVar("V")
TTL_S, UID_TTL_S, ABSENT_TTL_S, KEYS_TTL_S, NO_CONFIG_MAP_TTL_S = 60.0, 10.0, 10.0, 5.0, 1.0
"""How long answers are cached: in general, UIDs, that an object is missing, which keys a ConfigMap has, and that there
is no ConfigMap, for which a user waits."""
MAX_BYTES, MAX_KEYS_BYTES = 1024 * ENTRY_BYTES, 8 * 1024 * 1024
"""Memory of each cache of small answers, and of the names of keys of ConfigMaps; those of one are at most 1 MiB."""
READ_BYTES_PER_S, READ_BURST_BYTES, LEAST_READ_BYTES = 1024 * 1024, 64 * 1024 * 1024, 4 * 1024
"""ConfigMaps of a namespace that are read, on average and at once (one job's files); what a read costs at least."""
MOST_EVENTS: Final = 50
_END: Final = "/"  # no key contains it


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[V]):
    """An answer of the API server, which is cached for `ttl_s`; with the memory of its value, where that is large."""

    value: V
    ttl_s: float
    size_bytes: int = 0


class Answers(Generic[V]):
    """Cached answers with an expiry time. Tenants choose the keys: a namespace evicts its own oldest answers only."""

    def __init__(self, monotonic: Callable[[], float], max_bytes: int) -> None:
        self._monotonic, self._max_bytes = monotonic, max_bytes
        self._kept: dict[str, dict[Hashable, tuple[float, Answer[V]]]] = {}
        self._used_bytes: dict[str, int] = {}
        self._reading: weakref.WeakValueDictionary[Hashable, asyncio.Lock] = weakref.WeakValueDictionary()

    @property
    def used_bytes(self) -> int:
        """Memory of all answers."""
        return sum(self._used_bytes.values())

    async def get(self, namespace: str, key: Hashable, read: Callable[[], Awaitable[Answer[V]]]) -> V:
        """Return the cached answer, or read it once for all who ask meanwhile, and charge the namespace."""
        lock = self._reading.setdefault((namespace, key), asyncio.Lock())
        async with lock:
            until_s, cached = self._kept.get(namespace, {}).get(key, (0.0, None))
            if cached is not None and self._monotonic() <= until_s:
                return cached.value
            self._drop(namespace, key)
            answer = await read()
            self._keep(namespace, key, answer)
            return answer.value

    def _keep(self, namespace: str, key: Hashable, answer: Answer[V]) -> None:
        cost_bytes = ENTRY_BYTES + answer.size_bytes
        most_bytes = self._max_bytes // _OF_NAMESPACE
        if cost_bytes > most_bytes:
            return
        while self._used_bytes.get(namespace, 0) + cost_bytes > most_bytes:
            self._drop(namespace, next(iter(self._kept[namespace])))
        while self.used_bytes + cost_bytes > self._max_bytes:
            largest = max(self._used_bytes, key=self._used_bytes.__getitem__)
            self._drop(largest, next(iter(self._kept[largest])))
        self._kept.setdefault(namespace, {})[key] = (self._monotonic() + answer.ttl_s, answer)
        self._used_bytes[namespace] = self._used_bytes.get(namespace, 0) + cost_bytes

    def _drop(self, namespace: str, key: Hashable) -> None:
        of_namespace = self._kept.get(namespace, {})
        if key not in of_namespace:
            return
        _, answer = of_namespace.pop(key)
        self._used_bytes[namespace] -= ENTRY_BYTES + answer.size_bytes
        if not of_namespace:
            del self._kept[namespace], self._used_bytes[namespace]


@dataclasses.dataclass(frozen=True, slots=True)
class _ConfigMap:
    """The keys of a ConfigMap in one text, several times smaller than a set; None if there is none, or it was not read.

    It is not read if its namespace has read too much.
    """

    keys: bytes | None = None
    is_read: bool = True


class StartingPod(pod_life.LivePod, Protocol):
    """A pod that may not start."""

    @property
    def placed_s(self) -> float | None:
        """When it got its node."""

    @property
    def problem(self) -> pod_life.Problem | None:
        """Why it does not start, as its status says."""


P = TypeVar("P", bound=StartingPod)


class RelatedObjects:
    """Reads the objects, and caches what is asked for often, because thousands of objects may refer to one."""

    def __init__(self, api: client.ApiClient, monotonic: Callable[[], float]) -> None:
        self._api = api
        self._priorities: Answers[int] = Answers(monotonic, MAX_BYTES)
        self._accounts: Answers[bool] = Answers(monotonic, MAX_BYTES)
        self._uids: Answers[str | None] = Answers(monotonic, MAX_BYTES)
        self._mounts: Answers[pod_life.Problem | None] = Answers(monotonic, MAX_BYTES)
        self._config_maps: Answers[_ConfigMap] = Answers(monotonic, MAX_KEYS_BYTES)
        self._budgets = fair.Buckets(rate_per_s=READ_BYTES_PER_S, burst=READ_BURST_BYTES, clock=monotonic)

    async def _find(self, resource: catalogue.Resource[V], name: str, namespace: str | None = None) -> V | None:
        try:
            return await self._api.get(resource, name, namespace)
        except errors.NotFound:
            return None

    async def is_terminating(self, namespace: str) -> bool:
        """Return whether the namespace is being deleted, so that no pod can be created in it."""
        found = await self._find(catalogue.NAMESPACES, namespace)
        return found is not None and found.metadata.deletion_timestamp is not None

    async def uid(self, resource: catalogue.Resource[wire.Manifest], namespace: str, name: str) -> str | None:
        """Return the UID of an object of a kind; None if there is none of this name."""

        async def read() -> Answer[str | None]:
            found = await self._find(resource, name, namespace)
            return Answer(value=None if found is None else found["metadata"]["uid"], ttl_s=UID_TTL_S)

        return await self._uids.get(namespace, (resource.plural, name), read)

    async def priority(self, name: str) -> int:
        """Return the value of a PriorityClass; 0 without a name, or without such a class: pods with it are rejected."""

        async def read() -> Answer[int]:
            found = await self._find(catalogue.PRIORITY_CLASSES, name)
            return Answer(value=0 if found is None else found.get("value", 0), ttl_s=TTL_S)

        return await self._priorities.get("", name, read) if name else 0

    async def has_account(self, namespace: str, name: str) -> bool:
        """Return whether a service account exists; True if the operator may not read it."""

        async def read() -> Answer[bool]:
            try:
                exists = await self._find(catalogue.SERVICE_ACCOUNTS, name, namespace) is not None
            except errors.Forbidden:
                exists = True
            return Answer(value=exists, ttl_s=TTL_S if exists else ABSENT_TTL_S)

        return await self._accounts.get(namespace, name, read)

    async def missing_in_volumes(self, namespace: str, pod_uid: str) -> pod_life.Problem | None:
        """Return which Secret or ConfigMap keeps a kubelet from mounting the volumes of a pod; None if none does.

        The pod's status does not say so, and the operator may not read Secrets: events say it.
        """

        async def read() -> Answer[pod_life.Problem | None]:
            fields = f"regarding.uid={pod_uid}"
            try:
                page = await self._api.list_page(catalogue.EVENTS, namespace, fields=fields, limit=MOST_EVENTS)
            except errors.Forbidden:  # the operator may not read events
                return Answer(value=None, ttl_s=ABSENT_TTL_S)
            return Answer(value=pod_life.mount_problem(page.items), ttl_s=ABSENT_TTL_S)

        return await self._mounts.get(namespace, pod_uid, read)

    async def with_mounts(self, pod: P, namespace: str, now_s: float) -> P:
        """Return a pod, with the Secret or ConfigMap that its volumes lack if it does not start."""
        is_late = pod.placed_s is not None and now_s >= pod.placed_s + pod_life.MOUNTS_S
        if pod.state is not pod_life.PodLife.STARTING or not is_late or pod.problem is not None:
            return pod
        return dataclasses.replace(pod, problem=await self.missing_in_volumes(namespace, pod.uid))

    async def missing_config_map(self, namespace: str, name: str) -> str:
        """Return that there is no such ConfigMap; empty if there is one, or if its namespace has read too much."""
        config_map = await self._config_map(namespace, name)
        return _no_config_map(name) if config_map.is_read and config_map.keys is None else ""

    async def missing_keys(self, namespace: str, wanted: Sequence[tuple[str, str]]) -> Sequence[str]:
        """Return what is missing of each ConfigMap's name and key; empty if the key exists, or was not read."""
        found = {name: await self._config_map(namespace, name) for name in dict.fromkeys(name for name, _ in wanted)}
        keys = {name: frozenset((config_map.keys or b"").decode().split(_END)) for name, config_map in found.items()}
        return [_missing_key(name, key, found[name], keys[name]) for name, key in wanted]

    async def _config_map(self, namespace: str, name: str) -> _ConfigMap:
        async def read() -> Answer[_ConfigMap]:
            if self._budgets.level(namespace) <= 0:
                return Answer(value=_ConfigMap(is_read=False), ttl_s=NO_CONFIG_MAP_TTL_S)
            self._budgets.charge(namespace, LEAST_READ_BYTES)
            body = await self._find(catalogue.CONFIG_MAPS, name, namespace)
            if body is None:
                return Answer(value=_ConfigMap(), ttl_s=NO_CONFIG_MAP_TTL_S)
            data = {**(body.get("data") or {}), **(body.get("binaryData") or {})}
            self._budgets.charge(namespace, sum(len(key) + len(value) for key, value in data.items()))
            text = _END.join(data).encode()
            return Answer(value=_ConfigMap(text), ttl_s=KEYS_TTL_S, size_bytes=len(text))

        return await self._config_maps.get(namespace, name, read)


def _missing_key(name: str, key: str, config_map: _ConfigMap, keys: frozenset[str]) -> str:
    if config_map.is_read and config_map.keys is None:
        return _no_config_map(name)
    return f'ConfigMap "{name}" has no key "{key}"' if config_map.is_read and key not in keys else ""


def _no_config_map(name: str) -> str:
    return f'there is no ConfigMap "{name}"'
