"""What became of the job that an output's ownership mark names (`boathouse_task.ownership`).

Another job may take the output over only after an answer from complete knowledge: all MRJobs were listed since this
process leads, and no pod of the job runs, is being created, or waits to be created. Where the operator does not act it
knows nothing, and says so.
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
    """Answers setup tasks.

    Attributes:
        pods: in sync with the API server before the first question.
        cluster: this cluster's identity; empty when it is not known.
        namespaces: where the operator acts; empty for everywhere.
        listed: whether all MRJobs were listed since this process leads.
    """

    jobs: ObjectStore
    pods: PodIndex[AttemptPod]
    scheduler: Scheduler
    cluster: str
    namespaces: Collection[str]
    listed: Callable[[], bool]

    def state(self, uid: JobUid, *, namespace: str, cluster: str) -> contract.Owner:
        """What is known of a job.

        Args:
            uid: The job's.
            namespace: Of the mark; anybody who can write to the output could have written it.
            cluster: Of the mark.
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
            return contract.Owner(state=OwnerState.UNKNOWN, detail="the job has ended, and some of its pods have not")
        return contract.Owner(state=OwnerState.ENDED)
