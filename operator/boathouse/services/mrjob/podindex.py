"""Task pods by job, kept by the informer of our own pods."""

from collections.abc import Callable, Mapping, Sequence

from boathouse.cluster import store, wire
from boathouse.resources import names
from boathouse.services.mrjob import observe
from boathouse.services.mrjob.model import JobUid
from boathouse.services.mrjob.taskpods import TaskPod


class PodIndex:
    """All task pods that exist, running or ended.

    Args:
        on_change: Called with the job whose pods changed.
    """

    def __init__(self, on_change: Callable[[JobUid], None]) -> None:
        self._on_change = on_change
        self._by_job: dict[JobUid, dict[str, TaskPod]] = {}

    def observe(self, change: store.Change[wire.PodView]) -> None:
        """Take in what the informer saw."""
        match change:
            case store.Added(new=pod) | store.Modified(new=pod):
                self._put(pod)
            case store.Deleted(old=pod):
                self._drop(pod)

    def of(self, uid: JobUid) -> Sequence[TaskPod]:
        """The pods of a job."""
        return tuple(self._by_job.get(uid, {}).values())

    def find(self, uid: JobUid, pod_name: str) -> TaskPod | None:
        """One pod of a job."""
        return self._by_job.get(uid, {}).get(pod_name)

    def jobs(self) -> Mapping[JobUid, int]:
        """How many pods each job has."""
        return {uid: len(pods) for uid, pods in self._by_job.items()}

    def _put(self, pod: wire.PodView) -> None:
        seen = observe.task_pod(pod)
        uid = _job(pod)
        if seen is None or uid is None:
            return
        pods = self._by_job.setdefault(uid, {})
        if pods.get(seen.name) != seen:
            pods[seen.name] = seen
            self._on_change(uid)

    def _drop(self, pod: wire.PodView) -> None:
        uid = _job(pod)
        if uid is None or self._by_job.get(uid, {}).pop(pod.metadata.name, None) is None:
            return
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
