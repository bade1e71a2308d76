"""Cache answers of the API server, within bounds, and share one read between all that ask for the same at a time."""

import asyncio
import dataclasses
import weakref
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

ENTRY_BYTES: Final = 256
"""What an entry costs beside its answer, at least."""
_OF_NAMESPACE: Final = 4
"""A namespace may use a quarter of a cache."""
V = TypeVar("V")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[V]):
    """An answer of the API server.

    Attributes:
        value: What it says.
        good_s: How long it is cached.
        size_bytes: Memory of the value, where it is large.
    """

    value: V
    good_s: float
    size_bytes: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class _Entry(Generic[V]):
    value: V
    until_s: float
    cost_bytes: int


class Answers(Generic[V]):
    """Cached answers with an expiry time. Tenants choose the keys, so a namespace evicts its own oldest answers only.

    Args:
        monotonic: Returns monotonic seconds.
        max_bytes: Maximum memory of all answers; a namespace may use a quarter.
    """

    def __init__(self, monotonic: Callable[[], float], max_bytes: int) -> None:
        self._monotonic = monotonic
        self._max_bytes = max_bytes
        self._kept: dict[str, dict[Hashable, _Entry[V]]] = {}
        self._used_bytes: dict[str, int] = {}
        self._reading: weakref.WeakValueDictionary[Hashable, asyncio.Lock] = weakref.WeakValueDictionary()

    @property
    def used_bytes(self) -> int:
        """Memory of all answers."""
        return sum(self._used_bytes.values())

    async def get(self, namespace: str, key: Hashable, read: Callable[[], Awaitable[Answer[V]]]) -> V:
        """Return the cached answer, or read it; whoever asks for it meanwhile waits for that read.

        Args:
            namespace: Who is charged for the memory; empty for objects of the cluster.
            key: What is asked for, in the namespace.
            read: Asks the API server. Its errors are the caller's and are not cached.
        """
        lock = self._reading.setdefault((namespace, key), asyncio.Lock())
        async with lock:
            known = self._kept.get(namespace, {}).get(key)
            if known is not None and self._monotonic() <= known.until_s:
                return known.value
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
        entry = _Entry(answer.value, self._monotonic() + answer.good_s, cost_bytes)
        self._kept.setdefault(namespace, {})[key] = entry
        self._used_bytes[namespace] = self._used_bytes.get(namespace, 0) + cost_bytes

    def _drop(self, namespace: str, key: Hashable) -> None:
        of_namespace = self._kept.get(namespace, {})
        entry = of_namespace.pop(key, None)
        if entry is None:
            return
        self._used_bytes[namespace] -= entry.cost_bytes
        if not of_namespace:
            del self._kept[namespace], self._used_bytes[namespace]
