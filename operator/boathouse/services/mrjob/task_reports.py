"""Reports of running tasks, which are hints, and the progress of a job to which they add up.

They are only in memory, because tasks send them again.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from boathouse.resources.mrjob import status as mrjob_status
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob import results
from boathouse.services.mrjob.attempt_pods import AttemptPod
from boathouse.services.mrjob.job_state import JobState
from boathouse.services.mrjob.model import Job, JobUid
from boathouse_task import contract

OnReport = Callable[[JobUid, str, contract.TaskReport], None]
ALL: Final = 100
_WORK: Final = (contract.TaskType.MAP, contract.TaskType.REDUCE)
_Running = Sequence[tuple[AttemptPod, contract.TaskReport]]
_SUMMED: Final = ("records_in", "records_out", "bytes_in", "bytes_out", "spilled_records")


class TaskReports:
    """Last reports of the running tasks of unfinished jobs."""

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


def with_progress(
    state: JobState, job: Job, pods: Sequence[AttemptPod], reports: Mapping[str, contract.TaskReport]
) -> JobState:
    """Return the state with its percentage and the sums of the running tasks' reports."""
    running = [
        (pod, reports[pod.name])
        for pod in pods
        if pod.state is PodLife.RUNNING and pod.name in reports and pod.step == state.step
    ]
    sums = {name: contract.clamp(sum(getattr(report, name) for _, report in running)) for name in _SUMMED}
    return dataclasses.replace(
        state,
        percent=_percent(state, job, running),
        running=mrjob_status.RunningSums(tasks=len(running), **sums) if running else None,
    )


def _percent(state: JobState, job: Job, running: _Running) -> int:
    """Return the percentage: all tasks of a step and all steps have equal weight; 100 only for complete output."""
    if state.phase == "Succeeded":
        return ALL
    stages = [state.stages[task_type] for task_type in _WORK if task_type in state.stages]
    total = sum(stage.total for stage in stages)
    parts: dict[tuple[contract.TaskType, int], float] = {}
    for pod, report in running:
        key = (pod.task_type, pod.index)
        parts[key] = max(parts.get(key, 0.0), min(1.0, max(0.0, report.progress)))
    done = sum(stage.succeeded for stage in stages) + sum(
        part
        for (kind, index), part in parts.items()
        if kind in _WORK and kind in state.stages and not state.stages[kind].winner[index]
    )
    here = max(done / total, parts.get((contract.TaskType.UBER, 0), 0.0)) if total else 0.0
    return min(ALL - 1, int(ALL * (state.step + here) / len(job.steps)))
