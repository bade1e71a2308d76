"""Plan the next actions of a job from its object, its plan's ConfigMaps and its pods.

    Pending -> Setup -> Map -> Reduce -> Commit -> Succeeded     (Setup, Map, Reduce: once for each step)
       any phase ----------------------------------> Failed
       any phase <---------------------------------> Suspended

A job that has ended or is being deleted may have to be cleaned up (`cleanup`).

`plan` is pure and level-triggered: its result depends only on the observation, so after a restart at any point the next
reconcile continues. The frame carries out the result in this order: write the plan's ConfigMaps, write the status,
delete pods, submit the pending attempts to the scheduler. A pod is deleted only after the status that counts it.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final

from boathouse.resources import names, quantity
from boathouse.resources.mrjob import spec, status as mrjob_status
from boathouse.services.frame.kind import Refusal
from boathouse.services.frame.pod_life import PodLife, Problem
from boathouse.services.mrjob import conditions
from boathouse.services.mrjob.attempt_pods import Ending
from boathouse.services.mrjob.job_state import MAX_LAST_FAILURES, JobState, StageState
from boathouse.services.mrjob.model import Resources
from boathouse.services.mrjob.planning import cleanup, steps
from boathouse.services.mrjob.planning.observation import Desired, Observation
from boathouse.services.mrjob.settle import RUN, Attempt, Settlement, failure
from boathouse_task.contract import TaskType

_PHASES: Final[Mapping[TaskType, mrjob_status.Phase]] = {
    TaskType.MAP: "Map",
    TaskType.UBER: "Map",
    TaskType.REDUCE: "Reduce",
    TaskType.COMMIT: "Commit",
}


def refuse(state: JobState, refusal: Refusal, generation: int, now_s: float) -> JobState:
    """Return the state of a refused resource. It is pending, because the cause may be fixed without a change of it."""
    if state.finished:
        return state
    refused = (names.ConditionType.ADMITTED, False, refusal.reason, refusal.message)
    state = dataclasses.replace(state, observed_generation=generation)
    return conditions.with_conditions(state, now_s, refused, reason=refusal.reason)


def plan(observation: Observation) -> Desired:
    """Return the next actions of the job."""
    everything, step, suspend = observation, observation.state.step, observation.job.spec.suspend
    observation = dataclasses.replace(observation, pods=[pod for pod in everything.pods if pod.step == step])
    state = _accept_plan(observation)
    if state.finished or observation.job.deleting_since_s is not None:
        return cleanup.plan(everything, observation, state)
    if observation.missing and state.plan is None and not everything.pods and not suspend:
        return _held(observation, state)
    stage_type = steps.current(state, observation.job)
    settlement = steps.settled(observation, state, stage_type, steps.HALT if suspend else RUN)
    is_planned = stage_type is TaskType.SETUP and settlement.stages[TaskType.SETUP].done
    write_plan = is_planned and _plan_at_hand(observation, settlement)
    if suspend:
        settlement.waiting.clear()
    if stage_type is TaskType.MAP:
        mapped = dataclasses.replace(state, stages={**state.stages, **settlement.stages})
        control = steps.early_reduces(observation, mapped, settlement.waiting)
        steps.settled(observation, state, TaskType.REDUCE, control, former=settlement)
    state = steps.follow(_advance(observation, state, settlement), observation.job)
    state = _describe(observation, state, stage_type, settlement)
    state = conditions.with_suspensions(state, observation, everything.pods)
    if state.finished:
        state = cleanup.begin(observation.job, state, observation.now_s)
        return Desired(
            state=state,
            delete=[pod for pod in everything.pods if pod.is_active],
            recheck_at_s=observation.now_s,
            cleaning=cleanup.is_in_progress(state),
            settlement=settlement,
        )
    moved, order = steps.current(state, observation.job) is not stage_type, list(TaskType)
    over = [pod for pod in observation.pods if pod.task_type in order[: order.index(stage_type)]]
    over += [pod for pod in everything.pods if pod.step != step]
    return Desired(
        state=state,
        write_plan=write_plan,
        delete=[*settlement.obsolete, *(pod for pod in over if pod.is_active)],
        waiting=[*settlement.waiting, *settlement.seconds],
        recheck_at_s=observation.now_s
        if moved
        else steps.next_reconcile_s(observation, state, settlement.recheck_at_s),
        settlement=settlement,
    )


def noticed(state: JobState, unseen: Iterable[Attempt]) -> JobState:
    """Return the state with these attempts, whose pods ended unobserved. The next reconcile settles them as lost."""
    stages = {kind: stage.copy() for kind, stage in state.stages.items()}
    for attempt in unseen:
        if attempt.step == state.step:
            last = stages[attempt.task_type].last
            last[attempt.index] = max(last[attempt.index], attempt.number)
    return dataclasses.replace(state, stages=stages)


def _accept_plan(observation: Observation) -> JobState:
    """Return the state with the stored plan accepted: it is complete and has the digest of setup's result."""
    state, stored = observation.state, observation.stored
    if state.plan is not None or stored is None or state.finished:
        return state
    setup = state.stages[TaskType.SETUP].copy()
    setup.last[0] = max([setup.last[0], *(pod.attempt for pod in observation.pods if pod.task_type is TaskType.SETUP)])
    setup.winner[0] = max(1, setup.last[0])
    maps, reduces = StageState.empty(stored.splits), StageState.empty(observation.job.steps[state.step].reduces)
    stages = {TaskType.SETUP: setup, TaskType.MAP: maps, TaskType.REDUCE: reduces}
    return dataclasses.replace(state, plan=stored, stages={**state.stages, **stages})


def _plan_at_hand(observation: Observation, settlement: Settlement) -> bool:
    """Return whether the posted plan has the digest of setup's result. If not, settle setup as failed, to run again."""
    posted = observation.posted
    if posted and posted.splits > spec.MAX_MAPS:
        message = f"the input makes {posted.splits} splits, more than {spec.MAX_MAPS}: raise spec.splitMaxSize"
        settlement.verdict = Problem(reason=names.Reason.TOO_MANY_SPLITS, message=message)
        return False
    if posted and settlement.results and posted.digest == settlement.results[-1][1].digest:
        return True
    stage = settlement.stages[TaskType.SETUP]
    stage.winner[0] = 0
    stage.infrastructure_failures[0] += stage.last[0] - stage.settled(0)
    lost = Ending(reason=names.Reason.PLAN_LOST, message="the operator restarted", user_error=False)
    number, step = stage.last[0], observation.state.step
    settlement.failures.append(failure("setup", number, None, lost))
    settlement.waiting.append(Attempt(task_type=TaskType.SETUP, index=0, number=number + 1, step=step))
    return False


def _held(observation: Observation, state: JobState) -> Desired:
    """Return the plan for a job whose ConfigMaps are missing: it is pending, and fails after the start timeout."""
    job, now_s, why = observation.job, observation.now_s, observation.lacks_files
    deadline_s = job.created_s + observation.limits.start_timeout_s
    if now_s >= deadline_s:
        return Desired(state=conditions.finished(_common(observation, state), why, now_s))
    held = refuse(state, Refusal(reason=why.reason, message=why.message), job.generation, now_s)
    return Desired(state=dataclasses.replace(held, queue=job.queue), recheck_at_s=min(deadline_s, now_s + 5))


def _advance(observation: Observation, state: JobState, settlement: Settlement) -> JobState:
    """Return the state with the settlement; setup is done only when its plan is accepted."""
    if TaskType.SETUP in settlement.stages:
        settlement.stages[TaskType.SETUP].winner[0] = 0
    step = state.step if len(observation.job.steps) > 1 else None
    failures = (failed.model_copy(update={"step": step}) for failed in settlement.failures)
    return dataclasses.replace(
        _common(observation, state),
        stages={**state.stages, **settlement.stages},
        active=settlement.active,
        counters=settlement.counters,
        last_failures=(*state.last_failures, *failures)[-MAX_LAST_FAILURES:],
    )


def _common(observation: Observation, state: JobState) -> JobState:
    step = observation.job.steps[state.step]
    return dataclasses.replace(
        state,
        observed_generation=observation.job.generation,
        queue=observation.job.queue,
        steps=len(observation.job.steps),
        start_s=state.start_s if state.start_s is not None else observation.now_s,
        resources=mrjob_status.DecidedResources(
            map=_decided(step.mapper.resources), reduce=_decided(step.reducer.resources) if step.reducer else None
        ),
    )


def _decided(resources: Resources) -> mrjob_status.StageResources:
    return mrjob_status.StageResources(
        cpu_request=quantity.format_milli(resources.cpu_milli),
        cpu_limit=quantity.format_milli(resources.cpu_limit_milli),
        memory_request=quantity.format_bytes(resources.memory_request_bytes),
        memory_limit=quantity.format_bytes(resources.memory_bytes),
    )


def _describe(observation: Observation, state: JobState, stage_type: TaskType, settlement: Settlement) -> JobState:
    if settlement.verdict is None and state.stages[TaskType.COMMIT].done:
        return conditions.finished(state, None, observation.now_s)
    verdict = settlement.verdict or steps.overdue(observation.job, state, observation.now_s)
    if verdict is not None:
        if state.plan is not None and observation.job.spec.clean_up == "Never":
            remains = f"its work folder remains: remove {observation.job.work_url}"
            verdict = dataclasses.replace(verdict, message=f"{verdict.message} ({remains})")
        return conditions.finished(state, verdict, observation.now_s)
    if observation.job.spec.suspend:
        return conditions.suspended(state, observation.now_s, live=sum(pod.state.is_live for pod in observation.pods))
    stage = steps.current(state, observation.job)
    has_begun = state.step or state.stages[TaskType.SETUP].last[0]
    has_begun = has_begun or any(pod.state is not PodLife.UNPLACED for pod in observation.pods)
    pod, problem = next(((pod, pod.problem) for pod in settlement.problems), (None, None))
    if pod is not None and problem is not None:
        problem = dataclasses.replace(problem, message=f"{pod.task_name} on node {pod.node}: {problem.message}")
    return conditions.in_progress(
        dataclasses.replace(state, phase=_PHASES.get(stage, "Setup" if has_begun else "Pending")),
        now_s=observation.now_s,
        running=sum(running for _, running in settlement.active.values()),
        problem=problem,
        waiting=bool(settlement.waiting) and stage is stage_type,
        diagnosis=observation.diagnosis,
        less=sum(pod.state.is_live and pod.ideal_memory_bytes > 0 for pod in observation.pods),
    )
