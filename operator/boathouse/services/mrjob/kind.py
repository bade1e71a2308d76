"""Whom the reconciler works with, as far as jobs need them."""

from collections.abc import Sequence
from typing import Protocol

from boathouse.services.mrjob.placement import submission
from boathouse_policies import model as policy


class Diagnosis(Protocol):
    """Why a job waits."""

    @property
    def reason(self) -> str:
        """A CamelCase token."""
        ...

    @property
    def message(self) -> str:
        """What is scarce and who holds it."""
        ...


class PodScheduler(Protocol):
    """The scheduler, as far as jobs need it."""

    def submit(
        self,
        job: policy.Job,
        classes: Sequence[policy.TaskClass],
        tasks: Sequence[policy.Task],
        factory: submission.Factory,
    ) -> Sequence[policy.TaskId]:
        """Replace what waits of a job; return what does not wait, because its pod was seen to end or go."""
        ...

    def withdraw(self, job_id: policy.JobId) -> None:
        """Let nothing of a job wait."""
        ...

    def diagnosis(self, job_id: policy.JobId) -> Diagnosis | None:
        """Why a job's tasks wait."""
        ...


class TrustBundle(Protocol):
    """Publishes whom tasks trust."""

    async def ensure(self, namespace: str) -> None:
        """Have it in the namespace."""
        ...

    def forget(self, namespace: str) -> None:
        """It may not be there any more."""
        ...
