"""Pods of a kind by object, put together from two watches: of pods that hold resources, and of our pods that ended.

A pod that ends leaves the first watch and comes into the second, and nothing orders the two streams. So of each pod
the newer version of the two streams' last ones counts. That a pod left the first watch may mean that it ended or that
it was deleted: it is kept for a moment, in which the second watch may show its end.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, Protocol, TypeVar

from boathouse.cluster import store
from boathouse.scheduling.pods import facts
from boathouse.services.frame.kind import ObjectUid

LIMBO_S: Final = 2.0
"""How long the end of a pod that left the first watch may take to be shown by the second."""

Later = Callable[[float, Callable[[], None]], object]


class KnownPod(Protocol):
    """A pod as a kind reads it. It is a value that compares by its parts."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def uid(self) -> str:
        """Its UID."""


P = TypeVar("P", bound=KnownPod)


@dataclasses.dataclass(slots=True)
class _Entry(Generic[P]):
    """A pod, and what the two watches know of it.

    Attributes:
        running: By the first watch, with its revision.
        ended: By the second, with its revision.
        left: The version that left the first watch, whose end may still be shown by the second.
    """

    running: tuple[int, P] | None = None
    ended: tuple[int, P] | None = None
    left: facts.PodFacts | None = None

    @property
    def pod(self) -> P:
        """The pod in its newest version; of two equal ones, that of the second watch."""
        return max(filter(None, (self.ended, self.running)), key=lambda version: version[0])[1]


class PodIndex(Generic[P]):
    """All pods of a kind's objects that exist, running or ended.

    Args:
        read: Returns a pod as the kind sees it; None for a pod of another kind.
        on_change: Called with the object whose pods changed.
        later: Calls back after so many seconds: the loop's `call_later`.
    """

    def __init__(
        self, read: Callable[[facts.PodFacts], P | None], on_change: Callable[[ObjectUid], None], later: Later
    ) -> None:
        self._read, self._on_change, self._later = read, on_change, later
        self._by_object: dict[ObjectUid, dict[str, _Entry[P]]] = {}
        self._objects: dict[str, ObjectUid] = {}

    def on_pod(self, change: store.Change[facts.PodFacts]) -> None:
        """Take in a change of the pods that hold resources."""
        match change:
            case store.Added(new=pod) | store.Modified(new=pod):
                self._put(pod, ended=False)
            case store.Deleted(old=pod):
                if (entry := self._entry(pod)) is not None:
                    entry.left = pod
                    self._later(LIMBO_S, lambda: self._end_limbo(entry, pod))

    def on_ended(self, change: store.Change[facts.PodFacts]) -> None:
        """Take in a change of our pods that ended."""
        match change:
            case store.Added(new=pod) | store.Modified(new=pod):
                self._put(pod, ended=True)
            case store.Deleted(old=pod):
                self._end_left(pod)

    def __iter__(self) -> Iterator[tuple[ObjectUid, P]]:
        """Return all pods with the objects that they belong to."""
        return ((uid, entry.pod) for uid, entries in self._by_object.items() for entry in entries.values())

    def of(self, uid: ObjectUid) -> Sequence[P]:
        """The pods of an object."""
        return tuple(entry.pod for entry in self._by_object.get(uid, {}).values())

    def find(self, uid: ObjectUid, pod_name: str) -> P | None:
        """One pod of an object."""
        entry = self._by_object.get(uid, {}).get(pod_name)
        return entry.pod if entry else None

    def object_of(self, pod_uid: str) -> ObjectUid | None:
        """Return the object that a pod belongs to."""
        return self._objects.get(pod_uid)

    def _put(self, pod: facts.PodFacts, *, ended: bool) -> None:
        """Take in what one watch shows; each tells in order, so of one watch the last word counts."""
        seen = None if pod.task_of is None else self._read(pod)
        if pod.task_of is None or seen is None:
            return
        uid, entry, version = ObjectUid(pod.task_of), self._entry(pod), (pod.revision, seen)
        before = entry.pod if entry is not None else None
        if entry is None:
            entry = self._begin(uid, seen)
        if ended:
            entry.ended = version
        else:
            entry.running, entry.left = version, None
        if entry.pod != before:
            self._on_change(uid)

    def _begin(self, uid: ObjectUid, pod: P) -> _Entry[P]:
        """Begin with a pod that is not known; another one of its name is forgotten."""
        entries = self._by_object.setdefault(uid, {})
        if (former := entries.get(pod.name)) is not None:
            self._objects.pop(former.pod.uid, None)
        self._objects[pod.uid] = uid
        entry = entries[pod.name] = _Entry()
        return entry

    def _end_limbo(self, entry: _Entry[P], pod: facts.PodFacts) -> None:
        """Drop a pod that left the first watch and whose end the second has not shown, unless it came again."""
        if entry.left is not pod or self._entry(pod) is not entry:
            return
        entry.running = None
        if entry.ended is None:
            self._drop(pod)

    def _end_left(self, pod: facts.PodFacts) -> None:
        """The second watch does not show the pod any more: it is gone, or (etcd was restored) it runs."""
        entry = self._entry(pod)
        if entry is None:
            return
        if entry.running is None or entry.left is not None:
            self._drop(pod)
        else:
            entry.ended = None
            self._on_change(ObjectUid(pod.task_of or ""))

    def _entry(self, pod: facts.PodFacts) -> _Entry[P] | None:
        """What is known of this very pod; another one of its name is forgotten."""
        entry = self._by_object.get(ObjectUid(pod.task_of or ""), {}).get(pod.metadata.name)
        return entry if entry is not None and entry.pod.uid == pod.metadata.uid else None

    def _drop(self, pod: facts.PodFacts) -> None:
        uid = ObjectUid(pod.task_of or "")
        del self._by_object[uid][pod.metadata.name]
        self._objects.pop(pod.metadata.uid, None)
        if not self._by_object[uid]:
            del self._by_object[uid]
        self._on_change(uid)
