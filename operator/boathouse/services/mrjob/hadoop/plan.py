"""Plan the next actions of a job on a Hadoop cluster. Pure and level-triggered.

    Pending -> Setup -> Map -> Reduce -> Succeeded
       any phase ----------------------> Failed
       any phase <---------------------> Suspended

An attempt is a client, which submits, and the applications with the attempt's tag. Its number is in the status before
its client is submitted. It is open until client and applications have ended. The next attempt begins when it is closed,
so no two run at a time:

* A client asks the operator for leave, and only the pod of the open attempt gets it.
* Of a client that has ended the ResourceManager says what it submitted. Nothing is submitted before it has been asked
  for the tags of all attempts, after the client's end (`mirror.are_sure`). What it finds is adopted.
* An attempt that is to end is stopping: its client is deleted and its applications are killed, until none is left.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Final

from boathouse.resources.mrcluster import spec
from boathouse.resources.names import ConditionType, Reason
from boathouse.services import hadoop
from boathouse.services.frame.pod_life import PodLife, Problem
from boathouse.services.mrjob import conditions, on_cluster
from boathouse.services.mrjob.attempt_pods import Ending
from boathouse.services.mrjob.hadoop import mirror
from boathouse.services.mrjob.hadoop.observation import TASK_TYPE, ClientPod, Desired, HadoopObservation, Submission
from boathouse.services.mrjob.job_state import MAX_ATTEMPT, MAX_LAST_FAILURES, HadoopState, JobState, hadoop_tag
from boathouse.services.mrjob.planning import steps
from boathouse.services.mrjob.settle import backoff_s, failure
from boathouse_task.cluster_contract import ApplicationFigures

SOON_S: Final = 2.0  # interval of reconciles while an answer of the ResourceManager is expected
RUNNING_S: Final = 10.0
CLUSTER_S: Final = 10.0
"""Interval at which a job without a cluster is looked at; a change of the cluster reconciles it at once."""
GIVE_UP_S: Final = 120.0  # how long a job that is over keeps its attempt in sight until its applications have ended
LAST_WORDS_S: Final = 20.0
"""How long a client may take to end after its application, and the JobHistoryServer to have the counters."""
_UNKNOWN: Final = Problem(
    reason=Reason.APPLICATIONS_UNKNOWN, message="the ResourceManager is asked for the applications of all attempts"
)
_SLOW: Final = Problem(reason=Reason.POD_START_TIMEOUT, message="see the events of its pod")
_LOST: Final = Ending(reason=Reason.POD_LOST, message="the client's pod was deleted", user_error=False)


def plan(o: HadoopObservation) -> Desired:
    """Return the next actions of the job."""
    desired = _plan(o)
    keys = on_cluster.closed_keys(o.job.spec)
    if not keys or o.state.finished:
        return desired
    ignored = (ConditionType.SETTINGS_OVERRIDDEN, True, Reason.CLOSED_SETTINGS, spec.ignored_settings(keys))
    return dataclasses.replace(desired, state=conditions.with_conditions(desired.state, o.now_s, ignored))


def _plan(o: HadoopObservation) -> Desired:
    common = dataclasses.replace(
        o.state,
        observed_generation=o.job.generation,
        queue=o.job.queue,
        start_s=o.state.start_s if o.state.start_s is not None else o.now_s,
    )
    state = mirror.of(common, o.applications)
    if state.finished or o.job.deleting_since_s is not None:
        return _wind_up(o, state)
    if _has_succeeded_anyway(o, state.hadoop):
        return _succeed(o, state)
    if o.job.spec.suspend:
        desired, live = _stopped(o, state), sum(pod.state.is_live for pod in o.pods)
        return dataclasses.replace(desired, state=conditions.suspended(desired.state, o.now_s, live=live))
    verdict = steps.overdue(o.job, state, o.now_s)
    return _finish(o, state, verdict) if verdict is not None else _go_on(o, state)


def _go_on(o: HadoopObservation, state: JobState) -> Desired:
    if state.hadoop is None or not state.hadoop.is_open:
        return _begin(o, state)
    if state.hadoop.is_stopping:
        return _stop(o, state)
    if _is_cluster_gone(o, state.hadoop):
        return _without_cluster(o, state)
    return _streaming(o, state) if o.job.spec.jar is None else _from_jar(o, state)


def _client(o: HadoopObservation, state: JobState) -> ClientPod | None:
    return next((pod for pod in o.pods if state.hadoop is not None and pod.attempt == state.hadoop.attempt), None)


def _has_succeeded(pod: ClientPod | None) -> bool:
    return pod is not None and pod.state is PodLife.SUCCEEDED


# Beginning and ending of attempts


def _begin(o: HadoopObservation, state: JobState) -> Desired:
    """Begin the next attempt if its files exist, its cluster is ready and its backoff has passed."""
    former = state.hadoop
    if (held := _held(o, state)) is not None:
        return held
    if former is not None and former.ended_s is not None and not former.is_stopping:
        ready_s = former.ended_s + backoff_s(sum(state.past_failures))
        if o.now_s < ready_s:
            return Desired(state=_in_progress(o, state), recheck_at_s=ready_s)
    number, cluster = former.attempt + 1 if former else 1, o.cluster.uid if o.cluster else ""
    if number > MAX_ATTEMPT:
        return _finish(o, state, Problem(reason=Reason.POD_LOST, message=f"{number - 1} attempts were lost"))
    begun = HadoopState(attempt=number, tag=hadoop_tag(o.job.uid, number), cluster=cluster, since_s=o.now_s)
    state = dataclasses.replace(state, hadoop=begun, percent=0, counters={})
    return Desired(state=_in_progress(o, state, waiting=True), recheck_at_s=o.now_s)


def _held(o: HadoopObservation, state: JobState) -> Desired | None:
    """Return the plan for a job that lacks what its client needs; None if it has that.

    It waits for its cluster without a limit, but fails if a ConfigMap is missing for as long as a pod may start.
    """
    if not o.missing:
        problem = _problem_of_cluster(o)
        return None if problem is None else _pending(o, state, problem)
    attempt_s = (state.hadoop.ended_s or state.hadoop.since_s) if state.hadoop is not None else 0.0
    if o.now_s >= max(state.start_s or o.now_s, attempt_s) + o.limits.start_timeout_s:
        return _finish(o, state, o.lacks_files)
    return _pending(o, state, o.lacks_files)


def _problem_of_cluster(o: HadoopObservation) -> Problem | None:
    name, absent = o.job.cluster, next((name for name, uid in o.unknown.items() if uid is None), None)
    if absent is not None:
        return Problem(reason=Reason.CLUSTER_NOT_FOUND, message=hadoop.not_found(o.job.namespace, absent))
    if o.cluster is None or o.unknown:
        return Problem(reason=Reason.CLUSTER_NOT_READY, message=hadoop.not_reconciled(next(iter(o.unknown), name)))
    if not o.cluster.has_compute:
        message = f'the MRCluster "{name}" has no YARN (spec.compute): choose another cluster'
        return Problem(reason=Reason.NO_COMPUTE, message=message)
    message = f'the MRCluster "{name}" is not ready ({o.cluster.phase})'
    return None if o.cluster.is_ready else Problem(reason=Reason.CLUSTER_NOT_READY, message=message)


def _is_cluster_gone(o: HadoopObservation, hadoop: HadoopState) -> bool:
    """Return whether the cluster of an attempt was deleted, and all its applications with it."""
    uid = o.cluster.uid if o.cluster is not None else o.unknown.get(o.job.cluster, hadoop.cluster)
    return uid is None or hadoop.cluster not in ("", uid)


def _pending(o: HadoopObservation, state: JobState, problem: Problem) -> Desired:
    admitted = conditions.admitted(state)
    if problem.reason in (Reason.CLUSTER_NOT_FOUND, Reason.CONFIG_MAP_NOT_FOUND):
        admitted = (ConditionType.ADMITTED, False, problem.reason, problem.message)
    scheduled = (ConditionType.SCHEDULED, False, problem.reason, problem.message)
    over = ((ConditionType.SUSPENDED, False, Reason.RESUMED, ""), (ConditionType.RUNNING, False, problem.reason, ""))
    former = [condition for condition in over if state.condition(condition[0]) is not None]
    changes, reason = (admitted, scheduled, *former), str(problem.reason)
    state = conditions.with_conditions(state, o.now_s, *changes, phase="Pending", reason=reason)
    return Desired(state=state, recheck_at_s=min(steps.deadline_s(o.job, state), o.now_s + CLUSTER_S))


def _stopped(o: HadoopObservation, state: JobState) -> Desired:
    """Stop the attempt, if it is open. It is closed when its client and its applications have ended."""
    hadoop, live = state.hadoop, [pod for pod in o.pods if pod.is_active]
    if hadoop is None or not hadoop.is_open:
        return Desired(state=state, delete=live)
    kill = [application.id for application in mirror.running(o.views)]
    state = _with_attempt(state, is_stopping=True)
    is_all_known = o.submission is Submission.NONE or mirror.are_sure(o.views, o.clientless_s)
    if not kill and not o.can_submit and (is_all_known or _is_cluster_gone(o, hadoop)):
        return Desired(state=_with_attempt(state, ended_s=o.now_s), delete=live)
    return Desired(state=state, delete=live, kill=kill, recheck_at_s=o.now_s + SOON_S)


def _with_attempt(state: JobState, **fields: Any) -> JobState:
    assert state.hadoop is not None
    return dataclasses.replace(state, hadoop=dataclasses.replace(state.hadoop, **fields))


def _stop(o: HadoopObservation, state: JobState) -> Desired:
    """Carry on the end of an attempt that was lost, suspended or cannot start, before the job goes on."""
    desired = _stopped(o, state)
    state = _in_progress(o, desired.state, problem=_problem_of_cluster(o))
    return dataclasses.replace(desired, state=state, recheck_at_s=o.now_s + SOON_S)


def _finish(o: HadoopObservation, state: JobState, verdict: Problem) -> Desired:
    return _wind_up(o, conditions.finished(state, verdict, o.now_s))


def _succeed(o: HadoopObservation, state: JobState) -> Desired:
    state = conditions.finished(_with_attempt(state, ended_s=o.now_s), None, o.now_s)
    return _wind_up(o, dataclasses.replace(state, percent=100))


def _wind_up(o: HadoopObservation, state: JobState) -> Desired:
    """Stop what a job left that is over or being deleted, for a limited time."""
    desired = _stopped(o, state)
    hadoop = desired.state.hadoop
    if hadoop is None or not hadoop.is_open:
        return desired
    since_s = o.job.deleting_since_s if o.job.deleting_since_s is not None else state.completion_s
    if since_s is None or o.now_s < since_s + GIVE_UP_S:
        return dataclasses.replace(desired, is_ending=True)
    message = f"applications with the tag {hadoop.tag} may still run: kill them, or delete the cluster"
    left = (ConditionType.CLEANED_UP, False, Reason.CLEAN_UP_FAILED, message)
    state = conditions.with_conditions(_with_attempt(desired.state, ended_s=o.now_s), o.now_s, left)
    return dataclasses.replace(desired, state=state, recheck_at_s=None)


def _has_succeeded_anyway(o: HadoopObservation, hadoop: HadoopState | None) -> bool:
    """Return whether the application of an attempt that was to end, or lost its cluster, has succeeded before."""
    return (
        hadoop is not None
        and o.job.spec.jar is None
        and (hadoop.is_stopping or not hadoop.is_open or _is_cluster_gone(o, hadoop))
        and any(application.final_status == "SUCCEEDED" for application in hadoop.applications)
    )


# An open attempt


def _streaming(o: HadoopObservation, state: JobState) -> Desired:
    """Follow a job of Hadoop Streaming: a client submits one application, whose end decides."""
    if any(not application.has_ended for application in o.applications):
        return _running(o, state)
    if o.applications:
        return _settle(o, state, mirror.newest(o.applications))
    return _starting(o, state) if o.can_submit else _without_client(o, state)


def _from_jar(o: HadoopObservation, state: JobState) -> Desired:
    """Follow a job from a jar: a client submits any number of applications, and its exit decides."""
    pod = _client(o, state)
    if o.can_submit:
        return _running(o, state) if o.applications else _starting(o, state)
    if _has_succeeded(pod):
        return _succeed(o, state)
    return _failed(o, state, _LOST) if pod is None and o.applications else _without_client(o, state)


def _without_cluster(o: HadoopObservation, state: JobState) -> Desired:
    """Return the plan for an attempt whose cluster was deleted: the next one waits for a cluster of this name."""
    message = f'the MRCluster "{o.job.cluster}" was deleted while the attempt ran'
    gone = Ending(reason=Reason.CLUSTER_NOT_FOUND, message=message, user_error=False)
    return _succeed(o, state) if _has_succeeded(_client(o, state)) else _failed(o, state, gone)


def _without_client(o: HadoopObservation, state: JobState) -> Desired:
    """Return the plan for an attempt whose client has ended, or does not exist yet, without an application."""
    pod, current = _client(o, state), state.hadoop
    assert current is not None
    if pod is None and o.submission is Submission.NONE and current.attempt == 1:
        return _held(o, state) or _submitting(o, state)
    if not mirror.are_sure(o.views, o.clientless_s):
        state = _in_progress(o, state, problem=_problem_of_cluster(o) or _UNKNOWN)
        return Desired(state=state, recheck_at_s=min(steps.deadline_s(o.job, state), o.now_s + SOON_S))
    if _has_succeeded(pod):
        return _succeed(o, state)
    if pod is not None or o.submission is Submission.MADE:
        return _failed(o, state, (pod.ending if pod else None) or _LOST)
    return _adopted(o, state, current) or _held(o, state) or _submitting(o, state)


def _adopted(o: HadoopObservation, state: JobState, current: HadoopState) -> Desired | None:
    """Return the plan with an earlier attempt whose application runs or made a streaming job's output; else None."""
    for number in range(current.attempt - 1, max(0, current.attempt - mirror.MOST_TAGS), -1):
        tag = hadoop_tag(o.job.uid, number)
        view, is_streaming = o.views.get(tag), o.job.spec.jar is None
        applications = view.applications if view is not None else ()
        has_succeeded = is_streaming and any(application.final == "SUCCEEDED" for application in applications)
        if view is not None and (view.running or has_succeeded):
            former = HadoopState(attempt=number, tag=tag, cluster=current.cluster, since_s=current.since_s)
            state = dataclasses.replace(state, hadoop=dataclasses.replace(former, is_stopping=not is_streaming))
            return Desired(state=_in_progress(o, state), recheck_at_s=o.now_s)
    return None


def _submitting(o: HadoopObservation, state: JobState) -> Desired:
    state = _in_progress(o, state, waiting=True)
    again_s = min(steps.deadline_s(o.job, state), o.now_s + SOON_S)
    return Desired(state=state, delete=_clients_of_other_attempts(o, state), submits=True, recheck_at_s=again_s)


def _starting(o: HadoopObservation, state: JobState) -> Desired:
    pod = _client(o, state)
    is_stale = pod is not None and o.cluster is not None and pod.settings not in ("", o.cluster.settings)
    if pod is not None and is_stale and pod.state in (PodLife.UNPLACED, PodLife.STARTING):
        return _stop(o, state)  # it cannot start: the cluster has other settings now, and the former were deleted
    if pod is None or pod.state is PodLife.UNPLACED:
        return _submitting(o, state)
    problem, late_s = pod.problem or _SLOW, math.inf
    if pod.state is PodLife.STARTING and pod.deleting_since_s is None:
        late_s = pod.placed_s + o.limits.timeout_s(problem.reason)
    if o.now_s >= late_s:
        message = f"not started after {late_s - pod.placed_s:.0f} s: {problem.message}"
        ending = Ending(reason=problem.reason, message=message, user_error=bool(pod.problem), time_s=o.now_s)
        return _failed(o, state, ending)
    where = Problem(reason=problem.reason, message=f"client on node {pod.node}: {problem.message}")
    return _running(o, state, where if pod.problem else None, until_s=late_s)


def _running(
    o: HadoopObservation, state: JobState, problem: Problem | None = None, *, until_s: float = math.inf
) -> Desired:
    """Return the plan for an attempt that goes on: clients and applications of other attempts end."""
    state = _in_progress(o, state, problem=problem)
    tag = state.hadoop.tag if state.hadoop is not None else ""
    return Desired(
        state=state,
        delete=_clients_of_other_attempts(o, state),
        kill=[application.id for application in mirror.running(o.views, but=tag)],
        recheck_at_s=min(steps.deadline_s(o.job, state), until_s, o.now_s + RUNNING_S),
    )


def _clients_of_other_attempts(o: HadoopObservation, state: JobState) -> Sequence[ClientPod]:
    number = state.hadoop.attempt if state.hadoop is not None else 0
    return [pod for pod in o.pods if pod.is_active and pod.attempt != number]


def _settle(o: HadoopObservation, state: JobState, application: ApplicationFigures) -> Desired:
    """Count the result of an application, once its client has ended and its counters are there, or time is over."""
    is_complete = not o.can_submit and bool(application.counters)
    if not is_complete and o.now_s < (o.all_ended_s if o.all_ended_s is not None else o.now_s) + LAST_WORDS_S:
        return dataclasses.replace(_running(o, state), recheck_at_s=o.now_s + SOON_S)
    if application.final == "SUCCEEDED":
        return _succeed(o, state)
    is_killed = "KILLED" in (application.final, application.state)
    reason = Reason.APPLICATION_KILLED if is_killed else Reason.APPLICATION_FAILED
    said = application.diagnostics.strip() or f"see boathouse logs, or the log of {application.id}"
    message = f"{application.id} has ended as {application.final}: {said}"
    return _failed(o, state, Ending(reason=reason, message=message, user_error=True))


def _failed(o: HadoopObservation, state: JobState, ending: Ending) -> Desired:
    """Count the failure of the attempt. The user's fails the job; after another one the next attempt begins."""
    assert state.hadoop is not None
    pod, number, (user, infrastructure) = _client(o, state), state.hadoop.attempt, state.past_failures
    failed = failure(TASK_TYPE, number, pod.node if pod is not None else None, ending, o.now_s)
    counted = (user + 1, infrastructure) if ending.user_error else (user, infrastructure + 1)
    failures = (*state.last_failures, failed)[-MAX_LAST_FAILURES:]
    state = dataclasses.replace(state, past_failures=counted, last_failures=failures)
    if ending.user_error or counted[1] >= o.limits.max_infrastructure:
        return _finish(o, state, Problem(reason=ending.reason, message=f"attempt {number}: {ending.message}"))
    desired = _stopped(o, state)
    state, hadoop = desired.state, desired.state.hadoop
    if hadoop is not None and not hadoop.is_open:  # the backoff is for attempts that ended by themselves
        state = _with_attempt(state, is_stopping=False)
    return dataclasses.replace(desired, state=_in_progress(o, state), recheck_at_s=o.now_s + SOON_S)


# The status


def _in_progress(
    o: HadoopObservation, state: JobState, *, waiting: bool = False, problem: Problem | None = None
) -> JobState:
    pod = _client(o, state)
    is_placed = pod is not None and pod.state is not PodLife.UNPLACED
    phase = (mirror.phase(state.hadoop) if state.hadoop else None) or ("Setup" if is_placed else "Pending")
    return conditions.in_progress(
        dataclasses.replace(state, phase=phase),
        now_s=o.now_s,
        running=int(pod is not None and pod.state is PodLife.RUNNING)
        + sum(not application.has_ended for application in o.applications),
        problem=problem,
        waiting=waiting,
        diagnosis=o.diagnosis,
    )
