"""Move a job through its steps and stages, and end it: suspension, the deadline, early reduces, progress. Pure.

A setup task plans each step from the output of the previous step. Then the maps and reduces of the step run, or one
uber task instead. The commit follows the last step.

Reduces that start early use resources while they wait for maps. When maps of the same job are pending for some time, as
many of these reduces are preempted (Hadoop: mapreduce.job.reducer.preempt.delay.sec). That takes longer for maps that
lack CPU if policies suspend reduces, which frees their CPU.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Final

from boathouse.resources.mrjob import status as mrjob_status
from boathouse.resources.names import ConditionType, Reason
from boathouse.services.frame.pod_life import PodLife, Problem
from boathouse.services.mrjob import settle
from boathouse.services.mrjob.attempt_pods import AttemptPod
from boathouse.services.mrjob.job_state import JobState, StageState
from boathouse.services.mrjob.model import Job
from boathouse.services.mrjob.planning.observation import Observation
from boathouse_policies import model as policy
from boathouse_task import contract

HALT: Final = settle.StageControl()  # all attempts end, and no attempt starts
HOLD: Final = settle.StageControl(indices=frozenset())  # running attempts continue, and no attempt starts
PREEMPTION_DELAY_S: Final = 10.0  # how long a map is pending before a reduce of its job is preempted
PREEMPTION_DELAY_WITH_LENDING_S: Final = 60.0  # the same for a map that lacks CPU, if policies suspend reduces
_FIRST_CHECK_S: Final = 2.0
_ALL: Final = 100
_WORK: Final = (contract.TaskType.MAP, contract.TaskType.REDUCE)
_SUMMED: Final = ("records_in", "records_out", "bytes_in", "bytes_out", "spilled_records")


def current(state: JobState, job: Job) -> contract.TaskType:
    """Return the current stage. A stage begins when the previous one is done."""
    if state.plan is None:
        return contract.TaskType.SETUP
    if _done(state):
        return contract.TaskType.COMMIT
    if job.is_uber(state.step, state.plan.splits, state.plan.bytes):
        return contract.TaskType.UBER
    return contract.TaskType.REDUCE if state.stages[contract.TaskType.MAP].done else contract.TaskType.MAP


def stages(state: JobState, job: Job) -> list[contract.TaskType]:
    """Return the known task types of the current step, in order."""
    if state.plan is None:
        return [contract.TaskType.SETUP]
    work = (
        [contract.TaskType.MAP, contract.TaskType.REDUCE] if job.steps[state.step].reduces else [contract.TaskType.MAP]
    )
    if job.is_uber(state.step, state.plan.splits, state.plan.bytes):
        work = [contract.TaskType.UBER]
    return [*work, contract.TaskType.COMMIT] if state.step == len(job.steps) - 1 else work


def settled(
    observation: Observation,
    state: JobState,
    task_type: contract.TaskType,
    control: settle.StageControl,
    *,
    limits: settle.Limits | None = None,
    former: settle.Settlement | None = None,
) -> settle.Settlement:
    """Settle the attempts of a stage, by its own limits; `former` is the result of one that runs concurrently."""
    spec, stage = observation.job.stage(task_type, state.step), state.stages[task_type].copy()
    own_limits = {"max_attempts": spec.max_attempts, "failures_max_percent": spec.failures_max_percent}
    # A setup that succeeded and whose plan was lost is settled as failed: it does not succeed again.
    lost = stage.settled(0) if task_type is contract.TaskType.SETUP else 0
    return settle.Settler(
        type=task_type,
        step=state.step,
        outcome=former or settle.Settlement(counters={group: dict(sums) for group, sums in state.counters.items()}),
        stage=stage,
        limits=limits or dataclasses.replace(observation.limits, **own_limits),
        now_s=observation.now_s,
        stop=control,
        failed_s=dict(observation.failed_s),
        requested={
            attempt.index: attempt
            for attempt in observation.seconds
            if attempt.step == state.step and attempt.task_type is task_type
        },
    ).settle(
        pod
        for pod in observation.pods
        if pod.task_type is task_type and not (pod.state is PodLife.SUCCEEDED and pod.attempt <= lost)
    )


def follow(state: JobState, job: Job) -> JobState:
    """Return the state after its stages were settled: an uber task completes its step, and the next step may begin."""
    if state.plan is None:
        return state
    last = state.step == len(job.steps) - 1
    if state.stages[contract.TaskType.UBER].done and not _done(state):
        stages = {task_type: stage.copy() for task_type, stage in state.stages.items()}
        for task_type in (
            contract.TaskType.MAP,
            contract.TaskType.REDUCE,
            *([contract.TaskType.COMMIT] if last else ()),
        ):
            stages[task_type].winner = [winner or 1 for winner in stages[task_type].winner]  # attempt 1 by default
        state = dataclasses.replace(state, stages=stages)
    if last or not _done(state):
        return state
    return dataclasses.replace(
        state,
        step=state.step + 1,
        plan=None,
        active={},
        past_failures=state.failures,
        stages={
            contract.TaskType.SETUP: StageState.empty(1),
            contract.TaskType.UBER: StageState.empty(1),
            contract.TaskType.COMMIT: state.stages[contract.TaskType.COMMIT],
            contract.TaskType.CLEANUP: state.stages[contract.TaskType.CLEANUP],
        },
    )


def owned_digests(pods: Sequence[AttemptPod], step: int) -> set[str]:
    """Return the plan digests in the results of a step's setup pods, which the job owns."""
    setups = [pod.result for pod in pods if pod.step == step and pod.task_type is contract.TaskType.SETUP]
    return {result.digest for result in setups if result is not None and result.digest}


def existing(pods: Sequence[AttemptPod], state: JobState, job: Job) -> list[AttemptPod]:
    """Return the pods whose labels name an existing task of the job. Tenants can create pods with other labels."""
    totals, steps = {task_type: stage.total for task_type, stage in state.stages.items()}, len(job.steps)
    here = [pod for pod in pods if pod.step != state.step or pod.index < totals.get(pod.task_type, math.inf)]
    return [pod for pod in here if pod.step < steps]


def _done(state: JobState) -> bool:
    return state.stages[contract.TaskType.MAP].done and state.stages[contract.TaskType.REDUCE].done


def early_reduces(observation: Observation, state: JobState, waiting: Sequence[settle.Attempt]) -> settle.StageControl:
    """Return which reduces run or are preempted while maps, of which `waiting` are pending, are not done."""
    if observation.job.spec.suspend:
        return HALT
    maps = state.stages[contract.TaskType.MAP]
    if maps.succeeded * 100 < maps.total * observation.job.spec.slow_start_completed_maps_percent and not maps.done:
        return HOLD
    if not waiting or not _needs_preemption(observation, state):
        return settle.RUN
    running = [pod for pod in observation.pods if pod.task_type is contract.TaskType.REDUCE and pod.state.is_live]
    stay = sorted({pod.index for pod in running if pod.deleting_since_s is None and pod.node is not None})
    leaving = sum(pod.deleting_since_s is not None for pod in running)
    return settle.StageControl(indices=frozenset(stay[max(0, len(stay) - max(0, len(waiting) - leaving)) :]))


def _needs_preemption(observation: Observation, state: JobState) -> bool:
    """Return whether tasks have been pending for long although they fit on some node."""
    since_s, why = state.since_s(ConditionType.SCHEDULED), observation.diagnosis
    if why is None or since_s is None or state.holds(ConditionType.SCHEDULED):
        return False
    may_borrow = observation.lends_cpu and why.scarce == "cpu"
    delay_s = PREEMPTION_DELAY_WITH_LENDING_S if may_borrow else PREEMPTION_DELAY_S
    return why.reason != policy.Code.NEVER_FITS and observation.now_s >= since_s + delay_s


def overdue(job: Job, state: JobState, now_s: float) -> Problem | None:
    """Return the verdict for a job that exceeds its deadline, else None."""
    if now_s < deadline_s(job, state):
        return None
    limit = f"spec.activeDeadlineSeconds ({job.spec.active_deadline_seconds} s)"
    return Problem(reason=Reason.DEADLINE_EXCEEDED, message=f"the job was active for longer than {limit}")


def next_reconcile_s(observation: Observation, state: JobState, known_s: float) -> float | None:
    """Return the time of the next reconcile without an event, or None."""
    next_s = min(known_s, deadline_s(observation.job, state))
    if (
        any(pod.task_type is contract.TaskType.REDUCE for pod in observation.pods)
        and not state.stages[contract.TaskType.MAP].done
    ):
        next_s = min(next_s, observation.now_s + _FIRST_CHECK_S)
    return None if math.isinf(next_s) else next_s


def deadline_s(job: Job, state: JobState) -> float:
    """Return when the job exceeds its deadline; infinity if it has none, or does not run."""
    limit_s = job.spec.active_deadline_seconds
    return math.inf if limit_s is None or state.start_s is None or job.spec.suspend else state.start_s + limit_s


def with_progress(
    state: JobState, job: Job, pods: Sequence[AttemptPod], reports: Mapping[str, contract.TaskReport]
) -> JobState:
    """Return the state with its percentage and the sums of the running tasks' reports."""
    pods = [pod for pod in pods if pod.state is PodLife.RUNNING and pod.name in reports and pod.step == state.step]
    running = [(pod, reports[pod.name]) for pod in pods]
    sums = {name: contract.clamp(sum(getattr(report, name) for _, report in running)) for name in _SUMMED}
    total = mrjob_status.RunningSums(tasks=len(running), **sums) if running else None
    return dataclasses.replace(state, percent=_percent(state, job, running), running=total)


def _percent(state: JobState, job: Job, running: Sequence[tuple[AttemptPod, contract.TaskReport]]) -> int:
    """Return the percentage: all tasks of a step and all steps have equal weight; 100 only for complete output."""
    if state.phase == "Succeeded":
        return _ALL
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
    return min(_ALL - 1, int(_ALL * (state.step + here) / len(job.steps)))
