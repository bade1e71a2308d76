"""Determine the state of the job that an output's ownership mark names (`boathouse_task.ownership`).

Another job may take over the output only if this job has certainly ended: this leader has listed all MRJobs, and no
pod of the job runs or can still be created. For namespaces and clusters that the operator does not watch, the answer is
`OUTSIDE`.
"""

import dataclasses
from collections.abc import Callable, Collection

from boathouse.scheduling.scheduler import Scheduler
from boathouse.services.frame.object_store import ObjectStore
from boathouse.services.frame.pod_index import PodIndex
from boathouse.services.mrjob.attempts.attempt_pod import AttemptPod
from boathouse.services.mrjob.job.model import JobUid
from boathouse.services.mrjob.kind import MRJOB
from boathouse_policies import model as policy
from boathouse_task import contract
from boathouse_task.contract import OwnerState


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """Looks up owners for setup tasks.

    Attributes:
        pods: task pods, in sync with the API server before the first request.
        cluster: this cluster's identity; empty if unknown.
        namespaces: namespaces where the operator runs jobs; empty for all.
        listed: whether this leader has listed all MRJobs.
    """

    jobs: ObjectStore
    pods: PodIndex[AttemptPod]
    scheduler: Scheduler
    cluster: str
    namespaces: Collection[str]
    listed: Callable[[], bool]

    def state(self, uid: JobUid, *, namespace: str, cluster: str) -> contract.Owner:
        """Return the state of a job.

        Args:
            uid: UID of the job.
            namespace: Namespace in the mark, which is untrusted: any writer of the output may have written it.
            cluster: Cluster in the mark.
        """
        key = self.jobs.key(uid)
        body = self.jobs.get(key) if key is not None else None
        is_here = bool(cluster) and cluster == self.cluster and (not self.namespaces or namespace in self.namespaces)
        if body is None and not is_here:
            return contract.Owner(state=OwnerState.OUTSIDE)
        if body is None and not self.listed():
            return contract.Owner(state=OwnerState.UNKNOWN, detail="the leader has not listed all MRJobs yet")
        if body is not None and not MRJOB.has_ended(body):
            return contract.Owner(state=OwnerState.ACTIVE)
        is_live = any(pod.state.is_live for pod in self.pods.of(uid))
        if is_live or self.scheduler.may_create(policy.JobId(uid)):
            return contract.Owner(state=OwnerState.UNKNOWN, detail="the job has ended, but some of its pods have not")
        return contract.Owner(state=OwnerState.ENDED)
