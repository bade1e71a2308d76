"""Move a job through its steps and stages. Pure.

A setup task plans each step from the output of the previous step. Then the maps and reduces of the step run, or one
uber task instead. The commit follows the last step.
"""

import dataclasses
from collections.abc import Sequence

from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob.attempts import settle
from boathouse.services.mrjob.attempts.attempt_pod import AttemptPod
from boathouse.services.mrjob.job.model import Job
from boathouse.services.mrjob.planning.observation import Observation
from boathouse.services.mrjob.state.job_state import JobState, StageState
from boathouse_task.contract import TaskType


def current(state: JobState, job: Job) -> TaskType:
    """Return the current stage. A stage begins when the previous one is done."""
    if state.plan is None:
        return TaskType.SETUP
    if _done(state):
        return TaskType.COMMIT
    if job.is_uber(state.step, state.plan.splits, state.plan.bytes):
        return TaskType.UBER
    return TaskType.REDUCE if state.stages[TaskType.MAP].done else TaskType.MAP


def stages(state: JobState, job: Job) -> tuple[TaskType, ...]:
    """Return the known task types of the current step, in order."""
    if state.plan is None:
        return (TaskType.SETUP,)
    if job.is_uber(state.step, state.plan.splits, state.plan.bytes):
        work: tuple[TaskType, ...] = (TaskType.UBER,)
    else:
        work = (TaskType.MAP, TaskType.REDUCE) if job.steps[state.step].reduces else (TaskType.MAP,)
    return (*work, TaskType.COMMIT) if state.step == len(job.steps) - 1 else work


def settled(
    observation: Observation, state: JobState, task_type: TaskType, limits: settle.Limits, control: settle.StageControl
) -> settle.Settlement:
    """Settle the attempts of a stage."""
    # A setup that succeeded and whose plan was lost is settled as failed: it does not succeed again.
    lost = state.stages[task_type].settled(0) if task_type is TaskType.SETUP else 0
    pods = [
        pod
        for pod in observation.pods
        if pod.task_type is task_type and not (pod.state is PodLife.SUCCEEDED and pod.attempt <= lost)
    ]
    stage = state.stages[task_type]
    return settle.settle(
        task_type,
        stage,
        pods,
        state.counters,
        limits,
        observation.now_s,
        control,
        observation.failed_s,
        seconds=[each for each in observation.seconds if each.step == state.step],
    )


def follow(state: JobState, job: Job) -> JobState:
    """Return the state after its stages were settled: an uber task completes its step, and the next step may begin."""
    if state.plan is None:
        return state
    last = state.step == len(job.steps) - 1
    if state.stages[TaskType.UBER].done and not _done(state):
        over = (TaskType.MAP, TaskType.REDUCE, TaskType.COMMIT) if last else (TaskType.MAP, TaskType.REDUCE)
        state = dataclasses.replace(state, stages={**state.stages, **{each: _won(state, each) for each in over}})
    if last or not _done(state):
        return state
    return dataclasses.replace(
        state,
        step=state.step + 1,
        plan=None,
        active={},
        past_failures=state.failures,
        stages={
            TaskType.SETUP: StageState.empty(1),
            TaskType.UBER: StageState.empty(1),
            TaskType.COMMIT: state.stages[TaskType.COMMIT],
            TaskType.CLEANUP: state.stages[TaskType.CLEANUP],
        },
    )


def at_hand(observation: Observation, state: JobState) -> Observation:
    """Return the observation without the pods of other steps."""
    return dataclasses.replace(observation, pods=tuple(pod for pod in observation.pods if pod.step == state.step))


def vouched(pods: Sequence[AttemptPod], step: int) -> set[str]:
    """Return the plan digests in the results of a step's setup pods, which the job owns."""
    setups = [pod.result for pod in pods if pod.step == step and pod.task_type is TaskType.SETUP]
    return {result.digest for result in setups if result is not None and result.digest}


def existing(pods: Sequence[AttemptPod], state: JobState, job: Job) -> tuple[AttemptPod, ...]:
    """Return the pods whose labels name an existing task of the job. Tenants can create pods with other labels."""
    return tuple(pod for pod in pods if pod.step < len(job.steps) and _exists(pod, state))


def _exists(pod: AttemptPod, state: JobState) -> bool:
    stage = state.stages.get(pod.task_type)
    return pod.step != state.step or stage is None or pod.index < stage.total


def leftovers(observation: Observation, state: JobState) -> list[AttemptPod]:
    """Return active pods of finished steps."""
    return [pod for pod in observation.pods if pod.step != state.step and pod.is_active]


def _done(state: JobState) -> bool:
    return state.stages[TaskType.MAP].done and state.stages[TaskType.REDUCE].done


def _won(state: JobState, stage: TaskType) -> StageState:
    """Return the stage with all tasks done by an uber task: attempt 1 wins where no winner is set."""
    won = state.stages[stage].copy()
    won.winner[:] = [each or 1 for each in won.winner]
    return won
