"""Publish events about jobs to the profile's observers, from the changes of a job's pods between two reconciles.

Events are derived from observed pods, not from actions. After a restart the first reconcile publishes events for all
existing pods, including ended ones, so that observers have the running tasks and learn from the rest of the job.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob.attempts.attempt_pod import AttemptPod
from boathouse.services.mrjob.job.model import Job, JobUid
from boathouse.services.mrjob.placement import submission
from boathouse.services.mrjob.state.job_state import JobState
from boathouse_policies import framework, model, run_times
from boathouse_task import contract
from boathouse_task.contract import TaskType

_WAITING_PHASES: Final = frozenset({"wait"})
"""Phases in which a reduce waits for maps, which are not part of its run time."""
_INPUT_BYTES: Final = ("Bytes Read", "Reduce shuffle bytes")


@dataclasses.dataclass(slots=True)
class _ReportedJob:
    """State of a job in its last published events.

    Attributes:
        pods: Last published pod by name.
    """

    job: Job
    classes: tuple[model.TaskClass, ...] = ()
    pods: dict[str, AttemptPod] = dataclasses.field(default_factory=dict)

    def find(self, pod: AttemptPod) -> AttemptPod | None:
        """Return the last published version of a pod, or None."""
        known = self.pods.get(pod.name)
        return known if known is not None and known.uid == pod.uid else None


class PolicyEvents:
    """Publishes events about all jobs of this process.

    Args:
        observers: Observers of the profile.
        learner: Learns run times of tasks.
        now: Returns the scheduler's time in seconds.
    """

    def __init__(
        self, observers: Sequence[framework.Observer], learner: run_times.Learner, now: Callable[[], float]
    ) -> None:
        self._observers = observers
        self._learner = learner
        self._now = now
        self._jobs: dict[JobUid, _ReportedJob] = {}

    def update(
        self, job: Job, state: JobState, pods: Sequence[AttemptPod], classes: Sequence[model.TaskClass]
    ) -> list[AttemptPod]:
        """Publish the changes of an unfinished job since the last call.

        Args:
            job: The job.
            state: Its state, with its pods settled.
            pods: All its pods.
            classes: All known classes of its current step, with estimates.

        Returns:
            New pods that were started with less memory than they requested.
        """
        reported = self._jobs.setdefault(job.uid, _ReportedJob(job))
        reported.job = job
        placed = [pod for pod in pods if pod.node is not None]
        if reported.classes != tuple(classes):
            reported.classes = tuple(classes)
            left = {one.id: _left(job, state, one, reported, placed) for one in classes}
            now_s, known = self._now(), submission.scheduler_job(job)
            self._publish(model.Submitted(now_s=now_s, job=known, classes=reported.classes, tasks=left))
        less = [pod for pod in placed if pod.ideal_memory_bytes and reported.find(pod) is None]
        here = {pod.uid for pod in placed}
        for pod in list(reported.pods.values()):
            if pod.uid not in here:
                self._vanished(reported, pod)
        for pod in placed:
            self._pod(reported, pod)
        return less

    def ended(self, uid: JobUid, *, succeeded: bool, pods: Sequence[AttemptPod] = ()) -> None:
        """Publish the end of a finished or deleted job, if events about it were published."""
        reported = self._jobs.pop(uid, None)
        if reported is None:
            return
        for pod in pods:
            if pod.node is not None:  # includes pods that started and ended since the last reconcile
                self._pod(reported, pod)
        for known in list(reported.pods.values()):
            self._vanished(reported, known)
        self._learner.forget(model.JobId(uid))
        self._publish(model.Ended(now_s=self._now(), job=model.JobId(uid), succeeded=succeeded))

    def report(self, uid: JobUid, pod_name: str, report: contract.TaskReport) -> None:
        """Publish the report of a running task."""
        reported = self._jobs.get(uid)
        known = reported.pods.get(pod_name) if reported else None
        if reported is None or known is None or not known.state.is_live:
            return
        self._publish(
            model.Progress(
                **self._about(reported.job, known),
                fraction=report.progress,
                phase=report.phase,
                counters=_flat(report.counters),
            )
        )

    def node_changed(self, name: model.NodeName, node: model.Node | None) -> None:
        """Publish a new, changed or deleted node."""
        self._publish(model.NodeChanged(now_s=self._now(), name=name, node=node))

    def tick(self) -> None:
        """Publish a tick."""
        self._publish(model.Tick(now_s=self._now()))

    def _pod(self, reported: _ReportedJob, pod: AttemptPod) -> None:
        """Publish the changes of a pod that has a node."""
        before = reported.find(pod)
        if before is not None and (before is pod or not before.state.is_live):
            return
        reported.pods[pod.name] = pod
        about, resources = self._about(reported.job, pod), submission.placed_resources(reported.job, pod)
        if before is None:
            self._publish(model.Placed(**about, resources=resources, distance=model.Distance.ANYWHERE))
        elif pod.memory_bytes != before.memory_bytes:
            self._publish(model.Resized(**about, resources=resources))
        if pod.state is not PodLife.STARTING and (before is None or before.state is PodLife.STARTING):
            self._publish(model.Started(**about))
        if not pod.state.is_live:
            self._end(reported.job, pod)

    def _about(self, job: Job, pod: AttemptPod) -> model.About:
        assert pod.node is not None
        return {
            "now_s": self._now(),
            "task": model.TaskId(f"{job.namespace}/{pod.name}"),
            "task_class": submission.class_id(job, pod.task_type, pod.step),
            "job": model.JobId(job.uid),
            "node": model.NodeName(pod.node),
        }

    def _vanished(self, reported: _ReportedJob, pod: AttemptPod) -> None:
        """Drop a deleted pod, and publish its failure if its end was not observed."""
        del reported.pods[pod.name]
        if pod.state.is_live:
            self._end(reported.job, pod)

    def _end(self, job: Job, pod: AttemptPod) -> None:
        stage, about = submission.run_times_stage(job, pod.task_type, pod.step), self._about(job, pod)
        if pod.result is None:
            reason = pod.ending.reason if pod.ending is not None else "PodLost"
            if reason == "OOMKilled" and pod.ideal_memory_bytes:
                self._learner.out_of_memory(stage)
            self._publish(model.Failed(**about, reason=reason))
            return
        seconds, counters = _worked_s(pod.result), _flat(pod.result.counters)
        read = sum(counters.get(name, 0.0) for name in _INPUT_BYTES)
        self._learner.learn(stage, seconds=seconds, input_bytes=read, less=bool(pod.ideal_memory_bytes))
        self._publish(model.Finished(**about, duration_s=seconds, counters=counters))

    def _publish(self, event: model.Event) -> None:
        for observer in self._observers:
            observer.observe(event)


def _left(
    job: Job, state: JobState, task_class: model.TaskClass, reported: _ReportedJob, placed: Sequence[AttemptPod]
) -> int:
    """Return the number of tasks of a class without a published placement, including pods to be published next."""
    task_type = TaskType(task_class.stage.value)
    stage = state.stages.get(task_type)
    if stage is None:
        return 0
    busy = {pod.index for pod in placed if pod.task_type is task_type and pod.step == state.step and pod.state.is_live}
    news = [
        pod
        for pod in placed
        if submission.class_id(job, pod.task_type, pod.step) == task_class.id and reported.find(pod) is None
    ]
    failing = sum(pod.result is None and not pod.state.is_live for pod in news)  # published as placed, then as failed
    waiting = sum(not stage.winner[index] and index not in busy for index in range(stage.total))
    return waiting + len(news) - failing


def _worked_s(result: contract.TaskResult) -> float:
    """Return the run time of a task, without its waits."""
    spans = [timing for timing in result.timings if timing.phase not in _WAITING_PHASES]
    return sum(max(0, each.end_ms - each.start_ms) for each in spans) / 1000


def _flat(counters: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    return {name: float(value) for values in counters.values() for name, value in values.items()}
