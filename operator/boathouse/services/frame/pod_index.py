"""Index the pods of a kind by object, from two watches: pods that use resources, and Boathouse's pods that ended.

A pod that ends leaves the first watch and enters the second, and the two streams are not ordered. The index uses the
newer of the last versions of both streams. A pod that leaves the first watch has ended or was deleted: the index keeps
it for `ENDED_GRACE_S`, in which the second watch may deliver its end.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, TypeVar

from boathouse.cluster import store, wire
from boathouse.scheduling.pods import facts
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.frame.pod_life import ObservedPod

ENDED_GRACE_S: Final = 2.0
Later = Callable[[float, Callable[[], None]], object]
P = TypeVar("P", bound=ObservedPod)


@dataclasses.dataclass(slots=True)
class _Entry(Generic[P]):
    """A pod, with its versions in both watches, and the one that `left` the first while its end may still arrive."""

    running: tuple[int, P] | None = None
    ended: tuple[int, P] | None = None
    left: facts.PodFacts | None = None

    @property
    def pod(self) -> P:
        """Newest version of the pod; that of the second watch if both are equal."""
        return max(filter(None, (self.ended, self.running)), key=lambda version: version[0])[1]


class PodIndex(Generic[P]):
    """All existing pods of a kind's objects, running or ended. `read` returns None for a pod of another kind."""

    def __init__(
        self,
        read: Callable[[facts.PodFacts], P | None],
        on_change: Callable[[ObjectUid], None],
        later: Later,
        on_gone: Callable[[P], None] = lambda _: None,
    ) -> None:
        self._read, self._on_change, self._later, self._on_gone = read, on_change, later, on_gone
        self._by_object: dict[ObjectUid, dict[str, _Entry[P]]] = {}
        self._objects: dict[str, ObjectUid] = {}

    def on_pod(self, change: store.Change[facts.PodFacts]) -> None:
        """Handle a watch event of a pod that uses resources."""
        match change:
            case store.Added(new=pod) | store.Modified(new=pod):
                self._put(pod, ended=False)
            case store.Deleted(old=pod):
                if (entry := self._entry(pod)) is not None:
                    entry.left = pod
                    self._later(ENDED_GRACE_S, lambda: self._end_grace(entry, pod))

    def on_ended(self, change: store.Change[facts.PodFacts]) -> None:
        """Handle a watch event of one of Boathouse's pods that ended."""
        match change:
            case store.Added(new=pod) | store.Modified(new=pod):
                self._put(pod, ended=True)
            case store.Deleted(old=pod):
                self._end_left(pod)

    def on_node(self, change: store.Change[wire.NodeView]) -> None:
        """Reconcile the objects with pods on a node that was removed."""
        if isinstance(change, store.Deleted):
            for uid in {uid for uid, pod in self if pod.node == change.key}:
                self._on_change(uid)

    def __iter__(self) -> Iterator[tuple[ObjectUid, P]]:
        return ((uid, entry.pod) for uid, entries in self._by_object.items() for entry in entries.values())

    def of(self, uid: ObjectUid) -> Sequence[P]:
        """Return the pods of an object."""
        return tuple(entry.pod for entry in self._by_object.get(uid, {}).values())

    def find(self, uid: ObjectUid, pod_name: str) -> P | None:
        """Return one pod of an object."""
        entry = self._by_object.get(uid, {}).get(pod_name)
        return entry.pod if entry else None

    def object_of(self, pod_uid: str) -> ObjectUid | None:
        """Return the object that a pod belongs to."""
        return self._objects.get(pod_uid)

    def _put(self, pod: facts.PodFacts, *, ended: bool) -> None:
        """Store the version of a watch. Each watch is ordered, so its last version replaces the previous one."""
        pod_view = None if pod.task_of is None else self._read(pod)
        if pod.task_of is None or pod_view is None:
            return
        uid, entry, version = ObjectUid(pod.task_of), self._entry(pod), (pod.revision, pod_view)
        before = entry.pod if entry is not None else None
        if entry is None:
            entry = self._begin(uid, pod_view)
        if ended:
            entry.ended = version
        else:
            entry.running, entry.left = version, None
        if entry.pod != before:
            self._on_change(uid)

    def _begin(self, uid: ObjectUid, pod: P) -> _Entry[P]:
        entries = self._by_object.setdefault(uid, {})
        if (former := entries.get(pod.name)) is not None:
            self._objects.pop(former.pod.uid, None)
            self._on_gone(former.pod)
        self._objects[pod.uid] = uid
        entry = entries[pod.name] = _Entry()
        return entry

    def _end_grace(self, entry: _Entry[P], pod: facts.PodFacts) -> None:
        """Drop a pod that left the first watch and did not enter the second, unless it has returned to the first."""
        if entry.left is not pod or self._entry(pod) is not entry:
            return
        if entry.ended is None:
            self._drop(pod)
        else:
            entry.running = None

    def _end_left(self, pod: facts.PodFacts) -> None:
        """Handle a pod that left the second watch: it was deleted or, after etcd was restored, runs again."""
        entry = self._entry(pod)
        if entry is None:
            return
        if entry.running is None or entry.left is not None:
            self._drop(pod)
        else:
            entry.ended = None
            self._on_change(ObjectUid(pod.task_of or ""))

    def _entry(self, pod: facts.PodFacts) -> _Entry[P] | None:
        entry = self._by_object.get(ObjectUid(pod.task_of or ""), {}).get(pod.metadata.name)
        return entry if entry is not None and entry.pod.uid == pod.metadata.uid else None

    def _drop(self, pod: facts.PodFacts) -> None:
        uid = ObjectUid(pod.task_of or "")
        gone = self._by_object[uid].pop(pod.metadata.name).pod
        self._objects.pop(pod.metadata.uid, None)
        if not self._by_object[uid]:
            del self._by_object[uid]
        self._on_gone(gone)
        self._on_change(uid)
