"""All that is written of one job's resources, but for its plan: its status, the deletion of its pods and of itself.

Every write asks first whether this process still leads, and names the UID that it means.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from boathouse import failpoints
from boathouse.cluster import catalogue, client, errors
from boathouse.resources import names
from boathouse.telemetry import logs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from boathouse.services.mrjob.attempts.attempt_pod import AttemptPod
    from boathouse.services.mrjob.job.model import Job
    from boathouse.services.mrjob.jobstore import Body, JobStore

_log = logs.get(__name__)
_MRJOBS = catalogue.MRJOBS.untyped()


class NotLeading(Exception):  # noqa: N818 - a state, after which the process ends
    """This process may not write any more."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """Writes to the API server, each before and after a failpoint.

    Attributes:
        may_lead: whether this process is still the leader.
    """

    api: client.ApiClient
    jobs: JobStore
    may_lead: Callable[[], bool]

    def check_lead(self) -> None:
        """Pass only a leader.

        Raises:
            NotLeading: Another process leads.
        """
        if not self.may_lead():
            raise NotLeading

    async def status(self, body: Body, wire: Mapping[str, Any]) -> None:
        """Patch the status of the resource that was seen.

        Raises:
            errors.Conflict: Somebody else changed it since.
        """
        self.check_lead()
        failpoints.hit("before-mrjob.status")
        metadata = body["metadata"]
        answer = await self.api.patch_status(
            _MRJOBS,
            metadata["name"],
            wire,
            metadata["namespace"],
            resource_version=metadata["resourceVersion"],
            uid=metadata["uid"],
        )
        failpoints.hit("after-mrjob.status")
        self.jobs.put(answer)

    async def delete(self, job: Job, unneeded: Sequence[AttemptPod]) -> None:
        """Delete pods of a job."""
        for pod in unneeded:
            self.check_lead()
            failpoints.hit("before-mrjob.delete-pod")
            try:
                await self.api.delete(catalogue.PODS, pod.name, job.namespace, uid=pod.uid)
            except (errors.NotFound, errors.Conflict):
                continue  # gone already, or another pod of that name: not the one that was meant
            failpoints.hit("after-mrjob.delete-pod")

    async def finalizer(self, body: Body, *, present: bool) -> None:
        """Add the finalizer to the resource that was seen, or remove it.

        Raises:
            errors.Conflict: Somebody else changed it since.
        """
        self.check_lead()
        failpoints.hit("before-mrjob.finalizer")
        metadata = body["metadata"]
        others = [each for each in metadata.get("finalizers") or () if each != names.FINALIZER]
        patch = {
            "finalizers": [*others, names.FINALIZER] if present else others,
            "resourceVersion": metadata["resourceVersion"],
        }
        answer = await self.api.patch(_MRJOBS, metadata["name"], {"metadata": patch}, metadata["namespace"])
        failpoints.hit("after-mrjob.finalizer")
        self.jobs.put(answer)

    async def expire(self, job: Job) -> None:
        """Delete the job; the garbage collector deletes what it owns."""
        self.check_lead()
        failpoints.hit("before-mrjob.expire")
        try:
            await self.api.delete(_MRJOBS, job.name, job.namespace, uid=job.uid, propagation="Background")
        except (errors.NotFound, errors.Conflict):
            return  # gone already, or another job of that name
        failpoints.hit("after-mrjob.expire")
        _log.info("deleted a finished job", job=f"{job.namespace}/{job.name}", ttl_s=job.life.ttl_s)
