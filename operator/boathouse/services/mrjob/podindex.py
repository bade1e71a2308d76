"""Index task pods by job, from two watches: pods that use resources, and Boathouse's pods that ended.

A pod that ends leaves the first watch and enters the second, and the two streams are not ordered. The index uses the
newer of the last versions of both streams. A pod that leaves the first watch has ended or was deleted: the index keeps
it for `LIMBO_S`, in which the second watch may deliver its end.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Final

from boathouse.cluster import store
from boathouse.scheduling.pods import facts
from boathouse.services.mrjob.attempts import pod_reader
from boathouse.services.mrjob.attempts.attempt_pod import AttemptPod
from boathouse.services.mrjob.job.model import JobUid

LIMBO_S: Final = 2.0
"""How long the index waits for the end of a pod that left the first watch."""

Later = Callable[[float, Callable[[], None]], object]


@dataclasses.dataclass(slots=True)
class _Entry:
    """A pod, with its last versions in both watches.

    Attributes:
        running: Revision and pod of the first watch.
        ended: Revision and pod of the second watch.
        left: The version that left the first watch, while its end may still arrive from the second.
    """

    running: tuple[int, AttemptPod] | None = None
    ended: tuple[int, AttemptPod] | None = None
    left: facts.PodFacts | None = None

    @property
    def pod(self) -> AttemptPod:
        """Newest version of the pod; that of the second watch if both are equal."""
        return max(filter(None, (self.ended, self.running)), key=lambda version: version[0])[1]


class PodIndex:
    """All existing task pods, running or ended.

    Args:
        on_change: Called with the job whose pods changed.
        later: Calls a function after a delay in seconds: the loop's `call_later`.
    """

    def __init__(self, on_change: Callable[[JobUid], None], later: Later) -> None:
        self._on_change = on_change
        self._later = later
        self._by_job: dict[JobUid, dict[str, _Entry]] = {}

    def on_pod(self, change: store.Change[facts.PodFacts]) -> None:
        """Handle a watch event of a pod that uses resources."""
        match change:
            case store.Added(new=pod) | store.Modified(new=pod):
                self._put(pod, ended=False)
            case store.Deleted(old=pod):
                if (entry := self._entry(pod)) is not None:
                    entry.left = pod
                    self._later(LIMBO_S, lambda: self._end_limbo(entry, pod))

    def on_ended(self, change: store.Change[facts.PodFacts]) -> None:
        """Handle a watch event of one of Boathouse's pods that ended."""
        match change:
            case store.Added(new=pod) | store.Modified(new=pod):
                self._put(pod, ended=True)
            case store.Deleted(old=pod):
                self._end_left(pod)

    def of(self, uid: JobUid) -> Sequence[AttemptPod]:
        """Return the pods of a job."""
        return tuple(entry.pod for entry in self._by_job.get(uid, {}).values())

    def find(self, uid: JobUid, pod_name: str) -> AttemptPod | None:
        """Return one pod of a job."""
        entry = self._by_job.get(uid, {}).get(pod_name)
        return entry.pod if entry else None

    def _put(self, pod: facts.PodFacts, *, ended: bool) -> None:
        """Store the version of a watch. Each watch is ordered, so its last version replaces the previous one."""
        seen = pod_reader.task_pod(pod)
        if pod.task_of is None or seen is None:
            return
        uid, entry, version = JobUid(pod.task_of), self._entry(pod), (pod.revision, seen)
        before = entry.pod if entry is not None else None
        if entry is None:
            entry = self._by_job.setdefault(uid, {})[seen.name] = _Entry()
        if ended:
            entry.ended = version
        else:
            entry.running, entry.left = version, None
        if entry.pod != before:
            self._on_change(uid)

    def _end_limbo(self, entry: _Entry, pod: facts.PodFacts) -> None:
        """Drop a pod that left the first watch and did not enter the second, unless it has returned to the first."""
        if entry.left is not pod or self._entry(pod) is not entry:
            return
        entry.running = None
        if entry.ended is None:
            self._drop(pod)

    def _end_left(self, pod: facts.PodFacts) -> None:
        """Handle a pod that left the second watch: it was deleted or, after etcd was restored, runs again."""
        entry = self._entry(pod)
        if entry is None:
            return
        if entry.running is None or entry.left is not None:
            self._drop(pod)
        else:
            entry.ended = None
            self._on_change(JobUid(pod.task_of or ""))

    def _entry(self, pod: facts.PodFacts) -> _Entry | None:
        """Return the entry of the pod with this UID; None for another pod of the same name."""
        entry = self._by_job.get(JobUid(pod.task_of or ""), {}).get(pod.metadata.name)
        return entry if entry is not None and entry.pod.uid == pod.metadata.uid else None

    def _drop(self, pod: facts.PodFacts) -> None:
        uid = JobUid(pod.task_of or "")
        del self._by_job[uid][pod.metadata.name]
        if not self._by_job[uid]:
            del self._by_job[uid]
        self._on_change(uid)
