"""Tells people what became of a job: events on the resource, metrics, a line in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from boathouse.cluster import catalogue
from boathouse.cluster import events as event_writer
from boathouse.resources import quantity
from boathouse.resources.names import ConditionType, Reason
from boathouse.services.mrjob.state import job_state
from boathouse.telemetry import logs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse.cluster import errors
    from boathouse.services.mrjob import metrics
    from boathouse.services.mrjob.attempts.attempt_pod import AttemptPod
    from boathouse.services.mrjob.job.model import Job, JobUid
    from boathouse.services.mrjob.planning.planner import Desired
    from boathouse.services.mrjob.state.job_state import JobState

_log = logs.get(__name__)

_EVENTS: Final = {
    "Setup": "SetupStarted",
    "Map": "MapsStarted",
    "Reduce": "ReducesStarted",
    "Commit": "CommitStarted",
}
"""Reasons of the events that tell of a phase; the last two phases are their own."""
_LONGEST_NOTE = 1000


class Announcer:
    """Events and metrics of jobs."""

    def __init__(self, events: event_writer.EventWriter, job_metrics: metrics.JobMetrics) -> None:
        self._events, self._metrics = events, job_metrics

    def reconciled(self, key: str, job: Job, before: JobState, desired: Desired) -> None:
        """After each look: what was counted, and an event where the phase is another."""
        after = desired.state
        self._metrics.phase(key, after)
        if desired.results or desired.failures:
            self._metrics.attempts(desired.results, desired.failures)
        self._cleaned_up(key, job, before, after)
        if after.phase == before.phase:
            return
        _log.info("phase", job=key, uid=job.uid, phase=after.phase, before=before.phase, reason=after.reason)
        if after.finished:
            self._metrics.ended(job, after)
        ending = after.condition(ConditionType.FAILED)
        failed = after.phase == "Failed" and ending is not None
        self._events.publish(
            event_writer.reference(catalogue.MRJOBS, job.namespace, job.name, job.uid),
            type_="Warning" if failed else "Normal",
            reason="Resumed" if before.phase == "Suspended" else _EVENTS.get(after.phase, after.phase),
            action="Reconciling",
            note=(ending.message[:_LONGEST_NOTE] if failed and ending else job_state.progress(after))
            or f"in queue {job.queue}",
        )

    def _cleaned_up(self, key: str, job: Job, before: JobState, after: JobState) -> None:
        last_cleanup, now = (each.condition(ConditionType.CLEANED_UP) for each in (before, after))
        if (
            now is not None
            and now.reason == Reason.CLEAN_UP_FAILED
            and (last_cleanup is None or last_cleanup.reason != now.reason)
        ):
            self.not_cleaned_up(key, job.uid, now.message)

    def not_cleaned_up(self, key: str, uid: JobUid, why: str) -> None:
        """What a job left in the storage stays there."""
        namespace, _, name = key.partition("/")
        _log.warning("a job is not cleaned up", job=key, why=why)
        self._events.publish(
            event_writer.reference(catalogue.MRJOBS, namespace, name, uid),
            type_="Warning",
            reason=str(Reason.CLEAN_UP_FAILED),
            action="CleaningUp",
            note=why[:_LONGEST_NOTE],
        )

    def refused_status(self, key: str, uid: JobUid, error: errors.Invalid) -> None:
        """The API server does not take a status with its counters and last failures: it is written without them."""
        namespace, _, name = key.partition("/")
        _log.warning("a status was refused and is written without its counters", job=key, error=error.message)
        self._events.publish(
            event_writer.reference(catalogue.MRJOBS, namespace, name, uid),
            type_="Warning",
            reason="StatusRefused",
            action="Reconciling",
            note=f"the status is written without counters and last failures: {error.message}"[:_LONGEST_NOTE],
        )

    def refused_write(self, key: str, uid: JobUid, error: errors.ApiError) -> None:
        """The API server refuses what the job needs: a full quota of ConfigMaps, say."""
        namespace, _, name = key.partition("/")
        self._events.publish(
            event_writer.reference(catalogue.MRJOBS, namespace, name, uid),
            type_="Warning",
            reason="WriteRefused",
            action="Reconciling",
            note=f"the API server refuses a write for this job, which is retried: {error.message}"[:_LONGEST_NOTE],
        )

    def less_memory(self, job: Job, less: Sequence[AttemptPod]) -> None:
        """Tasks were started with less memory than is ideal for them."""
        self._metrics.elastic(each.task_type for each in less)
        self._events.publish(
            event_writer.reference(catalogue.MRJOBS, job.namespace, job.name, job.uid),
            type_="Normal",
            reason="MemoryShrunk",
            action="Scheduling",
            note=_of_less(less),
        )


def _of_less(less: Sequence[AttemptPod]) -> str:
    one = less[0]
    sizes = f"{quantity.format_bytes(one.memory_bytes)} instead of {quantity.format_bytes(one.ideal_memory_bytes)}"
    many = f" and {len(less) - 1} more" if len(less) > 1 else ""
    return f"{one.task_name}{many} started with less memory ({sizes}): no node had more free memory"
