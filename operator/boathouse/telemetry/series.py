"""Choose the objects that have series of their own, because tenants create objects without limit."""

import collections
import dataclasses
from collections.abc import Hashable, Iterable
from typing import Final, Generic, TypeVar

IN_NAMESPACE: Final = 20
"""Maximum objects of a namespace that have series."""
IN_ALL: Final = 200
"""Maximum objects of a kind that have series."""
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclasses.dataclass(frozen=True, slots=True)
class _Entry(Generic[V]):
    namespace: str
    value: V


class BoundedSeries(Generic[K, V]):
    """Objects by key, of which a bounded number is listed: the oldest, the first of each namespace before any second.

    Args:
        in_namespace: Maximum listed objects of a namespace.
        in_all: Maximum listed objects.
    """

    def __init__(self, *, in_namespace: int = IN_NAMESPACE, in_all: int = IN_ALL) -> None:
        self._in_namespace = in_namespace
        self._in_all = in_all
        self._entries: dict[K, _Entry[V]] = {}
        self._listed: tuple[K, ...] | None = ()

    def put(self, key: K, namespace: str, value: V) -> None:
        """Add an object, or replace its value."""
        if key not in self._entries:
            self._listed = None
        self._entries[key] = _Entry(namespace, value)

    def drop(self, key: K) -> None:
        """Drop an object, if it is known; another one may take its place."""
        if self._entries.pop(key, None) is not None:
            self._listed = None

    def listed(self) -> Iterable[tuple[K, V]]:
        """Return the keys and values of the objects that have series."""
        return ((key, self._entries[key].value) for key in self._chosen())

    def unlisted(self) -> int:
        """Return the number of objects without series."""
        return len(self._entries) - len(self._chosen())

    def _chosen(self) -> tuple[K, ...]:
        if self._listed is None:
            older: collections.Counter[str] = collections.Counter()
            ranked: list[tuple[int, K]] = []
            for key, entry in self._entries.items():
                if older[entry.namespace] < self._in_namespace:
                    ranked.append((older[entry.namespace], key))
                    older[entry.namespace] += 1
            ranked.sort(key=lambda one: one[0])  # stable: the oldest of a rank first
            self._listed = tuple(key for _, key in ranked[: self._in_all])
        return self._listed
