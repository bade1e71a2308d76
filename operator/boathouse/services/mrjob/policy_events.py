"""Publish events about jobs and their tasks to the profile's observers."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Final

from boathouse.resources.names import Reason
from boathouse.services.frame.pod_events import LOST, Ended, PodEvents, Publisher
from boathouse.services.hadoop import Directory
from boathouse.services.mrjob import hdfs, pod_builder, results, submission
from boathouse.services.mrjob.attempt_pods import AttemptPod
from boathouse.services.mrjob.job_state import JobState
from boathouse.services.mrjob.model import Job, JobUid
from boathouse.services.mrjob.settle import Attempt
from boathouse_policies import framework, model, run_times
from boathouse_task.contract import Plan, TaskReport, TaskType

_LOOKED_BACK: Final = 16  # attempts of a task among which the one is sought that another repeats


@dataclasses.dataclass(slots=True)
class _ReportedJob:
    """State of a job in its last published events."""

    job: Job
    pods: PodEvents[AttemptPod]
    classes: tuple[model.TaskClass, ...] = ()
    plan: Plan | None = None


class PolicyEvents:
    """Publishes events about all jobs of this process."""

    def __init__(
        self,
        observers: Sequence[framework.Observer],
        learner: run_times.Learner,
        now: Callable[[], float],
        clusters: Directory,
    ) -> None:
        self._publisher, self._learner, self._clusters = Publisher(observers, now), learner, clusters
        self._jobs: dict[JobUid, _ReportedJob] = {}
        self._nodes: dict[model.NodeName, model.Node] = {}

    def update(
        self,
        job: Job,
        state: JobState,
        pods: Sequence[AttemptPod],
        classes: Sequence[model.TaskClass],
        plan: Plan | None = None,
    ) -> list[AttemptPod]:
        """Publish the changes of an unfinished job, with all known classes of its current step.

        Returns new pods with less memory than wanted. The pods of the state are settled.
        """
        reported = self._jobs.get(job.uid) or self._jobs.setdefault(job.uid, self._begin(job))
        reported.job, reported.plan = job, plan
        if reported.classes != tuple(classes):
            reported.classes = tuple(classes)
            left = {task_class.id: _left(state, task_class, reported, pods) for task_class in classes}
            # Those that ended under a former leader are included.
            totals = {task_class.id: state.total(TaskType(task_class.stage.value)) for task_class in classes}
            self._publisher.submitted(submission.scheduler_job(job), reported.classes, left, totals)
        return [pod for pod in reported.pods.update(pods) if pod.ideal_memory_bytes]

    def probe(self, job: Job, pods: Sequence[AttemptPod], plan: Plan | None) -> None:
        """Publish the changes of a job's probe, which is a job of its own for the policies."""
        uid, task_class = submission.probe_uid(job.uid), submission.probe_class(job)
        reported = self._jobs.get(uid)
        if reported is None:
            reported = self._jobs[uid] = self._begin(job)
            self._publisher.submitted(submission.probe_job(job), (task_class,), {task_class.id: 1})
        reported.plan = plan
        reported.pods.update(pods)

    def ended(self, uid: JobUid, *, succeeded: bool, pods: Sequence[AttemptPod] = ()) -> None:
        """Publish the end of a finished or deleted job, if events about it were published."""
        if (reported := self._jobs.pop(uid, None)) is not None:
            reported.pods.forget(pods)
            self._learner.forget(model.JobId(uid))
            self._publisher.ended(model.JobId(uid), succeeded=succeeded)

    def report(self, uid: JobUid, pod_name: str, report: TaskReport) -> None:
        """Publish the report of a running task."""
        reported = self._jobs.get(uid)
        pod = reported.pods.find(pod_name) if reported else None
        if reported is None or pod is None or not pod.state.is_live:
            return
        splits = reported.plan.splits if reported.plan is not None and pod.task_type is TaskType.MAP else ()
        split_bytes = splits[pod.index].length_bytes if pod.index < len(splits) else 0
        cpu_milli, about = pod.resources.cpu_milli, self._about(reported.job, pod)
        signal = results.signal(pod.task_type, report, cpu_milli=cpu_milli, split_bytes=split_bytes)
        self._publisher.publish(model.Progress(**about, **signal._asdict()))

    def node_changed(self, name: model.NodeName, node: model.Node | None) -> None:
        """Publish a new, changed or deleted node."""
        self._nodes.pop(name, None)
        if node is not None:
            self._nodes[name] = node
        self._publisher.publish(model.NodeChanged(now_s=self._publisher.now(), name=name, node=node))

    def tick(self) -> None:
        """Publish a tick."""
        self._publisher.publish(model.Tick(now_s=self._publisher.now()))

    def _begin(self, job: Job) -> _ReportedJob:
        def distance(pod: AttemptPod) -> model.Distance:
            node_of = functools.partial(self._clusters.node_of, job.namespace)
            stored_on = hdfs.locations(pod.task_type, pod.index, reported.plan, node_of)
            return hdfs.distance(model.NodeName(pod.node or ""), stored_on, self._nodes)

        reported = _ReportedJob(
            job,
            PodEvents(
                self._publisher.publish,
                about=lambda pod: self._about(reported.job, pod),
                distance=distance,
                ended=lambda pod: self._end(reported, pod),
                second_of=lambda pod: _second_of(reported, pod),
            ),
        )
        return reported

    def _about(self, job: Job, pod: AttemptPod) -> model.About:
        owner = model.JobId(submission.probe_uid(job.uid) if pod.task_type is TaskType.PROBE else job.uid)
        return self._publisher.about(owner, job.namespace, pod, submission.class_id(job, pod.task_type, pod.step))

    def _end(self, reported: _ReportedJob, pod: AttemptPod) -> Ended:
        """Learn from an attempt that ended, unless it is a probe; return how it ended."""
        is_probe, less = pod.task_type is TaskType.PROBE, bool(pod.ideal_memory_bytes)
        stage = submission.run_times_stage(reported.job, pod.task_type, pod.step)
        if pod.result is None:
            reason = pod.ending.reason if pod.ending is not None else LOST
            if reason == Reason.OOM_KILLED and less and not is_probe:
                self._learner.out_of_memory(stage, pod.resources.memory_bytes)
            return Ended(reason=reason)
        whole_bytes = reported.plan.bytes_total if is_probe and reported.plan is not None else 0
        seconds, has_local_input = results.worked_s(pod.result), reported.job.s3 is None
        counters = results.flat_counters(pod.result, has_local_input=has_local_input, whole_bytes=whole_bytes)
        if not is_probe:
            used = run_times.MemoryUse(
                memory_bytes=pod.resources.memory_bytes,
                spilled_bytes=counters["spilled_bytes"],
                spill_bytes_per_s=counters.get("spill_bytes_per_s", 0.0),
                peak_bytes=counters.get("peak_memory_bytes", 0.0),
            )
            read_bytes = results.input_bytes(counters)
            self._learner.learn(stage, seconds=seconds, input_bytes=read_bytes, less=less, used=used)
        return Ended(duration_s=seconds, counters=counters)


def _second_of(reported: _ReportedJob, pod: AttemptPod) -> model.TaskId | None:
    for number in range(pod.attempt - 1, max(0, pod.attempt - _LOOKED_BACK), -1):
        attempt = Attempt(task_type=pod.task_type, index=pod.index, number=number, step=pod.step)
        former_pod = reported.pods.find(pod_builder.pod_name(reported.job, attempt))
        if former_pod is not None and former_pod.state.is_live:
            return submission.task_id(reported.job, attempt)
    return None


def _left(state: JobState, task_class: model.TaskClass, reported: _ReportedJob, pods: Sequence[AttemptPod]) -> int:
    """Return the number of tasks of a class without a published placement, including pods to be published next."""
    task_type = TaskType(task_class.stage.value)
    stage = state.stages.get(task_type)
    if stage is None:
        return 0
    placed = [pod for pod in pods if pod.node is not None and pod.task_type is task_type and pod.step == state.step]
    busy = {pod.index for pod in placed if pod.state.is_live}
    news = [pod for pod in placed if not reported.pods.knows(pod)]
    failing = sum(pod.result is None and not pod.state.is_live for pod in news)  # published as placed, then as failed
    waiting = sum(not winner and index not in busy for index, winner in enumerate(stage.winner))
    return waiting + len(news) - failing
