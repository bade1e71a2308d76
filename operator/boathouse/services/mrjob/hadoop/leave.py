"""Handle the request of a client for leave to submit."""

from collections.abc import Sequence
from typing import Final

from aiohttp import web

from boathouse import failpoints
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.mrjob.hadoop.client import ClientPod
from boathouse.services.mrjob.hadoop.hadoop_jobs import HadoopJobs
from boathouse.services.progress.claims import Caller
from boathouse.services.progress.rejections import Reason, Rejected
from boathouse.services.progress.server import Route, Sender
from boathouse_task.cluster_contract import Leave

_MOST_BYTES: Final = 64


class LeaveRoutes:
    """Gives leave to the clients of open attempts."""

    def __init__(self, jobs: HadoopJobs) -> None:
        self._jobs = jobs

    def find(self, object_uid: str, caller: Caller) -> ClientPod | None:
        """Return a live client of a job."""
        return self._jobs.find(ObjectUid(object_uid), caller.namespace, caller.pod_name)

    def routes(self) -> Sequence[Route[ClientPod]]:
        """Return all routes."""
        return (
            Route(
                method="POST",
                path="tasks/{pod}/leave",
                handle=self._leave,
                check=self._check,
                most_bytes=_MOST_BYTES,
            ),
        )

    def _check(self, sender: Sender[ClientPod]) -> None:
        if not self._jobs.may_submit(ObjectUid(sender.object_uid), sender.pod):
            raise Rejected(Reason.NO_LEAVE)

    async def _leave(self, _: web.Request, sender: Sender[ClientPod]) -> Leave:
        failpoints.hit("before-mrjob.leave")
        answer = Leave(attempt=sender.pod.attempt)
        failpoints.hit("after-mrjob.leave")
        return answer
