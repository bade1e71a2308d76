"""Task pods by job, put together from two watches: of pods that hold resources, and of our pods that ended.

A pod that ends leaves the first watch and comes into the second, and nothing orders the two streams. So of each pod
the newest version counts, whichever stream brought it. That a pod left the first watch may mean that it ended or that
it was deleted: it is kept for a moment, in which the second watch may show its end.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Final

from boathouse.cluster import store, wire
from boathouse.resources import names
from boathouse.services.mrjob import observe
from boathouse.services.mrjob.model import JobUid
from boathouse.services.mrjob.taskpods import TaskPod

LIMBO_S: Final = 2.0
"""How long the end of a pod that left the first watch may take to be shown by the second."""

Later = Callable[[float, Callable[[], None]], object]


@dataclasses.dataclass(slots=True)
class _Entry:
    """A pod, and what the two watches know of it.

    Attributes:
        ended: the second watch shows it.
        left: how often it left the first watch; a check that was asked for earlier is void.
    """

    revision: int
    pod: TaskPod
    ended: bool = False
    left: int = 0


class PodIndex:
    """All task pods that exist, running or ended.

    Args:
        on_change: Called with the job whose pods changed.
        later: Calls back after so many seconds: the loop's `call_later`.
    """

    def __init__(self, on_change: Callable[[JobUid], None], later: Later) -> None:
        self._on_change = on_change
        self._later = later
        self._by_job: dict[JobUid, dict[str, _Entry]] = {}

    def on_pod(self, change: store.Change[wire.PodView]) -> None:
        """Take in a change of the pods that hold resources."""
        match change:
            case store.Added(new=pod) | store.Modified(new=pod):
                self._put(pod, ended=False)
            case store.Deleted(old=pod):
                self._leave(pod)

    def on_ended(self, change: store.Change[wire.PodView]) -> None:
        """Take in a change of our pods that ended."""
        match change:
            case store.Added(new=pod) | store.Modified(new=pod):
                self._put(pod, ended=True)
            case store.Deleted(old=pod):
                self._drop(pod)

    def of(self, uid: JobUid) -> Sequence[TaskPod]:
        """The pods of a job."""
        return tuple(entry.pod for entry in self._by_job.get(uid, {}).values())

    def find(self, uid: JobUid, pod_name: str) -> TaskPod | None:
        """One pod of a job."""
        entry = self._by_job.get(uid, {}).get(pod_name)
        return entry.pod if entry else None

    def _put(self, pod: wire.PodView, *, ended: bool) -> None:
        uid, seen = _job(pod), observe.task_pod(pod)
        if uid is None or seen is None:
            return
        revision = int(pod.metadata.resource_version or 0)
        entry = self._entry(pod)
        if entry is None:
            self._by_job.setdefault(uid, {})[seen.name] = _Entry(revision, seen, ended)
            self._on_change(uid)
            return
        entry.ended |= ended
        entry.left += 1
        if revision > entry.revision:
            changed = entry.pod != seen
            entry.revision, entry.pod = revision, seen
            if changed:
                self._on_change(uid)

    def _leave(self, pod: wire.PodView) -> None:
        entry = self._entry(pod)
        if entry is None or entry.ended:
            return
        entry.left += 1
        asked = entry.left

        def check() -> None:
            if not entry.ended and entry.left == asked:
                self._drop(pod)

        self._later(LIMBO_S, check)

    def _entry(self, pod: wire.PodView) -> _Entry | None:
        """What is known of this very pod; another one of its name is forgotten."""
        uid = _job(pod)
        entry = self._by_job.get(uid, {}).get(pod.metadata.name) if uid is not None else None
        return entry if entry is not None and entry.pod.uid == pod.metadata.uid else None

    def _drop(self, pod: wire.PodView) -> None:
        uid = _job(pod)
        if uid is None or self._entry(pod) is None:
            return
        del self._by_job[uid][pod.metadata.name]
        if not self._by_job[uid]:
            del self._by_job[uid]
        self._on_change(uid)


def _job(pod: wire.PodView) -> JobUid | None:
    """The job that owns the pod: the label must agree with the owner, or anyone could claim a job's results."""
    uid = pod.metadata.labels.get(names.LABEL_JOB_UID)
    owner = pod.metadata.controller
    if uid is None or owner is None or (owner.kind, owner.uid) != (names.MRJOB_KIND, uid):
        return None
    return JobUid(uid)
