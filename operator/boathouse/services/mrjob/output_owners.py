"""What became of the job that an output's ownership mark names (`boathouse_task.ownership`).

Another job may take the output over only after an answer from complete knowledge: all MRJobs were listed since this
process leads, and no pod of the job runs, is being created, or waits to be created. Where the operator does not act it
knows nothing, and says so.
"""

import dataclasses
from collections.abc import Callable, Collection

from boathouse.scheduling.scheduler import Scheduler
from boathouse.services.frame.kind import Body
from boathouse.services.frame.object_store import ObjectStore
from boathouse.services.mrjob.job.model import JobUid
from boathouse.services.mrjob.podindex import PodIndex
from boathouse.services.mrjob.state.job_state import TERMINAL
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
    pods: PodIndex
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
        if body is None and not self._would_know(namespace, cluster):
            return contract.Owner(state=OwnerState.OUTSIDE)
        if body is None and not self.listed():
            return contract.Owner(state=OwnerState.UNKNOWN, detail="the leader has not listed all MRJobs yet")
        if body is not None and not _has_ended(body):
            return contract.Owner(state=OwnerState.ACTIVE)
        if self._has_pods(uid):
            return contract.Owner(state=OwnerState.UNKNOWN, detail="the job has ended, and some of its pods have not")
        return contract.Owner(state=OwnerState.ENDED)

    def _would_know(self, namespace: str, cluster: str) -> bool:
        """Whether a job of this namespace and cluster would be known if it existed."""
        return bool(cluster) and cluster == self.cluster and (not self.namespaces or namespace in self.namespaces)

    def _has_pods(self, uid: JobUid) -> bool:
        is_live = any(pod.state.is_live for pod in self.pods.of(uid))
        return is_live or self.scheduler.may_create(policy.JobId(uid))


def _has_ended(body: Body) -> bool:
    """Whether no new pod is made for the job any more."""
    phase = (body.get("status") or {}).get("phase")
    return phase in TERMINAL or bool(body["metadata"].get("deletionTimestamp"))
