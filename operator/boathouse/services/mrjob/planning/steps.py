"""The course of a job through its steps. Pure.

A step is planned by a setup task of its own, whose input is what the step before wrote; then its maps and reduces run,
or one uber task that does their work; after the last step comes the commit.
"""

import dataclasses
from collections.abc import Sequence

from boathouse.services.mrjob.attempts.attempt_pod import TaskPod
from boathouse.services.mrjob.job.model import Job
from boathouse.services.mrjob.planning.observation import Observation
from boathouse.services.mrjob.state.job_state import Record, StageRecord
from boathouse_task.contract import TaskType


def current(record: Record, job: Job) -> TaskType:
    """The stage whose tasks may run: each begins when the one before is done."""
    if record.plan is None:
        return TaskType.SETUP
    if _done(record):
        return TaskType.COMMIT
    if job.is_uber(record.step, record.plan.splits, record.plan.bytes):
        return TaskType.UBER
    return TaskType.REDUCE if record.stages[TaskType.MAP].done else TaskType.MAP


def stages(record: Record, job: Job) -> tuple[TaskType, ...]:
    """The kinds of tasks that the current step has, as far as is known, in order."""
    if record.plan is None:
        return (TaskType.SETUP,)
    if job.is_uber(record.step, record.plan.splits, record.plan.bytes):
        work: tuple[TaskType, ...] = (TaskType.UBER,)
    else:
        work = (TaskType.MAP, TaskType.REDUCE) if job.steps[record.step].reduces else (TaskType.MAP,)
    return (*work, TaskType.COMMIT) if record.step == len(job.steps) - 1 else work


def follow(record: Record, job: Job) -> Record:
    """The record after its stages were settled: an uber task's success is that of its step, and a step may be over."""
    if record.plan is None:
        return record
    last = record.step == len(job.steps) - 1
    if record.stages[TaskType.UBER].done and not _done(record):
        over = (TaskType.MAP, TaskType.REDUCE, TaskType.COMMIT) if last else (TaskType.MAP, TaskType.REDUCE)
        record = dataclasses.replace(record, stages={**record.stages, **{each: _won(record, each) for each in over}})
    if last or not _done(record):
        return record
    return dataclasses.replace(
        record,
        step=record.step + 1,
        plan=None,
        active={},
        past_failures=record.failures,
        stages={
            TaskType.SETUP: StageRecord.empty(1),
            TaskType.UBER: StageRecord.empty(1),
            TaskType.COMMIT: record.stages[TaskType.COMMIT],
            TaskType.CLEANUP: record.stages[TaskType.CLEANUP],
        },
    )


def at_hand(seen: Observation, record: Record) -> Observation:
    """The observation without the pods of other steps."""
    return dataclasses.replace(seen, pods=tuple(pod for pod in seen.pods if pod.step == record.step))


def vouched(pods: Sequence[TaskPod], step: int) -> set[str]:
    """The digests of the plan that a step's setup tasks gave as their result; the job owns these pods."""
    setups = [pod.result for pod in pods if pod.step == step and pod.task_type is TaskType.SETUP]
    return {result.digest for result in setups if result is not None and result.digest}


def existing(pods: Sequence[TaskPod], record: Record, job: Job) -> tuple[TaskPod, ...]:
    """The pods whose labels name a task that the job has; whoever may create pods may label them with any other."""
    return tuple(pod for pod in pods if pod.step < len(job.steps) and _exists(pod, record))


def _exists(pod: TaskPod, record: Record) -> bool:
    stage = record.stages.get(pod.task_type)
    return pod.step != record.step or stage is None or pod.index < stage.total


def leftovers(seen: Observation, record: Record) -> list[TaskPod]:
    """Pods of steps that are over, which still run."""
    return [pod for pod in seen.pods if pod.step != record.step and pod.state.live and pod.deleting_since_s is None]


def _done(record: Record) -> bool:
    return record.stages[TaskType.MAP].done and record.stages[TaskType.REDUCE].done


def _won(record: Record, stage: TaskType) -> StageRecord:
    """All tasks done, each by the attempt of the uber task that did it."""
    won = record.stages[stage].copy()
    won.winner[:] = [each or 1 for each in won.winner]
    return won
