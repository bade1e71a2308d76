"""Reports of running tasks, by job. They are only in memory, because tasks send them again."""

from collections.abc import Callable, Collection, Mapping

from boathouse.services.mrjob.attempts import results
from boathouse.services.mrjob.job.model import JobUid
from boathouse_task import contract

OnReport = Callable[[JobUid, str, contract.TaskReport], None]


class TaskReports:
    """Last reports of the running tasks of unfinished jobs.

    Args:
        on_report: Called with each report.
    """

    def __init__(self, on_report: OnReport = lambda _uid, _pod, _report: None) -> None:
        self._on_report = on_report
        self._jobs: dict[JobUid, dict[str, contract.TaskReport]] = {}

    @property
    def tasks(self) -> int:
        """Number of running tasks that have reported."""
        return sum(map(len, self._jobs.values()))

    def update(self, uid: JobUid, live: Collection[str] = ()) -> None:
        """Take reports of a job, and drop those of pods that are not live."""
        self._jobs[uid] = {pod: report for pod, report in self._jobs.get(uid, {}).items() if pod in live}

    def forget(self, uid: JobUid) -> None:
        """Drop the reports of a deleted job."""
        self._jobs.pop(uid, None)

    def report(self, uid: JobUid, pod: str, report: contract.TaskReport) -> None:
        """Store a task's last report, unless the job was deleted."""
        reports = self._jobs.get(uid)
        if reports is not None:
            reports[pod] = results.report(report)
            self._on_report(uid, pod, reports[pod])

    def of(self, uid: JobUid) -> Mapping[str, contract.TaskReport]:
        """Return the last reports of a job's tasks, by pod."""
        return self._jobs.get(uid, {})
