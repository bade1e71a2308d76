"""Compute a job's progress from finished tasks and the reports of running tasks, which are hints. Pure."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from boathouse.resources.mrjob import status as mrjob_status
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob.attempts.attempt_pod import AttemptPod
from boathouse.services.mrjob.job.model import Job
from boathouse.services.mrjob.state.job_state import JobState
from boathouse_task import contract
from boathouse_task.contract import TaskType

ALL: Final = 100
_WORK: Final = (TaskType.MAP, TaskType.REDUCE)


def with_progress(
    state: JobState, job: Job, pods: Sequence[AttemptPod], reports: Mapping[str, contract.TaskReport]
) -> JobState:
    """Return the state with its percentage and the sums of the running tasks' reports."""
    running = {
        pod.name: (pod, reports[pod.name])
        for pod in pods
        if pod.state is PodLife.RUNNING and pod.name in reports and pod.step == state.step
    }
    return dataclasses.replace(state, percent=_percent(state, job, running), running=_sums(running))


_Running = Mapping[str, tuple[AttemptPod, contract.TaskReport]]


def _percent(state: JobState, job: Job, running: _Running) -> int:
    """Return the percentage: all tasks of a step and all steps have equal weight; 100 only for complete output."""
    if state.phase == "Succeeded":
        return ALL
    stages = [state.stages[each] for each in _WORK if each in state.stages]
    total = sum(stage.total for stage in stages)
    parts: dict[tuple[TaskType, int], float] = {}
    for pod, report in running.values():
        key = (pod.task_type, pod.index)
        parts[key] = max(parts.get(key, 0.0), min(1.0, max(0.0, report.progress)))
    done = sum(stage.succeeded for stage in stages) + sum(
        part
        for (kind, index), part in parts.items()
        if kind in _WORK and kind in state.stages and not state.stages[kind].winner[index]
    )
    here = done / total if total else 0.0
    if total:
        here = max(here, parts.get((TaskType.UBER, 0), 0.0))
    return min(ALL - 1, int(ALL * (state.step + here) / len(job.steps)))


def _sums(running: _Running) -> mrjob_status.RunningSums | None:
    if not running:
        return None
    reports = [report for _, report in running.values()]
    return mrjob_status.RunningSums(
        tasks=len(reports),
        records_in=contract.clamp(sum(each.records_in for each in reports)),
        records_out=contract.clamp(sum(each.records_out for each in reports)),
        bytes_in=contract.clamp(sum(each.bytes_in for each in reports)),
        bytes_out=contract.clamp(sum(each.bytes_out for each in reports)),
        spilled_records=contract.clamp(sum(each.spilled_records for each in reports)),
    )
